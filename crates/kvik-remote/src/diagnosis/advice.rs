//! What to do about what is wrong: one sentence for each. Pure.

use std::io;

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;
use kvik_core::ErrorKind;
use rustls::CertificateError;

use super::certificate::Certificate;
use super::link::Server;
use super::watch::{Exchange, shown};
use super::{Step, Way};
use crate::failure::Failure;
use crate::location::Kind;
use crate::tls::Trust;

pub(super) const OF_SILENCE: &str = "the server, or a firewall or proxy before it, takes what is sent and says nothing: ask its operator, or allow \
     more time (setting `http_timeout`)";
const OF_AUTHORITY: &str = "name a file, in PEM, with the certificate of who signed it: variable KVIK_CA_BUNDLE, CURL_CA_BUNDLE, \
     SSL_CERT_FILE or AWS_CA_BUNDLE, setting `ca_bundle`, or `RemoteOptions::ca_bundle`";
const OF_LOGIN_TO_PROXY: &str = "the proxy wants a user and a password: they stand in its URL (http://USER:PASSWORD@PROXY:PORT)";
pub(super) const OF_URL: &str = "check the URL; letters, digits, dots and hyphens make a host";

/// For what is wrong with settings, keys and URLs, of which the text says what it is.
pub(super) fn of_kind(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Config => {
            "correct the setting, variable or file that is named; `kvik config` lists all settings and who said them"
        }
        ErrorKind::Misuse => OF_URL,
        ErrorKind::Unsupported => "use a URL of http, https or s3 for the same object",
        ErrorKind::TimedOut => OF_SILENCE,
        ErrorKind::NotFound => "check the path: upper and lower case differ",
        ErrorKind::PermissionDenied => {
            "check who asks, and whether the owner of the object allows it"
        }
        ErrorKind::Unreachable => {
            "the steps before it went well: try again, and look at the server that the reason names"
        }
        ErrorKind::Changed => "somebody writes to the object: try again once it rests",
        ErrorKind::Internal => "this is a bug of kvik: please report it",
        _ => "see the reason",
    }
}

/// The step of a proxy that failed.
pub(super) fn without_proxy(mut step: Step) -> Step {
    let advice = step.advice.take().unwrap_or_default();
    let more = "this is the proxy, not the server: correct the setting or variable that names it, or have it passed over for this host \
                (setting `no_proxy`)";
    step.advice = Some(format!("{advice}; {more}"));
    step
}

/// For a name without addresses.
pub(super) fn of_name(host: &str) -> String {
    format!(
        "check how `{host}` is written, and whether this machine can look up names (`getent hosts {host}`): a VPN, \
         /etc/resolv.conf or the network may be missing"
    )
}

/// For a server that no connection is made to.
pub(super) fn of_connection(server: &Server, error: Option<&io::Error>) -> String {
    let Server { host, port, .. } = server;
    match error.map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionRefused) => {
            format!(
                "nobody listens at port {port} of `{host}`: check the port, and whether the server runs"
            )
        }
        Some(io::ErrorKind::TimedOut) => format!(
            "a firewall drops what is sent to port {port} of `{host}`, or the machine is down: check the way there, and whether \
             a proxy is needed"
        ),
        Some(io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable) => {
            format!("this machine has no way to `{host}`: check its network, routes and VPN")
        }
        _ => format!("check the network between this machine and `{host}`"),
    }
}

/// For certificates of ours that cannot be used.
pub(super) fn of_trust(trust: &Trust) -> String {
    match trust {
        Trust::Named { by, .. } => {
            format!("{by} has to name a file with certificates in PEM that can be read")
        }
        _ => "install the system's certificates (the package ca-certificates), or name a file with some: setting `ca_bundle`, \
              variable KVIK_CA_BUNDLE"
            .to_owned(),
    }
}

