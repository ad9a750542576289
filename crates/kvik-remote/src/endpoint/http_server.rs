//! Any server of HTTP: the URL as it is, with the caller's headers.

use http::{HeaderMap, Method};
use kvik_core::Result;

use super::{Ask, Endpoint, Moment, Request, ask_for, authorize, given, other_kind};
use crate::location::{Found, Location, WebUrl};

/// An object by its URL.
#[derive(Clone, Debug)]
pub struct HttpEndpoint {
    url: WebUrl,
    headers: HeaderMap,
}

impl HttpEndpoint {
    /// The object at `location`, asked for with `headers`. User and password of the URL become basic authentication, unless
    /// the headers or a bearer token say who asks.
    ///
    /// # Errors
    /// `Misuse` for a location of another kind.
    pub fn new(location: &Location, headers: &HeaderMap) -> Result<HttpEndpoint> {
        match location.found() {
            Found::Web(url) => Ok(HttpEndpoint {
                url: url.clone(),
                headers: given(headers),
            }),
            _ => Err(other_kind("HTTP")),
        }
    }
}

impl Endpoint for HttpEndpoint {
    fn request(&self, ask: &Ask, moment: &Moment<'_>) -> Result<Request> {
        let method = match ask {
            Ask::Length => Method::HEAD,
            Ask::Range(_) | Ask::Whole => Method::GET,
        };
        let mut request = Request::new(method, self.url.to_send());
        request.headers = self.headers.clone();
        authorize(&mut request.headers, moment.bearer, self.url.user_info())?;
        ask_for(ask, request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use std::time::UNIX_EPOCH;

    fn endpoint(url: &str, headers: &[(&'static str, &'static str)]) -> HttpEndpoint {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_static(value));
        }
        HttpEndpoint::new(&Location::parse(url).unwrap(), &map).unwrap()
    }

    #[test]
    fn the_url_goes_out_as_it_is_with_the_range_beside_it() {
        let endpoint = endpoint("https://example.org/a%2fb?t=1+2#x", &[("x-key", "abc")]);
        let moment = Moment::at(UNIX_EPOCH);
        let request = endpoint.request(&Ask::Range(0..10), &moment).unwrap();
        assert_eq!(request.url, "https://example.org/a%2fb?t=1+2");
        assert_eq!(request.method, Method::GET);
        assert_eq!(request.headers["range"], "bytes=0-9");
        assert_eq!(request.headers["x-key"], "abc");
        assert!(request.headers["x-key"].is_sensitive());
        let request = endpoint.request(&Ask::Length, &moment).unwrap();
        assert_eq!(
            (request.method, request.headers.get("range")),
            (Method::HEAD, None)
        );
        let request = endpoint.request(&Ask::Whole, &moment).unwrap();
        assert_eq!(
            (request.method, request.headers.get("range")),
            (Method::GET, None)
        );
    }

    #[test]
    fn who_asks_is_said_once_by_the_nearest_word() {
        let url = "https://u:p%40ss@example.org/a";
        let moment = Moment::at(UNIX_EPOCH);
        let basic = endpoint(url, &[]).request(&Ask::Whole, &moment).unwrap();
        assert_eq!(basic.headers["authorization"], "Basic dTpwQHNz");
        assert_eq!(basic.url, "https://example.org/a");
        let own = endpoint(url, &[("authorization", "Own x")]);
        assert_eq!(
            own.request(&Ask::Whole, &moment).unwrap().headers["authorization"],
            "Own x"
        );
        let bearer = Moment {
            bearer: Some("t0ken"),
            ..moment
        };
        let request = own.request(&Ask::Whole, &bearer).unwrap();
        assert_eq!(request.headers.get_all("authorization").iter().count(), 1);
        assert_eq!(request.headers["authorization"], "Bearer t0ken");
        let shown = format!("{request:?} {basic:?} {bearer:?}");
        for secret in ["t0ken", "dTpw", "p@ss"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        for token in ["", "a b", "a\r\nb"] {
            let moment = Moment {
                bearer: Some(token),
                ..moment
            };
            assert!(own.request(&Ask::Whole, &moment).is_err(), "{token:?}");
        }
        let colon = endpoint("https://u%3Ax:p@example.org/a", &[]);
        assert!(colon.request(&Ask::Whole, &moment).is_err());
    }
}
