//! What is wrong with a setting, where it was said, and what would have been right.

use std::path::Path;
use std::sync::Arc;
use std::{error, fmt};

use crate::key::Key;
use crate::origin::Origin;

/// A setting that cannot be used.
///
/// Cheap to clone: the same error is handed out at every use of the setting.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigError(Arc<Detail>);

#[derive(Debug, PartialEq, Eq)]
enum Detail {
    /// The text is not a value of the key.
    Value {
        key: Key,
        text: String,
        origin: Origin,
    },
    /// Two variables of one family that mean the same key hold different texts.
    Aliases {
        key: Key,
        first: (&'static str, String),
        second: (&'static str, String),
    },
    /// There is no such key.
    Unknown {
        name: String,
        nearest: Option<&'static str>,
        origin: Origin,
    },
    /// A settings file that is there, or should be there, and cannot be used.
    File { path: Arc<Path>, why: String },
    /// A place for the settings file that is not usable, for example a relative one.
    Place {
        variable: &'static str,
        text: String,
    },
}

impl ConfigError {
    pub(crate) fn value(key: Key, text: impl Into<String>, origin: Origin) -> ConfigError {
        ConfigError(Arc::new(Detail::Value {
            key,
            text: text.into(),
            origin,
        }))
    }

    pub(crate) fn aliases(
        key: Key,
        first: (&'static str, String),
        second: (&'static str, String),
    ) -> ConfigError {
        ConfigError(Arc::new(Detail::Aliases { key, first, second }))
    }

    pub(crate) fn unknown(
        name: impl Into<String>,
        nearest: Option<&'static str>,
        origin: Origin,
    ) -> ConfigError {
        ConfigError(Arc::new(Detail::Unknown {
            name: name.into(),
            nearest,
            origin,
        }))
    }

    pub(crate) fn file(path: &Arc<Path>, why: impl Into<String>) -> ConfigError {
        ConfigError(Arc::new(Detail::File {
            path: Arc::clone(path),
            why: why.into(),
        }))
    }

    pub(crate) fn place(variable: &'static str, text: impl Into<String>) -> ConfigError {
        ConfigError(Arc::new(Detail::Place {
            variable,
            text: text.into(),
        }))
    }

    /// The setting; `None` where the name is unknown or a settings file as a whole cannot be used.
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        match &*self.0 {
            Detail::Value { key, .. } | Detail::Aliases { key, .. } => Some(*key),
            Detail::Unknown { .. } | Detail::File { .. } | Detail::Place { .. } => None,
        }
    }

    /// The name that somebody used: of the setting, of the variable or of the unknown key; `None` for a file.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &*self.0 {
            Detail::Value {
                origin: Origin::Environment(variable),
                ..
            } => Some(variable),
            Detail::Value { key, .. } => Some(key.name()),
            Detail::Aliases {
                second: (variable, _),
                ..
            }
            | Detail::Place { variable, .. } => Some(variable),
            Detail::Unknown { name, .. } => Some(name),
            Detail::File { .. } => None,
        }
    }

    /// The text that is not a value; `None` where the mistake is not in one text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &*self.0 {
            Detail::Value { text, .. } | Detail::Place { text, .. } => Some(text),
            Detail::Aliases { .. } | Detail::Unknown { .. } | Detail::File { .. } => None,
        }
    }

    /// Which spellings are values, where a text is not one.
    #[must_use]
    pub fn expected(&self) -> Option<String> {
        match &*self.0 {
            Detail::Value { key, .. } => Some(key.expected()),
            _ => None,
        }
    }

    /// Who said it.
    #[must_use]
    pub fn origin(&self) -> Origin {
        match &*self.0 {
            Detail::Value { origin, .. } | Detail::Unknown { origin, .. } => origin.clone(),
            Detail::Aliases {
                second: (variable, _),
                ..
            }
            | Detail::Place { variable, .. } => Origin::Environment(variable),
            Detail::File { path, .. } => Origin::UserFile(Arc::clone(path)),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Detail::Value { key, text, origin } => {
                write!(
                    f,
                    "setting {key}: {text:?} from {origin} is not {}",
                    key.expected()
                )
            }
            Detail::Aliases { key, first, second } => write!(
                f,
                "setting {key}: the variables {}={:?} and {}={:?} mean the same setting and differ; unset one",
                first.0, first.1, second.0, second.1
            ),
            Detail::Unknown {
                name,
                nearest,
                origin,
            } => {
                write!(f, "there is no setting {name:?} ({origin})")?;
                match nearest {
                    Some(nearest) => write!(f, "; did you mean {nearest}?"),
                    None => write!(f, "; `kvik config` lists all settings"),
                }
            }
            Detail::File { path, why } => write!(
                f,
                "settings file {}: {why}; until this is mended, settings that no other source says are unknown",
                path.display()
            ),
            Detail::Place { variable, text } => write!(
                f,
                "{variable}={text:?} is not an absolute path, so no settings file is read from there"
            ),
        }
    }
}

impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl error::Error for ConfigError {}

/// A text that is not a value of the type it was parsed as.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {expected}")]
pub struct ParseValueError {
    text: String,
    expected: &'static str,
}

impl ParseValueError {
    pub(crate) fn new(text: &str, expected: &'static str) -> ParseValueError {
        ParseValueError {
            text: text.to_owned(),
            expected,
        }
    }
}
