//! Blocking sockets without a library between them and the bytes: the limit of any client of HTTP/1.1.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::{CHUNK, Queue, range, trust};
use crate::contender::{Contender, Role};
use crate::loops::each_on_a_thread;
use crate::remote::reader::Reader;
use crate::streaming;
use crate::trouble::{Doing, Outcome};

/// Connections, each with a thread: what comes goes through a scratch that stays in the cache, and on by streaming stores.
pub(crate) struct SocketLoop {
    path: String,
    connections: Vec<Connection>,
}

struct Connection {
    stream: Box<dyn Stream>,
    scratch: Vec<u8>,
}

trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send> Stream for S {}

impl SocketLoop {
    /// Connects. `path`: of the object; with an authority it is by TLS.
    pub(crate) fn connect(
        address: SocketAddr,
        path: &str,
        authority: Option<&Path>,
        connections: usize,
    ) -> Outcome<Self> {
        let config = authority.map(|authority| trust::config(Some(authority)).map(Arc::new));
        let config = config.transpose();
        let connections = config.and_then(|config| {
            (0..connections)
                .map(|_| Connection::new(address, config.clone()))
                .collect()
        });
        Ok(Self {
            path: path.to_owned(),
            connections: connections.doing("connect for", Path::new(path))?,
        })
    }
}

impl Reader for SocketLoop {
    fn contender(&self) -> Contender {
        let count = self.connections.len();
        let name = match count {
            1 => "sockets, 1 connection".to_owned(),
            _ => format!("sockets, {count} connections"),
        };
        Contender::new(Role::Loop, name)
    }

    fn read(&mut self, target: &mut [u8], offsets: &[u64], size: usize) -> Outcome<()> {
        let queue = Queue::new(target, offsets, size, CHUNK);
        let path = self.path.as_str();
        let done = each_on_a_thread(self.connections.iter_mut().collect(), |connection| {
            while let Some((offset, piece)) = queue.next() {
                connection.get(path, offset, piece)?;
            }
            Ok(())
        });
        done.doing("read", Path::new(path))
    }
}

impl Connection {
    fn new(address: SocketAddr, tls: Option<Arc<ClientConfig>>) -> io::Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        let stream: Box<dyn Stream> = match tls {
            None => Box::new(socket),
            Some(config) => {
                let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
                let tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
                Box::new(StreamOwned::new(tls, socket))
            }
        };
        Ok(Self {
            stream,
            scratch: vec![0; SCRATCH],
        })
    }

    /// One request and its answer.
    fn get(&mut self, path: &str, offset: u64, piece: &mut [u8]) -> io::Result<()> {
        let range = range(offset, piece.len());
        let ask = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nRange: {range}\r\n\r\n");
        self.stream.write_all(ask.as_bytes())?;
        let mut got = 0;
        let begin = loop {
            let count = self.stream.read(&mut self.scratch[got..])?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            got += count;
            if let Some(begin) = begin_of_body(&self.scratch[..got])? {
                break begin;
            }
        };
        let mut rest = place(piece, &self.scratch[begin..got])?;
        while !rest.is_empty() {
            let most = rest.len().min(SCRATCH);
            let count = self.stream.read(&mut self.scratch[..most])?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            rest = place(rest, &self.scratch[..count])?;
        }
        Ok(())
    }
}

/// Puts `bytes` to the beginning of `target`; what is left of it.
fn place<'t>(target: &'t mut [u8], bytes: &[u8]) -> io::Result<&'t mut [u8]> {
    let Some((place, rest)) = target.split_at_mut_checked(bytes.len()) else {
        return Err(io::Error::other("sent more than was asked for"));
    };
    if bytes.len() >= WORTH_STREAMING {
        streaming::copy(place, bytes);
    } else {
        place.copy_from_slice(bytes);
    }
    Ok(rest)
}

/// Where the body begins behind a head that says that it is a part; `None` while the head is not whole.
fn begin_of_body(said: &[u8]) -> io::Result<Option<usize>> {
    let end = said.windows(4).position(|four| four == b"\r\n\r\n");
    match end {
        Some(end) if said.starts_with(b"HTTP/1.1 206 ") => Ok(Some(end + 4)),
        Some(_) => Err(io::Error::other("answered something else than 206")),
        None if said.len() == SCRATCH => Err(io::Error::other("sent a head without an end")),
        None => Ok(None),
    }
}

// Fits into the cache of a core, and holds a head.
const SCRATCH: usize = 256 << 10;
// Smaller pieces are looked at soon, and belong into the cache.
const WORTH_STREAMING: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_begins_behind_the_head_of_a_part() {
        let head = b"HTTP/1.1 206 Partial Content\r\nContent-Length: 2\r\n\r\nab";
        for end in 0..head.len() - 2 {
            assert_eq!(
                begin_of_body(&head[..end]).expect("no error"),
                None,
                "{end}"
            );
        }
        assert_eq!(begin_of_body(head).expect("a head"), Some(head.len() - 2));
        assert!(begin_of_body(b"HTTP/1.1 200 OK\r\n\r\nab").is_err());
    }

    #[test]
    fn more_than_was_asked_for_is_an_error() {
        let mut target = [0; 5];
        let rest = place(&mut target, b"abc").expect("fits");
        assert_eq!(rest.len(), 2);
        assert!(place(rest, b"def").is_err());
        assert_eq!(&target[..3], b"abc");
    }
}
