//! Where a redirect leads, and what may go along. Pure.

use http::header::LOCATION;
use http::{HeaderMap, StatusCode};
use kvik_core::ErrorKind;
use url::Url;

use crate::failure::Failure;
use crate::location::LONGEST;

/// Where the answer sends us: `None` if it does not.
///
/// # Errors
/// `BadReply` if it does not say where, `Refused` if it leads out of http and https, or from https to http.
pub(crate) fn target(
    status: StatusCode,
    headers: &HeaderMap,
    from: &Url,
) -> Result<Option<Url>, Failure> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let said = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    let Some(to) = said.and_then(|said| from.join(said).ok()) else {
        return Err(Failure::reply(
            "the server sends us elsewhere, and not where",
        ));
    };
    let mut to = to;
    if to.as_str().len() > LONGEST {
        return Err(refused("the server sends us to a URL longer than 32 KiB"));
    }
    match (from.scheme(), to.scheme()) {
        ("http", "http") | ("http" | "https", "https") => {}
        ("https", "http") => {
            return Err(refused("the server sends us from https to http"));
        }
        _ => {
            return Err(refused(
                "the server sends us to something other than http or https",
            ));
        }
    }
    // A name and a password that a server makes up are none of ours.
    if to.set_username("").is_err() || to.set_password(None).is_err() {
        return Err(refused("the server sends us to a URL without a host"));
    }
    to.set_fragment(None);
    Ok(Some(to))
}

/// Whether what is meant for `from` may be sent to `to`.
pub(crate) fn is_same_origin(from: &Url, to: &Url) -> bool {
    let origin = |url: &Url| {
        (
            url.scheme().to_owned(),
            url.host_str().map(str::to_ascii_lowercase),
            url.port_or_known_default(),
        )
    };
    origin(from) == origin(to)
}

fn refused(why: &'static str) -> Failure {
    Failure::lasting(ErrorKind::Refused, why)
}

/// The failure of who was sent on more often than that.
pub(crate) fn too_many() -> Failure {
    let why = format!("the server sends us on more than {MOST} times");
    Failure::lasting(ErrorKind::Refused, why)
}

/// More in a row lead in a circle.
pub(crate) const MOST: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[track_caller]
    fn leads(from: &str, to: &str) -> Result<Option<String>, ErrorKind> {
        let headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_str(to).unwrap())]);
        let from = Url::parse(from).unwrap();
        target(StatusCode::FOUND, &headers, &from)
            .map(|to| to.map(|to| to.to_string()))
            .map_err(|failure| failure.kind)
    }

    #[test]
    fn redirects_stay_within_the_web_and_never_leave_tls() {
        for (from, to, expected) in [
            ("http://a/b/c", "/d", Ok("http://a/d")),
            ("http://a/b/c", "d?x=%20", Ok("http://a/b/d?x=%20")),
            ("http://a/b", "https://c/d", Ok("https://c/d")),
            ("https://a/b", "//c/d", Ok("https://c/d")),
            ("https://a/b", "http://a/b", Err(ErrorKind::Refused)),
            ("http://a/b", "file:///etc/passwd", Err(ErrorKind::Refused)),
            ("http://a/b", "ftp://a/b", Err(ErrorKind::Refused)),
            ("http://a/b", "http://me:secret@c/d#part", Ok("http://c/d")),
            ("http://a/b", "http://[", Err(ErrorKind::BadReply)),
        ] {
            let expected = expected.map(|url| Some(url.to_owned()));
            assert_eq!(leads(from, to), expected, "{from} {to}");
        }
        let long = format!("/{}", "a".repeat(LONGEST));
        assert_eq!(leads("http://a/b", &long), Err(ErrorKind::Refused));
        let from = Url::parse("http://a/b").unwrap();
        let nowhere = target(StatusCode::FOUND, &HeaderMap::new(), &from);
        assert_eq!(nowhere.unwrap_err().kind, ErrorKind::BadReply);
        let none = target(StatusCode::OK, &HeaderMap::new(), &from);
        assert_eq!(none.unwrap(), None);
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        for (from, to, same) in [
            ("http://a/b", "http://A:80/c?d", true),
            ("https://a/b", "https://a:443/", true),
            ("http://a/b", "https://a/b", false),
            ("http://a/b", "http://a:81/b", false),
            ("http://a/b", "http://b.a/b", false),
        ] {
            let url = |text| Url::parse(text).unwrap();
            assert_eq!(is_same_origin(&url(from), &url(to)), same, "{from} {to}");
        }
    }
}
