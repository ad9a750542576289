//! Connection: answers what comes in on one, in order, until one side has enough.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use super::Shared;
use super::answer::{Answer, Body};
use super::incoming::{Incoming, Next};
use super::request::{Bad, Request};
use super::status::Status;

/// Until the client goes away or must go. What goes wrong with a connection ends it, which the client sees.
pub(super) fn serve(socket: &TcpStream, peer: SocketAddr, shared: &Shared) {
    let mut connection = Connection {
        socket,
        peer,
        shared,
        buffer: vec![0; BUFFER],
    };
    let _ = connection.run();
}

struct Connection<'a> {
    socket: &'a TcpStream,
    peer: SocketAddr,
    shared: &'a Shared,
    /// A head, and bytes of a file behind it, so that what is small leaves in one piece.
    buffer: Vec<u8>,
}

impl Connection<'_> {
    fn run(&mut self) -> io::Result<()> {
        self.socket.set_nodelay(true)?;
        self.socket
            .set_write_timeout(Some(self.shared.limits.stalled))?;
        let mut incoming = Incoming::new(self.socket);
        loop {
            let bad = match incoming.next(&self.shared.limits)? {
                Next::Gone => return Ok(()),
                Next::Bad(bad) => bad,
                Next::Head(head) => match Request::parse(&head, self.shared.limits.headers) {
                    Err(bad) => bad,
                    Ok(request) => {
                        self.answer(&request)?;
                        if request.keep {
                            continue;
                        }
                        return self.close();
                    }
                },
            };
            self.refuse(&bad)?;
            return self.close();
        }
    }

    fn answer(&mut self, request: &Request) -> io::Result<()> {
        let answer = Answer::to(request, &self.shared.files, self.shared.loopback);
        let status = answer.status;
        let (sent, outcome) = self.send(answer, request.wants_body(), request.keep);
        self.tell(
            || {
                let method = if request.wants_body() { "GET" } else { "HEAD" };
                let range = request.all("range").collect::<Vec<_>>().join(", ");
                let range: String = range.chars().map(visible).collect();
                format!("{method} {} [{range}] {}", request.path, status.code)
            },
            sent,
            &outcome,
        );
        outcome
    }

    fn refuse(&mut self, bad: &Bad) -> io::Result<()> {
        let (sent, outcome) = self.send(Answer::refusal(bad), true, false);
        self.tell(
            || format!("refused: {}: {}", bad.why, bad.status.code),
            sent,
            &outcome,
        );
        outcome
    }

    /// Counts a request, sends its answer, and says how much of the body went out.
    fn send(&mut self, answer: Answer, with_body: bool, keep: bool) -> (u64, io::Result<()>) {
        self.shared.requests.fetch_add(1, Ordering::Relaxed);
        self.write(answer, with_body, keep)
    }

    fn write(&mut self, answer: Answer, with_body: bool, keep: bool) -> (u64, io::Result<()>) {
        let (text, part) = match answer.body {
            Body::None => (None, None),
            Body::Text(text) => (Some(text), None),
            Body::Part(file, range) => (None, Some((file, range))),
        };
        let length = match (&text, &part) {
            (Some(text), _) => Some(text.len() as u64),
            (_, Some((_, range))) => Some(range.end - range.start),
            _ => None,
        };
        let head = head(answer.status, &answer.fields, length, keep);
        let mut socket = self.socket;
        match (text, part) {
            (Some(text), _) if with_body => {
                let all = [head.as_bytes(), text.as_bytes()].concat();
                if let Err(error) = socket.write_all(&all) {
                    return (0, Err(error));
                }
                self.count(text.len());
                (text.len() as u64, Ok(()))
            }
            (_, Some((file, range))) if with_body => self.write_part(head, &file, range),
            _ => (0, socket.write_all(head.as_bytes())),
        }
    }

    /// A file that has become shorter ends the connection short of what was promised: nothing is put in the place of what
    /// is no longer there.
    fn write_part(
        &mut self,
        head: String,
        file: &File,
        range: Range<u64>,
    ) -> (u64, io::Result<()>) {
        let mut socket = self.socket;
        let mut place = range.start;
        let mut before = head.len();
        self.buffer[..before].copy_from_slice(head.as_bytes());
        loop {
            let piece = (range.end - place).min((BUFFER - before) as u64) as usize;
            let end = before + piece;
            if let Err(error) = file.read_exact_at(&mut self.buffer[before..end], place) {
                if place == range.start && error.kind() != io::ErrorKind::UnexpectedEof {
                    // Nothing was promised yet.
                    let answer = Answer::text(Status::FAILED, "the file cannot be read");
                    let (sent, outcome) = self.write(answer, true, false);
                    return (sent, outcome.and(Err(error)));
                }
                return (place - range.start, Err(error));
            }
            if let Err(error) = socket.write_all(&self.buffer[..end]) {
                return (place - range.start, Err(error));
            }
            place += piece as u64;
            self.count(piece);
            before = 0;
            if place == range.end {
                return (place - range.start, Ok(()));
            }
        }
    }

    fn count(&self, bytes: usize) {
        self.shared.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn tell(&self, what: impl Fn() -> String, sent: u64, outcome: &io::Result<()>) {
        if let Some(told) = &self.shared.told {
            let end = match outcome {
                Ok(()) => String::new(),
                Err(error) => format!(", cut off: {error}"),
            };
            told(&format!("{} {} {sent}{end}", self.peer, what()));
        }
    }

    /// Ends a connection so that the client gets the whole answer: if it has sent what nobody reads, the system would
    /// take the answer back.
    fn close(&mut self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Write)?;
        let due = Instant::now() + LINGER;
        let mut socket = self.socket;
        while let Some(wait) = due.checked_duration_since(Instant::now()) {
            // Not zero, which would mean for ever.
            self.socket
                .set_read_timeout(Some(wait.max(Duration::from_millis(1))))?;
            if socket.read(&mut self.buffer)? == 0 {
                break;
            }
        }
        Ok(())
    }
}

