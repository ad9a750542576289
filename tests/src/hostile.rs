//! A server on the loopback that answers as a test tells it, rightly or not.
//!
//! For each request it asks the test what to do ([`Script`]); a right answer is a [`Reply`], and everything wrong is a change
//! of one. It keeps what it was asked ([`Server::asked`]), and counts what it sent.
//!
//! ```
//! use kvik_tests::hostile::{Reply, Server};
//!
//! let server = Server::start(|asked| match asked.number {
//!     0 => Reply::of(b"0123456789", asked).cut(4),
//!     _ => Reply::of(b"0123456789", asked).script(),
//! });
//! let object = kvik::RemoteHandle::open(&server.url("object")).unwrap();
//! assert_eq!((object.len(), server.asked().len()), (10, 2));
//! ```

mod asked;
mod reply;

use std::any::Any;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

pub use asked::Asked;
pub use reply::Reply;

use crate::os;

/// What the server does about a request.
#[derive(Clone, Debug)]
pub struct Script(pub Vec<Step>);

/// One thing that it does.
#[derive(Clone, Debug)]
pub enum Step {
    /// Sends these bytes.
    Send(Vec<u8>),
    /// Sends these bytes again and again, until the client goes away.
    Repeat(Vec<u8>),
    /// Does nothing for a while.
    Wait(Duration),
    /// Does nothing until the test comes to this barrier, too.
    Meet(Arc<Barrier>),
    /// Does nothing until the client goes away.
    Silence,
    /// Ends the connection.
    Close,
    /// Ends it by a reset.
    Reset,
}

/// A server. It ends when this is dropped, which fails if what it was told to do has failed: what a test asserts of a request
/// it may assert there.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    play: Box<dyn Fn(&Asked) -> Script + Send + Sync>,
    wrap: Option<Arc<Wrap>>,
    asked: Mutex<Vec<Asked>>,
    sent: AtomicU64,
    connections: AtomicU64,
    over: AtomicBool,
    // What the first panic of `play` said.
    failed: Mutex<Option<String>>,
    // By their number, so that they end with the server.
    sockets: Mutex<HashMap<u64, TcpStream>>,
}

/// Makes a connection one by TLS, for instance.
pub type Wrap = dyn Fn(TcpStream) -> io::Result<Box<dyn Stream>> + Send + Sync;

/// What a connection is read from and written to.
pub trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

impl Server {
    /// Starts a server that does what `play` says. Requests are numbered as they come.
    pub fn start(play: impl Fn(&Asked) -> Script + Send + Sync + 'static) -> Server {
        Server::start_with(play, None, "127.0.0.1:0")
    }

    /// The same by version 6 of IP.
    pub fn start_v6(play: impl Fn(&Asked) -> Script + Send + Sync + 'static) -> Server {
        Server::start_with(play, None, "[::1]:0")
    }

    /// The same over connections that `wrap` has made.
    pub fn start_wrapped(
        play: impl Fn(&Asked) -> Script + Send + Sync + 'static,
        wrap: Arc<Wrap>,
    ) -> Server {
        Server::start_with(play, Some(wrap), "127.0.0.1:0")
    }

    /// A server that has `object` at each of its URLs, and is right.
    pub fn of(object: Vec<u8>) -> Server {
        Server::start(move |asked| Reply::of(&object, asked).script())
    }

