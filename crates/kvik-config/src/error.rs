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
pub(crate) enum Detail {
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
    /// A settings file names a key that does not exist.
    Unknown {
        name: String,
        nearest: Option<&'static str>,
        file: Arc<Path>,
    },
    /// A variable of our family that is no setting, but almost one.
    Misspelt {
        variable: String,
        nearest: &'static str,
    },
    /// A settings file that is there, or should be there, and cannot be used.
    Unusable { file: Arc<Path>, why: String },
    /// A settings file at the usual place that is not this user's. What it says does not concern us.
    Foreign { file: Arc<Path>, why: String },
    /// `KVIK_CONFIG` names a settings file by a path that is not absolute.
    Relative { text: String },
    /// The folder of the usual settings file is named by a path that is not absolute.
    RelativeFolder {
        variable: &'static str,
        text: String,
    },
}

impl From<Detail> for ConfigError {
    fn from(detail: Detail) -> ConfigError {
        ConfigError(Arc::new(detail))
    }
}

impl ConfigError {
    pub(crate) fn value(key: Key, text: impl Into<String>, origin: Origin) -> ConfigError {
        let text = text.into();
        Detail::Value { key, text, origin }.into()
    }

    /// The setting; `None` where a name is unknown or a settings file as a whole is concerned.
    #[must_use]
    pub fn key(&self) -> Option<Key> {
        match &*self.0 {
            Detail::Value { key, .. } | Detail::Aliases { key, .. } => Some(*key),
            _ => None,
        }
    }

    /// The name that was used for the setting: a variable, or a name of [`Key::name`], or an unknown one; `None` where a
    /// settings file as a whole is concerned.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &*self.0 {
            Detail::Value { key, origin, .. } => match origin {
                Origin::Environment(variable) => Some(variable),
                _ => Some(key.name()),
            },
            Detail::Aliases { second, .. } => Some(second.0),
            Detail::Unknown { name, .. } => Some(name),
            Detail::Misspelt { variable, .. } => Some(variable),
            Detail::RelativeFolder { variable, .. } => Some(variable),
            Detail::Relative { .. } => Some("KVIK_CONFIG"),
            Detail::Unusable { .. } | Detail::Foreign { .. } => None,
        }
    }

    /// The text that is not a value; `None` where the mistake is not in one text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &*self.0 {
            Detail::Value { text, .. }
            | Detail::Relative { text }
            | Detail::RelativeFolder { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Which spellings are values, where a text is not one.
    #[must_use]
    pub fn expected(&self) -> Option<String> {
        match &*self.0 {
            Detail::Value { key, .. } => Some(key.expected()),
            Detail::Relative { .. } | Detail::RelativeFolder { .. } => {
                Some("an absolute path".to_owned())
            }
            _ => None,
        }
    }

    /// Who said it; of a misspelt variable, the one that was probably meant.
    #[must_use]
    pub fn origin(&self) -> Origin {
        match &*self.0 {
            Detail::Value { origin, .. } => origin.clone(),
            Detail::Aliases { second, .. } => Origin::Environment(second.0),
            Detail::Misspelt { nearest, .. } => Origin::Environment(nearest),
            Detail::Relative { .. } => Origin::Environment("KVIK_CONFIG"),
            Detail::RelativeFolder { variable, .. } => Origin::Environment(variable),
            Detail::Unknown { file, .. }
            | Detail::Unusable { file, .. }
            | Detail::Foreign { file, .. } => Origin::UserFile(Arc::clone(file)),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Detail::Value { key, text, origin } => write!(
                f,
                "setting {key}: {text:?} from {origin} is not {}",
                key.expected()
            ),
            Detail::Aliases { key, first, second } => write!(
                f,
                "setting {key}: {}={:?} and {}={:?} in the environment mean the same setting and differ; unset one",
                first.0, first.1, second.0, second.1
            ),
            Detail::Unknown {
                name,
                nearest,
                file,
            } => {
                write!(f, "settings file {}: no setting {name:?}", file.display())?;
                match nearest {
                    Some(nearest) => write!(f, "; did you mean {nearest:?}?"),
                    None => write!(f, "; `kvik config` lists all settings"),
                }
            }
            Detail::Misspelt { variable, nearest } => write!(
                f,
                "environment {variable}: no setting has this variable; did you mean {nearest}?"
            ),
            Detail::Unusable { file, why } => write!(
                f,
                "settings file {} cannot be used: {why}; settings that nothing stronger says are unknown until it is \
                 mended, or left out by an empty KVIK_CONFIG",
                file.display()
            ),
            Detail::Foreign { file, why } => {
                write!(f, "settings file {} is passed over: {why}", file.display())
            }
            Detail::Relative { text } => write!(
                f,
                "environment KVIK_CONFIG: {text:?} is not an absolute path; settings that nothing stronger says are \
                 unknown until it is"
            ),
            Detail::RelativeFolder { variable, text } => write!(
                f,
                "environment {variable}: {text:?} is not an absolute path; no settings file is looked for there"
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
        let text = text.to_owned();
        ParseValueError { text, expected }
    }
}