/// For a certificate that was refused.
pub(super) fn of_certificate(
    server: &Server,
    reason: &rustls::Error,
    trust: &Trust,
    seen: Option<&Certificate>,
) -> String {
    let rustls::Error::InvalidCertificate(reason) = reason else {
        return "the server has to show a certificate: tell its operator".to_owned();
    };
    match reason {
        // The second is that of an authority of the same name, and another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            let but = match trust {
                Trust::Named { .. } => "; those that are named now do not have it",
                _ => "",
            };
            format!("{OF_AUTHORITY}{but}")
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's operator has to renew it, unless the clock of this machine is wrong"
                .to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "check the clock of this machine".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            let names = seen.map(Certificate::named).unwrap_or_default();
            match names.is_empty() {
                true => format!(
                    "`{}` is not its name: use the name that the certificate is for",
                    server.host
                ),
                false => format!(
                    "`{}` is not its name: use one that the certificate is for: {names}",
                    server.host
                ),
            }
        }
        _ => "tell the server's operator what the certificate was refused for".to_owned(),
    }
}

/// For a handshake that failed for another reason than the certificate.
pub(super) fn of_handshake(server: &Server, reason: Option<&rustls::Error>) -> String {
    let Server { host, port, .. } = server;
    match reason {
        Some(rustls::Error::InvalidMessage(_)) => format!(
            "the server does not speak TLS at port {port}: write http:// if it is to be plain, or the port that speaks TLS"
        ),
        Some(rustls::Error::AlertReceived(_) | rustls::Error::PeerIncompatible(_)) => {
            "the server wants something that kvik does not do: it needs TLS 1.2 or 1.3, and no certificate of the client"
                .to_owned()
        }
        _ => format!(
            "check whether `{host}` speaks TLS at port {port}, and whether a firewall or proxy ends connections by TLS"
        ),
    }
}

/// For a server to which another one sent us, and from which nothing came.
pub(super) fn of_next_server(last: &Exchange) -> String {
    let url = shown(&last.url);
    let place = url.split('?').next().unwrap_or_default();
    format!(
        "the first server is well, and sends us on to one that is not: `kvik doctor {place}` looks at that one"
    )
}

/// For a server that takes a connection and gives no answer.
pub(super) fn of_no_answer(way: &Way, failure: &Failure) -> String {
    match (failure.kind, way.is_secure()) {
        (ErrorKind::TimedOut, _) => OF_SILENCE.to_owned(),
        (ErrorKind::Untrusted, _) => format!("{OF_AUTHORITY}; a proxy may show a certificate of its own"),
        (ErrorKind::PermissionDenied, _) if way.has_proxy() => OF_LOGIN_TO_PROXY.to_owned(),
        (ErrorKind::Unreachable, _) if way.has_proxy() => {
            "the proxy takes connections, and brings no answer: ask who runs it whether it reaches the server, or go without it \
             (setting `no_proxy`)"
                .to_owned()
        }
        (ErrorKind::Refused, _) => "ask for an object that is reached by http or https alone".to_owned(),
        (_, false) => {
            "the server may speak another protocol than HTTP at this port; if it speaks TLS there, write https://".to_owned()
        }
        (_, true) => "the server may speak another protocol than HTTP at this port".to_owned(),
    }
}

/// For an answer that is none to a question for a range.
pub(super) fn of_range(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Changed => {
            "somebody writes to the object, or several servers stand behind the name and tell its version differently: try \
             again once it rests, or name one server"
        }
        ErrorKind::RangeUnsupported => {
            "kvik needs the bytes as they are, in ranges: have the server send this object without compression and with its \
             length, or fetch it by another program"
        }
        ErrorKind::TimedOut => OF_SILENCE,
        ErrorKind::Unreachable => {
            "the connection ends in the midst of an answer: look at what stands between, a proxy for instance"
        }
        _ => {
            "the server, or a proxy or cache before it, answers ranges wrongly: tell its operator, or go past the proxy"
        }
    }
}

/// An answer by which the server says no.
#[derive(Debug)]
pub(super) struct Refusal<'a> {
    pub(super) status: u16,
    /// The server's name for the reason.
    pub(super) code: &'a str,
    pub(super) headers: &'a HeaderMap,
    pub(super) kind: Kind,
    pub(super) is_signed: bool,
    /// Whether a user or a token was sent.
    pub(super) has_user: bool,
    pub(super) is_secure: bool,
    pub(super) failure: ErrorKind,
}

