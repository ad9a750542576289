//! servers.json: where each server is and what a client must know, for the tests.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use serde_json::{Map, Value, json};

use super::fixtures;
use super::place::{self, Place};
use crate::process::Done;

/// What is known of one server: a name, and facts that are all texts. `address` and `url` are always there.
pub(super) struct Server {
    name: String,
    facts: Map<String, Value>,
}

impl Server {
    pub(super) fn new(name: &str, port: u16, url: String) -> Self {
        Self {
            name: name.to_owned(),
            facts: Map::new(),
        }
        .with("address", format!("127.0.0.1:{port}"))
        .with("url", url)
    }

    #[must_use]
    pub(super) fn with(mut self, fact: &str, value: impl Into<String>) -> Self {
        self.facts
            .insert(fact.to_owned(), Value::String(value.into()));
        self
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Where it listens.
    pub(super) fn address(&self) -> &str {
        self.fact("address")
    }

    /// What the names of fixtures are appended to, percent-encoded.
    pub(super) fn url(&self) -> &str {
        self.fact("url")
    }

    pub(super) fn fact(&self, name: &str) -> &str {
        self.facts
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

/// All of them, as the file has them.
pub(super) struct State(Vec<Server>);

impl State {
    pub(super) fn new(servers: Vec<Server>) -> Self {
        Self(servers)
    }

    pub(super) fn servers(&self) -> &[Server] {
        &self.0
    }

    /// Nothing where no server was started, or where the file is none of this version's.
    pub(super) fn read(place: &Place) -> Option<Self> {
        let text = fs::read_to_string(place.state()).ok()?;
        let value: Value = serde_json::from_str(&text).ok()?;
        if value["version"] != VERSION {
            return None;
        }
        let servers = value["servers"].as_object()?;
        let server = |(name, facts): (&String, &Value)| {
            Some(Server {
                name: name.clone(),
                facts: facts.as_object()?.clone(),
            })
        };
        servers.iter().map(server).collect::<Option<_>>().map(Self)
    }

    /// Writes it in one step: a test finds all of it or nothing. It holds keys, and is for its owner alone.
    pub(super) fn write(self, place: &Place) -> Done {
        let servers: Map<String, Value> = self
            .0
            .into_iter()
            .map(|server| (server.name, Value::Object(server.facts)))
            .collect();
        let value = json!({
            "version": VERSION,
            "servers": servers,
            "fixtures": fixtures::list(),
        });
        let path = place.state();
        let new = path.with_extension("new");
        let written = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&new)
            .and_then(|mut file| writeln!(file, "{value:#}"))
            .and_then(|()| fs::rename(&new, &path));
        written.map_err(|why| format!("{}: {why}", path.display()))
    }

    /// Before servers end, so that no test finds what is going away.
    pub(super) fn forget(place: &Place) -> Done {
        place::forget(&place.state())
    }
}

/// Raised when servers, facts or fixtures change, so that `up` does not take those of an older checkout for its own.
const VERSION: u64 = 1;
