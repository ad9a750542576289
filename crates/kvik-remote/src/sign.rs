//! Signatures of AWS, version 4: a request, keys, a region and a time go in, headers come out. Pure.

use std::time::{SystemTime, UNIX_EPOCH};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings,
    UriPathNormalizationMode,
};
use aws_sigv4::sign::v4;
use http::{HeaderMap, HeaderName, HeaderValue};
use kvik_core::{Error, ErrorKind, Op, Result};

use crate::credentials::Keys;
use crate::endpoint::Request;
use crate::percent;
use crate::validator::YEAR_10000;

/// Adds the headers of a signature to `request`, which has no body: who asks, when, and a seal on method, URL and all
/// headers that it has so far. Headers added later are not sealed: the range is one of them, so that one signature serves all
/// ranges of an object, and `If-Match` another.
///
/// The URL goes out as it is. What is sealed is what it means, every part encoded once, as the server reads it.
///
/// # Errors
/// `Config` for keys that cannot go into a header; `Misuse` for a time before 1970 or after the year 9999, or a URL or header
/// that no request can have.
pub fn sign(request: &mut Request, keys: &Keys, region: &str, now: SystemTime) -> Result<()> {
    check(keys, region, now)?;
    let mut credentials = Credentials::builder()
        .access_key_id(keys.id())
        .secret_access_key(keys.secret())
        .provider_name("kvik");
    credentials.set_session_token(keys.session_token().map(str::to_owned));
    let identity = credentials.build().into();
    let params = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name("s3")
        .time(now)
        .settings(settings())
        .build()
        .map_err(|error| refused("a signature needs more than was given").because(error))?;
    let meant = meaning(&request.url)?;
    let mut headers = Vec::with_capacity(request.headers.len());
    for (name, value) in &request.headers {
        let text = value
            .to_str()
            .map_err(|_| refused("a header that is to be signed has letters beyond ASCII"))?;
        headers.push((name.as_str(), text));
    }
    let signable = SignableRequest::new(
        request.method.as_str(),
        &meant,
        headers.into_iter(),
        SignableBody::Bytes(b""),
    )
    .map_err(|error| refused("the URL is none that can be signed").because(error))?;
    let signed = aws_sigv4::http_request::sign(signable, &params.into())
        .map_err(|error| refused("the request cannot be signed").because(error))?;
    let (instructions, _) = signed.into_parts();
    let mut added = HeaderMap::new();
    for header in instructions.into_parts().0 {
        let name = HeaderName::from_bytes(header.name().as_bytes());
        let value = HeaderValue::from_str(header.value());
        let (Ok(name), Ok(mut value)) = (name, value) else {
            return Err(refused("the signature is none that a header can hold"));
        };
        value.set_sensitive(header.sensitive() || name == http::header::AUTHORIZATION);
        added.insert(name, value);
    }
    request.headers.extend(added);
    Ok(())
}

/// The URL with its path as the server reads it, encoded once.
fn meaning(url: &str) -> Result<String> {
    let (scheme, rest) = url
        .split_once("://")
        .ok_or_else(|| refused("the URL has no scheme"))?;
    let (rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (rest, None),
    };
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    };
    let path = percent::canonical_path(path);
    if query.is_some_and(|query| !is_signable(query)) {
        return Err(refused(
            "the query has a parameter without a name, or bytes that are no UTF-8, which cannot be signed",
        ));
    }
    Ok(match query {
        Some(query) => format!("{scheme}://{authority}{path}?{query}"),
        None => format!("{scheme}://{authority}{path}"),
    })
}

/// Whether the crate that signs reads the query as servers do: it replaces what is no UTF-8.
fn is_signable(query: &str) -> bool {
    let named = query.split('&').all(|part| !part.starts_with('='));
    named && String::from_utf8(percent::decode(query)).is_ok()
}

fn settings() -> SigningSettings {
    let mut settings = SigningSettings::default();
    // S3 encodes a key once and takes `..` for a name, unlike all other services.
    settings.percent_encoding_mode = PercentEncodingMode::Single;
    settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
    settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
    settings
}

fn check(keys: &Keys, region: &str, now: SystemTime) -> Result<()> {
    let plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    let wrong = |what: &str| {
        // Neither is shown: it may be the secret that was put in the wrong place.
        let why = format!(
            "the {what} from {} has characters that no header can hold, or none",
            keys.origin()
        );
        Error::new(ErrorKind::Config, Op::Configure, why)
    };
    if !plain(keys.id()) {
        return Err(wrong("id of the key"));
    }
    if keys.secret().is_empty() || keys.secret().chars().any(char::is_control) {
        return Err(wrong("secret key"));
    }
    if keys.session_token().is_some_and(|token| !plain(token)) {
        return Err(wrong("session token"));
    }
    let named = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if region.is_empty() || !region.bytes().all(named) {
        let why = "a region has letters, digits, hyphens and underscores only, and at least one";
        return Err(Error::new(ErrorKind::Config, Op::Configure, why));
    }
    if !(UNIX_EPOCH..UNIX_EPOCH + YEAR_10000).contains(&now) {
        return Err(refused(
            "the clock of the machine shows a year that no signature can have",
        ));
    }
    Ok(())
}

fn refused(why: &'static str) -> Error {
    Error::new(ErrorKind::Misuse, Op::Configure, why)
}

#[cfg(test)]
#[path = "sign_tests.rs"]
mod tests;
