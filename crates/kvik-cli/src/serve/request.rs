//! Request: the head of a request, believed only as far as it is well formed.

use std::ffi::OsString;
use std::net::IpAddr;
use std::os::unix::ffi::OsStringExt;

use percent_encoding::percent_decode_str;

use super::status::Status;

/// A request that can be answered.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: Method,
    /// As it was written, without a query, which may be a secret; visible characters of ASCII.
    pub(super) path: String,
    /// The decoded names in it. None is empty, `.`, or `..`, and none has a `/`.
    pub(super) names: Vec<OsString>,
    /// Whom the client believes to talk to.
    pub(super) host: Option<String>,
    /// More requests may follow on the connection.
    pub(super) keep: bool,
    /// Names in small letters.
    fields: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Head,
}

/// Why a request is not answered. Nobody knows where the next one would begin.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bad {
    pub(super) status: Status,
    pub(super) why: &'static str,
}

impl Request {
    /// `head` is what stands before the empty line.
    pub(super) fn parse(head: &[u8], most_fields: usize) -> Result<Self, Bad> {
        let mut lines = head
            .split(|byte| *byte == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let first = lines.next().unwrap_or_default();
        let (method, target, version) = first_line(first)?;
        let newest = match version {
            "HTTP/1.1" => true,
            "HTTP/1.0" => false,
            _ => return Err(Bad::new(Status::VERSION, "HTTP/1.1 is spoken here")),
        };
        let mut fields = Vec::new();
        for line in lines.filter(|line| !line.is_empty()) {
            if fields.len() == most_fields {
                return Err(Bad::new(Status::TOO_LARGE, "there are too many headers"));
            }
            fields.push(field(line)?);
        }
        let method = match method {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            _ => return Err(Bad::new(Status::METHOD, "files are only read here")),
        };
        let mut request = Request {
            method,
            path: String::new(),
            names: Vec::new(),
            host: None,
            keep: false,
            fields,
        };
        request.look_for_a_body()?;
        let host = request.only("host")?.map(str::to_owned);
        if newest && host.is_none() {
            return Err(Bad::request("it has no header `Host`"));
        }
        let (authority, path) = split(target)?;
        // A host in the target is the one that counts.
        request.host = authority.map(str::to_owned).or(host);
        request.path = path.to_owned();
        request.names = names(path)?;
        let closes = |value: &str| {
            value
                .split(',')
                .any(|word| word.trim().eq_ignore_ascii_case("close"))
        };
        request.keep = newest && !request.all("connection").any(closes);
        Ok(request)
    }

    /// Whether more than the head of the answer is asked for.
    pub(super) fn wants_body(&self) -> bool {
        self.method == Method::Get
    }

    /// The values of all headers of this name, which is in small letters.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.fields
            .iter()
            .filter(move |field| field.0 == name)
            .map(|field| field.1.as_str())
    }

    /// The value of a header that may be there once.
    fn only<'a>(&'a self, name: &'a str) -> Result<Option<&'a str>, Bad> {
        let mut values = self.all(name);
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            _ => Err(Bad::request("a header is there twice")),
        }
    }

    /// Nobody needs one here, and one that is not read would be taken for the next request.
    fn look_for_a_body(&self) -> Result<(), Bad> {
        let length = self.only("content-length")?.unwrap_or("0");
        if self.all("transfer-encoding").next().is_some() || length != "0" {
            return Err(Bad::request("it has a body"));
        }
        Ok(())
    }

    /// Whether the host it is for is an address, or a name that means this machine everywhere.
    ///
    /// A page from elsewhere can make a browser send requests to a server on the loopback, under a name of the page's own
    /// that was made to mean this machine, and read the answers. The name gives it away.
    pub(super) fn means_this_machine(&self) -> bool {
        let Some(host) = self.host.as_deref() else {
            return true;
        };
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        name.parse::<IpAddr>().is_ok() || name == "localhost" || name.ends_with(".localhost")
    }
}

impl Bad {
    pub(super) fn new(status: Status, why: &'static str) -> Self {
        Bad { status, why }
    }

    fn request(why: &'static str) -> Self {
        Bad::new(Status::BAD_REQUEST, why)
    }
}

fn first_line(line: &[u8]) -> Result<(&str, &str, &str), Bad> {
    let wrong = || Bad::request("its first line is not METHOD TARGET VERSION");
    let visible = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
    if !line.iter().all(visible) {
        return Err(Bad::request(
            "its first line has characters that must be encoded",
        ));
    }
    let line = str::from_utf8(line).map_err(|_| wrong())?;
    let mut words = line.split(' ');
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some(method), Some(target), Some(version), None)
            if !method.is_empty() && !target.is_empty() =>
        {
            Ok((method, target, version))
        }
        _ => Err(wrong()),
    }
}

fn field(line: &[u8]) -> Result<(String, String), Bad> {
    let wrong = || Bad::request("a header is not NAME: VALUE");
    let colon = line.iter().position(|byte| *byte == b':');
    let (name, value) = line.split_at(colon.ok_or_else(wrong)?);
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let value = &value[1..];
    let control = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
    if name.is_empty() || !name.iter().all(token) || value.iter().any(control) {
        return Err(wrong());
    }
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    Ok((name, String::from_utf8_lossy(value).trim().to_owned()))
}

/// The host, if the target names one, and the path.
fn split(target: &str) -> Result<(Option<&str>, &str), Bad> {
    let target = target.split(['?', '#']).next().unwrap_or_default();
    if target.starts_with('/') {
        return Ok((None, target));
    }
    let Some(rest) = target.strip_prefix("http://") else {
        return Err(Bad::request("its target is no path"));
    };
    match rest.find('/') {
        Some(slash) => Ok((Some(&rest[..slash]), &rest[slash..])),
        None => Ok((Some(rest), "/")),
    }
}

fn names(path: &str) -> Result<Vec<OsString>, Bad> {
    let mut names = Vec::new();
    for part in path.split('/') {
        let name = decode(part)?;
        match name.as_slice() {
            b"" | b"." => {}
            b".." => return Err(Bad::request("its path leads out of the folder")),
            _ if name.contains(&b'/') || name.contains(&0) => {
                return Err(Bad::request("a name in its path is no name of a file"));
            }
            _ => names.push(OsString::from_vec(name)),
        }
    }
    Ok(names)
}

fn decode(part: &str) -> Result<Vec<u8>, Bad> {
    let mut escapes = part.split('%');
    escapes.next();
    for escape in escapes {
        let digits = escape.as_bytes().get(..2);
        if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
            return Err(Bad::request(
                "a % in its path is not followed by two digits",
            ));
        }
    }
    Ok(percent_decode_str(part).collect())
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
