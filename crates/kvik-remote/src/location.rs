//! [`Location`]: what a URL means, found out once. Pure: no clock, socket or environment.

mod host;
mod kind;
mod object;
#[cfg(test)]
mod tests;
mod url;

use std::fmt;

use kvik_core::{Error, ErrorKind, Op, Result};

pub(crate) use host::{is_region, suffix_of};
pub use kind::Kind;
pub(crate) use object::{Object, Site, Style};
pub(crate) use url::{UserInfo, WebUrl, read_authority};

use crate::endpoint::authorization;
use crate::percent;
use crate::redact;

/// Where a remote object is, and by which protocol it is read.
///
/// | given | kind | asked for |
/// | --- | --- | --- |
/// | `s3://BUCKET/KEY`, [`from_bucket_key`](Location::from_bucket_key) | S3 | at the endpoint in use, else at AWS |
/// | `https://BUCKET.s3.REGION.amazonaws.com/KEY`, `https://s3.REGION.amazonaws.com/BUCKET/KEY` | S3 | as given |
/// | the same without `.REGION`, with `s3-REGION`, `s3.dualstack.REGION`, `s3-fips.REGION`, `s3-fips.dualstack.REGION` or `s3-fips-REGION`, and with `amazonaws.com.cn` | S3 | as given |
/// | `https://BUCKET.s3-accelerate.amazonaws.com/KEY`, also with `.dualstack` | S3 | as given |
/// | `https://NAME-ACCOUNT.s3-accesspoint.REGION.amazonaws.com/KEY`, also with `-fips` and `.dualstack` | S3 | as given |
/// | one of these with `X-Amz-Algorithm` and `X-Amz-Signature`, or `AWSAccessKeyId` and `Signature`, in its query | presigned | as given |
/// | `http://HOST:PORT/webhdfs/v1/PATH` | WebHDFS | as given |
/// | `webhdfs://HOST/PATH`, `swebhdfs://HOST/PATH` | WebHDFS | at port 9870, or at 9871 by TLS, unless the URL names one |
/// | any other `http` or `https` URL | HTTP | as given |
///
/// - "As given" is byte for byte. Only what may not stand in a URL at all, a space or a letter beyond ASCII, is encoded;
///   a fragment is not sent.
/// - In doubt a URL is plain HTTP: requests are only signed for hosts of `amazonaws.com` and `amazonaws.com.cn` whose
///   names say S3, and for the endpoint that the caller chose. Website and S3 Express hosts are none of them, nor is a
///   URL with user name or password.
/// - A key given to [`from_bucket_key`](Location::from_bucket_key) is opaque and encoded once. In `s3:`, `webhdfs:` and
///   `swebhdfs:` URLs, which are never sent as they are, `%XX` stands for a byte and all else for itself.
/// - `Display` and `Debug` show no secret: no user name, no password, and of the query only what is known to be none.
///
/// # Example: three ways to one object
/// ```
/// use kvik_remote::{Kind, Location};
///
/// let typed = Location::from_bucket_key("logs", "2026/a b.bin")?;
/// assert_eq!(typed, Location::parse("s3://logs/2026/a%20b.bin")?);
/// assert_eq!(typed.to_string(), "s3://logs/2026/a%20b.bin");
///
/// let hosted = Location::parse("https://logs.s3.eu-west-1.amazonaws.com/2026/a%20b.bin")?;
/// assert_eq!((hosted.kind(), hosted.bucket()), (Kind::S3, Some("logs")));
///
/// // Somebody else's host is never signed for.
/// let foreign = Location::parse("https://s3.eu-west-1.amazonaws.com.example.org/logs/a.bin")?;
/// assert_eq!(foreign.kind(), Kind::Http);
/// # Ok::<(), kvik_core::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Location {
    kind: Kind,
    found: Found,
}

/// What was found in the URL.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Found {
    /// A URL that is sent as it is.
    Web(WebUrl),
    /// An object of S3.
    Object(Object),
    /// A file of WebHDFS: the URL with its `/webhdfs/v1/`, and the parameters of its query that are not about the operation.
    File(WebUrl),
}

impl Location {
    /// What `url` means: the first of [`Kind::ALL`] that it can be.
    ///
    /// # Errors
    /// `Misuse` for what is no URL, names no object or has a control character; `Unsupported` for another scheme.
    pub fn parse(url: &str) -> Result<Location> {
        Location::parse_among(url, &Kind::ALL)
    }

    /// The first kind of `allow`, in its order, that `url` can be.
    ///
    /// # Errors
    /// As for [`parse`](Location::parse); `Unsupported` where none of `allow` fits.
    pub fn parse_among(url: &str, allow: &[Kind]) -> Result<Location> {
        let given = Given::read(url)?;
        let found = allow.iter().find_map(|kind| given.clone().seen_as(*kind));
        found.ok_or_else(|| {
            let names: Vec<String> = allow.iter().map(ToString::to_string).collect();
            let why = match names.is_empty() {
                true => "no kind of remote object is allowed".to_owned(),
                false => format!(
                    "the URL is of none of the kinds allowed: {}",
                    names.join(", ")
                ),
            };
            Error::new(ErrorKind::Unsupported, Op::Open, why)
        })
    }

