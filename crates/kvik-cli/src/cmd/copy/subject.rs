//! What a copy is of, so exactly that a later one may go on with its bytes.

use std::time::{Duration, SystemTime};

use kvik::{Kind, RemoteHandle};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// One version of one remote object. Of the URL, which may have secrets, there is a digest alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Subject {
    format: u32,
    url: String,
    pub(super) size: u64,
    etag: Option<String>,
    modified: Option<String>,
}

impl Subject {
    /// The version that was opened; else why nobody could tell it from another one later.
    pub(super) fn of(url: &str, object: &RemoteHandle) -> Result<Subject, &'static str> {
        let validator = object.validator().ok_or(NOTHING)?;
        let now = SystemTime::now();
        let (etag, modified) = version(validator.etag(), validator.last_modified(), now)?;
        let address = object.s3().map(|facts| facts.address);
        Ok(Subject {
            format: FORMAT,
            url: digest(&lasting(url, object.kind()), address.as_deref()),
            size: object.len(),
            etag,
            modified,
        })
    }

    /// Why bytes of `other` are none of this one; `None` if they are.
    pub(super) fn differs_from(&self, other: &Subject) -> Option<&'static str> {
        match () {
            () if self.format != other.format => Some("another version of kvik made it"),
            () if self.url != other.url => Some("it is of another URL"),
            () if self != other => Some("the object has changed since"),
            () => None,
        }
    }
}

/// Entity tag or time by which a server can be held to a version of an object.
fn version(
    etag: Option<&str>,
    modified: Option<&str>,
    now: SystemTime,
) -> Result<(Option<String>, Option<String>), &'static str> {
    match (etag, modified) {
        (Some(etag), _) if etag.starts_with('"') => Ok((Some(etag.to_owned()), None)),
        (Some(_), _) => Err("the server names its version only loosely (a weak ETag)"),
        (None, Some(modified)) => {
            let time = httpdate::parse_http_date(modified).map_err(|_| NOTHING)?;
            // Times have whole seconds: two versions of one second look alike, so there must be none to come.
            match now.duration_since(time) {
                Ok(age) if age >= SETTLED => Ok((None, Some(modified.to_owned()))),
                _ => Err("it changed a moment ago, and the server tells versions by whole seconds"),
            }
        }
        (None, None) => Err(NOTHING),
    }
}

/// The URL without what another run may say otherwise of the same object: who asks, and a signature that ends.
fn lasting(url: &str, kind: Kind) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    let host = authority.rsplit('@').next().unwrap_or_default();
    let rest = match (kind, rest.split_once('?')) {
        (Kind::S3Presigned, Some((path, query))) => {
            let kept: Vec<&str> = query
                .split('&')
                .filter(|part| part.starts_with("versionId="))
                .collect();
            format!("{path}?{}", kept.join("&"))
        }
        _ => rest.to_owned(),
    };
    format!("{scheme}://{host}{rest}")
}

fn digest(url: &str, address: Option<&str>) -> String {
    let mut hasher = Sha256::new();
    hasher.update(url);
    // Of S3: a bucket of that name is another one at another endpoint.
    hasher.update([0]);
    hasher.update(address.unwrap_or_default());
    hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

const FORMAT: u32 = 1;
const NOTHING: &str = "the server does not name its version";
const SETTLED: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strong_tag_or_a_settled_time_tells_a_version_and_nothing_else_does() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_060);
        let at = |seconds| {
            httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
        };
        let (old, fresh, coming) = (at(1_700_000_000), at(1_700_000_001), at(1_800_000_000));
        let version = |etag, modified: &str| {
            let modified = (!modified.is_empty()).then_some(modified);
            version(etag, modified, now)
        };
        assert_eq!(
            version(Some("\"a\""), &fresh),
            Ok((Some("\"a\"".to_owned()), None))
        );
        assert_eq!(version(None, &old), Ok((None, Some(old.clone()))));
        for (etag, modified, why) in [
            (Some("W/\"a\""), old.as_str(), "loosely"),
            (None, &fresh, "a moment ago"),
            (None, &coming, "a moment ago"),
            (None, "yesterday", "does not name"),
            (None, "", "does not name"),
        ] {
            let said = version(etag, modified).unwrap_err();
            assert!(said.contains(why), "{etag:?} {modified}: {said}");
        }
    }

    #[test]
    fn of_a_url_all_counts_but_who_asks_and_a_signature() {
        for (url, kind, kept) in [
            (
                "http://me:pass@host/a?b=c#d",
                Kind::Http,
                "http://host/a?b=c#d",
            ),
            ("http://host?b=me@x/y", Kind::Http, "http://host?b=me@x/y"),
            ("s3://bucket/a@b", Kind::S3, "s3://bucket/a@b"),
            (
                "https://b.s3.amazonaws.com/a?X-Amz-Signature=1&versionId=2&X-Amz-Date=3",
                Kind::S3Presigned,
                "https://b.s3.amazonaws.com/a?versionId=2",
            ),
        ] {
            assert_eq!(lasting(url, kind), kept);
        }
        let address = Some("http://one/b/a");
        assert_ne!(
            digest("s3://b/a", address),
            digest("s3://b/a", Some("http://two/b/a"))
        );
        assert_ne!(digest("s3://b/a", address), digest("s3://b/c", address));
    }
}