/// For an answer that says no.
pub(super) fn of_refusal(refusal: &Refusal<'_>) -> &'static str {
    if let Some((_, advice)) = CODES.iter().find(|(code, _)| *code == refusal.code) {
        return advice;
    }
    match (refusal.status, refusal.kind) {
        (300 | 301, Kind::S3 | Kind::S3Public) => {
            "the bucket is elsewhere: name its region (AWS_REGION) and its endpoint (AWS_ENDPOINT_URL)"
        }
        (300..=399, _) if refusal.failure == ErrorKind::Refused => {
            "use a URL that leads to the object by http or https alone, and not from https to http"
        }
        (300..=399, _) => "ask for the URL that the object is at now",
        (400, Kind::Http) if !refusal.is_secure => {
            "if the server speaks TLS at this port, write https://"
        }
        (400, Kind::S3 | Kind::S3Public) => {
            "check region (AWS_REGION) and endpoint (AWS_ENDPOINT_URL): they have to be those of the bucket"
        }
        (401, _) if challenges(refusal.headers, "negotiate") => {
            "the server wants Kerberos, which kvik does not speak: for WebHDFS use a delegation token, else another way to log in"
        }
        (401, _) if refusal.has_user => {
            "the server does not take this user, password or token: check it, and whether it has ended"
        }
        (401, _) => {
            "say who asks: https://USER:PASSWORD@HOST/..., or `RemoteOptions::bearer`, `basic_auth` or `header`"
        }
        (403, Kind::S3Presigned) => {
            "the signature has ended, or the URL was changed after it was signed: ask for a new one, and quote it in a shell"
        }
        (403, Kind::S3 | Kind::S3Public) if !refusal.is_signed => {
            "the object is not public: give keys (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE)"
        }
        (403, Kind::S3) => {
            "these keys may not read the object: its owner has to allow it, or other keys are needed"
        }
        (403, _) if refusal.has_user => {
            "this user may not read the object: its owner has to allow it"
        }
        (403, _) => {
            "the server lets nobody unknown read this: say who asks, or ask its operator; some links hold for a time only"
        }
        (404 | 410, Kind::S3 | Kind::S3Public) => {
            "check bucket, key (upper and lower case differ) and endpoint (AWS_ENDPOINT_URL)"
        }
        (404 | 410, _) => {
            "check the path (upper and lower case differ); some servers say this to who may not read, too"
        }
        (407, _) => OF_LOGIN_TO_PROXY,
        (405 | 501, _) => "the server does not take GET for this URL: check it",
        (408 | 429 | 503, _) => {
            "the server has too much to do: try again later, with fewer requests at a time (setting `remote_io_max_concurrent_requests`)"
        }
        (502 | 504, _) => {
            "a proxy or balancer does not reach the server behind it: try again later, or tell its operator"
        }
        (500..=599, _) => "the server fails by itself: try again later, or tell its operator",
        _ => "see the server's reason",
    }
}

fn challenges(headers: &HeaderMap, scheme: &str) -> bool {
    headers.get_all(WWW_AUTHENTICATE).iter().any(|value| {
        let begin = value.as_bytes().get(..scheme.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(scheme.as_bytes()))
    })
}

/// What S3 and its like say.
const CODES: [(&str, &str); 15] = [
    (
        "RequestTimeTooSkewed",
        "set the clock of this machine (`timedatectl`, chrony or NTP): it is more than 15 minutes off the server's",
    ),
    (
        "InvalidAccessKeyId",
        "this store does not know the key: are key and endpoint (AWS_ENDPOINT_URL) of the same store, and is the key not deleted?",
    ),
    (
        "SignatureDoesNotMatch",
        "the secret key does not belong to the key's id, or a proxy changes the request: check AWS_SECRET_ACCESS_KEY for a \
         letter too much or too few",
    ),
    (
        "ExpiredToken",
        "the session has ended: get new keys with their token (`aws sso login`, for instance)",
    ),
    (
        "InvalidToken",
        "the session token does not belong to the keys: set AWS_SESSION_TOKEN to theirs, or to nothing for keys that need none",
    ),
    (
        "TokenRefreshRequired",
        "the session has ended: get new keys with their token",
    ),
    (
        "NoSuchBucket",
        "check the name of the bucket, and whether the endpoint (AWS_ENDPOINT_URL) is that of its store",
    ),
    (
        "NoSuchKey",
        "check the key: upper and lower case differ, and a `?` or `%` that belongs to it is written %3F or %25 in a URL",
    ),
    (
        "NoSuchVersion",
        "check versionId: the object has no such version",
    ),
    (
        "PermanentRedirect",
        "the bucket is elsewhere: name its region (AWS_REGION) and its endpoint (AWS_ENDPOINT_URL)",
    ),
    (
        "AuthorizationHeaderMalformed",
        "the signature was for another region than the bucket's: set AWS_REGION",
    ),
    (
        "IllegalLocationConstraintException",
        "the signature was for another region than the bucket's: set AWS_REGION",
    ),
    (
        "InvalidObjectState",
        "the object is in an archive: its owner has to restore it first",
    ),
    (
        "AllAccessDisabled",
        "the bucket is closed to everybody: ask its owner",
    ),
    (
        "SlowDown",
        "the store has too much to do: try again later, with fewer requests at a time (setting `remote_io_max_concurrent_requests`)",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[track_caller]
    fn check(status: u16, code: &str, change: impl Fn(&mut Refusal<'_>), says: &str) {
        let headers = HeaderMap::new();
        let mut refusal = Refusal {
            status,
            code,
            headers: &headers,
            kind: Kind::Http,
            is_signed: false,
            has_user: false,
            is_secure: true,
            failure: ErrorKind::Refused,
        };
        change(&mut refusal);
        let advice = of_refusal(&refusal);
        assert!(advice.contains(says), "{refusal:?}: {advice}");
    }

    #[test]
    fn each_refusal_has_its_next_step() {
        let s3 = |refusal: &mut Refusal<'_>| refusal.kind = Kind::S3;
        let signed = |refusal: &mut Refusal<'_>| {
            refusal.kind = Kind::S3;
            refusal.is_signed = true;
        };
        let presigned = |refusal: &mut Refusal<'_>| refusal.kind = Kind::S3Presigned;
        let known = |refusal: &mut Refusal<'_>| refusal.has_user = true;
        let plain = |refusal: &mut Refusal<'_>| refusal.is_secure = false;
        let as_it_is = |_: &mut Refusal<'_>| {};
        check(403, "RequestTimeTooSkewed", signed, "set the clock");
        check(403, "InvalidAccessKeyId", signed, "does not know the key");
        check(404, "NoSuchBucket", signed, "the name of the bucket");
        check(404, "NoSuchKey", signed, "check the key");
        check(403, "AccessDenied", signed, "these keys may not");
        check(403, "AccessDenied", s3, "give keys");
        check(403, "", presigned, "the signature has ended");
        check(403, "", known, "this user may not");
        check(403, "", as_it_is, "nobody unknown");
        check(401, "", as_it_is, "say who asks");
        check(401, "", known, "does not take this user");
        check(400, "", plain, "https://");
        check(400, "", s3, "AWS_REGION");
        check(301, "", s3, "name its region");
        check(302, "", as_it_is, "by http or https alone");
        check(404, "", as_it_is, "check the path");
        check(407, "", as_it_is, "the proxy");
        check(429, "", as_it_is, "remote_io_max_concurrent_requests");
        check(502, "", as_it_is, "balancer");
        check(500, "", as_it_is, "fails by itself");
        check(418, "", as_it_is, "the server's reason");
    }

    #[test]
    fn kerberos_is_named() {
        let headers =
            HeaderMap::from_iter([(WWW_AUTHENTICATE, HeaderValue::from_static("Negotiate"))]);
        let refusal = Refusal {
            status: 401,
            code: "",
            headers: &headers,
            kind: Kind::Http,
            is_signed: false,
            has_user: false,
            is_secure: true,
            failure: ErrorKind::PermissionDenied,
        };
        assert!(of_refusal(&refusal).contains("Kerberos"));
    }
}
