//! Names of hosts become addresses: by the system, but for those below `localhost`, and kept for some seconds.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, io};

use kvik_core::corridor::PerProcess;
use kvik_stats::names;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::sync::{OnceCell, Semaphore};

use super::Soon;
use super::connecting;

/// Asks the system, on a thread of the runtime's, once for all who want to know the same. A name below `localhost` is this
/// machine, as RFC 6761 has it and not every system: it is where a store for trying things has its buckets.
pub(super) struct Names {
    system: Box<dyn Lookup>,
    known: Mutex<Known>,
}

/// Finds the addresses of a name.
pub(super) trait Lookup: Send + Sync {
    fn lookup(&self, name: &str) -> Soon<'static, io::Result<Vec<SocketAddr>>>;
}

/// What names were asked for of late.
#[derive(Default)]
struct Known(HashMap<Box<str>, Arc<OnceCell<Answer>>>);

struct Answer {
    // All who wait for it hear of the same failure.
    found: Result<Vec<SocketAddr>, Arc<io::Error>>,
    at: Instant,
}

impl Names {
    /// The one of this process: what one client has found out all know.
    pub(super) fn shared() -> Arc<Names> {
        static NAMES: PerProcess<Arc<Names>> = PerProcess::new();
        Arc::clone(NAMES.get_or(|| Arc::new(Names::asking(Box::new(System::new())))))
    }

    fn asking(system: Box<dyn Lookup>) -> Names {
        Names {
            system,
            known: Mutex::default(),
        }
    }

    /// The addresses of `name`, in an order that differs from call to call.
    async fn find(&self, name: &str) -> io::Result<Vec<SocketAddr>> {
        if is_here(name) {
            return Ok(HERE.to_vec());
        }
        let asked = self.known().of(name, Instant::now());
        let answer = asked.get_or_init(|| async {
            names::HTTP_DNS_LOOKUPS.increment();
            let found = self.system.lookup(name).await;
            Answer {
                found: found.map_err(Arc::new),
                at: Instant::now(),
            }
        });
        match &answer.await.found {
            Ok(found) => {
                let mut found = found.clone();
                shuffle(&mut found, RandomState::new().build_hasher().finish());
                Ok(found)
            }
            Err(error) => Err(io::Error::new(error.kind(), Arc::clone(error))),
        }
    }

    /// Asks anew for `name` the next time, since none of its addresses takes a connection.
    pub(super) fn forget(&self, name: &str) {
        let mut known = self.known();
        // Who waits for an answer hears a new one.
        if known.0.get(name).is_some_and(|asked| asked.initialized()) {
            known.0.remove(name);
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// The answer for `name`, or the place for it, which the first to wait for it fills.
    fn of(&mut self, name: &str, now: Instant) -> Arc<OnceCell<Answer>> {
        if let Some(asked) = self.0.get(name).filter(|asked| is_good(asked, now)) {
            return Arc::clone(asked);
        }
        if self.0.len() >= MOST_NAMES {
            self.0.retain(|_, asked| is_good(asked, now));
        }
        if self.0.len() >= MOST_NAMES {
            self.0.clear();
        }
        let asked = Arc::<OnceCell<Answer>>::default();
        self.0.insert(name.into(), Arc::clone(&asked));
        asked
    }
}

/// Whether what is known still counts: a failure does for those who wait for it, and for nobody who comes later.
fn is_good(asked: &OnceCell<Answer>, now: Instant) -> bool {
    asked.get().is_none_or(|answer| {
        answer.found.is_ok() && now.saturating_duration_since(answer.at) < LIFE
    })
}

/// Another order of the addresses, so that many connections spread over all of them. Those of the version that the system
/// puts first stay in front: it knows which one works here.
fn shuffle(addresses: &mut [SocketAddr], mut dice: u64) {
    let first = addresses.first().map(SocketAddr::is_ipv4);
    addresses.sort_by_key(|address| Some(address.is_ipv4()) != first);
    let front = addresses.partition_point(|address| Some(address.is_ipv4()) == first);
    let (front, back) = addresses.split_at_mut(front);
    for part in [front, back] {
        for left in (2..=part.len()).rev() {
            part.swap(left - 1, (dice % left as u64) as usize);
            // A step of xorshift: no two of the numbers that follow hang together in a way that matters here.
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
        }
    }
}

/// Names, as the client wants them.
#[derive(Clone)]
pub(super) struct Resolver(pub(super) Arc<Names>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let names = Arc::clone(&self.0);
        Box::pin(async move {
            let found = names.find(name.as_str()).await;
            connecting::note_addresses();
            Ok(Box::new(found?.into_iter()) as Addrs)
        })
    }
}

/// Each lookup blocks a thread as long as the system likes. They have a number of their own, so that they never take the
/// threads from what the caller's code does there, nor wait for it.
struct System(Arc<Semaphore>);

impl System {
    fn new() -> System {
        System(Arc::new(Semaphore::new(MOST_LOOKUPS)))
    }
}

impl Lookup for System {
    fn lookup(&self, name: &str) -> Soon<'static, io::Result<Vec<SocketAddr>>> {
        let (name, lookups) = (name.to_owned(), Arc::clone(&self.0));
        Box::pin(async move {
            let permit = lookups.acquire_owned().await.map_err(io::Error::other)?;
            let runtime = super::runtime().map_err(io::Error::other)?;
            let lookup = runtime.call(move || {
                // Nobody may wait for it any more, and it goes on all the same.
                let _permit = permit;
                Ok((name.as_str(), 0).to_socket_addrs()?.collect())
            });
            lookup.await.map_err(io::Error::other)?
        })
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Names")
    }
}

fn is_here(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let last = name.rsplit_once('.').map(|(_, last)| last);
    last.is_some_and(|last| last.eq_ignore_ascii_case("localhost"))
}

const HERE: [SocketAddr; 2] = [
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
    SocketAddr::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 0),
];
// The system does not say how long an answer is good. Stores change theirs every few seconds to spread their clients, and
// servers that have moved must be found soon; within a burst of connections nothing changes.
const LIFE: Duration = Duration::from_secs(8);
// More than anybody reads from; redirects may lead to any number.
const MOST_NAMES: usize = 256;
// A resolver that is asked more at a time drops questions.
const MOST_LOOKUPS: usize = 16;

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
