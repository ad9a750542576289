//! By what a server lets versions of an object be told apart. Pure.

use std::fmt;
use std::time::{Duration, UNIX_EPOCH};

use http::header::{ETAG, LAST_MODIFIED};
use http::{HeaderMap, HeaderValue};

use crate::endpoint::FileStatus;
use crate::redact;

/// What the server said of the version of an object when it was opened. All ranges of one handle come from that version, or
/// the read fails with [`Changed`](kvik_core::ErrorKind::Changed).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validator {
    etag: Option<HeaderValue>,
    modified: Option<HeaderValue>,
    file: Option<File>,
}

/// What a name node of HDFS tells versions of a file apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct File {
    modified: Option<u64>,
    id: Option<u64>,
}

impl Validator {
    /// What these headers say.
    pub(crate) fn of(headers: &HeaderMap) -> Validator {
        Validator {
            etag: headers.get(ETAG).cloned(),
            modified: headers.get(LAST_MODIFIED).cloned(),
            file: None,
        }
    }

    /// What this status says.
    pub(crate) fn of_file(status: &FileStatus) -> Validator {
        let (modified, id) = (status.modified, status.id);
        let date = modified.and_then(|time| {
            let time = UNIX_EPOCH.checked_add(Duration::from_millis(time))?;
            let is_date = time < UNIX_EPOCH + YEAR_10000;
            is_date.then(|| HeaderValue::try_from(httpdate::fmt_http_date(time)).ok())?
        });
        Validator {
            etag: None,
            modified: date,
            file: (modified.is_some() || id.is_some()).then_some(File { modified, id }),
        }
    }

    /// The `ETag`, as it was sent.
    #[must_use]
    pub fn etag(&self) -> Option<&str> {
        self.etag.as_ref().and_then(|value| value.to_str().ok())
    }

    /// The time of the last change, as it was sent; of a file of HDFS, for which milliseconds are sent, as such a date.
    #[must_use]
    pub fn last_modified(&self) -> Option<&str> {
        self.modified.as_ref().and_then(|value| value.to_str().ok())
    }

    /// Whether it says nothing: then only a change of the size shows.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.etag.is_none() && self.modified.is_none() && self.file.is_none()
    }

    /// The same with texts that show none of `secrets`, which a server may have put there: they are marked, and what is asked
    /// for by them stays as it was.
    pub(crate) fn hiding(mut self, secrets: &[String]) -> Validator {
        for value in [&mut self.etag, &mut self.modified].into_iter().flatten() {
            let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
            value.set_sensitive(redact::hide(&text, secrets) != text);
        }
        self
    }

    /// The tag that a server may be held to: a weak one says of ranges nothing that it would act on.
    pub(crate) fn strong(&self) -> Option<&HeaderValue> {
        self.etag
            .as_ref()
            .filter(|tag| tag.as_bytes().starts_with(b"\""))
    }

    /// Whether a reply with `other` is of the same version.
    pub(crate) fn is_same(&self, other: &Validator) -> bool {
        if self.file.is_some() {
            return self.file == other.file;
        }
        match (&self.etag, &other.etag) {
            (Some(ours), Some(theirs)) => opaque(ours) == opaque(theirs),
            (Some(_), None) => false,
            (None, _) => match (&self.modified, &other.modified) {
                (Some(ours), theirs) => Some(ours) == theirs.as_ref(),
                (None, _) => true,
            },
        }
    }
}

impl fmt::Display for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(File { modified, id }) = self.file {
            let said = [("modification time", modified), ("file number", id)];
            let said = said
                .into_iter()
                .filter_map(|(what, value)| Some((what, value?)));
            let texts: Vec<String> = said
                .map(|(what, value)| format!("{what} {value}"))
                .collect();
            return f.write_str(&texts.join(", "));
        }
        let (name, value) = match (&self.etag, &self.modified) {
            (Some(etag), _) => ("ETag", etag),
            (None, Some(modified)) => ("Last-Modified", modified),
            (None, None) => return f.write_str("none"),
        };
        match value.to_str() {
            Ok(text) if !value.is_sensitive() => write!(f, "{name} {text}"),
            _ => write!(f, "{name} {}", redact::HIDDEN),
        }
    }
}

/// A tag without the mark of weakness: a cache may add or drop it while the bytes stay.
fn opaque(tag: &HeaderValue) -> &[u8] {
    let bytes = tag.as_bytes();
    bytes.strip_prefix(b"W/").unwrap_or(bytes)
}

/// From 1970 on; neither dates of HTTP nor those of signatures go beyond it.
pub(crate) const YEAR_10000: Duration = Duration::from_secs(253_402_300_800);

#[cfg(test)]
mod tests {
    use super::*;

    fn validator(etag: &'static str, modified: &'static str) -> Validator {
        let value = |text: &'static str| (!text.is_empty()).then(|| HeaderValue::from_static(text));
        Validator {
            etag: value(etag),
            modified: value(modified),
            file: None,
        }
    }

    #[test]
    fn versions_are_told_apart_by_the_tag_else_by_the_time() {
        let (old, new) = (
            "Mon, 01 Jan 2024 00:00:00 GMT",
            "Tue, 02 Jan 2024 00:00:00 GMT",
        );
        for (known, reply, same) in [
            (("\"a\"", old), ("\"a\"", new), true),
            (("\"a\"", old), ("\"b\"", old), false),
            (("\"a\"", ""), ("", ""), false),
            (("W/\"a\"", ""), ("W/\"a\"", ""), true),
            (("W/\"a\"", ""), ("W/\"b\"", ""), false),
            (("\"a\"", ""), ("W/\"a\"", ""), true),
            (("", old), ("", old), true),
            (("", old), ("", new), false),
            (("", old), ("", ""), false),
            (("", ""), ("\"a\"", new), true),
        ] {
            let (left, right) = (validator(known.0, known.1), validator(reply.0, reply.1));
            assert_eq!(left.is_same(&right), same, "{known:?} {reply:?}");
        }
    }

    #[test]
    fn a_tag_that_repeats_a_secret_is_not_shown_and_still_asked_for() {
        let secrets = ["t0ken".to_owned()];
        let hidden = validator("\"t0ken\"", "").hiding(&secrets);
        assert_eq!(hidden.to_string(), "ETag ***");
        assert!(!format!("{hidden:?}").contains("t0ken"));
        assert_eq!(hidden.strong().unwrap(), "\"t0ken\"");
        assert!(hidden.is_same(&validator("\"t0ken\"", "")));
        let other = validator("", "now").hiding(&secrets);
        assert_eq!(other.to_string(), "Last-Modified now");
    }

    #[test]
    fn only_a_strong_tag_is_asked_for() {
        assert!(validator("\"a\"", "").strong().is_some());
        assert!(validator("W/\"a\"", "").strong().is_none());
        assert!(validator("", "").is_none());
    }
}
