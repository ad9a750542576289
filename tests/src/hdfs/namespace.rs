//! The files of a cluster, and what its nodes answer.

use std::collections::HashMap;

use super::{Node, Query, Setup, exception};
use crate::hostile::{Asked, Reply};
use crate::percent::encoded;

#[derive(Debug)]
pub(super) struct Namespace {
    files: HashMap<String, File>,
    /// What the data nodes are called.
    pub(super) data_nodes: Vec<String>,
    pub(super) active: usize,
    scheme: &'static str,
    block_size: u64,
    token: Option<String>,
    next: u64,
}

#[derive(Debug)]
struct File {
    bytes: Vec<u8>,
    id: u64,
    modified: u64,
}

impl Namespace {
    pub(super) fn new(setup: &Setup) -> Namespace {
        Namespace {
            files: HashMap::new(),
            data_nodes: Vec::new(),
            active: 0,
            scheme: match setup.authority {
                None => "http",
                Some(_) => "https",
            },
            block_size: setup.block_size,
            token: setup.token.clone(),
            next: 16_385,
        }
    }

    pub(super) fn put(&mut self, path: &str, bytes: &[u8]) {
        let file = File {
            bytes: bytes.to_owned(),
            id: self.tick(),
            // All in one millisecond, so that only their numbers tell them apart.
            modified: 1_700_000_000_123,
        };
        self.files.insert(path.to_owned(), file);
    }

    pub(super) fn modify(&mut self, path: &str, bytes: &[u8]) {
        let time = self.tick();
        let file = self.files.get_mut(path).unwrap();
        file.bytes = bytes.to_owned();
        file.modified += time;
    }

    pub(super) fn remove(&mut self, path: &str) {
        self.files.remove(path);
    }

    pub(super) fn answer(&self, node: Node, asked: &Asked) -> Reply {
        let query = Query::of(asked);
        match node {
            Node::Name(number) if number != self.active => exception(
                403,
                "StandbyException",
                "Operation category READ is not supported in state standby",
            ),
            Node::Name(_) if !self.is_let_in(&query) => {
                Reply::with(401, b"<html>Authentication required</html>")
                    .header("www-authenticate", "Negotiate")
                    .header("content-type", "text/html")
            }
            Node::Name(_) => self.name_node(&query),
            Node::Data(_) => self.data_node(&query),
        }
    }

    fn is_let_in(&self, query: &Query) -> bool {
        self.token.is_none() || query.value("delegation") == self.token
    }

    fn name_node(&self, query: &Query) -> Reply {
        let path = &query.path;
        let below = format!("{}/", path.trim_end_matches('/'));
        if !self.files.contains_key(path) && self.files.keys().any(|file| file.starts_with(&below))
        {
            return match query.value("op").as_deref() {
                Some("GETFILESTATUS") => status(0, "DIRECTORY", 0, 16_384, 0),
                _ => exception(
                    404,
                    "FileNotFoundException",
                    &format!("Path is not a file: {path}"),
                ),
            };
        }
        let Some(file) = self.files.get(path) else {
            return exception(
                404,
                "FileNotFoundException",
                &format!("File does not exist: {path}"),
            );
        };
        match query.value("op").as_deref() {
            Some("GETFILESTATUS") => status(
                file.bytes.len(),
                "FILE",
                file.modified,
                file.id,
                self.block_size,
            ),
            Some("OPEN") => self.send_on(query, file),
            _ => exception(
                400,
                "IllegalArgumentException",
                "Invalid value for webhdfs parameter \"op\"",
            ),
        }
    }

    /// To a data node that is not ruled out, where there is one.
    fn send_on(&self, query: &Query, file: &File) -> Reply {
        let offset = query.number("offset").unwrap_or(0);
        if offset > 0 && offset >= file.bytes.len() as u64 {
            let message = format!("Offset={offset} out of the range [0, {})", file.bytes.len());
            return exception(403, "IOException", &message);
        }
        let excluded = query.value("excludedatanodes").unwrap_or_default();
        let count = self.data_nodes.len();
        let first = (offset / self.block_size) as usize;
        let mut nodes = (0..count).map(|turn| &self.data_nodes[(first + turn) % count]);
        let Some(node) = nodes.find(|node| !excluded.split(',').any(|name| name == *node)) else {
            let message = format!(
                "Failed to find datanode, suggest to check cluster health. excludeDatanodes={excluded}"
            );
            return exception(403, "IOException", &message);
        };
        let mut sent = vec!["op=OPEN".to_owned()];
        if self.token.is_some() {
            sent.push(format!("delegation={DATA_TOKEN}"));
        }
        let kept = ["user.name", "offset", "length"];
        sent.push("namenoderpcaddress=cluster:8020".to_owned());
        for (name, value) in &query.parameters {
            if kept.contains(&name.as_str()) {
                sent.push(format!("{name}={value}"));
            }
        }
        let path = encoded(query.path.as_bytes(), b"/");
        Reply::redirect(
            307,
            &format!(
                "{}://{node}/webhdfs/v1{path}?{}",
                self.scheme,
                sent.join("&")
            ),
        )
    }

    fn data_node(&self, query: &Query) -> Reply {
        let Some(file) = self.files.get(&query.path) else {
            return exception(404, "FileNotFoundException", "File does not exist");
        };
        if self.token.is_some() && query.value("delegation").as_deref() != Some(DATA_TOKEN) {
            return exception(
                403,
                "InvalidToken",
                &format!("not {:?}", query.value("delegation")),
            );
        }
        let len = file.bytes.len();
        let start = query.number("offset").unwrap_or(0).min(len as u64) as usize;
        let count = query
            .number("length")
            .unwrap_or(u64::MAX)
            .min((len - start) as u64) as usize;
        Reply::with(200, &file.bytes[start..start + count])
            .header("content-type", "application/octet-stream")
    }

    fn tick(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

fn status(len: usize, kind: &str, modified: u64, id: u64, block_size: u64) -> Reply {
    let said = serde_json::json!({"FileStatus": {
        "accessTime": 0, "blockSize": block_size, "childrenNum": 0, "fileId": id, "group": "supergroup",
        "length": len, "modificationTime": modified, "owner": "kvik", "pathSuffix": "", "permission": "644",
        "replication": 2, "storagePolicy": 0, "type": kind,
    }});
    Reply::with(200, said.to_string().as_bytes()).header("content-type", "application/json")
}

/// What data nodes take.
pub(super) const DATA_TOKEN: &str = "of-the-data-node";
