//! HDFS by its REST interface: a range is a part of the query, and the name node points to a data node that has the bytes.

use http::{HeaderMap, Method};
use kvik_core::{Error, ErrorKind, Op, Result};
use serde::Deserialize;

use super::{Ask, Endpoint, Moment, Request, authorize, given, other_kind, refused};
use crate::location::{Found, Location, WebUrl, name_node_port};
use crate::percent;

/// What holds for a file of HDFS besides its location.
#[derive(Clone, Default)]
pub struct WebHdfsOptions {
    /// The user that the caller names.
    pub user: Option<String>,
    /// The user by the settings, where neither the caller nor the URL names one, nor a delegation token does.
    pub default_user: Option<String>,
    /// The delegation token that the caller has; one of the URL gives way to it.
    pub delegation: Option<String>,
    /// More headers.
    pub headers: HeaderMap,
}

/// A file of HDFS.
#[derive(Clone, Debug)]
pub struct WebHdfsEndpoint {
    /// Its query has whatever is the same for every operation.
    url: WebUrl,
    headers: HeaderMap,
}

impl WebHdfsEndpoint {
    /// The file at `location`.
    ///
    /// # Errors
    /// `Misuse` for a location of another kind, or an empty user name or token.
    pub fn new(location: &Location, options: &WebHdfsOptions) -> Result<WebHdfsEndpoint> {
        let Found::File(url) = location.found() else {
            return Err(other_kind("WebHDFS"));
        };
        let mut parts: Vec<String> = url
            .query()
            .map(|query| query.split('&').map(str::to_owned).collect())
            .unwrap_or_default();
        set(&mut parts, "delegation", options.delegation.as_deref())?;
        set(&mut parts, "user.name", options.user.as_deref())?;
        if !has(&parts, "user.name") && !has(&parts, "delegation") {
            set(&mut parts, "user.name", options.default_user.as_deref())?;
        }
        let query = (!parts.is_empty()).then(|| parts.join("&"));
        Ok(WebHdfsEndpoint {
            url: url.clone().with_query(query),
            headers: given(&options.headers),
        })
    }

    /// The same file as another name node of the cluster has it, at `HOST` or `HOST:PORT`.
    ///
    /// # Errors
    /// `Misuse` for what is no host.
    pub fn at_name_node(&self, authority: &str) -> Result<WebHdfsEndpoint> {
        let elsewhere = self.url.at_authority(authority)?;
        let port = name_node_port(elsewhere.is_secure());
        Ok(WebHdfsEndpoint {
            url: elsewhere.with_default_port(port),
            headers: self.headers.clone(),
        })
    }
}

impl Endpoint for WebHdfsEndpoint {
    fn request(&self, ask: &Ask, moment: &Moment<'_>) -> Result<Request> {
        let operation = match ask {
            Ask::Length => "op=GETFILESTATUS".to_owned(),
            Ask::Whole => "op=OPEN".to_owned(),
            Ask::Range(range) if range.is_empty() => {
                return Err(refused(
                    "an empty range is asked for, which no request can ask for",
                ));
            }
            Ask::Range(range) => format!(
                "op=OPEN&offset={}&length={}",
                range.start,
                range.end - range.start
            ),
        };
        let query = match self.url.query() {
            Some(query) => format!("{query}&{operation}"),
            None => operation,
        };
        let url = self.url.clone().with_query(Some(query));
        let mut request = Request::new(Method::GET, url.to_send());
        request.headers = self.headers.clone();
        authorize(&mut request.headers, moment.bearer, self.url.user_info())?;
        Ok(request)
    }
}

impl std::fmt::Debug for WebHdfsOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebHdfsOptions")
            .field("user", &self.user)
            .field("default_user", &self.default_user)
            .field("has_delegation", &self.delegation.is_some())
            .finish_non_exhaustive()
    }
}

/// What a name node says about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// Its length in bytes.
    pub len: u64,
    /// When it was last written to, in milliseconds since 1970.
    pub modified: Option<u64>,
    /// The number of the file, which another file of the same name does not have.
    pub id: Option<u64>,
    /// How long its blocks are.
    pub block_size: Option<u64>,
}

impl FileStatus {
    /// A status has some hundred bytes; more than so many are none.
    pub(crate) const LONGEST: usize = 64 << 10;

    /// Reads the answer to [`Ask::Length`].
    ///
    /// # Errors
    /// `IsADirectory` for a directory; `BadReply` for what is no status of a file.
    pub fn read(body: &[u8]) -> Result<FileStatus> {
        let bad = |why: &'static str| Error::new(ErrorKind::BadReply, Op::Inspect, why);
        if body.len() > FileStatus::LONGEST {
            return Err(bad(
                "the name node answered with more than the status of a file has",
            ));
        }
        if starts_like_html(body) {
            return Err(bad(
                "the name node answered with a page of HTML, that of a login perhaps",
            ));
        }
        let reply: StatusReply = serde_json::from_slice(body)
            // The text of the error would repeat parts of the answer.
            .map_err(|_| bad("the answer of the name node is not the status of a file"))?;
        let status = reply.status;
        if status.kind.as_deref() == Some("DIRECTORY") {
            let why = "the name node says that it is a directory";
            return Err(Error::new(ErrorKind::IsADirectory, Op::Inspect, why));
        }
        // Offsets of files end there, here as well as in HDFS.
        if i64::try_from(status.length).is_err() {
            return Err(bad(
                "the name node says that the file is longer than any file",
            ));
        }
        Ok(FileStatus {
            len: status.length,
            modified: status.modification_time,
            // 0 where a server knows none.
            id: status.file_id.filter(|id| *id > 0),
            block_size: status.block_size.filter(|size| *size > 0),
        })
    }
}

/// Whether it is a page for people, whatever its header says.
pub(crate) fn starts_like_html(body: &[u8]) -> bool {
    let begin = body.trim_ascii_start();
    let begins = |with: &[u8]| {
        let found = begin.get(..with.len());
        found.is_some_and(|found| found.eq_ignore_ascii_case(with))
    };
    begins(b"<!doctype html") || begins(b"<html")
}

#[derive(Deserialize)]
struct StatusReply {
    #[serde(rename = "FileStatus")]
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    length: u64,
    modification_time: Option<u64>,
    file_id: Option<u64>,
    block_size: Option<u64>,
    #[serde(rename = "type")]
    kind: Option<String>,
}

fn has(parts: &[String], name: &str) -> bool {
    parts.iter().any(|part| is_named(part, name))
}

fn is_named(part: &str, name: &str) -> bool {
    part.split('=')
        .next()
        .is_some_and(|found| found.eq_ignore_ascii_case(name))
}

/// Puts `name=value` in the place of all parameters of that name.
fn set(parts: &mut Vec<String>, name: &str, value: Option<&str>) -> Result<()> {
    let Some(value) = value else {
        return Ok(());
    };
    if value.is_empty() {
        return Err(refused("the user name or the delegation token is empty"));
    }
    parts.retain(|part| !is_named(part, name));
    parts.push(format!(
        "{name}={}",
        percent::encode_component(value.as_bytes())
    ));
    Ok(())
}

#[cfg(test)]
#[path = "webhdfs_tests.rs"]
mod tests;
