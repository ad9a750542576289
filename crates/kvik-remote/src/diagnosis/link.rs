//! The steps `dns` and `tcp`: whether the server's name has addresses, and whether somebody listens there.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use kvik_core::ErrorKind;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use url::{Host, Url};

use super::{Seen, Stage, Step, advice, millis};
use crate::transport::addresses_of;

/// The server that is asked first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    /// A name, or an address without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) is_secure: bool,
}

impl Server {
    pub(super) fn of(url: &Url) -> Option<Server> {
        let host = match url.host()? {
            Host::Domain(name) => name.to_owned(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        Some(Server {
            host,
            port: url.port_or_known_default()?,
            is_secure: url.scheme() == "https",
        })
    }
}

/// Looks for the addresses of the server, as the client does.
pub(super) async fn resolve(server: &Server, limit: Duration) -> Seen<Vec<SocketAddr>> {
    let Server { host, port, .. } = server;
    if let Ok(address) = host.parse() {
        let step = Step::ok(Stage::Dns, format!("`{host}` is an address, and no name"));
        return Ok((step, vec![SocketAddr::new(address, *port)]));
    }
    let begun = Instant::now();
    let found = tokio::time::timeout(limit, addresses_of(host)).await;
    let took = millis(begun.elapsed());
    let (kind, why) = match found {
        Ok(Ok(found)) if !found.is_empty() => {
            let mut addresses: Vec<SocketAddr> = Vec::new();
            for mut address in found {
                address.set_port(*port);
                if !addresses.contains(&address) {
                    addresses.push(address);
                }
            }
            let count = addresses.len();
            let word = if count == 1 { "address" } else { "addresses" };
            let list: Vec<String> = addresses.iter().map(|at| at.ip().to_string()).collect();
            let step = Step::ok(Stage::Dns, format!("`{host}` has {count} {word}"))
                .fact("addresses", list.join(", "))
                .fact("took", took);
            return Ok((step, addresses));
        }
        Ok(Ok(_)) => (ErrorKind::Unreachable, "it has no addresses".to_owned()),
        Ok(Err(error)) => (ErrorKind::Unreachable, error.to_string()),
        Err(_) => {
            let seconds = limit.as_secs_f64();
            (ErrorKind::TimedOut, format!("no answer within {seconds} s"))
        }
    };
    let what = format!("the name `{host}` is not known here: {why}");
    Err(Step::failed(Stage::Dns, kind, what, advice::of_name(host)).fact("took", took))
}

/// Connects to all the addresses at once, until one has answered and the others had a moment to do so as well. The first
/// that answers is the one to go on with.
pub(super) async fn connect(
    server: &Server,
    addresses: &[SocketAddr],
    limit: Duration,
) -> Seen<SocketAddr> {
    let addresses = &addresses[..addresses.len().min(MOST)];
    let mut tries = JoinSet::new();
    for (at, address) in addresses.iter().copied().enumerate() {
        tries.spawn(async move {
            let begun = Instant::now();
            let connected = tokio::time::timeout(limit, TcpStream::connect(address)).await;
            let connected = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            (at, address, connected, begun.elapsed())
        });
    }
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    let mut end = None;
    while let Some((at, address, connected, took)) = next(&mut tries, end).await {
        match connected {
            Ok(_) => {
                good.push((address, took));
                end.get_or_insert_with(|| tokio::time::Instant::now() + GRACE);
            }
            Err(error) => bad.push((at, address, error)),
        }
    }
    bad.sort_by_key(|(at, ..)| *at);
    let silent = addresses.iter().filter_map(|address| {
        let failed = bad.iter().find(|(_, bad, _)| bad == address);
        let why = match failed {
            Some((.., error)) => reason(error, limit),
            None if good.iter().any(|(good, _)| good == address) => return None,
            None => "not waited for".to_owned(),
        };
        Some(format!("{address}: {why}"))
    });
    let silent = silent.collect::<Vec<_>>().join("; ");
    let fails_alike = |address: &SocketAddr| {
        bad.iter()
            .any(|(_, bad, _)| bad.is_ipv4() == address.is_ipv4())
    };
    let some_fail = good.iter().any(|(address, _)| fails_alike(address));
    let Some((address, took)) = good.into_iter().next() else {
        let last = bad.into_iter().next().map(|(.., error)| error);
        let is_late = last
            .as_ref()
            .is_some_and(|error| error.kind() == io::ErrorKind::TimedOut);
        let kind = match is_late {
            true => ErrorKind::TimedOut,
            false => ErrorKind::Unreachable,
        };
        let what = format!("no connection: {silent}");
        return Err(Step::failed(
            Stage::Tcp,
            kind,
            what,
            advice::of_connection(server, last.as_ref()),
        ));
    };
    let what = format!("{address} takes connections");
    let step = match some_fail {
        // An address of the other version of IP is known on many machines that have no way to it.
        true => Step::note(
            Stage::Tcp,
            format!("{what}; not all addresses do"),
            "some connections will be late, or made a second time; tell the operator of the server",
        ),
        false => Step::ok(Stage::Tcp, what),
    };
    let silent = (!silent.is_empty()).then_some(silent);
    Ok((
        step.fact("took", millis(took))
            .maybe("without_connection", silent),
        address,
    ))
}

/// How the next try ended, unless `end` comes first or there is none left.
async fn next<T: 'static>(tries: &mut JoinSet<T>, end: Option<tokio::time::Instant>) -> Option<T> {
    loop {
        let ended = match end {
            Some(end) => tokio::time::timeout_at(end, tries.join_next())
                .await
                .ok()??,
            None => tries.join_next().await?,
        };
        // A try that panicked has no outcome.
        if let Ok(ended) = ended {
            return Some(ended);
        }
    }
}

fn reason(error: &io::Error, limit: Duration) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut => format!("no answer within {} s", limit.as_secs_f64()),
        io::ErrorKind::ConnectionRefused => "refused".to_owned(),
        _ => error.to_string(),
    }
}

// How long the others have after the first: a way around the world takes as much.
const GRACE: Duration = Duration::from_millis(250);
// Nobody waits for more of them.
const MOST: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::{TcpListener, TcpSocket};

    #[test]
    fn the_first_address_that_answers_is_taken_and_a_silent_one_is_not_waited_for() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let here = SocketAddr::from(([127, 0, 0, 1], 0));
            // Where nobody accepts, there is room for one connection more than was said; the next one is not answered.
            let silent = TcpSocket::new_v4().unwrap();
            silent.bind(here).unwrap();
            let silent = silent.listen(1).unwrap();
            let full = silent.local_addr().unwrap();
            let _first = TcpStream::connect(full).await.unwrap();
            let _second = TcpStream::connect(full).await.unwrap();
            let good = TcpListener::bind(here).await.unwrap();
            let good = good.local_addr().unwrap();
            let url = Url::parse("http://localhost/").unwrap();
            let server = Server::of(&url).unwrap();
            let hour = Duration::from_secs(3600);
            let (step, chosen) = connect(&server, &[full, good], hour).await.unwrap();
            assert_eq!(chosen, good);
            assert_eq!(step.outcome, crate::diagnosis::Outcome::Ok);
            let (_, told) = step.facts.last().unwrap();
            assert_eq!(told, &format!("{full}: not waited for"));
        });
    }
}
