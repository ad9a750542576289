//! [`Layer`]: what one source said, before anybody asks what it means.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{ConfigError, Detail};
use crate::key::{Key, settings};
use crate::nearest;
use crate::origin::Origin;
use crate::parse::Setting;
use crate::proxy::ProxyUrl;
use crate::value::{CompatMode, DirectIo, LogLevel, RemoteIoBackend, RemoteReactorDispatch};
use crate::{ByteSize, env};

/// What one source said: code, the environment, or a settings file.
///
/// A layer is made of texts; whether they are values is found out where the layer is used. Values said in code are checked
/// there at once, and nothing takes effect if one of them is bad. A bad value from the environment or a file waits for the
/// first use of that key, so that all other settings work.
///
/// # Example: values from code
///
/// ```
/// use kvik_config::{ByteSize, Config, Key, Layer};
///
/// let config = Config::resolve([Layer::new().task_size(ByteSize::mib(8)).set(Key::NumThreads, "2")])?;
/// assert_eq!(config.num_threads()?, 2);
/// # Ok::<(), kvik_config::ConfigError>(())
/// ```
#[derive(Clone, Default)]
pub struct Layer {
    words: BTreeMap<Key, Word>,
    /// The source as a whole could not be used, so what it would have said about any key is not known.
    unusable: Option<ConfigError>,
    /// What is wrong without concerning a key.
    problems: Vec<ConfigError>,
}

/// What is said about one key. In code `origin` is not known yet: it depends on what the layer is given to.
#[derive(Clone)]
struct Word {
    said: Result<OsString, ConfigError>,
    origin: Option<Origin>,
}

impl Layer {
    /// A layer that says nothing yet.
    #[must_use]
    pub fn new() -> Layer {
        Layer::default()
    }

    /// What the environment says now. [`Config::current`](crate::Config::current) reads it once per process instead.
    #[must_use]
    pub fn from_env() -> Layer {
        Layer::from_vars(env::variables())
    }

    /// What these variables say; all that are not ours or KvikIO's are passed over.
    ///
    /// `KVIK_*` wins over `KVIKIO_*`. Within one of these families, variables that mean the same setting must agree. Of those
    /// of other programs that a setting knows, the first one counts that is not empty.
    ///
    /// # Example: an environment for a test
    ///
    /// ```
    /// use kvik_config::{Config, Key, Layer, Origin};
    ///
    /// let layer = Layer::from_vars([("KVIKIO_NTHREADS", "4"), ("KVIK_TASK_SIZE", "4abc")]);
    /// let config = Config::resolve([layer])?;
    /// assert_eq!(config.num_threads()?, 4);
    /// assert_eq!(config.origin(Key::NumThreads), Origin::Environment("KVIKIO_NTHREADS"));
    /// assert!(config.task_size().is_err());
    /// # Ok::<(), kvik_config::ConfigError>(())
    /// ```
    #[must_use]
    pub fn from_vars<N, V>(variables: impl IntoIterator<Item = (N, V)>) -> Layer
    where
        N: Into<OsString>,
        V: Into<OsString>,
    {
        let variables: BTreeMap<OsString, OsString> = variables
            .into_iter()
            .map(|(name, text)| (name.into(), text.into()))
            .filter(|(name, _)| name.as_encoded_bytes().starts_with(b"KVIK") || is_known(name))
            .collect();
        let mut layer = Layer::new();
        for &key in Key::ALL {
            if let Some(word) = word_of_variables(key, &variables) {
                layer.words.insert(key, word);
            }
        }
        layer
            .problems
            .extend(variables.keys().filter_map(|name| misspelt(name)));
        layer
    }

    /// Says `text` about `key`, in the spelling that the environment would use.
    #[must_use]
    pub fn set(self, key: Key, text: impl Into<OsString>) -> Layer {
        self.insert(
            key,
            Word {
                said: Ok(text.into()),
                origin: None,
            },
        )
    }

