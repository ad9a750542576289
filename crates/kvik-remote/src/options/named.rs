//! Options by name, as text: a row for each, with the names by which users of other libraries know it.

mod read;
mod rows;

use std::collections::BTreeMap;

use kvik_core::{Error, ErrorKind, Op, Result};

use super::RemoteOptions;
use crate::credentials::Keys;

/// An option that [`RemoteOptions::from_map`] takes.
#[derive(Clone, Copy, Debug)]
pub struct NamedOption {
    names: &'static [&'static str],
    expects: &'static str,
    says: &'static str,
    set: Set,
}

/// What becomes of the value.
#[derive(Clone, Copy, Debug)]
enum Set {
    /// It is an option by itself; `None` if the value is none that it can have.
    Alone(Setter),
    /// It is about the same as the option of that first name, so that they are not given at once.
    Instead(&'static str, Setter),
    /// It is one together with others.
    Part(Part),
}

type Setter = fn(RemoteOptions, &str) -> Option<RemoteOptions>;

/// The parts of who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    KeyId,
    SecretKey,
    SessionToken,
    User,
    Password,
}

impl NamedOption {
    /// All options that have a name, in the order of the book.
    pub const ALL: &'static [NamedOption] = rows::ROWS;

    /// Its names, of which the first is ours.
    #[must_use]
    pub fn names(&self) -> &'static [&'static str] {
        self.names
    }

    /// What its value has to be.
    #[must_use]
    pub fn expects(&self) -> &'static str {
        self.expects
    }

    /// What it does.
    #[must_use]
    pub fn says(&self) -> &'static str {
        self.says
    }

    /// What it is about: two that are about the same are not given at once.
    fn topic(&self) -> &'static str {
        match self.set {
            Set::Instead(other, _) => other,
            Set::Alone(_) | Set::Part(_) => self.names[0],
        }
    }

    /// The option of this name, and the number of its row.
    fn of(name: &str) -> Result<(usize, &'static NamedOption)> {
        let has = |(_, option): &(usize, &NamedOption)| {
            let mut names = option.names.iter();
            names.any(|known| known.eq_ignore_ascii_case(name))
        };
        NamedOption::ALL
            .iter()
            .enumerate()
            .find(has)
            .ok_or_else(|| {
                let known = NamedOption::ALL.iter().flat_map(|option| option.names);
                let hint = match kvik_config::nearest(name, known.copied()) {
                    Some(near) => format!("; `{near}` is one"),
                    None => String::new(),
                };
                let shown: String = name.chars().take(LONGEST).collect();
                misuse(format!(
                    "`{}` is no option of remote objects{hint}",
                    shown.escape_debug()
                ))
            })
    }
}

impl RemoteOptions {
    /// Options from names and texts, as they stand in a file or come from another language. The names, in any case, are those
    /// of [`NamedOption::ALL`], among them the ones that `fsspec` and `object_store` have for S3.
    ///
    /// # Errors
    /// `Misuse` for a name that is none, with the nearest one; for a value that is none of its option; for two names of one
    /// option with different values; and for half a pair, such as an id without a secret key. No value is shown.
    ///
    /// # Example: as other libraries have it
    /// ```
    /// use kvik_remote::RemoteOptions;
    ///
    /// let options = RemoteOptions::from_map([
    ///     ("aws_access_key_id", "the id"),
    ///     ("aws_secret_access_key", "the secret key"),
    ///     ("endpoint_url", "http://127.0.0.1:9000"),
    ///     ("timeout", "30s"),
    /// ])?;
    /// assert!(RemoteOptions::from_map([("regoin", "eu-west-1")]).is_err());
    /// # drop(options);
    /// # Ok::<(), kvik_core::Error>(())
    /// ```
    pub fn from_map<K: AsRef<str>, V: AsRef<str>>(
        map: impl IntoIterator<Item = (K, V)>,
    ) -> Result<RemoteOptions> {
        RemoteOptions::new().with_map(map)
    }

    /// The same options, and those of a map as [`from_map`](RemoteOptions::from_map) takes it.
    ///
    /// # Errors
    /// As for `from_map`.
    pub fn with_map<K: AsRef<str>, V: AsRef<str>>(
        self,
        map: impl IntoIterator<Item = (K, V)>,
    ) -> Result<RemoteOptions> {
        let given: Vec<(K, V)> = map.into_iter().collect();
        let mut topics: BTreeMap<&str, (&str, &str, &NamedOption)> = BTreeMap::new();
        let mut parts: BTreeMap<Part, &str> = BTreeMap::new();
        // By their rows: one may hang on another that stands before it.
        let mut alone = BTreeMap::new();
        for (name, value) in &given {
            let (name, value) = (name.as_ref(), value.as_ref());
            let (row, option) = NamedOption::of(name)?;
            if let Some((before, same, other)) =
                topics.insert(option.topic(), (name, value, option))
            {
                if other.names != option.names {
                    let why = format!(
                        "`{before}` and `{name}` are about the same: one of them is to be given"
                    );
                    return Err(misuse(why));
                }
                if same != value {
                    let why =
                        format!("`{before}` and `{name}` are one option, and have two values");
                    return Err(misuse(why));
                }
            }
            match option.set {
                Set::Alone(set) | Set::Instead(_, set) => {
                    alone.insert(row, (name, value, option, set));
                }
                Set::Part(part) => {
                    parts.insert(part, value);
                }
            }
        }
        let mut options = self;
        for (name, value, option, set) in alone.into_values() {
            // What was wrong before is not the fault of the next one.
            let before = options.sound()?;
            options = set(before, value).ok_or_else(|| {
                // The value may be a secret that came to the wrong place.
                misuse(format!("the value of `{name}` is not {}", option.expects))
            })?;
        }
        options.sound()?.with_parts(&parts)
    }

    /// The same, unless something was wrong by now.
    fn sound(self) -> Result<RemoteOptions> {
        match self.wrong {
            Some(error) => Err(error),
            None => Ok(self),
        }
    }

    fn with_parts(self, parts: &BTreeMap<Part, &str>) -> Result<RemoteOptions> {
        let part = |part| parts.get(&part).copied();
        let mut options = self;
        match (
            part(Part::KeyId),
            part(Part::SecretKey),
            part(Part::SessionToken),
        ) {
            (Some(id), Some(secret), token) => {
                let keys = Keys::new(id, secret);
                options = options.keys(match token {
                    Some(token) => keys.token(token),
                    None => keys,
                });
            }
            (None, None, None) => {}
            (None, _, _) => return Err(half("access_key_id")),
            (_, None, _) => return Err(half("secret_access_key")),
        }
        match (part(Part::User), part(Part::Password)) {
            (Some(user), Some(password)) => Ok(options.basic_auth(user, password)),
            (None, None) => Ok(options),
            (None, Some(_)) => Err(half("username")),
            (Some(_), None) => Err(half("password")),
        }
    }
}

fn half(missing: &str) -> Error {
    misuse(format!("a part of who asks is given, and no `{missing}`"))
}

fn misuse(why: String) -> Error {
    Error::new(ErrorKind::Misuse, Op::Configure, why)
}

// No name is longer.
const LONGEST: usize = 50;

#[cfg(test)]
#[path = "named_tests.rs"]
mod tests;
