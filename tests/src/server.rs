//! The real servers of this machine, as `cargo xtask servers up` left word of them, and the files that each of them has.

use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::pattern::pattern;
use crate::percent;

/// One server: `address` and `url` are always there, what else a client must know differs.
#[derive(Debug)]
pub struct Server {
    facts: Map<String, Value>,
}

impl Server {
    /// The server of this name, if somebody listens where it should be. Tests ask [`need::server`](crate::need::server).
    ///
    /// # Errors
    /// Says what is missing.
    pub fn find(name: &str) -> Result<Self, String> {
        let facts = word()?["servers"][name]
            .as_object()
            .cloned()
            .ok_or("no server of this name was started")?;
        let server = Self { facts };
        let listens = server.listens();
        listens.map_err(|why| format!("{} does not answer: {why}", server.address()))?;
        Ok(server)
    }

    fn listens(&self) -> Result<(), String> {
        let address: SocketAddr = self
            .address()
            .parse()
            .map_err(|why| format!("no address: {why}"))?;
        let socket = TcpStream::connect_timeout(&address, Duration::from_secs(5));
        socket.map(|_| ()).map_err(|why| why.to_string())
    }

    /// What there is to know under this name; fails where there is nothing.
    #[track_caller]
    #[must_use]
    pub fn fact(&self, name: &str) -> &str {
        let fact = self.facts.get(name).and_then(Value::as_str);
        fact.unwrap_or_else(|| panic!("no `{name}` among {:?}", self.facts.keys()))
    }

    /// Where it listens, as `127.0.0.1:PORT`.
    #[must_use]
    pub fn address(&self) -> &str {
        self.fact("address")
    }

    /// What the encoded name of a fixture is appended to.
    #[must_use]
    pub fn url(&self) -> &str {
        self.fact("url")
    }

    /// The URL of a fixture.
    #[must_use]
    pub fn url_of(&self, fixture: &Fixture) -> String {
        format!("{}{}", self.url(), fixture.encoded())
    }

    /// The part of the URL behind the address, with its `/` at both ends.
    #[track_caller]
    #[must_use]
    pub fn path(&self) -> &str {
        let (_, rest) = self.url().split_once("://").unwrap();
        &rest[rest.find('/').unwrap()..]
    }
}

/// A file that every server has: `len` bytes of the pattern `seed`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixture {
    /// As it is, not encoded. A `/` is one between folders.
    pub name: String,
    /// In bytes.
    pub len: u64,
    /// Of [`pattern`].
    pub seed: u64,
}

impl Fixture {
    /// The fixture of this name; fails if there is none.
    #[track_caller]
    #[must_use]
    pub fn named(name: &str) -> Self {
        let mut all = Self::all().into_iter();
        all.find(|fixture| fixture.name == name).unwrap()
    }

    /// All of them; fails where no servers are up.
    #[track_caller]
    #[must_use]
    pub fn all() -> Vec<Self> {
        let word = word().unwrap();
        let list = word["fixtures"].as_array().unwrap();
        let fixture = |value: &Value| Self {
            name: value["name"].as_str().unwrap().to_owned(),
            len: value["len"].as_u64().unwrap(),
            seed: value["seed"].as_u64().unwrap(),
        };
        list.iter().map(fixture).collect()
    }

    /// What it holds.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.part(0..self.len)
    }

    /// What it holds in a range.
    #[must_use]
    pub fn part(&self, range: Range<u64>) -> Vec<u8> {
        pattern(self.seed, range.start, (range.end - range.start) as usize)
    }

    /// Its name in the path of a URL: encoded but for letters, digits, `-._~` and `/`.
    #[must_use]
    pub fn encoded(&self) -> String {
        percent::encoded(self.name.as_bytes(), b"/")
    }
}

/// What `up` wrote. It stands in the target folder, somewhere above the program of this test.
fn word() -> Result<Value, String> {
    let program = std::env::current_exe().map_err(|why| why.to_string())?;
    let mut places = program
        .ancestors()
        .map(|folder| folder.join("servers/servers.json"));
    let path: PathBuf = places
        .find(|path| path.is_file())
        .ok_or("no servers are up")?;
    let text = std::fs::read_to_string(&path);
    let text = text.map_err(|why| format!("{}: {why}", path.display()))?;
    serde_json::from_str(&text).map_err(|why| format!("{}: {why}", path.display()))
}
