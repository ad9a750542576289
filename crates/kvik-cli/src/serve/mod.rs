//! Serve: a small HTTP/1.1 server of the files in one folder, or of one file, in ranges.
//!
//! It is for trying things, and what `kvik bench remote` reads from where no URL is given. It reads and never writes:
//!
//! ```text
//! socket -> incoming -> request -> answer (files, conditions, range) -> connection -> socket
//! ```
//!
//! Each connection has a thread, up to a number of them; whoever comes then waits until one ends.

mod answer;
mod conditions;
mod connection;
mod files;
mod incoming;
mod listing;
mod range;
mod request;
mod status;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::failure::{Failure, Result};
use files::Files;

/// A server at work. It ends when this is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    /// The encoded path of the URL.
    path: String,
    listener: TcpListener,
    accepting: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
}

/// Is told each answer in a line of text.
pub(crate) type Told = Box<dyn Fn(&str) + Send + Sync>;

/// What a server has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) requests: u64,
    /// Of bodies.
    pub(crate) bytes: u64,
}

/// What one client may cost.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Each takes four descriptors while it is answered, of the 1024 that a process usually has.
    connections: usize,
    head_bytes: usize,
    headers: usize,
    /// From the first byte of a head to its last.
    head_time: Duration,
    /// Between two requests.
    idle: Duration,
    /// Until a client takes more of an answer.
    stalled: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 128,
            head_bytes: 16 << 10,
            headers: 100,
            head_time: Duration::from_secs(10),
            idle: Duration::from_secs(30),
            stalled: Duration::from_secs(30),
        }
    }
}

struct Shared {
    files: Files,
    limits: Limits,
    /// Nobody but this machine is to reach it.
    loopback: bool,
    told: Option<Told>,
    requests: AtomicU64,
    bytes: AtomicU64,
    open: Mutex<Open>,
    changed: Condvar,
}

#[derive(Default)]
struct Open {
    over: bool,
    /// By their number, so that they end with the server.
    sockets: HashMap<u64, TcpStream>,
}

impl Server {
    /// Starts to serve what is at `place`, a folder or a file; port 0 is any that is free.
    pub(crate) fn bind(place: &Path, address: SocketAddr, told: Option<Told>) -> Result<Self> {
        Server::bind_within(place, address, told, Limits::default())
    }

    fn bind_within(
        place: &Path,
        address: SocketAddr,
        told: Option<Told>,
        limits: Limits,
    ) -> Result<Self> {
        let files = Files::at(place)?;
        let failed = |error| Failure::at("serve at", &address.to_string(), &error);
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let path = files.first();
        let shared = Arc::new(Shared {
            files,
            limits,
            loopback: address.ip().is_loopback(),
            told,
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            open: Mutex::default(),
            changed: Condvar::new(),
        });
        let heard = listener.try_clone().map_err(failed)?;
        let serving = Arc::clone(&shared);
        let accepting = start("kvik-serve", move || accept(&heard, &serving)).map_err(failed)?;
        Ok(Server {
            address,
            path,
            listener,
            accepting: Some(accepting),
            shared,
        })
    }

    /// Of the folder, with a `/` at its end, or of the file. It can be reached from this machine.
    pub(crate) fn url(&self) -> String {
        let mut reached = self.address;
        if reached.ip().is_unspecified() {
            reached.set_ip(match reached.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        format!("http://{reached}{}", self.path)
    }

    /// Ends every connection, whatever is under way, and says what was sent.
    pub(crate) fn stop(mut self) -> Sent {
        self.close();
        Sent {
            requests: self.shared.requests.load(Ordering::Relaxed),
            bytes: self.shared.bytes.load(Ordering::Relaxed),
        }
    }

    fn close(&mut self) {
        let Some(accepting) = self.accepting.take() else {
            return;
        };
        {
            let mut open = self.shared.lock();
            open.over = true;
            for socket in open.sockets.values() {
                // One that has ended is what it is to be.
                let _ = socket.shutdown(Shutdown::Both);
            }
        }
        self.shared.changed.notify_all();
        // The standard library shuts down connections alone; to the system a listener is a socket, too, and whoever waits for
        // a connection there comes back.
        if let Ok(listener) = self.listener.try_clone() {
            let _ = TcpStream::from(OwnedFd::from(listener)).shutdown(Shutdown::Both);
        }
        let _ = accepting.join();
        let mut open = self.shared.lock();
        while !open.sockets.is_empty() {
            open = self.shared.wait(open);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, open: MutexGuard<'a, Open>) -> MutexGuard<'a, Open> {
        self.changed
            .wait(open)
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there may be one more connection; false when the server is over.
    fn has_room(&self) -> bool {
        let mut open = self.lock();
        while !open.over && open.sockets.len() >= self.limits.connections {
            open = self.wait(open);
        }
        !open.over
    }

    /// Enters a connection, unless the server is over.
    fn enter(self: &Arc<Self>, number: u64, socket: &TcpStream) -> Option<Entered> {
        let kept = socket.try_clone().ok()?;
        let mut open = self.lock();
        if open.over {
            return None;
        }
        open.sockets.insert(number, kept);
        Some(Entered {
            shared: Arc::clone(self),
            number,
        })
    }
}

/// A connection that counts, until this is dropped.
struct Entered {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.shared.lock().sockets.remove(&self.number);
        self.shared.changed.notify_all();
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut number = 0;
    while shared.has_room() {
        let Ok((socket, peer)) = listener.accept() else {
            // It was told to end, or no descriptor is left, which takes until another connection ends.
            let open = shared.lock();
            if !open.over {
                drop(shared.changed.wait_timeout(open, BREATH));
            }
            continue;
        };
        number += 1;
        let Some(entered) = shared.enter(number, &socket) else {
            continue;
        };
        // Where there can be no more threads, the client finds its connection closed.
        let _ = start("kvik-serve-one", move || {
            connection::serve(&socket, peer, &entered.shared);
            // Only with the last descriptor does a connection end, and it is to have ended when it is no longer counted.
            drop(socket);
            drop(entered);
        });
    }
}

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a server's threads wait for clients, and a pool that moves bytes is not to wait for those"
    )]
    thread::Builder::new().name(name.to_owned()).spawn(work)
}

// How long nothing is accepted after that has failed.
const BREATH: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests;
