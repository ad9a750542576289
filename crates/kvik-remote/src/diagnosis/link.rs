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
    is_name: bool,
}

impl Server {
    pub(super) fn of(url: &Url) -> Option<Server> {
        let (host, is_name) = match url.host()? {
            Host::Domain(name) => (name.to_owned(), true),
            Host::Ipv4(address) => (address.to_string(), false),
            Host::Ipv6(address) => (address.to_string(), false),
        };
        Some(Server {
            host,
            is_name,
            port: url.port_or_known_default()?,
            is_secure: url.scheme() == "https",
        })
    }
}

/// Looks for the addresses of the server, as the client does.
pub(super) async fn resolve(server: &Server, limit: Duration) -> Seen<Vec<SocketAddr>> {
    let Server { host, port, .. } = server;
    if let Ok(address) = host.parse() {
        let step = Step::ok(Stage::Dns, "the URL has an address, and no name");
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

/// Connects to all the addresses at once; the connection to the first that answers goes on.
pub(super) async fn connect(
    server: &Server,
    addresses: &[SocketAddr],
    limit: Duration,
) -> Seen<TcpStream> {
    let mut tries = JoinSet::new();
    for (at, address) in addresses.iter().copied().take(MOST).enumerate() {
        tries.spawn(async move {
            let begun = Instant::now();
            let connected = tokio::time::timeout(limit, TcpStream::connect(address)).await;
            let connected = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            (at, address, connected, begun.elapsed())
        });
    }
    let mut ended = tries.join_all().await;
    ended.sort_by_key(|(at, ..)| *at);
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for (_, address, connected, took) in ended {
        match connected {
            Ok(stream) => good.push((address, stream, took)),
            Err(error) => bad.push((address, error)),
        }
    }
    let silent = bad
        .iter()
        .map(|(address, error)| format!("{address}: {}", reason(error, limit)));
    let silent = silent.collect::<Vec<_>>().join("; ");
    let fails_alike = |address: &SocketAddr| {
        bad.iter()
            .any(|(bad, _)| bad.is_ipv4() == address.is_ipv4())
    };
    let some_fail = good.iter().any(|(address, ..)| fails_alike(address));
    let Some((address, stream, took)) = good.into_iter().next() else {
        let last = bad.into_iter().next().map(|(_, error)| error);
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
        stream,
    ))
}

fn reason(error: &io::Error, limit: Duration) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut => format!("no answer within {} s", limit.as_secs_f64()),
        io::ErrorKind::ConnectionRefused => "refused".to_owned(),
        _ => error.to_string(),
    }
}

// Nobody waits for more of them.
const MOST: usize = 16;
