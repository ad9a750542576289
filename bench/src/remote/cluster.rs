//! A file of HDFS, by WebHDFS: made of the data for the run, removed at its end.

use std::path::Path;
use std::time::Duration;

use reqwest::header::LOCATION;
use reqwest::{Client, Method, Response, StatusCode};
use tokio::runtime::Runtime;

use crate::remote::loops;
use crate::trouble::{Doing, Outcome, Trouble};

pub(super) struct ClusterFile {
    url: String,
    runtime: Runtime,
    client: Client,
}

impl ClusterFile {
    /// Makes the file at `url`, which has a query with `user.name`, and no `op`.
    pub(super) fn make(url: &str, data: &Path) -> Outcome<Self> {
        let (runtime, client) = loops::one_client().doing("set up a client for", Path::new(url))?;
        let file = Self {
            url: url.to_owned(),
            runtime,
            client,
        };
        let bytes = std::fs::read(data).doing("read", data)?;
        let create = file.url_to("CREATE&overwrite=true");
        let sent_on = file.ask(Method::PUT, &create, Vec::new())?;
        let to = sent_on.headers().get(LOCATION);
        let to = to
            .and_then(|to| to.to_str().ok())
            .ok_or_else(|| file.trouble(&format!("names no data node ({})", sent_on.status())))?;
        let made = file.ask(Method::PUT, to, bytes)?;
        if made.status() != StatusCode::CREATED {
            return Err(file.trouble(&format!("does not take the file ({})", made.status())));
        }
        Ok(file)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    fn url_to(&self, operation: &str) -> String {
        format!("{}&op={operation}", self.url)
    }

    fn ask(&self, method: Method, url: &str, body: Vec<u8>) -> Outcome<Response> {
        let asked = self.client.request(method, url).body(body);
        // Its clock starts within the runtime.
        let answered = async { asked.timeout(PATIENCE).send().await };
        let answered = self.runtime.block_on(answered);
        answered.map_err(|why| self.trouble(&why.without_url().to_string()))
    }

    fn trouble(&self, why: &str) -> Trouble {
        Trouble::Unfit(format!("the cluster of {}: {why}", self.url))
    }
}

impl Drop for ClusterFile {
    fn drop(&mut self) {
        // Whatever keeps it there is no fault of the figures, which are known by now.
        let _ = self.ask(Method::DELETE, &self.url_to("DELETE"), Vec::new());
    }
}

// A cluster on one machine writes a gigabyte in some seconds.
const PATIENCE: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_that_is_not_there_is_a_reason() {
        let data = tempfile::NamedTempFile::new().expect("a temporary file");
        let url = "http://127.0.0.1:9/webhdfs/v1/a?user.name=kvik";
        let why = ClusterFile::make(url, data.path()).err().expect("nobody");
        assert!(why.ends_only_the_case(), "{why}");
        assert!(why.to_string().contains("127.0.0.1:9"), "{why}");
    }
}
