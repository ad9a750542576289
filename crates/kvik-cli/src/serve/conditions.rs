//! Conditions: what a client knows of a file already, and what follows from that.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use super::request::Request;

/// What tells one state of a file from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Validators {
    /// Strong, in its quotes.
    pub(super) etag: String,
    /// In whole seconds, as HTTP knows time.
    pub(super) modified: SystemTime,
}

/// What the conditions of a request come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The file, or the part asked for.
    Send,
    /// The file, since a part would not belong to what the client has.
    SendWhole,
    /// The client has it already.
    NotModified,
    /// It is not the file that the client means.
    Failed,
}

impl Validators {
    /// The time of the last change of anything is in the tag besides that of the content, which programs set back. It is as
    /// fine as the clock of the file system: of two changes within one tick the second may go unseen.
    pub(super) fn of(facts: &Metadata) -> Self {
        let etag = format!(
            "\"{:x}-{:x}-{:x}-{:x}.{:x}-{:x}.{:x}\"",
            facts.dev(),
            facts.ino(),
            facts.len(),
            facts.mtime(),
            facts.mtime_nsec(),
            facts.ctime(),
            facts.ctime_nsec(),
        );
        // A time before 1970 has no form in HTTP.
        let seconds = u64::try_from(facts.mtime()).unwrap_or(0);
        Validators {
            etag,
            modified: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.min(LATEST)),
        }
    }

    /// In the order of RFC 9110, section 13.2.2.
    pub(super) fn judge(&self, request: &Request) -> Verdict {
        let matches = self.tagged(request, "if-match", strongly);
        if matches == Some(false)
            || matches.is_none() && self.newer_than(request, "if-unmodified-since") == Some(true)
        {
            return Verdict::Failed;
        }
        let none_matches = self.tagged(request, "if-none-match", weakly);
        if none_matches == Some(true)
            || none_matches.is_none()
                && self.newer_than(request, "if-modified-since") == Some(false)
        {
            return Verdict::NotModified;
        }
        // A date there is never strong enough for a part: a file may change twice within its second.
        if request.all("if-range").any(|tag| tag != self.etag) {
            return Verdict::SendWhole;
        }
        Verdict::Send
    }

    /// Whether our tag is among those of this header, if it is there.
    fn tagged(&self, request: &Request, name: &str, meant: fn(&str) -> &str) -> Option<bool> {
        let mut values = request.all(name).peekable();
        values.peek()?;
        let ours = |tag: &str| tag == "*" || meant(tag) == self.etag;
        Some(
            values
                .flat_map(|value| value.split(','))
                .any(|tag| ours(tag.trim())),
        )
    }

    /// Whether the file is newer than the time in this header, if it is there and is a time.
    fn newer_than(&self, request: &Request, name: &str) -> Option<bool> {
        let time = httpdate::parse_http_date(request.all(name).next()?).ok()?;
        Some(self.modified > time)
    }
}

fn strongly(tag: &str) -> &str {
    tag
}

/// A tag that says less is enough.
fn weakly(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

// The last second of the year 9999, which is the last that HTTP can write.
const LATEST: u64 = 253_402_300_799;

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: &str = "\"1-2-3\"";

    #[track_caller]
    fn check(fields: &str, expected: Verdict) {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let request = Request::parse(head.as_bytes(), 8).unwrap();
        let validators = Validators {
            etag: TAG.to_owned(),
            modified: SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000),
        };
        assert_eq!(validators.judge(&request), expected, "{fields}");
    }

    const BEFORE: &str = "Sun, 09 Sep 2001 01:46:39 GMT";
    const SAME: &str = "Sun, 09 Sep 2001 01:46:40 GMT";

    #[test]
    fn without_conditions_the_file_is_sent() {
        check("", Verdict::Send);
    }

    #[test]
    fn if_match_takes_a_strong_tag_among_others_or_any() {
        check("If-Match: \"1-2-3\"", Verdict::Send);
        check("If-Match: \"x\", \"1-2-3\"", Verdict::Send);
        check("If-Match: \"x\"\r\nIf-Match: \"1-2-3\"", Verdict::Send);
        check("If-Match: *", Verdict::Send);
        check("If-Match: \"x\"", Verdict::Failed);
        check("If-Match: W/\"1-2-3\"", Verdict::Failed);
        check("If-Match:", Verdict::Failed);
    }

    #[test]
    fn if_none_match_takes_weak_tags_too() {
        check("If-None-Match: \"1-2-3\"", Verdict::NotModified);
        check("If-None-Match: W/\"1-2-3\"", Verdict::NotModified);
        check("If-None-Match: *", Verdict::NotModified);
        check("If-None-Match: \"x\"", Verdict::Send);
    }

    #[test]
    fn a_time_counts_where_there_is_no_tag() {
        check(&format!("If-Unmodified-Since: {SAME}"), Verdict::Send);
        check(&format!("If-Unmodified-Since: {BEFORE}"), Verdict::Failed);
        check(&format!("If-Modified-Since: {SAME}"), Verdict::NotModified);
        check(&format!("If-Modified-Since: {BEFORE}"), Verdict::Send);
        check("If-Modified-Since: yesterday", Verdict::Send);
        check(
            &format!("If-None-Match: \"x\"\r\nIf-Modified-Since: {SAME}"),
            Verdict::Send,
        );
    }

    #[test]
    fn a_part_is_sent_only_if_it_belongs_to_what_the_client_has() {
        check("If-Range: \"1-2-3\"", Verdict::Send);
        check("If-Range: \"x\"", Verdict::SendWhole);
        check("If-Range: W/\"1-2-3\"", Verdict::SendWhole);
        check(&format!("If-Range: {SAME}"), Verdict::SendWhole);
    }
}