    #[expect(clippy::disallowed_methods, reason = "a server has threads")]
    fn start_with(
        play: impl Fn(&Asked) -> Script + Send + Sync + 'static,
        wrap: Option<Arc<Wrap>>,
        address: &str,
    ) -> Server {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            play: Box::new(play),
            wrap,
            asked: Mutex::default(),
            sent: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            over: AtomicBool::new(false),
            failed: Mutex::default(),
            sockets: Mutex::default(),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for connection in listener.incoming() {
                if accepting.is_over() {
                    return;
                }
                let serving = Arc::clone(&accepting);
                let number = serving.connections.fetch_add(1, Ordering::Relaxed);
                // What goes wrong with a connection the client sees.
                thread::spawn(move || {
                    connection.and_then(|socket| serving.serve_numbered(number, socket))
                });
            }
        });
        Server { address, shared }
    }

    /// The URL of an object.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it was asked so far.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// How many bytes it has sent, heads included.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }

    /// How many connections were made to it.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        // So that it stops to listen; if nobody answers any more, it has.
        drop(TcpStream::connect(self.address));
        for socket in self.shared.sockets.lock().unwrap().values() {
            // One that has ended is what it is to be.
            let _ = socket.shutdown(Shutdown::Both);
        }
        let failed = self.shared.failed.lock().unwrap().take();
        if let Some(why) = failed
            && !thread::panicking()
        {
            panic!("the server of this test failed: {why}");
        }
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn serve_numbered(&self, number: u64, socket: TcpStream) -> io::Result<()> {
        let kept = socket.try_clone()?;
        self.sockets.lock().unwrap().insert(number, kept);
        let outcome = self.serve(number, socket);
        // Only with the last descriptor does a connection end.
        self.sockets.lock().unwrap().remove(&number);
        outcome
    }

    fn serve(&self, connection: u64, socket: TcpStream) -> io::Result<()> {
        socket.set_nodelay(true)?;
        let watched = socket.try_clone()?;
        let mut stream: Box<dyn Stream> = match &self.wrap {
            Some(wrap) => wrap(socket)?,
            None => Box::new(socket),
        };
        while let Some((path, headers)) = asked::read(&mut stream)? {
            let mut all = self.asked.lock().unwrap();
            let asked = Asked {
                number: all.len(),
                connection,
                path,
                headers,
            };
            all.push(asked.clone());
            drop(all);
            let Some(Script(steps)) = self.plan(&asked) else {
                return Ok(());
            };
            for step in steps {
                match step {
                    Step::Send(bytes) => {
                        stream.write_all(&bytes)?;
                        stream.flush()?;
                        self.sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                    }
                    Step::Repeat(bytes) => loop {
                        stream.write_all(&bytes)?;
                        self.sent.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                    },
                    Step::Wait(time) => thread::sleep(time),
                    Step::Meet(barrier) => {
                        barrier.wait();
                    }
                    Step::Silence => return self.wait_until_gone(&watched),
                    Step::Close => return Ok(()),
                    Step::Reset => {
                        os::reset_at_close(&watched);
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// What the test says about a request; where that fails, the connection ends, and the test with the server.
    fn plan(&self, asked: &Asked) -> Option<Script> {
        let plan = catch_unwind(AssertUnwindSafe(|| (self.play)(asked)));
        plan.map_err(|why| {
            let mut failed = self.failed.lock().unwrap();
            failed.get_or_insert_with(|| said(why.as_ref()));
        })
        .ok()
    }

    fn wait_until_gone(&self, socket: &TcpStream) -> io::Result<()> {
        socket.set_read_timeout(Some(Duration::from_millis(20)))?;
        while !self.is_over() {
            match socket.peek(&mut [0]) {
                Ok(0) => break,
                // More requests are not answered either.
                Ok(_) => thread::sleep(Duration::from_millis(20)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

fn said(why: &(dyn Any + Send)) -> String {
    let text = why.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| why.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_in_a_server_fails_its_test() {
        let server = Server::start(|asked| {
            assert_eq!(asked.path, "/another", "the path");
            Reply::status(404).script()
        });
        let unanswered = TcpStream::connect(server.address()).and_then(|mut socket| {
            socket.write_all(b"GET /object HTTP/1.1\r\n\r\n")?;
            socket.read(&mut [0])
        });
        assert_eq!(unanswered.unwrap(), 0);
        let why = catch_unwind(AssertUnwindSafe(|| drop(server))).unwrap_err();
        let text = said(why.as_ref());
        assert!(
            text.contains("the path") && text.contains("/object"),
            "{text}"
        );
    }

    #[test]
    fn a_test_that_has_failed_already_is_not_failed_again() {
        let failed = catch_unwind(|| {
            let server = Server::start(|_| panic!("in the server"));
            let _ = TcpStream::connect(server.address())
                .and_then(|mut socket| socket.write_all(b"GET / HTTP/1.1\r\n\r\n"));
            panic!("in the test");
        });
        assert_eq!(said(failed.unwrap_err().as_ref()), "in the test");
    }
}
