//! What data nodes are called here: a cluster names them as its own network knows them. Pure.

use kvik_core::{ErrorKind, Op, Result};
use url::Url;

use super::places::address;
use crate::failure::{Failure, clause_of};
use crate::location::read_authority;

/// Which hosts and ports stand for which others.
#[derive(Clone, Debug, Default)]
pub(crate) struct DataNodeNames(Vec<(Address, Address)>);

/// A host, and its port where it matters.
#[derive(Clone, Debug)]
struct Address {
    host: String,
    port: Option<u16>,
}

impl DataNodeNames {
    /// Takes what the cluster calls `from` for `to`, both `HOST` or `HOST:PORT`.
    ///
    /// # Errors
    /// `Misuse` for what is no host.
    pub(crate) fn add(&mut self, from: &str, to: &str) -> Result<()> {
        let read = |text: &str| {
            let (host, port) = read_authority(text).map_err(|error| {
                let why = format!("the address of a data node is none: {}", clause_of(&error));
                kvik_core::Error::new(ErrorKind::Misuse, Op::Open, why)
            })?;
            Ok::<_, kvik_core::Error>(Address { host, port })
        };
        self.0.push((read(from)?, read(to)?));
        Ok(())
    }

    /// Where `url` is to be found here. Of several rules the first counts.
    ///
    /// # Errors
    /// `Internal` if the host is none to the client, which [`add`](DataNodeNames::add) rules out.
    pub(crate) fn translate(&self, mut url: Url) -> Result<Url, Failure> {
        let (host, port) = address(&url);
        let fits = |from: &Address| {
            from.host.eq_ignore_ascii_case(&host) && from.port.is_none_or(|from| from == port)
        };
        if let Some((_, to)) = self.0.iter().find(|(from, _)| fits(from)) {
            let port = to.port.unwrap_or(port);
            let set = url.set_host(Some(&to.host)).is_ok() && url.set_port(Some(port)).is_ok();
            if !set {
                let why = "the address given for a data node is none";
                return Err(Failure::lasting(ErrorKind::Internal, why));
            }
        }
        Ok(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_node_is_found_by_host_or_by_host_and_port() {
        let mut names = DataNodeNames::default();
        names.add("dn1:9864", "127.0.0.1:1864").unwrap();
        names.add("DN1", "127.0.0.2").unwrap();
        names.add("dn2", "[::1]:2864").unwrap();
        for (named, found) in [
            ("http://dn1:9864/a?b=c", "http://127.0.0.1:1864/a?b=c"),
            ("http://dn1:9000/a", "http://127.0.0.2:9000/a"),
            ("http://DN2:9864/a", "http://[::1]:2864/a"),
            ("https://dn2/a", "https://[::1]:2864/a"),
            ("http://dn3:9864/a", "http://dn3:9864/a"),
        ] {
            let url = names.translate(Url::parse(named).unwrap()).unwrap();
            assert_eq!(url.as_str(), found);
        }
        for wrong in ["", "a/b", "u@h", "h:x", "h?x", "http://h"] {
            let error = names.add("dn1", wrong).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misuse, "{wrong}");
        }
    }
}
