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
        let range: Vec<&str> = request.all("range").collect();
        self.tell(
            || {
                let method = if request.wants_body() { "GET" } else { "HEAD" };
                let range = range.join(", ");
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

    /// Sends an answer and says how much of its body went out.
    fn send(&mut self, answer: Answer, with_body: bool, keep: bool) -> (u64, io::Result<()>) {
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
        self.shared.requests.fetch_add(1, Ordering::Relaxed);
        match (text, part) {
            (Some(text), _) if with_body => {
                let all = [head.as_bytes(), text.as_bytes()].concat();
                let mut socket = self.socket;
                (text.len() as u64, socket.write_all(&all))
            }
            (_, Some((file, range))) if with_body => self.send_part(head, &file, range),
            _ => {
                let mut socket = self.socket;
                (0, socket.write_all(head.as_bytes()))
            }
        }
    }

    /// A file that has become shorter ends the connection short of what was promised: nothing is put in the place of what
    /// is no longer there.
    fn send_part(&mut self, head: String, file: &File, range: Range<u64>) -> (u64, io::Result<()>) {
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
                    let (_, outcome) = self.send(answer, true, false);
                    return (0, outcome.and(Err(error)));
                }
                return (place - range.start, Err(error));
            }
            if let Err(error) = socket.write_all(&self.buffer[..end]) {
                return (place - range.start, Err(error));
            }
            place += piece as u64;
            self.shared.bytes.fetch_add(piece as u64, Ordering::Relaxed);
            before = 0;
            if place == range.end {
                return (place - range.start, Ok(()));
            }
        }
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
