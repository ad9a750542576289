//! One request serves many ranges: its signature does not cover the range.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwapOption;
use kvik_core::Result;

use super::{Ask, Endpoint, Moment, Request, ask_for};
use crate::credentials::Keys;

/// An endpoint that makes the request for a whole object at most once a minute, and adds the range to it. It serves only
/// endpoints that ask for ranges by the header `Range`.
pub struct Reuse<E> {
    endpoint: E,
    // Without a lock: all requests under way come by here, and in the child of a fork nobody would open it.
    last: ArcSwapOption<Made>,
}

/// A request, and all that it was made of.
struct Made {
    at: SystemTime,
    keys: Option<Keys>,
    region: Option<String>,
    bearer: Option<String>,
    request: Request,
}

impl<E: Endpoint> Reuse<E> {
    /// The same endpoint, saving its work.
    #[must_use]
    pub fn new(endpoint: E) -> Reuse<E> {
        let last = ArcSwapOption::empty();
        Reuse { endpoint, last }
    }

    /// The endpoint that makes the requests.
    pub(crate) fn inner(&self) -> &E {
        &self.endpoint
    }

    /// Makes the next request anew, after a server refused the last one.
    pub fn renew(&self) {
        self.last.store(None);
    }
}

impl<E: Endpoint> Endpoint for Reuse<E> {
    fn request(&self, ask: &Ask, moment: &Moment<'_>) -> Result<Request> {
        if *ask == Ask::Length {
            return self.endpoint.request(ask, moment);
        }
        let last = self.last.load();
        if let Some(made) = last.as_ref().filter(|made| made.serves(moment)) {
            return ask_for(ask, made.request.clone());
        }
        let request = self.endpoint.request(&Ask::Whole, moment)?;
        self.last.store(Some(Arc::new(Made {
            at: moment.now,
            keys: moment.keys.cloned(),
            region: moment.region.map(str::to_owned),
            bearer: moment.bearer.map(str::to_owned),
            request: request.clone(),
        })));
        ask_for(ask, request)
    }
}

impl<E: fmt::Debug> fmt::Debug for Reuse<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reuse").field(&self.endpoint).finish()
    }
}

impl Made {
    fn serves(&self, moment: &Moment<'_>) -> bool {
        // A clock that was set back makes a new one.
        let age = moment.now.duration_since(self.at);
        age.is_ok_and(|age| age < SERVES)
            && self.keys.as_ref() == moment.keys
            && self.region.as_deref() == moment.region
            && self.bearer.as_deref() == moment.bearer
    }
}

// Servers take signatures of fifteen minutes; clocks are wrong by some.
const SERVES: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::{S3Endpoint, S3Options};
    use crate::location::Location;
    use std::time::UNIX_EPOCH;

    #[test]
    fn a_signature_serves_all_ranges_of_a_minute_until_something_changes() {
        let location = Location::parse("s3://b/k").unwrap();
        let fresh = S3Endpoint::new(&location, S3Options::default()).unwrap();
        let reuse = Reuse::new(fresh.clone());
        let keys = Keys::new("id", "secret");
        let start = UNIX_EPOCH + Duration::from_secs(1_000_000);
        let at = |seconds: u64| Moment {
            keys: Some(&keys),
            ..Moment::at(start + Duration::from_secs(seconds))
        };
        let sealed = |moment: &Moment<'_>, ask: &Ask| {
            let request = reuse.request(ask, moment).unwrap();
            let (of_ask, of_request) = (ask_for(ask, request.clone()).unwrap(), request);
            assert_eq!(of_ask, of_request);
            of_request.headers["authorization"].clone()
        };
        let first = sealed(&at(0), &Ask::Range(0..10));
        assert_eq!(sealed(&at(59), &Ask::Range(10..20)), first);
        assert_eq!(sealed(&at(59), &Ask::Whole), first);
        assert!(
            reuse
                .request(&Ask::Whole, &at(59))
                .unwrap()
                .headers
                .get("range")
                .is_none()
        );
        assert_eq!(
            fresh.request(&Ask::Range(0..1), &at(0)).unwrap().headers["authorization"],
            first
        );
        // Too old, or from the future.
        let second = sealed(&at(60), &Ask::Range(0..10));
        assert_ne!(second, first);
        assert_eq!(sealed(&at(30), &Ask::Whole), sealed(&at(30), &Ask::Whole));
        assert_ne!(sealed(&at(30), &Ask::Whole), second);
        // Renewed, of other keys, or for another region.
        let kept = sealed(&at(31), &Ask::Whole);
        reuse.renew();
        assert_ne!(sealed(&at(31), &Ask::Whole), kept);
        let other = Keys::new("id", "secret").token("t");
        let with_token = Moment {
            keys: Some(&other),
            ..at(31)
        };
        assert!(
            reuse
                .request(&Ask::Whole, &with_token)
                .unwrap()
                .headers
                .contains_key("x-amz-security-token")
        );
        let elsewhere = Moment {
            region: Some("eu-west-1"),
            ..at(31)
        };
        assert_eq!(
            reuse.request(&Ask::Whole, &elsewhere).unwrap().url,
            "https://b.s3.eu-west-1.amazonaws.com/k"
        );
        let none = Moment::at(start);
        assert!(
            !reuse
                .request(&Ask::Whole, &none)
                .unwrap()
                .headers
                .contains_key("authorization")
        );
        let with_bearer = Moment {
            bearer: Some("t0ken"),
            ..none
        };
        reuse.request(&Ask::Whole, &with_bearer).unwrap();
        let shown = format!("{reuse:?} {with_bearer:?}");
        assert!(
            !shown.contains("secret\"") && !shown.contains("t0ken"),
            "{shown}"
        );
    }
}
