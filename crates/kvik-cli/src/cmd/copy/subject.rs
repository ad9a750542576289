//! What a copy is of, so exactly that a later one may go on with its bytes.

use std::time::{Duration, SystemTime};

use kvik::{Kind, RemoteHandle};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// One version of one remote object. Of the URL, and of what a server says, which may have secrets, there are digests alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Subject {
    format: u32,
    url: String,
    version: String,
    pub(super) size: u64,
}

impl Subject {
    /// The version that was opened; else why nobody could tell it from another one later.
    pub(super) fn of(url: &str, object: &RemoteHandle) -> Result<Subject, &'static str> {
        let validator = object.validator().ok_or(NOTHING)?;
        let (etag, modified) = (validator.etag(), validator.last_modified());
        let version = match version(etag, modified, SystemTime::now())? {
            // What else is known of a file without a tag, as its number, is a part of the text of the validator.
            Told::ByTime(time) => digest(&[time, &validator.to_string()]),
            Told::ByTag(tag) => digest(&[tag]),
        };
        // Of S3: a bucket of that name is another one at another endpoint.
        let address = object.s3().map(|facts| facts.address).unwrap_or_default();
        Ok(Subject {
            format: FORMAT,
            url: digest(&[&lasting(url, object.kind()), &address]),
            version,
            size: object.len(),
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

/// By what a version can be told from another one.
#[derive(Debug, PartialEq, Eq)]
enum Told<'a> {
    ByTag(&'a str),
    ByTime(&'a str),
}

/// Entity tag or time by which a server can be held to a version of an object.
fn version<'a>(
    etag: Option<&'a str>,
    modified: Option<&'a str>,
    now: SystemTime,
) -> Result<Told<'a>, &'static str> {
    match (etag, modified) {
        (Some(etag), _) if etag.starts_with('"') => Ok(Told::ByTag(etag)),
        (Some(_), _) => Err("the server names its version only loosely (a weak ETag)"),
        (None, Some(modified)) => {
            let time = httpdate::parse_http_date(modified).map_err(|_| NOTHING)?;
            // Times have whole seconds: two versions of one second look alike, so there must be none to come.
            match now.duration_since(time) {
                Ok(age) if age >= SETTLED => Ok(Told::ByTime(modified)),
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
        // A name node knows files by their paths; all else is about who asks.
        (Kind::WebHdfs, Some((path, _))) => path.to_owned(),
        _ => rest.to_owned(),
    };
    format!("{scheme}://{host}{rest}")
}

fn digest(texts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for text in texts {
        hasher.update(text);
        // It is part of no text, so that no two lists look alike.
        hasher.update([0]);
    }
    let bytes = hasher.finalize();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
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
        let tag = Some("\"a\"");
        assert_eq!(version(tag, Some(&fresh), now), Ok(Told::ByTag("\"a\"")));
        assert_eq!(version(None, Some(&old), now), Ok(Told::ByTime(&old)));
        for (etag, modified, why) in [
            (Some("W/\"a\""), old.as_str(), "loosely"),
            (None, &fresh, "a moment ago"),
            (None, &coming, "a moment ago"),
            (None, "yesterday", "does not name"),
            (None, "", "does not name"),
        ] {
            let modified = Some(modified).filter(|text| !text.is_empty());
            let said = version(etag, modified, now).unwrap_err();
            assert!(said.contains(why), "{etag:?} {modified:?}: {said}");
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
                "webhdfs://host/a?delegation=secret",
                Kind::WebHdfs,
                "webhdfs://host/a",
            ),
            (
                "https://b.s3.amazonaws.com/a?X-Amz-Signature=1&versionId=2&X-Amz-Date=3",
                Kind::S3Presigned,
                "https://b.s3.amazonaws.com/a?versionId=2",
            ),
        ] {
            assert_eq!(lasting(url, kind), kept);
        }
    }

    #[test]
    fn digests_of_other_texts_are_others() {
        let one = digest(&["s3://b/a", "http://one/b/a"]);
        assert_eq!(one.len(), 64);
        for other in [
            ["s3://b/a", "http://two/b/a"],
            ["s3://b/c", "http://one/b/a"],
            ["s3://b/", "ahttp://one/b/a"],
        ] {
            assert_ne!(digest(&other), one);
        }
    }
}
