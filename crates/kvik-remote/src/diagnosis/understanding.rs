//! The step `url`: what it means, before anybody is asked. Pure.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Stage, Step, calendar};
use crate::location::{Found, Kind, Location};
use crate::percent;
use crate::redact;

/// What the URL means at the time `now`.
pub(crate) fn understand(location: &Location, now: SystemTime) -> Step {
    let kind = location.kind();
    let mut step = Step::ok(Stage::Url, format!("it names an object of {kind}"));
    if let (Kind::S3Presigned, Found::Web(url)) = (kind, location.found()) {
        let ends = url.query().and_then(signature_ends);
        if let Some(end) = ends.filter(|end| *end <= now) {
            let what = format!("its signature ended on {}", calendar::shown(end));
            let advice = "ask whoever made the URL for a new one; kvik cannot sign it again";
            step = Step::note(Stage::Url, what, advice);
        }
        step = step.maybe("signed_until", ends.map(calendar::shown));
    }
    let key = location.key().map(|key| {
        let key = String::from_utf8_lossy(&key);
        redact::foreign(&key, &[], LONGEST)
    });
    step.fact("kind", kind.to_string())
        .maybe("bucket", location.bucket().map(str::to_owned))
        .maybe("key", key)
        .maybe("region_of_host", location.region().map(str::to_owned))
}

/// When the signature in a query ends, of the fourth version of signatures or the second.
fn signature_ends(query: &str) -> Option<SystemTime> {
    let value = |name: &str| {
        let mut parts = query.split('&').filter_map(|part| part.split_once('='));
        let (_, value) = parts.find(|(found, _)| found.eq_ignore_ascii_case(name))?;
        String::from_utf8(percent::decode(value)).ok()
    };
    let seconds = |name: &str| value(name)?.parse().ok().map(Duration::from_secs);
    match value("X-Amz-Date") {
        Some(date) => calendar::time(&date)?.checked_add(seconds("X-Amz-Expires")?),
        None => UNIX_EPOCH.checked_add(seconds("Expires")?),
    }
}

// Keys of S3 have 1024 bytes at most.
const LONGEST: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::Outcome;

    fn of(url: &str) -> Step {
        understand(&Location::parse(url).unwrap(), NOW)
    }

    const NOW: SystemTime = UNIX_EPOCH;

    #[test]
    fn an_object_of_s3_is_told_with_bucket_key_and_region() {
        let step = of("https://logs.s3.eu-west-1.amazonaws.com/a%20b.bin");
        assert_eq!(step.what, "it names an object of S3");
        let facts = [
            ("kind", "S3".to_owned()),
            ("bucket", "logs".to_owned()),
            ("key", "a b.bin".to_owned()),
            ("region_of_host", "eu-west-1".to_owned()),
        ];
        assert_eq!(step.facts, facts);
        assert_eq!(step.outcome, Outcome::Ok);
    }

    #[test]
    fn a_signature_in_the_url_is_told_with_its_end() {
        let fourth = "https://b.s3.amazonaws.com/k?X-Amz-Algorithm=A&X-Amz-Signature=cafe&X-Amz-Date=20260102T030405Z&X-Amz-Expires=60";
        let second =
            "https://b.s3.amazonaws.com/k?AWSAccessKeyId=A&Signature=cafe&Expires=1767323105";
        for url in [fourth, second] {
            let location = Location::parse(url).unwrap();
            let end = UNIX_EPOCH + Duration::from_secs(1_767_323_105);
            let step = understand(&location, end - Duration::from_secs(1));
            assert_eq!(step.outcome, Outcome::Ok);
            assert_eq!(
                step.facts[0],
                ("signed_until", "Fri, 02 Jan 2026 03:05:05 GMT".to_owned())
            );
            let step = understand(&location, end);
            assert_eq!(step.outcome, Outcome::Note);
            assert_eq!(
                step.what,
                "its signature ended on Fri, 02 Jan 2026 03:05:05 GMT"
            );
            assert!(!format!("{step:?}").contains("cafe"));
        }
        let endless = "https://b.s3.amazonaws.com/k?X-Amz-Algorithm=A&X-Amz-Signature=cafe";
        assert_eq!(
            of(endless).facts,
            [("kind", "S3 with presigned URL".to_owned())]
        );
    }
}
