//! [`ProxyUrl`]: where a proxy is, of which no text shows the name and the password.

use std::fmt;

/// The URL of a proxy, as somebody said it: with a name and a password, perhaps, which only [`as_str`](ProxyUrl::as_str)
/// shows.
///
/// # Example: what is shown
///
/// ```
/// let proxy = kvik_config::ProxyUrl::new("http://me:secret@proxy.example:3128");
/// assert_eq!(proxy.to_string(), "http://***@proxy.example:3128");
/// assert!(!format!("{proxy:?}").contains("secret"));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ProxyUrl(String);

impl ProxyUrl {
    /// The URL, whether or not it is one: who uses it finds out.
    #[must_use]
    pub fn new(url: impl Into<String>) -> ProxyUrl {
        ProxyUrl(url.into())
    }

    /// As it was said, with all that is secret.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without a scheme, `://` may stand in a password.
        let (scheme, rest) = match self.0.split_once("://") {
            Some((scheme, rest)) if is_scheme(scheme) => (Some(scheme), rest),
            _ => (None, self.0.as_str()),
        };
        // A password that somebody forgot to encode may hold whatever ends it elsewhere: all up to the last `@` is hidden.
        let shown = match rest.rsplit_once('@') {
            Some((_, place)) => format!("***@{place}"),
            None => rest.to_owned(),
        };
        match scheme {
            Some(scheme) => write!(f, "{scheme}://{shown}"),
            None => f.write_str(&shown),
        }
    }
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProxyUrl({self})")
    }
}

/// Whether a URL may begin with it (RFC 3986, section 3.1).
fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::ProxyUrl;

    #[test]
    fn nobody_sees_who_uses_a_proxy() {
        for (said, shown) in [
            ("http://proxy:3128", "http://proxy:3128"),
            ("proxy:3128", "proxy:3128"),
            ("http://me:secret@proxy", "http://***@proxy"),
            ("me:secret@proxy", "***@proxy"),
            ("http://me:se/cr@t@proxy", "http://***@proxy"),
            ("http://me:se://cret@proxy", "http://***@proxy"),
            ("me:se://cret@proxy", "***@proxy"),
            ("se/cr@t://x@proxy", "***@proxy"),
            ("socks5h+x://me:secret@proxy", "socks5h+x://***@proxy"),
        ] {
            let proxy = ProxyUrl::new(said);
            assert_eq!(proxy.to_string(), shown);
            assert_eq!(format!("{proxy:?}"), format!("ProxyUrl({shown})"));
            assert_eq!(proxy.as_str(), said);
        }
    }
}
