//! A server of ranges that stops where a test wants it to, and counts what it sends.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Has the same bytes at each of its URLs but `/missing`. It ends with the process.
pub(crate) struct Server {
    root: String,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    bytes: Arc<Vec<u8>>,
    /// Lines of each head.
    headers: String,
    /// Bytes of bodies that were sent, and how many there may be.
    sent: u64,
    limit: u64,
    /// What happens at the limit.
    at_limit: AtLimit,
    /// Connections of an earlier run are of no interest.
    run: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtLimit {
    Waits,
    HangsUp,
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "a server has threads")]
    pub(crate) fn start(bytes: Vec<u8>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let root = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                bytes: Arc::new(bytes),
                headers: "etag: \"one\"\r\nserver: mine/1.0\r\n".to_owned(),
                sent: 0,
                limit: u64::MAX,
                at_limit: AtLimit::Waits,
                run: 0,
            }),
            changed: Condvar::new(),
        });
        let all = Arc::clone(&shared);
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let shared = Arc::clone(&all);
                // One that the other side ended is over.
                std::thread::spawn(move || serve(&shared, socket).ok());
            }
        });
        Server { root, shared }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.root)
    }

    /// From here on it counts anew, and sends so many bytes.
    pub(crate) fn begin_run(&self, limit: u64, at_limit: AtLimit) {
        let mut state = self.shared.lock();
        (state.limit, state.at_limit) = (limit, at_limit);
        state.sent = 0;
        state.run += 1;
        self.shared.changed.notify_all();
    }

    /// Sends all there is, to those who wait, too.
    pub(crate) fn raise_limit(&self) {
        self.shared.lock().limit = u64::MAX;
        self.shared.changed.notify_all();
    }

    /// Has other bytes, or other lines in its heads, from here on.
    pub(crate) fn replace(&self, bytes: Vec<u8>, headers: &str) {
        let mut state = self.shared.lock();
        state.bytes = Arc::new(bytes);
        headers.clone_into(&mut state.headers);
    }

    pub(crate) fn sent(&self) -> u64 {
        self.shared.lock().sent
    }

    /// Waits until as much is sent as may be.
    pub(crate) fn wait_for_limit(&self) {
        let state = self.shared.lock();
        let short = |state: &mut State| state.sent < state.limit;
        let waited = self
            .shared
            .changed
            .wait_timeout_while(state, Duration::from_secs(40), short);
        assert!(!waited.unwrap().1.timed_out(), "it was not asked for more");
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Whether so many bytes may be sent, once they may.
    fn may_send(&self, count: u64, run: u64) -> bool {
        let state = self.lock();
        let mut state = self
            .changed
            .wait_while(state, |state| {
                state.run == run && state.sent >= state.limit && state.at_limit == AtLimit::Waits
            })
            .unwrap();
        let may = state.run == run && state.sent < state.limit;
        if may {
            state.sent += count;
            self.changed.notify_all();
        }
        may
    }
}

fn serve(shared: &Shared, mut socket: TcpStream) -> std::io::Result<()> {
    let run = shared.lock().run;
    let mut lines = BufReader::new(socket.try_clone()?).lines();
    while let Some(Ok(first)) = lines.next() {
        let (bytes, headers) = {
            let state = shared.lock();
            (Arc::clone(&state.bytes), state.headers.clone())
        };
        let mut range = 0..bytes.len();
        for line in lines.by_ref().map_while(Result::ok) {
            if line.is_empty() {
                break;
            }
            range = asked(&line, bytes.len()).unwrap_or(range);
        }
        if first.contains("/missing") {
            socket.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")?;
            continue;
        }
        let (start, end, len) = (range.start, range.end, bytes.len());
        let head = match len {
            0 => format!("HTTP/1.1 200 OK\r\n{headers}content-length: 0\r\n\r\n"),
            _ => format!(
                "HTTP/1.1 206 Partial\r\n{headers}content-length: {}\r\ncontent-range: bytes {start}-{}/{len}\r\n\r\n",
                end - start,
                end - 1
            ),
        };
        socket.write_all(head.as_bytes())?;
        for chunk in bytes[range].chunks(64 << 10) {
            if !shared.may_send(chunk.len() as u64, run) {
                return Ok(());
            }
            socket.write_all(chunk)?;
        }
    }
    Ok(())
}

fn asked(line: &str, len: usize) -> Option<Range<usize>> {
    let line = line.to_ascii_lowercase();
    let (from, to) = line.strip_prefix("range: bytes=")?.split_once('-')?;
    let end = to.parse::<usize>().ok()? + 1;
    Some(from.parse().ok()?..end.min(len))
}