    /// The object `key` of `bucket`, both as they are: nothing in them is a separator, an escape or a query.
    ///
    /// # Errors
    /// `Misuse` if one is empty, if `bucket` is `.` or `..`, or if it has a `/` or a control character.
    pub fn from_bucket_key(bucket: &str, key: &str) -> Result<Location> {
        let object = Object::new(bucket, percent::encode_path(key.as_bytes()), None)?;
        Ok(Location::of_object(object))
    }

    /// What lies at `path`, as it is, below the URL `base`: `path` is encoded once, `base` is not encoded again.
    ///
    /// # Example: a name with a question mark
    /// ```
    /// let location = kvik_remote::Location::from_base_path("https://example.org/data/", "why?.bin")?;
    /// assert_eq!(location.to_string(), "https://example.org/data/why%3F.bin");
    /// # Ok::<(), kvik_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`parse`](Location::parse).
    pub fn from_base_path(base: &str, path: &str) -> Result<Location> {
        let rest = base.split_once('#').map_or(base, |(rest, _)| rest);
        let (rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, format!("?{query}")),
            None => (rest, String::new()),
        };
        let slash = if rest.ends_with('/') { "" } else { "/" };
        let path = path.strip_prefix('/').unwrap_or(path);
        let path = percent::encode_path(path.as_bytes());
        Location::parse(&format!("{rest}{slash}{path}{query}"))
    }

    /// By which protocol it is read.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The bucket of an object of S3.
    #[must_use]
    pub fn bucket(&self) -> Option<&str> {
        match &self.found {
            Found::Object(object) => Some(object.bucket()),
            _ => None,
        }
    }

    /// The key of an object of S3, decoded.
    #[must_use]
    pub fn key(&self) -> Option<Vec<u8>> {
        match &self.found {
            Found::Object(object) => Some(percent::decode(object.key())),
            _ => None,
        }
    }

    /// The region that the host of an S3 URL names.
    #[must_use]
    pub fn region(&self) -> Option<&str> {
        match &self.found {
            Found::Object(object) => object.site().and_then(Site::region),
            _ => None,
        }
    }

    pub(crate) fn found(&self) -> &Found {
        &self.found
    }

    /// What of it must not be shown, for taking it out of texts that others wrote.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        let (url, query) = match &self.found {
            Found::Web(url) | Found::File(url) => (Some(url), url.query()),
            Found::Object(object) => (None, object.query()),
        };
        let mut secrets = query.map(redact::secrets_of_query).unwrap_or_default();
        if let Some(info) = url.and_then(WebUrl::user_info) {
            let UserInfo { user, password } = info.clone();
            secrets.extend([user, password, authorization::pair(info)]);
        }
        secrets.retain(|secret| !secret.is_empty());
        secrets
    }

    fn of_object(object: Object) -> Location {
        let found = Found::Object(object);
        let kind = Kind::S3;
        Location { kind, found }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.found {
            Found::Web(url) | Found::File(url) => url.fmt(f),
            Found::Object(object) => object.fmt(f),
        }
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Location({:?}: {self})", self.kind)
    }
}

/// A URL split by its scheme, before it is known what it may be.
#[derive(Clone)]
enum Given {
    Web(WebUrl),
    Object(Object),
    File(WebUrl),
}

impl Given {
    fn read(url: &str) -> Result<Given> {
        if url.len() > LONGEST {
            return Err(refused("the URL is longer than 32 KiB"));
        }
        if url.chars().any(char::is_control) {
            return Err(refused("the URL has a control character"));
        }
        let (scheme, rest) = url.split_once("://").ok_or_else(|| {
            refused("the URL has no scheme; it begins with https:// or s3://, for instance")
        })?;
        match scheme.to_ascii_lowercase().as_str() {
            "http" => read_web(false, rest).map(Given::Web),
            "https" => read_web(true, rest).map(Given::Web),
            "s3" => read_s3(rest).map(Given::Object),
            "webhdfs" => read_hdfs(false, rest).map(Given::File),
            "swebhdfs" => read_hdfs(true, rest).map(Given::File),
            // It is not repeated: what stands before the first `://` of a text that is no URL may be anything.
            _ => Err(Error::new(
                ErrorKind::Unsupported,
                Op::Open,
                "the scheme of the URL is none of http, https, s3, webhdfs and swebhdfs",
            )),
        }
    }

    fn read_endpoint(url: &str) -> Result<WebUrl> {
        if url.chars().any(char::is_control) {
            return Err(refused("the URL has a control character"));
        }
        let scheme = url.split_once("://");
        let scheme = scheme.map(|(scheme, rest)| (scheme.to_ascii_lowercase(), rest));
        match scheme
            .as_ref()
            .map(|(scheme, rest)| (scheme.as_str(), rest))
        {
            Some(("http", rest)) => WebUrl::split(false, rest),
            Some(("https", rest)) => WebUrl::split(true, rest),
            _ => Err(refused("it begins neither with http:// nor with https://")),
        }
    }

