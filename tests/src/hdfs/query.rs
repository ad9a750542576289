//! What a request of WebHDFS says.

use crate::hostile::Asked;
use crate::percent::decoded;

/// Path and parameters of a request.
#[derive(Clone, Debug)]
pub struct Query {
    /// Decoded, from the root of the file system on.
    pub path: String,
    /// As they stand there.
    pub parameters: Vec<(String, String)>,
}

impl Query {
    /// What was asked.
    #[must_use]
    pub fn of(asked: &Asked) -> Query {
        let (path, query) = asked.path.split_once('?').unwrap_or((&asked.path, ""));
        let path = path.strip_prefix("/webhdfs/v1").unwrap_or_default();
        let parameters = query.split('&').filter_map(|part| part.split_once('='));
        Query {
            path: text_of(path),
            parameters: parameters
                .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                .collect(),
        }
    }

    /// The value of a parameter, decoded.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<String> {
        let mut all = self.parameters.iter();
        let found = all.find(|(found, _)| found == name);
        found.map(|(_, value)| text_of(value))
    }

    /// The value of a parameter that is a number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.value(name)?.parse().ok()
    }
}

fn text_of(encoded: &str) -> String {
    String::from_utf8_lossy(&decoded(encoded)).into_owned()
}
