//! A URL with its signature in the query: it goes out as it is, and only as `GET`, for which it was signed.

use http::{HeaderMap, Method};
use kvik_core::Result;

use super::{Ask, Endpoint, Moment, Request, ask_for, given, other_kind};
use crate::location::{Found, Location, WebUrl};

/// An object by a presigned URL.
#[derive(Clone, Debug)]
pub struct PresignedEndpoint {
    url: WebUrl,
    headers: HeaderMap,
}

impl PresignedEndpoint {
    /// The object at `location`, asked for with `headers`; nothing else says who asks.
    ///
    /// # Errors
    /// `Misuse` for a location of another kind.
    pub fn new(location: &Location, headers: &HeaderMap) -> Result<PresignedEndpoint> {
        match location.found() {
            Found::Web(url) => Ok(PresignedEndpoint {
                url: url.clone(),
                headers: given(headers),
            }),
            _ => Err(other_kind("S3 with presigned URL")),
        }
    }
}

impl Endpoint for PresignedEndpoint {
    fn request(&self, ask: &Ask, _: &Moment<'_>) -> Result<Request> {
        let mut request = Request::new(Method::GET, self.url.to_send());
        request.headers = self.headers.clone();
        // The signature is none for `HEAD`; the answer to one byte says how many there are.
        let first = Ask::Range(0..1);
        ask_for(if *ask == Ask::Length { &first } else { ask }, request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::Keys;
    use std::time::UNIX_EPOCH;

    #[test]
    fn nothing_is_added_to_a_presigned_url_and_the_length_is_asked_for_by_get() {
        let url = "https://b.s3.amazonaws.com/k'x?X-Amz-Signature=ab%2fcd12&X-Amz-Algorithm=AWS4-HMAC-SHA256";
        let location = Location::parse(url).unwrap();
        let endpoint = PresignedEndpoint::new(&location, &HeaderMap::new()).unwrap();
        let keys = Keys::new("id", "secret");
        let moment = Moment {
            keys: Some(&keys),
            bearer: Some("t0ken"),
            ..Moment::at(UNIX_EPOCH)
        };
        let request = endpoint.request(&Ask::Length, &moment).unwrap();
        assert_eq!((&request.method, request.url.as_str()), (&Method::GET, url));
        assert_eq!(request.headers.len(), 1);
        assert_eq!(request.headers["range"], "bytes=0-0");
        assert!(!format!("{request:?} {endpoint:?}").contains("cd12"));
        assert!(
            endpoint
                .request(&Ask::Whole, &moment)
                .unwrap()
                .headers
                .is_empty()
        );
    }
}
