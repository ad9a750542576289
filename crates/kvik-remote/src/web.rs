//! A URL of http or https, taken apart: what is sent, what is shown, and who asks.

use kvik_core::{Error, ErrorKind, Op, Result};
use url::Url;

/// A URL of the web.
#[derive(Clone)]
pub(crate) struct Web {
    /// Without name, password and fragment.
    pub(crate) url: Url,
    /// Without anything that may be a secret.
    pub(crate) shown: String,
    /// Name and password that stood in it.
    pub(crate) user: Option<(String, String)>,
}

/// Takes `text` apart.
///
/// # Errors
/// `Misuse` for what is no URL, `Unsupported` for another scheme.
pub(crate) fn read(text: &str) -> Result<Web> {
    let wrong = |kind, why: &'static str| Error::new(kind, Op::Open, why);
    let mut url = Url::parse(text).map_err(|_| wrong(ErrorKind::Misuse, "the URL is none"))?;
    if !matches!(url.scheme(), "http" | "https") {
        let why = "the URL's scheme is neither http nor https";
        return Err(wrong(ErrorKind::Unsupported, why));
    }
    let decoded = |part: &str| {
        percent_encoding::percent_decode_str(part)
            .decode_utf8_lossy()
            .into_owned()
    };
    let user = (!url.username().is_empty() || url.password().is_some()).then(|| {
        (
            decoded(url.username()),
            decoded(url.password().unwrap_or_default()),
        )
    });
    let cleared = url.set_username("").and_then(|()| url.set_password(None));
    cleared.map_err(|()| wrong(ErrorKind::Misuse, "the URL has no host"))?;
    url.set_fragment(None);
    let mut shown = url.clone();
    // A query may carry a signature or a token.
    let query = url.query().map(|_| "...");
    shown.set_query(query);
    Ok(Web {
        shown: shown.to_string(),
        url,
        user,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_has_no_secret() {
        let web = read("https://me:p%40ss@host:8443/a%20b?token=secret#part").unwrap();
        assert_eq!(web.shown, "https://host:8443/a%20b?...");
        assert_eq!(web.url.as_str(), "https://host:8443/a%20b?token=secret");
        assert_eq!(web.user, Some(("me".to_owned(), "p@ss".to_owned())));
    }

    #[test]
    fn only_the_web_is_taken() {
        for (url, kind) in [
            ("file:///etc/hostname", ErrorKind::Unsupported),
            ("ftp://host/a", ErrorKind::Unsupported),
            ("host/path", ErrorKind::Misuse),
            ("http://", ErrorKind::Misuse),
        ] {
            assert_eq!(read(url).err().map(|e| e.kind()), Some(kind), "{url}");
        }
    }
}
