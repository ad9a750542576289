//! A cluster of HDFS on the loopback that speaks WebHDFS: name nodes, of which one is active, and data nodes that have the
//! blocks. It is right, but for what a test changes about an answer.
//!
//! ```
//! use kvik::ReadAtExt;
//! use kvik_tests::hdfs::{Cluster, Setup};
//!
//! let cluster = Cluster::start(Setup::default());
//! cluster.put("/a b", b"some bytes");
//! let file = kvik::RemoteHandle::open(&cluster.url("/a%20b")).unwrap();
//! assert_eq!(file.read_to_end(0).unwrap(), b"some bytes");
//! ```

mod namespace;
mod query;

use std::sync::{Arc, Mutex};

use crate::hostile::{Asked, Reply, Script, Server};
use crate::tls::{Authority, Certificate};

use self::namespace::Namespace;
pub use self::query::Query;

/// What a cluster is like.
#[derive(Clone)]
pub struct Setup {
    /// How many name nodes it has; the first is active.
    pub name_nodes: usize,
    /// How many data nodes; each block is on all of them, and which is named first goes by the number of the block.
    pub data_nodes: usize,
    /// What the cluster calls the data nodes, in place of where they are.
    pub names: Vec<String>,
    /// In bytes.
    pub block_size: u64,
    /// The token that a reader must have, where he must have one. Data nodes take another one, which name nodes give.
    pub token: Option<String>,
    /// Who vouches for all nodes, where they are asked by TLS.
    pub authority: Option<Arc<Authority>>,
    /// What is changed about a right answer.
    pub change: Change,
}

/// Who answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// A name node, by its number.
    Name(usize),
    /// A data node, by its number.
    Data(usize),
}

/// Makes a script of a right answer.
pub type Change = Arc<dyn Fn(Node, &Asked, Reply) -> Script + Send + Sync>;

/// Nodes that answer. They end when this is dropped.
#[derive(Debug)]
pub struct Cluster {
    space: Arc<Mutex<Namespace>>,
    name_nodes: Vec<Server>,
    data_nodes: Mutex<Vec<Option<Server>>>,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            name_nodes: 1,
            data_nodes: 2,
            names: Vec::new(),
            block_size: 64 << 10,
            token: None,
            authority: None,
            change: Arc::new(|_, _, right| right.script()),
        }
    }
}

impl Setup {
    /// The same with changed answers.
    #[must_use]
    pub fn changed(
        self,
        change: impl Fn(Node, &Asked, Reply) -> Script + Send + Sync + 'static,
    ) -> Setup {
        Setup {
            change: Arc::new(change),
            ..self
        }
    }
}

impl Cluster {
    /// Starts one without a file.
    #[must_use]
    pub fn start(setup: Setup) -> Cluster {
        let space = Arc::new(Mutex::new(Namespace::new(&setup)));
        let node = |node: Node| {
            let (space, change) = (Arc::clone(&space), Arc::clone(&setup.change));
            let play = move |asked: &Asked| {
                let right = space.lock().unwrap().answer(node, asked);
                change(node, asked, right)
            };
            match &setup.authority {
                None => Server::start(play),
                Some(authority) => authority.serve(Certificate::Right, play),
            }
        };
        let data_nodes: Vec<_> = (0..setup.data_nodes).map(|n| node(Node::Data(n))).collect();
        let places = data_nodes.iter().map(|node| node.address().to_string());
        let name = |(number, place)| setup.names.get(number).cloned().unwrap_or(place);
        space.lock().unwrap().data_nodes = places.enumerate().map(name).collect();
        Cluster {
            name_nodes: (0..setup.name_nodes).map(|n| node(Node::Name(n))).collect(),
            data_nodes: Mutex::new(data_nodes.into_iter().map(Some).collect()),
            space,
        }
    }

    /// Puts a file there, a new one where there is one of that name.
    pub fn put(&self, path: &str, bytes: &[u8]) {
        self.space.lock().unwrap().put(path, bytes);
    }

    /// Writes to a file that is there: it stays the same one, and is modified.
    pub fn modify(&self, path: &str, bytes: &[u8]) {
        self.space.lock().unwrap().modify(path, bytes);
    }

    /// Takes a file away.
    pub fn remove(&self, path: &str) {
        self.space.lock().unwrap().remove(path);
    }

    /// Makes another name node the active one.
    pub fn activate(&self, number: usize) {
        self.space.lock().unwrap().active = number;
    }

    /// Ends a data node, of which the name nodes hear nothing.
    pub fn kill(&self, number: usize) {
        drop(self.data_nodes.lock().unwrap()[number].take());
    }

    /// The URL of a file at the first name node; the path is encoded already.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        self.name_nodes[0].url(&format!("webhdfs/v1{path}"))
    }

    /// Where a name node listens.
    #[must_use]
    pub fn name_node(&self, number: usize) -> String {
        self.name_nodes[number].address().to_string()
    }

    /// Where a data node listens.
    #[must_use]
    pub fn data_node(&self, number: usize) -> String {
        let nodes = self.data_nodes.lock().unwrap();
        nodes[number].as_ref().unwrap().address().to_string()
    }

    /// What this node was asked.
    #[must_use]
    pub fn asked(&self, node: Node) -> Vec<Asked> {
        match node {
            Node::Name(number) => self.name_nodes[number].asked(),
            Node::Data(number) => {
                let nodes = self.data_nodes.lock().unwrap();
                nodes[number]
                    .as_ref()
                    .map(Server::asked)
                    .unwrap_or_default()
            }
        }
    }

    /// How often the name nodes were asked for this operation.
    #[must_use]
    pub fn count(&self, op: &str) -> usize {
        let asked = self.name_nodes.iter().flat_map(Server::asked);
        asked
            .filter(|asked| Query::of(asked).value("op").as_deref() == Some(op))
            .count()
    }
}

/// A refusal as HDFS has it.
#[must_use]
pub fn exception(status: u16, name: &str, message: &str) -> Reply {
    let said = serde_json::json!({"RemoteException": {
        "exception": name,
        "javaClassName": format!("org.apache.hadoop.{name}"),
        "message": message,
    }});
    Reply::with(status, said.to_string().as_bytes()).header("content-type", "application/json")
}
