//! Incoming: the heads of requests, one after the other, from a client that may be slow, or may send more than it should.

use std::io::{self, Read};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::Limits;
use super::request::Bad;
use super::status::Status;

/// What has come in on a connection and was not looked at yet.
pub(super) struct Incoming<'a> {
    socket: &'a TcpStream,
    bytes: Vec<u8>,
    /// What the socket was told last.
    patience: Option<Duration>,
}

/// What comes next.
pub(super) enum Next {
    /// The bytes before an empty line.
    Head(Vec<u8>),
    Bad(Bad),
    /// Nothing: the client went away, or has asked for nothing in a while.
    Gone,
}

impl<'a> Incoming<'a> {
    pub(super) fn new(socket: &'a TcpStream) -> Self {
        Incoming {
            socket,
            bytes: Vec::new(),
            patience: None,
        }
    }

    pub(super) fn next(&mut self, limits: &Limits) -> io::Result<Next> {
        // The time runs from the first byte, whatever it is: a head that comes in drops is late all the same.
        let mut due = (!self.bytes.is_empty()).then(|| Instant::now() + limits.head_time);
        loop {
            // Empty lines before a head are nothing, as some clients end a body with one.
            let blank = |byte: &&u8| matches!(byte, b'\r' | b'\n');
            let blanks = self.bytes.iter().take_while(blank).count();
            self.bytes.drain(..blanks);
            let end = end_of_head(&self.bytes);
            if end.unwrap_or(self.bytes.len()) > limits.head_bytes {
                return Ok(Next::Bad(Bad::new(
                    Status::TOO_LARGE,
                    "its head is too long",
                )));
            }
            if let Some(end) = end {
                return Ok(Next::Head(self.bytes.drain(..end).collect()));
            }
            let wait = match due {
                Some(due) => due.saturating_duration_since(Instant::now()),
                None => limits.idle,
            };
            match self.read_within(wait) {
                Ok(0) => return Ok(Next::Gone),
                Ok(_) if due.is_none() => due = Some(Instant::now() + limits.head_time),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_late(&error) => {
                    let late = Bad::new(Status::TIMEOUT, "its head took too long");
                    return Ok(due.map_or(Next::Gone, |_| Next::Bad(late)));
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn read_within(&mut self, wait: Duration) -> io::Result<usize> {
        if wait.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if self.patience != Some(wait) {
            self.socket.set_read_timeout(Some(wait))?;
            self.patience = Some(wait);
        }
        let mut piece = [0; 4096];
        let mut socket = self.socket;
        let read = socket.read(&mut piece)?;
        self.bytes.extend_from_slice(&piece[..read]);
        Ok(read)
    }
}

/// Where the first empty line ends.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    ends.map(|(place, _)| place)
        .find_map(|place| match &bytes[place + 1..] {
            [b'\n', ..] => Some(place + 2),
            [b'\r', b'\n', ..] => Some(place + 3),
            _ => None,
        })
}

/// A wait that is over is told by either name.
fn is_late(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_ends_with_its_first_empty_line() {
        for (bytes, end) in [
            ("GET / HTTP/1.1\r\nA: b\r\n\r\nGET", Some(24)),
            ("GET / HTTP/1.1\n\nGET", Some(16)),
            ("GET / HTTP/1.1\r\n\nGET", Some(17)),
            ("GET / HTTP/1.1\r\nA: b\r\n", None),
            ("GET / HTTP/1.1\r\nA: b\r\n\r", None),
            ("GET / HTTP/1.1\r\n \r\n", None),
            ("", None),
        ] {
            assert_eq!(end_of_head(bytes.as_bytes()), end, "{bytes:?}");
        }
    }
}
