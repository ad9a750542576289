//! A URL of the web, split once and never put together differently: what may stand in a URL goes out byte for byte.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use kvik_core::Result;

use super::refused;
use crate::percent;
use crate::redact;

/// User name and password of a URL, decoded. Its `Debug` shows neither.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct UserInfo {
    pub(crate) user: String,
    pub(crate) password: String,
}

/// An `http` or `https` URL. Its texts have no user name, no password and no fragment.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct WebUrl {
    secure: bool,
    user_info: Option<UserInfo>,
    host: String,
    /// Where it is not the scheme's own.
    port: Option<u16>,
    port_written: bool,
    path: String,
    query: Option<String>,
}

impl WebUrl {
    /// Splits what follows `://`.
    pub(crate) fn split(secure: bool, rest: &str) -> Result<WebUrl> {
        let rest = rest.split('#').next().unwrap_or_default();
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, Some(percent::encode_illegal(query))),
            None => (rest, None),
        };
        let (authority, path) = match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, "/"),
        };
        let (user_info, address) = match authority.rsplit_once('@') {
            Some((user_info, address)) => (Some(read_user_info(user_info)?), address),
            None => (None, authority),
        };
        let (host, port) = split_port(address)?;
        let own = if secure { 443 } else { 80 };
        Ok(WebUrl {
            secure,
            user_info,
            host: read_host(host)?,
            port: port.filter(|port| *port != own),
            port_written: port.is_some(),
            path: percent::encode_illegal(path),
            query,
        })
    }

    /// `https://HOST/`.
    pub(crate) fn of_host(host: String) -> WebUrl {
        WebUrl {
            secure: true,
            user_info: None,
            host,
            port: None,
            port_written: false,
            path: "/".to_owned(),
            query: None,
        }
    }

    pub(crate) fn user_info(&self) -> Option<&UserInfo> {
        self.user_info.as_ref()
    }

    /// In lower case; an IPv6 address has its brackets.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Whether the host is a name, and no address.
    pub(crate) fn has_name(&self) -> bool {
        !self.host.starts_with('[') && self.host.parse::<Ipv4Addr>().is_err()
    }

    /// Whether the URL had a port, be it the scheme's own.
    pub(crate) fn has_port(&self) -> bool {
        self.port_written
    }

    /// Host and port, as the header `Host` has them.
    pub(crate) fn authority(&self) -> String {
        match self.port {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.clone(),
        }
    }

    /// Scheme, host and port.
    pub(crate) fn origin(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}", self.authority())
    }

    /// As it goes out, from its first slash on.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// As it goes out.
    pub(crate) fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    pub(crate) fn is_secure(&self) -> bool {
        self.secure
    }

    /// With this port where the URL has none.
    pub(crate) fn with_default_port(mut self, port: u16) -> WebUrl {
        if !self.port_written {
            self.port = Some(port);
            self.port_written = true;
        }
        self
    }

    pub(crate) fn with_host(mut self, host: String) -> WebUrl {
        self.host = host;
        self
    }

    /// The same at another `HOST:PORT`.
    pub(crate) fn at_authority(&self, authority: &str) -> Result<WebUrl> {
        let (host, port) = read_authority(authority)?;
        let own = if self.secure { 443 } else { 80 };
        Ok(WebUrl {
            host,
            port: port.filter(|port| *port != own),
            port_written: port.is_some(),
            ..self.clone()
        })
    }

    /// With another path, which must be encoded already.
    pub(crate) fn with_path(mut self, path: String) -> WebUrl {
        self.path = path;
        self
    }

    /// With another query, which must be encoded already.
    pub(crate) fn with_query(mut self, query: Option<String>) -> WebUrl {
        self.query = query;
        self
    }

    /// As it goes out, secrets of the query included.
    pub(crate) fn to_send(&self) -> String {
        match &self.query {
            Some(query) => format!("{}{}?{query}", self.origin(), self.path),
            None => format!("{}{}", self.origin(), self.path),
        }
    }
}

impl fmt::Display for WebUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.origin(), self.path)?;
        match &self.query {
            Some(query) => write!(f, "?{}", redact::query(query)),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for WebUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WebUrl({self})")
    }
}

impl fmt::Debug for UserInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserInfo(***)")
    }
}

/// The reasons name nothing of what was given: it is a secret, or part of one.
fn read_user_info(text: &str) -> Result<UserInfo> {
    if text.contains('@') {
        return Err(refused(
            "the URL has more than one @ before its path; write one that belongs to the password as %40",
        ));
    }
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let decoded = |part: &str| {
        let part = String::from_utf8(percent::decode(part)).ok();
        part.filter(|part| !part.chars().any(char::is_control))
            .ok_or_else(|| refused("the user name or the password of the URL is no readable text"))
    };
    Ok(UserInfo {
        user: decoded(user)?,
        password: decoded(password)?,
    })
}

/// `HOST` or `HOST:PORT`, and nothing else of a URL.
pub(crate) fn read_authority(text: &str) -> Result<(String, Option<u16>)> {
    if text.contains(['/', '?', '#', '@']) {
        return Err(refused(
            "a host and its port are expected, and nothing else of a URL",
        ));
    }
    let (host, port) = split_port(text)?;
    Ok((read_host(host)?, port))
}

fn split_port(address: &str) -> Result<(&str, Option<u16>)> {
    let after = match address.strip_prefix('[') {
        Some(inner) => match inner.find(']') {
            // The bracket that opened is one byte more.
            Some(end) => end + 2,
            None => return Err(refused("the IPv6 address of the URL does not end")),
        },
        None => address.find(':').unwrap_or(address.len()),
    };
    let (host, port) = address.split_at(after);
    if port.is_empty() {
        return Ok((host, None));
    }
    // An empty port is none; RFC 3986 has it so.
    let digits = port.strip_prefix(':').unwrap_or("?");
    if digits.is_empty() {
        return Ok((host, None));
    }
    let port = match digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => digits.parse().ok().filter(|port| *port != 0),
        false => None,
    };
    match port {
        Some(port) => Ok((host, Some(port))),
        None => Err(refused("the port of the URL is no number from 1 to 65535")),
    }
}

fn read_host(host: &str) -> Result<String> {
    if let Some(inner) = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
    {
        return match inner.parse::<Ipv6Addr>() {
            // The form that goes into the header `Host`, and is signed: it has no dotted numbers.
            Ok(address) => Ok(match address.to_ipv4_mapped() {
                Some(_) => {
                    let [.., high, low] = address.segments();
                    format!("[::ffff:{high:x}:{low:x}]")
                }
                None => format!("[{address}]"),
            }),
            Err(_) => Err(refused("the host of the URL is no IPv6 address")),
        };
    }
    if host.is_empty() {
        return Err(refused("the URL names no host"));
    }
    if !host.is_ascii() {
        return Err(refused(
            "the host of the URL has letters beyond ASCII; write its xn-- form",
        ));
    }
    let host = host.to_ascii_lowercase();
    let named = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if !host.bytes().all(named) {
        return Err(refused(
            "the host of the URL has a character that no host has",
        ));
    }
    // Abbreviated, octal and hexadecimal addresses mean one host to some and another to others.
    let last = host
        .trim_end_matches('.')
        .rsplit('.')
        .next()
        .unwrap_or_default();
    let numeric = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    if numeric && host.parse::<Ipv4Addr>().is_err() {
        return Err(refused(
            "the host of the URL is no IPv4 address of four numbers",
        ));
    }
    Ok(host)
}