    fn seen_as(self, kind: Kind) -> Option<Location> {
        let found = match (kind, self) {
            (Kind::S3 | Kind::S3Public, Given::Object(object)) => Found::Object(object),
            (Kind::S3 | Kind::S3Public, Given::Web(url)) => {
                if is_presigned(&url) {
                    return None;
                }
                Found::Object(Object::of_url(&url)?)
            }
            (Kind::S3Presigned, Given::Web(url)) => {
                let fits = is_presigned(&url) && Object::of_url(&url).is_some();
                fits.then_some(Found::Web(url))?
            }
            (Kind::WebHdfs, Given::File(url)) => Found::File(url),
            (Kind::WebHdfs, Given::Web(url)) => Found::File(as_file(url)?),
            (Kind::Http, Given::Web(url)) => Found::Web(url),
            _ => return None,
        };
        Some(Location { kind, found })
    }
}

fn read_web(secure: bool, rest: &str) -> Result<WebUrl> {
    let url = WebUrl::split(secure, rest)?;
    match url.path() == "/" && url.query().is_none() {
        true => Err(refused("the URL names a host and no object of it")),
        false => Ok(url),
    }
}

fn read_s3(rest: &str) -> Result<Object> {
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if !bucket.bytes().all(plain) {
        return Err(refused(
            "the bucket of an s3:// URL has letters, digits, dots, hyphens and underscores only",
        ));
    }
    let (key, query) = match key.split_once('?') {
        Some((key, query)) => (key, Some(query)),
        None => (key, None),
    };
    let known = |part: &str| part.starts_with("versionId=");
    if query.is_some_and(|query| !query.split('&').all(known)) {
        return Err(refused(
            "the query of an s3:// URL has versionId only; a ? that belongs to the key is written %3F",
        ));
    }
    let query = query.map(percent::encode_illegal);
    Object::new(bucket, percent::encode_rest(key), query)
}

fn read_hdfs(secure: bool, rest: &str) -> Result<WebUrl> {
    // As in an s3:// URL: there are no fragments of files.
    let rest = rest.replace('#', "%23");
    let url = WebUrl::split(secure, &rest)?;
    let path = rest.split('?').next().unwrap_or_default();
    let path = path.split_once('/').map_or("", |(_, path)| path);
    let url = url
        .with_default_port(name_node_port(secure))
        .with_path(format!("{HDFS}{}", percent::encode_rest(path)));
    match as_file(url) {
        Some(url) => Ok(url),
        None => Err(refused(
            "the URL names no file of WebHDFS, or its query asks for something other than a whole file",
        )),
    }
}

/// The port of a name node where nobody says another one.
pub(crate) fn name_node_port(secure: bool) -> u16 {
    if secure { 9871 } else { 9870 }
}

/// The URL as one of WebHDFS, without the parameters that belong to an operation: each request has its own. A URL that
/// asks for another operation, or for a part of a file, is none: what it says would not be done.
fn as_file(url: WebUrl) -> Option<WebUrl> {
    let prefix = url.path().get(..HDFS.len())?;
    if !prefix.eq_ignore_ascii_case(HDFS) || url.path().len() == HDFS.len() || !url.has_port() {
        return None;
    }
    let mut kept = Vec::new();
    for part in url.query().unwrap_or_default().split('&') {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        match name.to_ascii_lowercase().as_str() {
            "" | "noredirect" | "buffersize" => {}
            "op" if value.eq_ignore_ascii_case("OPEN") => {}
            "op" | "offset" | "length" => return None,
            _ => kept.push(part),
        }
    }
    let query = (!kept.is_empty()).then(|| kept.join("&"));
    Some(url.with_query(query))
}

/// Whether the query has a signature already, of the fourth or the second version.
fn is_presigned(url: &WebUrl) -> bool {
    let query = url.query().unwrap_or_default();
    let has = |name: &str| {
        let mut names = query.split('&').filter_map(|part| part.split('=').next());
        names.any(|found| found.eq_ignore_ascii_case(name))
    };
    (has("X-Amz-Algorithm") && has("X-Amz-Signature"))
        || (has("AWSAccessKeyId") && has("Signature"))
}

/// The endpoint of a store: a URL of the web whose path, if it has one, goes before bucket and key.
pub(crate) fn read_endpoint(url: &str) -> Result<WebUrl> {
    let read = match Given::read_endpoint(url) {
        Ok(url) if url.query().is_none() && url.user_info().is_none() => Ok(url),
        Ok(_) => Err("it has a query or names a user".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    read.map_err(|why| {
        let why = why.trim_start_matches("open: ");
        let why = format!("the endpoint of S3 cannot be used: {why}");
        Error::new(ErrorKind::Config, Op::Configure, why)
    })
}

/// Whether the host is one of S3's own.
pub(crate) fn is_aws_host(host: &str) -> bool {
    host::read(host).is_some()
}

pub(crate) fn refused(why: &'static str) -> Error {
    Error::new(ErrorKind::Misuse, Op::Open, why)
}

const HDFS: &str = "/webhdfs/v1/";
// Servers take far shorter ones; a presigned URL with a session token has two to three kibibytes.
pub(crate) const LONGEST: usize = 32 << 10;