fn head(
    status: Status,
    fields: &[(&'static str, String)],
    length: Option<u64>,
    keep: bool,
) -> String {
    let date = httpdate::fmt_http_date(SystemTime::now());
    let mut head = format!(
        "HTTP/1.1 {status}\r\nDate: {date}\r\nServer: kvik\r\nX-Content-Type-Options: nosniff\r\n"
    );
    let length = length.map(|length| ("Content-Length", length.to_string()));
    let close = (!keep).then(|| ("Connection", "close".to_owned()));
    for (name, value) in fields.iter().chain(&length).chain(&close) {
        head.push_str(name);
        head.push_str(": ");
        head.push_str(value);
        head.push_str("\r\n");
    }
    head.push_str("\r\n");
    head
}

/// What a client wrote does not steer a terminal.
fn visible(character: char) -> char {
    if character.is_ascii_graphic() || character == ' ' {
        character
    } else {
        '?'
    }
}

// A head is far shorter: its fields are all ours.
const BUFFER: usize = 256 << 10;
// How long a client may take to notice that nothing more is read.
const LINGER: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::super::Server;
    use super::*;
    use std::fs::{self, OpenOptions};
    use std::net::{Ipv4Addr, TcpListener};

    #[test]
    fn a_file_that_cannot_be_read_is_one_request_and_what_is_sent_of_it_is_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "0123456789").unwrap();
        let here = (Ipv4Addr::LOCALHOST, 0).into();
        let server = Server::bind(folder.path(), here, None).unwrap();
        let listener = TcpListener::bind(here).unwrap();
        let address = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(address).unwrap();
        let (socket, peer) = listener.accept().unwrap();
        // One that is open for writing alone cannot be read.
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        let answer = Answer {
            status: Status::OK,
            fields: Vec::new(),
            body: Body::Part(file, 0..10),
        };
        let mut connection = Connection {
            socket: &socket,
            peer,
            shared: &server.shared,
            buffer: vec![0; BUFFER],
        };
        let (sent, outcome) = connection.send(answer, true, true);
        outcome.unwrap_err();
        drop(socket);
        let mut said = String::new();
        client.read_to_string(&mut said).unwrap();
        let (head, body) = said.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 500 "), "{head}");
        assert!(body.ends_with("the file cannot be read\n"), "{body}");
        assert_eq!(sent, body.len() as u64);
        let total = server.stop();
        assert_eq!((total.requests, total.bytes), (1, sent));
    }
}
