//! A few requests of HTTP/1.1, to see whether a server answers and to give it files.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use super::fixtures;
use crate::process::Done;

/// A reply, of which only the head is of interest.
pub(super) struct Reply {
    pub(super) status: u16,
    head: String,
}

impl Reply {
    /// The value of a field of the head.
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = fields.find(|(found, _)| found.eq_ignore_ascii_case(name))?;
        Some(value.trim())
    }

    /// A sentence for the reply, or a failure where it has another status.
    pub(super) fn expect(&self, status: u16) -> Done<String> {
        if self.status == status {
            Ok(format!("answers {status}"))
        } else {
            Err(format!("answered {} instead of {status}", self.status))
        }
    }
}

/// Sends a request without a body; `target` is what stands behind the method.
pub(super) fn ask(address: &str, method: &str, target: &str) -> Done<Reply> {
    exchange(address, method, target, None).map_err(|why| format!("{method} {target}: {why}"))
}

/// Sends a file as the body of a `PUT`.
pub(super) fn put(address: &str, target: &str, file: &Path) -> Done<Reply> {
    exchange(address, "PUT", target, Some(file)).map_err(|why| format!("PUT {target}: {why}"))
}

fn exchange(address: &str, method: &str, target: &str, file: Option<&Path>) -> Done<Reply> {
    let name: SocketAddr = address
        .parse()
        .map_err(|why| format!("{address:?}: {why}"))?;
    let len = file.map_or(Ok(0), fixtures::len)?;
    let said = || -> io::Result<Vec<u8>> {
        let mut socket = TcpStream::connect_timeout(&name, CONNECT)?;
        socket.set_read_timeout(Some(REPLY))?;
        socket.set_write_timeout(Some(REPLY))?;
        write!(
            socket,
            "{method} {target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {len}\r\n\r\n"
        )?;
        if let Some(file) = file {
            io::copy(&mut File::open(file)?, &mut socket)?;
        }
        head(&mut socket)
    };
    reply(&said().map_err(|why| why.to_string())?)
}

/// Reads up to the end of a head, which is enough: whoever asked wants no body.
fn head(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut said = Vec::new();
    let mut from = io::BufReader::new(from).take(HEAD);
    loop {
        let line = said.len();
        let count = io::BufRead::read_until(&mut from, b'\n', &mut said)?;
        if count == 0 {
            return Ok(said);
        }
        if said[line..] == *b"\r\n" {
            // A data node says `100 Continue` to who never asked whether to; its reply comes behind.
            if !said.starts_with(b"HTTP/1.1 1") {
                return Ok(said);
            }
            said.clear();
        }
    }
}

/// `HTTP/1.1 206 Partial Content`, and fields up to the first empty line.
fn reply(said: &[u8]) -> Done<Reply> {
    let text = String::from_utf8_lossy(said);
    let head = text.split("\r\n\r\n").next().unwrap_or_default();
    let mut words = head.split_whitespace();
    let version = words.next().unwrap_or_default();
    let status = words.next().and_then(|word| word.parse().ok());
    match status {
        Some(status) if version.starts_with("HTTP/1.") => Ok(Reply {
            status,
            head: head.to_owned(),
        }),
        _ => Err(format!("no reply of HTTP/1: {:?}", head.lines().next())),
    }
}

const CONNECT: Duration = Duration::from_secs(2);
/// A data node writes 64 MiB before it answers.
const REPLY: Duration = Duration::from_secs(30);
const HEAD: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_its_status_and_its_fields() {
        let found =
            reply(b"HTTP/1.1 307 Moved\r\nlocation: http://a:1/b\r\n\r\nbody: x\r\n").unwrap();
        assert_eq!(found.status, 307);
        assert_eq!(found.field("Location"), Some("http://a:1/b"));
        assert_eq!(found.field("body"), None);
        assert!(
            found
                .expect(200)
                .unwrap_err()
                .contains("307 instead of 200")
        );
        assert!(reply(b"SSH-2.0-x\r\n").is_err());
        assert!(reply(b"").is_err());
    }
}
