//! Names of hosts become addresses: by the system, but for those below `localhost`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Asks the system, on a thread of the runtime's. A name below `localhost` is this machine, as RFC 6761 has it and not every
/// system: it is where a store for trying things has its buckets.
#[derive(Debug)]
pub(super) struct Names;

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            if is_here(name.as_str()) {
                return Ok(Box::new(HERE.into_iter()) as Addrs);
            }
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            Ok(Box::new(found.into_iter()) as Addrs)
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_below_localhost_are_this_machine() {
        for name in ["b.localhost", "a.b.LocalHost", "b.localhost."] {
            assert!(is_here(name), "{name}");
        }
        // The first of them has a line in the system's own file.
        for name in [
            "localhost",
            "localhost.example.org",
            "xlocalhost",
            "b.xlocalhost",
            "",
        ] {
            assert!(!is_here(name), "{name}");
        }
    }
}
