//! What a server says about its refusal: the XML of S3 and the JSON of WebHDFS become a [`Cause`]. Pure, and bounded: what
//! a server says is not believed to be short, or in one line, or to hold no secret.

mod json;
mod xml;

use std::fmt;

use kvik_core::ErrorKind;

use crate::endpoint::starts_like_html;
use crate::location::is_region;
use crate::redact;
use crate::reply;

/// The reason of a refusal, as far as the server gives one. All texts are bounded, in one line, and without the secrets that
/// were named when it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// The server's name for it: `NoSuchKey`, `AccessControlException` and so on.
    pub code: Option<String>,
    /// Its explanation.
    pub message: Option<String>,
    /// By which the operator of the server finds the request.
    pub request_id: Option<String>,
    /// The region in which the bucket is, where the request was sent or signed for another.
    pub region: Option<String>,
    kind: Option<ErrorKind>,
    passes: bool,
}

impl Cause {
    /// Reads the body of an answer of S3.
    #[must_use]
    pub fn of_s3(body: &[u8], secrets: &[String]) -> Cause {
        let mut cause = Cause::of(body, secrets, xml::read);
        let code = cause.code.as_deref().unwrap_or_default();
        cause.kind = S3_KINDS
            .iter()
            .find(|(_, codes)| codes.contains(&code))
            .map(|(kind, _)| *kind);
        cause.passes = S3_PASSING.contains(&code);
        cause
    }

    /// Reads the body of an answer of WebHDFS.
    #[must_use]
    pub fn of_webhdfs(body: &[u8], secrets: &[String]) -> Cause {
        let mut cause = Cause::of(body, secrets, json::read);
        let code = cause.code.as_deref().unwrap_or_default();
        cause.kind = HDFS_KINDS
            .iter()
            .find(|(_, codes)| codes.contains(&code))
            .map(|(kind, _)| *kind);
        cause.passes = HDFS_PASSING.contains(&code);
        let says = |part: &str| {
            cause
                .message
                .as_deref()
                .is_some_and(|message| message.contains(part))
        };
        if cause.kind == Some(ErrorKind::NotFound) && says("is not a file") {
            cause.kind = Some(ErrorKind::IsADirectory);
        }
        cause
    }

    fn of(body: &[u8], secrets: &[String], read: fn(&[u8]) -> Option<Said>) -> Cause {
        if starts_like_html(body) {
            return Cause {
                message: Some(
                    "the server sent a page of HTML, that of a login or of a proxy perhaps"
                        .to_owned(),
                ),
                ..Cause::default()
            };
        }
        let body = &body[..body.len().min(LONGEST)];
        let said = read(body).unwrap_or_default();
        let clean = |text: Option<String>, limit| {
            let text = redact::foreign(&text?, secrets, limit);
            (!text.is_empty()).then_some(text)
        };
        let region = clean(said.region, 64).filter(|region| is_region(region));
        Cause {
            code: clean(said.code, 80),
            message: clean(said.message, 400),
            request_id: clean(said.request_id, 80),
            region,
            kind: None,
            passes: false,
        }
    }

    /// With what the headers of the answer say, where the body does not: the body of an answer to `HEAD` is empty.
    #[must_use]
    pub fn or_headers(mut self, headers: &http::HeaderMap, secrets: &[String]) -> Cause {
        let text = |name: &str| {
            let value = headers.get(name)?.to_str().ok()?;
            let text = redact::foreign(value, secrets, 80);
            (!text.is_empty()).then_some(text)
        };
        let region = || text("x-amz-bucket-region").filter(|region| is_region(region));
        self.region = self.region.or_else(region);
        self.request_id = self.request_id.or_else(|| text("x-amz-request-id"));
        // The page of HTML that comes with it is meant for people with a browser.
        if self.code.is_none() && challenges_for_kerberos(headers) {
            self.message = Some(
                "the server wants Kerberos (WWW-Authenticate: Negotiate), which kvik does not speak; give it a delegation token: `delegation=` in the URL, or `RemoteOptions::delegation`"
                    .to_owned(),
            );
        }
        self
    }

    /// What a program may decide on, by the server's code, else by the status.
    #[must_use]
    pub fn kind(&self, status: u16) -> ErrorKind {
        self.kind.unwrap_or_else(|| reply::kind_of(status))
    }

    /// Whether the server says, by its code, that the same request may succeed later; the status says so for itself.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.passes
    }

    /// Whether it says that another name node is the active one.
    #[must_use]
    pub fn is_standby(&self) -> bool {
        self.code.as_deref() == Some("StandbyException")
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Cause::default()
    }
}

/// `AccessDenied: Access Denied, request 7QX2`, as far as known.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.code, &self.message) {
            (Some(code), Some(message)) => write!(f, "{code}: {message}")?,
            (Some(text), None) | (None, Some(text)) => f.write_str(text)?,
            (None, None) => f.write_str("no reason given")?,
        }
        match &self.request_id {
            Some(id) => write!(f, ", request {id}"),
            None => Ok(()),
        }
    }
}

/// What a body says, as it stands there.
#[derive(Debug, Default)]
struct Said {
    code: Option<String>,
    message: Option<String>,
    request_id: Option<String>,
    region: Option<String>,
}

fn challenges_for_kerberos(headers: &http::HeaderMap) -> bool {
    let challenges = headers.get_all(http::header::WWW_AUTHENTICATE);
    challenges.iter().any(|value| {
        let begin = value.as_bytes().get(..9);
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(b"negotiate"))
    })
}

/// Codes whose status does not say it, or says something else.
const S3_KINDS: [(ErrorKind, &[&str]); 5] = [
    (
        ErrorKind::NotFound,
        &["NoSuchBucket", "NoSuchKey", "NoSuchVersion"],
    ),
    (
        ErrorKind::PermissionDenied,
        &[
            "AccessDenied",
            "AccountProblem",
            "AllAccessDisabled",
            "ExpiredToken",
            "InvalidAccessKeyId",
            "InvalidToken",
            "RequestTimeTooSkewed",
            "SignatureDoesNotMatch",
            "TokenRefreshRequired",
        ],
    ),
    (ErrorKind::Changed, &["PreconditionFailed"]),
    (
        ErrorKind::Unsupported,
        &["InvalidObjectState", "NotImplemented"],
    ),
    (ErrorKind::TimedOut, &["RequestTimeout"]),
];
const S3_PASSING: [&str; 6] = [
    "InternalError",
    "RequestTimeout",
    "RequestTimeTooSkewed",
    "ServiceUnavailable",
    "SlowDown",
    "Throttling",
];
const HDFS_KINDS: [(ErrorKind, &[&str]); 5] = [
    (ErrorKind::NotFound, &["FileNotFoundException"]),
    (
        ErrorKind::PermissionDenied,
        &[
            "AccessControlException",
            "AuthenticationException",
            "AuthorizationException",
            "InvalidToken",
            "SecurityException",
        ],
    ),
    (ErrorKind::Misuse, &["IllegalArgumentException"]),
    (ErrorKind::Unsupported, &["UnsupportedOperationException"]),
    // They come with the status of who may not read, and say nothing of the sort.
    (
        ErrorKind::Refused,
        &["IOException", "RetriableException", "StandbyException"],
    ),
];
const HDFS_PASSING: [&str; 4] = [
    "RetriableException",
    "SafeModeException",
    "ServerTooBusyException",
    "StandbyException",
];
/// Beyond this nobody explains a refusal.
const LONGEST: usize = 64 << 10;

#[cfg(test)]
mod tests;
