//! [`Endpoint`]: a location and what is wanted of it become a request. Pure: what changes from one request to the next, the
//! time included, comes as a [`Moment`].

pub(crate) mod authorization;
mod http_server;
mod presigned;
mod reuse;
mod s3;
mod webhdfs;

use std::fmt;
use std::ops::Range;
use std::time::SystemTime;

use http::header::RANGE;
use http::{HeaderMap, HeaderValue, Method};
use kvik_core::{Error, ErrorKind, Op, Result};
use url::Url;

use authorization::authorize;
pub use http_server::HttpEndpoint;
pub use presigned::PresignedEndpoint;
pub use reuse::Reuse;
pub use s3::{Addressing, S3Endpoint, S3Options};
pub(crate) use webhdfs::starts_like_html;
pub use webhdfs::{FileStatus, WebHdfsEndpoint, WebHdfsOptions};

use crate::credentials::Keys;
use crate::{percent, redact};

/// What is wanted of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// These bytes, of which there is at least one.
    Range(Range<u64>),
    /// All of it, in one piece.
    Whole,
    /// How long it is, and not what it holds.
    Length,
}

/// What changes from one request to the next.
/// Its `Debug` shows no secret.
#[derive(Clone, Copy)]
pub struct Moment<'a> {
    /// The time.
    pub now: SystemTime,
    /// The keys to sign with; none for a request without a signature.
    pub keys: Option<&'a Keys>,
    /// The region that a server said the bucket is in, which is better than what anybody else says.
    pub region: Option<&'a str>,
    /// The bearer token.
    pub bearer: Option<&'a str>,
}

impl Moment<'_> {
    /// A moment at `now`, at which nothing else is known.
    #[must_use]
    pub fn at(now: SystemTime) -> Moment<'static> {
        Moment {
            now,
            keys: None,
            region: None,
            bearer: None,
        }
    }
}

impl fmt::Debug for Moment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Moment")
            .field("now", &self.now)
            .field("keys", &self.keys)
            .field("region", &self.region)
            .field("has_bearer", &self.bearer.is_some())
            .finish()
    }
}

/// A request without a body, as it goes out. Its `Debug` shows no secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    /// `GET` or `HEAD`.
    pub method: Method,
    /// The URL, byte for byte; it may hold secrets.
    pub url: String,
    /// What the endpoint has to say. Those that hold secrets, and all that the caller gave, are marked as sensitive: they
    /// are for the server of `url` and for nobody whom it points to.
    pub headers: HeaderMap,
}

impl Request {
    /// A request without headers.
    #[must_use]
    pub fn new(method: Method, url: String) -> Request {
        let headers = HeaderMap::new();
        Request {
            method,
            url,
            headers,
        }
    }

    /// The URL for a client that takes a [`Url`], which has opinions of its own: it resolves `.` and `..`, written out or
    /// encoded, and so would ask for another object.
    ///
    /// # Errors
    /// `Unsupported` if it would send another URL, but for a `'` in the query, which it encodes and which means the same.
    pub fn to_url(&self) -> Result<Url> {
        let meant = match self.url.split_once('?') {
            Some((path, query)) => format!("{path}?{}", query.replace('\'', "%27")),
            None => self.url.clone(),
        };
        let url = Url::parse(&self.url).ok();
        url.filter(|url| url.as_str() == meant).ok_or_else(|| {
            let what = match self.dots() {
                Some(dots) => {
                    format!("a part of the path is `{dots}`, which the HTTP client resolves")
                }
                None => "the host is none to the HTTP client".to_owned(),
            };
            let why = format!("{what}, so that it would ask for something else");
            Error::new(ErrorKind::Unsupported, Op::Open, why)
        })
    }

    /// The part of the path that is a step to the client, and a name to everybody else.
    fn dots(&self) -> Option<&str> {
        let (path, _) = self.url.split_once('?').unwrap_or((self.url.as_str(), ""));
        let is_step = |part: &&str| matches!(&*percent::decode(part), b"." | b"..");
        path.split('/').find(is_step)
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = match self.url.split_once('?') {
            Some((url, query)) => format!("{url}?{}", redact::query(query)),
            None => self.url.clone(),
        };
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("url", &url)
            .field("headers", &self.headers)
            .finish()
    }
}

/// Makes the requests for one object.
pub trait Endpoint: fmt::Debug + Send + Sync {
    /// The request for `ask`.
    ///
    /// # Errors
    /// `Misuse` for an empty range, or for a token, key or name that no request can hold; `Config` where it came from the
    /// settings.
    fn request(&self, ask: &Ask, moment: &Moment<'_>) -> Result<Request>;
}

/// The header that asks for `range`.
fn range_header(range: &Range<u64>) -> Result<HeaderValue> {
    if range.is_empty() {
        return Err(refused(
            "an empty range is asked for, which no request can ask for",
        ));
    }
    let text = format!("bytes={}-{}", range.start, range.end - 1);
    HeaderValue::from_str(&text).map_err(|_| refused("the range is none that a header can hold"))
}

/// Adds what `ask` needs of a server that takes ranges.
fn ask_for(ask: &Ask, mut request: Request) -> Result<Request> {
    if let Ask::Range(range) = ask {
        request.headers.insert(RANGE, range_header(range)?);
    }
    Ok(request)
}

/// The caller's own headers. Nobody knows which of them are secrets, so all of them are.
fn given(headers: &HeaderMap) -> HeaderMap {
    let mut headers = headers.clone();
    for value in headers.values_mut() {
        value.set_sensitive(true);
    }
    headers
}

fn refused(why: &'static str) -> Error {
    Error::new(ErrorKind::Misuse, Op::Open, why)
}

/// The error for a location of another kind than the endpoint's.
fn other_kind(kind: &str) -> Error {
    let why = format!("the location is of another kind than {kind}");
    Error::new(ErrorKind::Misuse, Op::Open, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_would_ask_for_another_object_is_not_used() {
        let of = |url: &str| Request::new(Method::GET, url.to_owned()).to_url();
        for url in [
            "https://h/a//b%2f;=@:!$&()*+,~?x=+y&z",
            "http://[::1]:8080/%zz/...?",
            "https://h/a?b",
        ] {
            assert_eq!(of(url).unwrap().as_str(), url);
        }
        assert_eq!(
            of("https://h/a'b?c='d'").unwrap().as_str(),
            "https://h/a'b?c=%27d%27"
        );
        for (url, says) in [
            ("https://h/a/../b", "a part of the path is `..`,"),
            ("https://h/a/.", "a part of the path is `.`,"),
            ("https://h/a/.?b/..", "a part of the path is `.`,"),
            ("https://h/%2E%2e/b", "a part of the path is `%2E%2e`,"),
            ("https://h/.%2e/b", "a part of the path is `.%2e`,"),
            (
                "https://1.2.3.4.5/a",
                "the host is none to the HTTP client,",
            ),
            (
                "https://1.2.3.4.5/a?b/..",
                "the host is none to the HTTP client,",
            ),
        ] {
            let error = of(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{url}");
            assert!(error.to_string().contains(says), "{error}");
        }
    }

    #[test]
    fn a_range_is_written_with_its_last_byte() {
        assert_eq!(range_header(&(5..10)).unwrap(), "bytes=5-9");
        assert_eq!(
            range_header(&(0..u64::MAX)).unwrap(),
            "bytes=0-18446744073709551614"
        );
        assert_eq!(range_header(&(5..5)).unwrap_err().kind(), ErrorKind::Misuse);
    }
}
