//! The step `clock`: whether the server's clock and ours agree, which signatures need. Pure.

use std::time::{Duration, SystemTime};

use http::HeaderName;
use http::header::{AGE, DATE};

use super::watch::Head;
use super::{Stage, Step};

/// Compares the header `Date` with when it came. What a cache had kept has the time of when it was made, and says in `Age`
/// how long ago that was.
pub(super) fn examine(head: &Head, signs: bool) -> Step {
    let said = |name: HeaderName| {
        head.headers
            .get(name)
            .map(|value| value.to_str().unwrap_or_default())
    };
    let date = said(DATE).and_then(|date| httpdate::parse_http_date(date).ok());
    let age = said(AGE).map_or(Some(0), |age| age.trim().parse().ok());
    let theirs = date.and_then(|date| date.checked_add(Duration::from_secs(age?)));
    let Some(theirs) = theirs else {
        return Step::ok(Stage::Clock, "the server does not say what time it is");
    };
    let (apart, way) = apart(theirs, head.at);
    if apart <= ACCURACY {
        return Step::ok(Stage::Clock, "the clocks agree");
    }
    let what = format!(
        "the clock of this machine is {} s {way} the server's",
        apart.as_secs()
    );
    if apart <= HARMLESS {
        return Step::ok(Stage::Clock, what);
    }
    let advice = match signs {
        true => {
            "set the clock (`timedatectl`, chrony or NTP): S3 refuses what was signed more than 15 minutes before or after its own \
             time"
        }
        false => {
            "set the clock (`timedatectl`, chrony or NTP); certificates and signatures hold for a time only"
        }
    };
    Step::note(Stage::Clock, what, advice)
}

fn apart(theirs: SystemTime, ours: SystemTime) -> (Duration, &'static str) {
    match ours.duration_since(theirs) {
        Ok(ahead) => (ahead, "ahead of"),
        Err(behind) => (behind.duration(), "behind"),
    }
}

// The header has whole seconds, and was on its way for some.
const ACCURACY: Duration = Duration::from_secs(5);
const HARMLESS: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::Outcome;
    use http::{HeaderMap, HeaderValue, StatusCode};
    use std::time::UNIX_EPOCH;

    fn at(said: Option<&'static str>, seconds: u64) -> (Outcome, String) {
        let headers = said.map(|said| (DATE, HeaderValue::from_static(said)));
        with(headers.into_iter().collect(), seconds)
    }

    fn with(headers: HeaderMap, seconds: u64) -> (Outcome, String) {
        let head = Head {
            status: StatusCode::OK,
            headers,
            at: UNIX_EPOCH + Duration::from_secs(seconds),
            took: Duration::ZERO,
            reason: Vec::new(),
        };
        let step = examine(&head, true);
        (step.outcome, step.what)
    }

    #[test]
    fn clocks_that_disagree_by_minutes_are_told() {
        let hour = Some("Thu, 01 Jan 1970 01:00:00 GMT");
        assert_eq!(at(hour, 3602), (Outcome::Ok, "the clocks agree".to_owned()));
        for (seconds, outcome, what) in [
            (3660, Outcome::Ok, "60 s ahead of"),
            (4501, Outcome::Note, "901 s ahead of"),
            (2699, Outcome::Note, "901 s behind"),
        ] {
            let what = format!("the clock of this machine is {what} the server's");
            assert_eq!(at(hour, seconds), (outcome, what));
        }
        for said in [None, Some("yesterday")] {
            assert!(at(said, 0).1.contains("does not say"));
        }
    }

    #[test]
    fn the_time_that_an_answer_lay_in_a_cache_is_none_of_the_clock() {
        let hour = HeaderValue::from_static("Thu, 01 Jan 1970 01:00:00 GMT");
        let aged = |age: &'static str| {
            let age = (AGE, HeaderValue::from_static(age));
            with(HeaderMap::from_iter([(DATE, hour.clone()), age]), 7200)
        };
        assert_eq!(aged("3600"), (Outcome::Ok, "the clocks agree".to_owned()));
        assert!(aged("7200").1.contains("3600 s behind"));
        for age in ["a while", "-1", "18446744073709551615"] {
            assert!(aged(age).1.contains("does not say"), "{age}");
        }
    }
}
