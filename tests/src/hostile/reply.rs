//! Answers: right ones, and what a test changes about them.

use std::time::Duration;

use super::{Asked, Script, Step};

/// An answer of a server.
#[derive(Clone, Debug)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    chunked: bool,
}

impl Reply {
    /// What a good server answers that has this object.
    #[must_use]
    pub fn of(object: &[u8], asked: &Asked) -> Reply {
        let Some(range) = asked.range() else {
            return Reply::whole(object);
        };
        let len = object.len();
        if range.start >= len {
            return Reply::status(416).header("content-range", &format!("bytes */{len}"));
        }
        let range = range.start..range.end.min(len);
        let said = format!("bytes {}-{}/{len}", range.start, range.end - 1);
        Reply::with(206, &object[range])
            .header("content-range", &said)
            .header("etag", ETAG)
    }

    /// What a server answers that knows no ranges.
    #[must_use]
    pub fn whole(object: &[u8]) -> Reply {
        Reply::with(200, object).header("etag", ETAG)
    }

    /// A status without a body.
    #[must_use]
    pub fn status(status: u16) -> Reply {
        Reply::with(status, b"")
    }

    /// The way to another URL.
    #[must_use]
    pub fn redirect(status: u16, to: &str) -> Reply {
        Reply::status(status).header("location", to)
    }

    /// A status and a body.
    #[must_use]
    pub fn with(status: u16, body: &[u8]) -> Reply {
        Reply {
            status,
            headers: vec![("content-length".to_owned(), body.len().to_string())],
            body: body.to_owned(),
            chunked: false,
        }
    }

    /// The same with this header, in place of one of that name.
    #[must_use]
    pub fn header(self, name: &str, value: &str) -> Reply {
        let mut reply = self.without(name);
        reply.headers.push((name.to_owned(), value.to_owned()));
        reply
    }

    /// The same without this header.
    #[must_use]
    pub fn without(mut self, name: &str) -> Reply {
        self.headers.retain(|(found, _)| found != name);
        self
    }

    /// The same with another body, whatever the headers say.
    #[must_use]
    pub fn body(self, body: &[u8]) -> Reply {
        Reply {
            body: body.to_owned(),
            ..self
        }
    }

    /// The same in chunks, and without a length.
    #[must_use]
    pub fn chunked(self) -> Reply {
        let reply = self
            .without("content-length")
            .header("transfer-encoding", "chunked");
        Reply {
            chunked: true,
            ..reply
        }
    }

    /// Sends it.
    #[must_use]
    pub fn script(self) -> Script {
        let body = self.framed();
        Script(vec![Step::Send([self.head(), body].concat())])
    }

    /// Sends it up to the byte `at` of the body, and ends the connection.
    #[must_use]
    pub fn cut(self, at: usize) -> Script {
        self.then(at, [Step::Close])
    }

    /// Sends it up to the byte `at` of the body, and no more.
    #[must_use]
    pub fn stall(self, at: usize) -> Script {
        self.then(at, [Step::Silence])
    }

    /// Sends it up to the byte `at` of the body, and resets the connection.
    #[must_use]
    pub fn reset(self, at: usize) -> Script {
        // What is on the way when the reset comes is lost: it is given the time to arrive.
        let arrives = Step::Wait(Duration::from_millis(50));
        self.then(at, [arrives, Step::Reset])
    }

    /// Sends the body in pieces of so many bytes, and waits before each.
    #[must_use]
    pub fn drip(self, size: usize, wait: Duration) -> Script {
        let mut steps = vec![Step::Send(self.head())];
        for piece in self.framed().chunks(size) {
            steps.extend([Step::Wait(wait), Step::Send(piece.to_owned())]);
        }
        Script(steps)
    }

    /// Sends the head up to its byte `at`, and after a moment the rest.
    #[must_use]
    pub fn split_head(self, at: usize) -> Script {
        let head = self.head();
        let (first, rest) = head.split_at(at.min(head.len()));
        let rest = [rest, &self.framed()].concat();
        Script(vec![
            Step::Send(first.to_owned()),
            Step::Wait(Duration::from_millis(1)),
            Step::Send(rest),
        ])
    }

    /// What comes before its body.
    #[must_use]
    pub fn head(&self) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} Whatever\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    fn framed(&self) -> Vec<u8> {
        if !self.chunked {
            return self.body.clone();
        }
        let mut framed = Vec::new();
        for chunk in self.body.chunks(1000) {
            framed.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            framed.extend_from_slice(chunk);
            framed.extend_from_slice(b"\r\n");
        }
        framed.extend_from_slice(b"0\r\n\r\n");
        framed
    }

    fn then<const N: usize>(self, at: usize, rest: [Step; N]) -> Script {
        let body = &self.framed()[..at];
        let mut steps = vec![Step::Send([&self.head(), body].concat())];
        steps.extend(rest);
        Script(steps)
    }
}

const ETAG: &str = "\"version one\"";