    /// What this layer says about `key`, as it was said; `None` where it says nothing or something that is no text.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&OsStr> {
        self.words.get(&key)?.said.as_deref().ok()
    }

    /// Whether this layer says nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && self.unusable.is_none()
    }

    /// A layer from a source that could not be used.
    pub(crate) fn unusable(error: ConfigError) -> Layer {
        Layer {
            unusable: Some(error),
            ..Layer::new()
        }
    }

    /// Adds what a settings file says about `key`; `Err` is a value of a type that the setting does not have.
    pub(crate) fn say(self, key: Key, said: Result<String, ConfigError>, origin: Origin) -> Layer {
        let said = said.map(OsString::from);
        let origin = Some(origin);
        self.insert(key, Word { said, origin })
    }

    pub(crate) fn add_problem(mut self, problem: ConfigError) -> Layer {
        self.problems.push(problem);
        self
    }

    fn insert(mut self, key: Key, word: Word) -> Layer {
        self.words.insert(key, word);
        self
    }

    /// This layer, and over it what `upper` says.
    pub(crate) fn under(mut self, upper: Layer) -> Layer {
        self.words.extend(upper.words);
        self.unusable = upper.unusable.or(self.unusable);
        for problem in upper.problems {
            // The same source may be given twice.
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
        self
    }

    /// The first bad value that was said in code, if any. `origin` is what the layer is about to be used as.
    pub(crate) fn check(&self, origin: &Origin) -> Result<(), ConfigError> {
        for (&key, word) in &self.words {
            if let Word {
                said: Ok(text),
                origin: None,
            } = word
                && !key.parses(text)
            {
                return Err(ConfigError::value(key, key.shown(text), origin.clone()));
            }
        }
        Ok(())
    }

    pub(crate) fn why_unusable(&self) -> Option<&ConfigError> {
        self.unusable.as_ref()
    }

    pub(crate) fn problems(&self) -> &[ConfigError] {
        &self.problems
    }

    /// What this layer means by `key`, used as `origin`; `None` where it says nothing about it.
    pub(crate) fn value<T: Setting>(
        &self,
        key: Key,
        origin: &Origin,
    ) -> Option<(Result<T, ConfigError>, Origin)> {
        let word = self.words.get(&key)?;
        let origin = word.origin.as_ref().unwrap_or(origin).clone();
        let value = word.said.clone().and_then(|text| {
            T::parse(&text, key.rule())
                .ok_or_else(|| ConfigError::value(key, key.shown(&text), origin.clone()))
        });
        Some((value, origin))
    }
}

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut layer = f.debug_struct("Layer");
        for (key, word) in &self.words {
            match &word.said {
                Ok(text) => layer.field(key.name(), &key.shown(text)),
                Err(error) => layer.field(key.name(), error),
            };
        }
        layer
            .field("unusable", &self.unusable)
            .field("problems", &self.problems)
            .finish()
    }
}

macro_rules! define_setters {
    ($($(#[doc = $doc:literal])+ $key:ident $name:ident: $kind:ty { $($row:tt)* })*) => {
        /// One setter per setting. Setters cannot fail; what the layer is given to reports a bad value.
        impl Layer {
            $(
                $(#[doc = $doc])+
                #[must_use]
                pub fn $name(self, value: $kind) -> Layer {
                    self.set(Key::$key, Setting::text(&value))
                }
            )*
        }
    };
}
settings!(define_setters);

/// Our variables decide; KvikIO's are only asked where none of ours is set, and those of others where none of those is.
fn word_of_variables(key: Key, variables: &BTreeMap<OsString, OsString>) -> Option<Word> {
    let others = || {
        let said = |name: &&'static str| {
            let text = variables.get(OsStr::new(*name))?;
            (!name.starts_with("KVIK") && !text.is_empty()).then(|| Word {
                said: Ok(text.clone()),
                origin: Some(Origin::Environment(name)),
            })
        };
        key.variables().iter().find_map(said)
    };
    let ours = ["KVIK_", "KVIKIO_"].into_iter().find_map(|family| {
        let mut set = key
            .variables()
            .iter()
            .filter(|name| name.starts_with(family))
            .filter_map(|&name| Some((name, variables.get(OsStr::new(name))?)));
        let (name, text) = set.next()?;
        let said = match set.find(|(_, other)| *other != text) {
            None => Ok(text.clone()),
            Some((alias, other)) => Err(Detail::Aliases {
                key,
                first: (name, key.shown(text)),
                second: (alias, key.shown(other)),
            }
            .into()),
        };
        Some(Word {
            said,
            origin: Some(Origin::Environment(name)),
        })
    });
    ours.or_else(others)
}

/// Whether a setting knows the variable.
fn is_known(name: &OsStr) -> bool {
    let mut known = Key::ALL.iter().flat_map(|key| key.variables());
    known.any(|variable| *variable == name)
}

/// A variable that is no setting but almost one. Others are left alone: the prefix `KVIK_` is used for more than settings.
fn misspelt(name: &OsStr) -> Option<ConfigError> {
    let name = name.to_str()?;
    let known = || Key::ALL.iter().flat_map(|key| key.variables()).copied();
    if known().any(|variable| variable == name) {
        return None;
    }
    let nearest = nearest::nearest(name, known())?;
    let variable = name.to_owned();
    (nearest::edits(name, nearest) <= 1).then(|| Detail::Misspelt { variable, nearest }.into())
}
