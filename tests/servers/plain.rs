//! Requests and replies as they are on the wire.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A reply and all of its body.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    /// The value of a field of the head; empty where it has none.
    pub(crate) fn field(&self, name: &str) -> &str {
        let mut fields = self.head.lines().filter_map(|line| line.split_once(':'));
        let found = fields.find(|(found, _)| found.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value.trim())
    }

    /// The body as text.
    #[track_caller]
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

/// `GET` with more fields, `Name: value`; the server closes the connection behind its reply.
#[track_caller]
pub(crate) fn get(address: &str, target: &str, fields: &[&str]) -> Reply {
    let head = request(address, target, fields);
    reply(exchange(address, head.as_bytes(), b""))
}

/// `PUT` of a body, or another method that has one.
#[track_caller]
pub(crate) fn send(method: &str, address: &str, target: &str, body: &[u8]) -> Reply {
    let length = format!("Content-Length: {}", body.len());
    // Data nodes take bytes as such and nothing else.
    let fields = [&length, "Content-Type: application/octet-stream"];
    let head = request(address, target, &fields).replacen("GET", method, 1);
    let mut said = exchange(address, head.as_bytes(), body);
    if said.starts_with(b"HTTP/1.1 100 ") {
        let end = said.windows(4).position(|end| end == b"\r\n\r\n");
        said.drain(..end.expect("a head with its end") + 4);
    }
    reply(said)
}

/// Sends a request, and returns all that comes until the server closes the connection.
#[track_caller]
fn exchange(address: &str, head: &[u8], body: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(address).unwrap();
    // A server that hangs is a failure with a name.
    let limit = Some(Duration::from_secs(30));
    socket.set_read_timeout(limit).unwrap();
    socket.write_all(head).unwrap();
    socket.write_all(body).unwrap();
    let mut said = Vec::new();
    socket.read_to_end(&mut said).unwrap();
    said
}

pub(crate) fn request(host: &str, target: &str, fields: &[&str]) -> String {
    let mut text = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for field in fields {
        text.push_str(field);
        text.push_str("\r\n");
    }
    text + "\r\n"
}

/// Takes a reply apart, and fails where its body is not as long as its head says.
#[track_caller]
pub(crate) fn reply(mut said: Vec<u8>) -> Reply {
    let end = said.windows(4).position(|end| end == b"\r\n\r\n");
    let body = said.split_off(end.expect("a head with its end") + 4);
    let head = String::from_utf8(said).unwrap();
    let status = head.split_whitespace().nth(1).unwrap().parse().unwrap();
    let reply = Reply { status, head, body };
    let length = reply.field("Content-Length");
    if !length.is_empty() {
        assert_eq!(reply.body.len(), length.parse::<usize>().unwrap());
    }
    assert_eq!(reply.field("Transfer-Encoding"), "");
    reply
}
