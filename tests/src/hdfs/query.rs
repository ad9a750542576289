//! What a request of WebHDFS says.

use crate::hostile::Asked;

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
            path: decoded(path),
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
        found.map(|(_, value)| decoded(value))
    }

    /// The value of a parameter that is a number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.value(name)?.parse().ok()
    }
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
