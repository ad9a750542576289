//! What a caller may say of a file of HDFS: user, delegation token, name nodes, where data nodes are.

use std::fmt;

use kvik_config::Config;
use kvik_core::Result;

use super::RemoteOptions;
use crate::cluster::{Cluster, DataNodeNames};
use crate::endpoint::{WebHdfsEndpoint, WebHdfsOptions};
use crate::location::Location;

/// What was said of HDFS. Its `Debug` shows no secret.
#[derive(Clone, Default)]
pub(super) struct HdfsWishes {
    user: Option<String>,
    delegation: Option<String>,
    name_nodes: Vec<String>,
    data_nodes: DataNodeNames,
}

impl RemoteOptions {
    /// The user of HDFS, in place of that of the URL and of the setting `webhdfs_username`. A cluster without Kerberos
    /// believes whom it is told.
    pub fn hdfs_user(mut self, name: &str) -> RemoteOptions {
        self.hdfs.user = Some(name.to_owned());
        self
    }

    /// A delegation token of HDFS, in place of that of the URL: what a cluster with Kerberos takes from those who do not
    /// speak it. It goes to the name nodes; to the data nodes goes what they give along.
    pub fn delegation(mut self, token: &str) -> RemoteOptions {
        self.hdfs.delegation = Some(token.to_owned());
        self
    }

    /// The name nodes of the cluster, each as `HOST` or `HOST:PORT`, in place of the host of the URL, which then may be any
    /// name. The one that is active is found out, and found out again when another one becomes it.
    ///
    /// # Example: two name nodes
    /// ```no_run
    /// use kvik_remote::RemoteHandle;
    ///
    /// let options = RemoteHandle::builder().name_nodes(&["nn1.example.org", "nn2.example.org:9870"]);
    /// let file = options.open("webhdfs://cluster/data/part-00000")?;
    /// # Ok::<(), kvik_core::Error>(())
    /// ```
    pub fn name_nodes(mut self, addresses: &[&str]) -> RemoteOptions {
        self.hdfs.name_nodes = addresses.iter().map(ToString::to_string).collect();
        self
    }

    /// Where the data node is that the cluster calls `from`, both `HOST` or `HOST:PORT`: name nodes name data nodes as the
    /// cluster's own network knows them. Without a port, `from` is that host at any port, and `to` keeps the port. By TLS
    /// the data node must prove that it is `to`.
    pub fn data_node(mut self, from: &str, to: &str) -> RemoteOptions {
        if let Err(error) = self.hdfs.data_nodes.add(from, to) {
            self.wrong.get_or_insert(error);
        }
        self
    }

    /// The file at `location`.
    pub(super) fn cluster(&self, location: &Location, config: &Config) -> Result<Cluster> {
        let wishes = &self.hdfs;
        let options = WebHdfsOptions {
            user: wishes.user.clone(),
            default_user: config.webhdfs_username()?.filter(|name| !name.is_empty()),
            delegation: wishes.delegation.clone(),
            headers: self.headers.clone(),
        };
        let endpoint = WebHdfsEndpoint::new(location, &options)?;
        let addresses = wishes.name_nodes.iter();
        let mut name_nodes = addresses
            .map(|address| endpoint.at_name_node(address))
            .collect::<Result<Vec<_>>>()?;
        if name_nodes.is_empty() {
            name_nodes.push(endpoint);
        }
        Ok(Cluster::new(name_nodes, wishes.data_nodes.clone()))
    }

    /// What no text may show of what was said.
    pub(super) fn hdfs_secrets(&self) -> Vec<String> {
        self.hdfs.delegation.iter().cloned().collect()
    }
}

impl fmt::Debug for HdfsWishes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HdfsWishes")
            .field("user", &self.user)
            .field("has_delegation", &self.delegation.is_some())
            .field("name_nodes", &self.name_nodes)
            .field("data_nodes", &self.data_nodes)
            .finish()
    }
}
