//! The name that a server gives itself.

use std::sync::OnceLock;

use http::HeaderMap;
use http::header::SERVER;

use crate::redact;

/// The header `Server` of the first answer that had one. Whoever answers after it has the same bytes.
#[derive(Debug, Default)]
pub(crate) struct ServerName(OnceLock<String>);

impl ServerName {
    /// Hears what an answer says, without what it repeats of our `secrets`. These are put together for the first name only.
    pub(crate) fn meet(&self, headers: &HeaderMap, secrets: impl FnOnce() -> Vec<String>) {
        let said = || headers.get(SERVER)?.to_str().ok();
        if self.get().is_none()
            && let Some(name) = said()
        {
            // Another answer may have been faster.
            let _ = self.0.set(redact::foreign(name, &secrets(), LONGEST));
        }
    }

    pub(crate) fn get(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

// Enough for a product, its version and its modules.
const LONGEST: usize = 120;

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_first_name_counts_in_one_bounded_line_without_secrets() {
        let server = ServerName::default();
        let mut headers = HeaderMap::new();
        server.meet(&headers, || unreachable!("there is no name"));
        assert_eq!(server.get(), None);
        let long = format!("one/1.0 hunter22 {}", "x".repeat(500));
        headers.insert(SERVER, HeaderValue::from_str(&long).unwrap());
        server.meet(&headers, || vec!["hunter22".to_owned()]);
        headers.insert(SERVER, HeaderValue::from_static("two"));
        server.meet(&headers, || unreachable!("there is one already"));
        let name = server.get().unwrap();
        assert!(
            name.starts_with("one/1.0 *** xxx") && name.len() < 130,
            "{name}"
        );
    }
}
