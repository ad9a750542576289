//! The hosts that are asked without a proxy: what `no_proxy` means.

use std::net::{IpAddr, Ipv6Addr};

use url::{Host, Url};

/// What `no_proxy` says, and what always holds: no proxy knows this machine, or what hangs on our link.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bypass(Vec<Rule>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Rule {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Hosts {
    All,
    /// This name, and all below it.
    Below(String),
    /// The addresses whose first bits are those.
    Network(IpAddr, u32),
}

impl Bypass {
    /// Programs differ in what they take; this takes what any of them does: commas or blanks between the rules, a name with
    /// or without a dot or `*.` before it, addresses in brackets or not, networks.
    pub(super) fn of(rules: &str) -> Bypass {
        let rules = rules.split(|c: char| c == ',' || c.is_whitespace());
        Bypass(rules.filter_map(Rule::of).collect())
    }

    /// Whether this URL is asked for without a proxy.
    pub(super) fn covers(&self, url: &Url) -> bool {
        let port = url.port_or_known_default();
        let Some(host) = url.host() else {
            return true;
        };
        let address = match host {
            Host::Ipv4(address) => Some(IpAddr::V4(address)),
            Host::Ipv6(address) => Some(IpAddr::V6(address).to_canonical()),
            Host::Domain(_) => None,
        };
        let name = match host {
            Host::Domain(name) => name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase(),
            _ => String::new(),
        };
        let is_near = match address {
            Some(address) => address.is_loopback() || is_of_the_link(address),
            None => is_below(&name, "localhost"),
        };
        let is_meant = |rule: &Rule| {
            let on_port = rule.port.is_none() || rule.port == port;
            on_port
                && match &rule.hosts {
                    Hosts::All => true,
                    Hosts::Below(top) => is_below(&name, top),
                    Hosts::Network(network, bits) => {
                        address.is_some_and(|address| is_within(address, *network, *bits))
                    }
                }
        };
        is_near || self.0.iter().any(is_meant)
    }
}

impl Rule {
    fn of(text: &str) -> Option<Rule> {
        if let Some(hosts) = Hosts::of(text) {
            return Some(Rule { hosts, port: None });
        }
        let (host, port) = text.rsplit_once(':')?;
        Some(Rule {
            hosts: Hosts::of(host)?,
            port: Some(port.parse().ok()?),
        })
    }
}

impl Hosts {
    fn of(text: &str) -> Option<Hosts> {
        let inner = text
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'));
        if let Ok(address) = inner.unwrap_or(text).parse::<IpAddr>() {
            let address = address.to_canonical();
            return Some(Hosts::Network(address, bits_of(address)));
        }
        if let Some((network, bits)) = text.split_once('/') {
            let (network, bits) = (network.parse::<IpAddr>().ok()?, bits.parse().ok()?);
            return (bits <= bits_of(network)).then_some(Hosts::Network(network, bits));
        }
        if text == "*" {
            return Some(Hosts::All);
        }
        let name = text.strip_prefix('*').unwrap_or(text);
        let name = name.strip_prefix('.').unwrap_or(name);
        let name = name.strip_suffix('.').unwrap_or(name);
        let is_name = !name.is_empty() && !name.contains([':', '[', ']', '*']);
        is_name.then(|| Hosts::Below(name.to_ascii_lowercase()))
    }
}

fn is_below(name: &str, top: &str) -> bool {
    let above = name.strip_suffix(top);
    above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
}

/// Where a cloud tells its machines who they are, among others.
fn is_of_the_link(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local() || address == METADATA,
    }
}

fn is_within(address: IpAddr, network: IpAddr, bits: u32) -> bool {
    let differ = match (address, network) {
        (IpAddr::V4(a), IpAddr::V4(b)) => u128::from(a.to_bits() ^ b.to_bits()) << 96,
        (IpAddr::V6(a), IpAddr::V6(b)) => a.to_bits() ^ b.to_bits(),
        _ => return false,
    };
    differ.leading_zeros() >= bits
}

fn bits_of(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

// Where AWS has its metadata service by version 6.
const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rules: &str, covered: &[&str], others: &[&str]) {
        let bypass = Bypass::of(rules);
        for (urls, expected) in [(covered, true), (others, false)] {
            for url in urls {
                let covers = bypass.covers(&Url::parse(url).unwrap());
                assert_eq!(covers, expected, "`{rules}` for {url}");
            }
        }
    }

    #[test]
    fn a_name_covers_itself_and_all_below_it() {
        for rules in [
            "example.org",
            ".example.org",
            "*.example.org",
            "EXAMPLE.org.",
            " a.b , example.org,",
            "a.b example.org",
        ] {
            check(
                rules,
                &[
                    "http://example.org/",
                    "https://a.Example.org:8443/",
                    "http://b.a.example.org./",
                ],
                &[
                    "http://badexample.org/",
                    "http://example.org.evil/",
                    "http://org/",
                    "http://10.0.0.1/",
                ],
            );
        }
    }

    #[test]
    fn a_port_limits_a_rule() {
        check(
            "example.org:8080,10.0.0.1:443,[2001:db8::1]:81",
            &[
                "http://example.org:8080/",
                "https://10.0.0.1/",
                "http://[2001:db8::1]:81/",
            ],
            &[
                "http://example.org/",
                "http://10.0.0.1/",
                "http://[2001:db8::1]/",
            ],
        );
    }

    #[test]
    fn addresses_and_networks_cover_addresses_and_no_names() {
        check(
            "192.0.2.7,10.0.0.0/8,2001:db8::/32,[2001:db9::1]",
            &[
                "http://192.0.2.7/",
                "http://[::ffff:192.0.2.7]/",
                "http://10.255.0.1:9000/",
                "http://[2001:db8:1::7]/",
                "http://[2001:db9::1]/",
            ],
            &[
                "http://192.0.2.70/",
                "http://11.0.0.1/",
                "http://[2001:db9::2]/",
                "http://x10.0.0.1.example/",
            ],
        );
        check(
            "0.0.0.0/0",
            &["http://192.0.2.7/"],
            &["http://[2001:db8::1]/"],
        );
    }

    #[test]
    fn a_star_covers_all_and_nonsense_nothing() {
        check("*", &["http://example.org/", "https://[2001:db8::1]/"], &[]);
        check("a,*", &["http://example.org/"], &[]);
        check(
            ",, :80 10.0.0.0/99 [ a*b example.org:port",
            &[],
            &["http://example.org/", "http://10.0.0.1/"],
        );
    }

    #[test]
    fn this_machine_and_its_link_never_have_a_proxy() {
        check(
            "",
            &[
                "http://localhost:9000/",
                "http://bucket.LocalHost/",
                "http://127.8.0.1/",
                "http://[::1]:80/",
                "http://[::ffff:127.0.0.1]/",
                "http://169.254.169.254/latest/",
                "http://[fe80::1]/",
                "http://[fd00:ec2::254]/",
            ],
            &[
                "http://notlocalhost/",
                "http://localhost.example.org/",
                "http://170.254.0.1/",
                "http://[fd00:ec2::253]/",
            ],
        );
    }
}
