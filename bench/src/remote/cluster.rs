//! A file of HDFS, by WebHDFS: made of the data for the run, removed at its end.

use std::path::Path;
use std::time::Duration;

use reqwest::header::LOCATION;
use reqwest::{Client, Method, Response, StatusCode};
use tokio::runtime::Runtime;

use crate::remote::loops;
use crate::trouble::{Doing, Outcome, Trouble};

/// Of our making: nothing else is removed.
pub(super) struct ClusterFile(Place);

/// Where the file is to be.
struct Place {
    url: String,
    runtime: Runtime,
    client: Client,
}

impl ClusterFile {
    /// Makes the file at `url`, which has a query with `user.name`, and no `op`. One that is there already stays as it is.
    pub(super) fn make(url: &str, data: &Path) -> Outcome<Self> {
        let (runtime, client) = loops::one_client().doing("set up a client for", Path::new(url))?;
        let place = Place {
            url: url.to_owned(),
            runtime,
            client,
        };
        let bytes = std::fs::read(data).doing("read", data)?;
        let create = place.url_to("CREATE&overwrite=false");
        let sent_on = place.ask(Method::PUT, &create, Vec::new())?;
        let to = sent_on.headers().get(LOCATION);
        let to = to
            .and_then(|to| to.to_str().ok())
            .ok_or_else(|| place.trouble(&format!("names no data node ({})", sent_on.status())))?;
        let made = place.ask(Method::PUT, to, bytes)?;
        match made.status() {
            StatusCode::CREATED => Ok(Self(place)),
            StatusCode::FORBIDDEN => Err(place.trouble(
                "does not take the file (403): either it has one of this name, which is left alone, or the user may not write there",
            )),
            status => Err(place.trouble(&format!("does not take the file ({status})"))),
        }
    }

    pub(super) fn url(&self) -> &str {
        &self.0.url
    }
}

impl Place {
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
        let Self(place) = self;
        let _ = place.ask(Method::DELETE, &place.url_to("DELETE"), Vec::new());
    }
}

// A cluster on one machine writes a gigabyte in some seconds.
const PATIENCE: Duration = Duration::from_secs(120);

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// A cluster of one node, which answers so many requests, the second of them, with the file, by this status. What it
    /// was asked is known when it has answered all.
    #[expect(
        clippy::disallowed_methods,
        reason = "a server of a test, beside the client that it is for"
    )]
    fn cluster(status: u16, requests: usize) -> (String, thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("bound");
        let asked = thread::spawn(move || {
            let mut asked = Vec::new();
            for number in 0..requests {
                let (mut socket, _) = listener.accept().expect("a client");
                let mut asks = BufReader::new(socket.try_clone().expect("a second descriptor"));
                let mut lines = asks.by_ref().lines().map_while(Result::ok);
                asked.push(lines.next().expect("the first line"));
                let fields: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
                let length = |line: &String| {
                    line.to_lowercase()
                        .strip_prefix("content-length: ")?
                        .parse()
                        .ok()
                };
                let length: u64 = fields.iter().find_map(length).unwrap_or(0);
                std::io::copy(&mut asks.take(length), &mut std::io::sink()).expect("its body");
                let status = match number {
                    0 => format!("307 Sent on\r\nlocation: http://{address}/data"),
                    1 => format!("{status} Whatever"),
                    _ => "200 Done".to_owned(),
                };
                let answer =
                    format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                socket.write_all(answer.as_bytes()).expect("it listens");
            }
            asked
        });
        (
            format!("http://{address}/webhdfs/v1/a?user.name=kvik"),
            asked,
        )
    }

    #[test]
    fn a_file_of_somebody_else_is_neither_written_nor_removed() {
        let data = tempfile::NamedTempFile::new().expect("a temporary file");
        let (url, asked) = cluster(403, 2);
        let why = ClusterFile::make(&url, data.path()).err().expect("refused");
        assert!(why.to_string().contains("is left alone"), "{why}");
        // A third request would have found nobody, and it is the last that would remove the file.
        let asked = asked.join().expect("it was asked twice");
        assert_eq!(asked, [CREATED, "PUT /data HTTP/1.1"]);
    }

    #[test]
    fn a_file_of_ours_is_removed_when_it_goes() {
        let data = tempfile::NamedTempFile::new().expect("a temporary file");
        let (url, asked) = cluster(201, 3);
        drop(ClusterFile::make(&url, data.path()).expect("made"));
        let asked = asked.join().expect("it was asked three times");
        let removed = "DELETE /webhdfs/v1/a?user.name=kvik&op=DELETE HTTP/1.1";
        assert_eq!(asked, [CREATED, "PUT /data HTTP/1.1", removed]);
    }

    const CREATED: &str = "PUT /webhdfs/v1/a?user.name=kvik&op=CREATE&overwrite=false HTTP/1.1";

    #[test]
    fn a_cluster_that_is_not_there_is_a_reason() {
        let data = tempfile::NamedTempFile::new().expect("a temporary file");
        let url = "http://127.0.0.1:9/webhdfs/v1/a?user.name=kvik";
        let why = ClusterFile::make(url, data.path()).err().expect("nobody");
        assert!(why.ends_only_the_case(), "{why}");
        assert!(why.to_string().contains("127.0.0.1:9"), "{why}");
    }
}
