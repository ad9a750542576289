//! [`Config`]: what all layers mean together, immutable, with an origin per key.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::ByteSize;
use crate::error::ConfigError;
use crate::key::{Key, settings};
use crate::layer::Layer;
use crate::origin::Origin;
use crate::parse::Setting;
use crate::proxy::ProxyUrl;
use crate::value::{CompatMode, DirectIo, LogLevel, RemoteIoBackend, RemoteReactorDispatch};

/// The meaning of some layers: one value, or one error, and one [`Origin`] per [`Key`].
///
/// Immutable and cheap to clone. [`Config::current`] is what holds for the calling thread.
#[derive(Debug, Clone)]
pub struct Config {
    values: Arc<Values>,
}

/// The value of one key, or why it has none, and who is to thank.
#[derive(Debug, Clone)]
pub(crate) struct Slot<T> {
    pub(crate) value: Result<T, ConfigError>,
    pub(crate) origin: Origin,
}

impl Config {
    /// What these layers mean; later ones win, the table's defaults lie under all of them.
    ///
    /// # Errors
    ///
    /// A value said in code is not one. Bad values from the environment or a file wait for the first use of their key.
    pub fn resolve(layers: impl IntoIterator<Item = Layer>) -> Result<Config, ConfigError> {
        let mut values = Values::defaults();
        for layer in layers {
            layer.check(&Origin::Code)?;
            values.overlay(&layer, &Origin::Code);
        }
        Ok(Config::from(values))
    }

    /// This configuration, and over it what the options of one call say.
    ///
    /// # Errors
    ///
    /// A value said in code is not one.
    pub fn with(&self, layer: Layer) -> Result<Config, ConfigError> {
        self.over(&layer, &Origin::Call)
    }

    /// This configuration, and over it what the options of one handle say.
    ///
    /// # Errors
    ///
    /// A value said in code is not one.
    pub fn for_handle(&self, layer: Layer) -> Result<Config, ConfigError> {
        self.over(&layer, &Origin::Handle)
    }

    /// Everything that is wrong: keys without a value, unknown keys in the settings file, variables that are almost one of
    /// ours, a settings file that cannot be used. `kvik config` and `kvik doctor` print them.
    #[must_use]
    pub fn problems(&self) -> Vec<ConfigError> {
        let mut problems = self.values.problems.clone();
        for error in Key::ALL.iter().filter_map(|&key| self.text(key).err()) {
            // A file that cannot be used is the error of many keys.
            if !problems.contains(&error) {
                problems.push(error);
            }
        }
        problems
    }

    fn over(&self, layer: &Layer, origin: &Origin) -> Result<Config, ConfigError> {
        layer.check(origin)?;
        Ok(self.heard(layer, origin))
    }

    /// This configuration, and over it a layer that was checked before.
    pub(crate) fn heard(&self, layer: &Layer, origin: &Origin) -> Config {
        let mut values = Values::clone(&self.values);
        values.overlay(layer, origin);
        Config::from(values)
    }

    /// The same, in memory of its own: cloning it is no traffic with other threads.
    pub(crate) fn apart(&self) -> Config {
        Config::from(Values::clone(&self.values))
    }

    #[cfg(feature = "serde")]
    pub(crate) fn values(&self) -> &Values {
        &self.values
    }
}

impl Default for Config {
    /// The defaults of the table, whatever anybody says elsewhere.
    fn default() -> Config {
        Config::from(Values::defaults())
    }
}

impl From<Values> for Config {
    fn from(values: Values) -> Config {
        Config {
            values: Arc::new(values),
        }
    }
}

impl<T: Setting> Slot<T> {
    fn default(key: Key) -> Slot<T> {
        let value = T::parse(key.default().as_ref(), key.rule())
            .ok_or_else(|| ConfigError::value(key, key.default(), Origin::Default));
        Slot {
            value,
            origin: Origin::Default,
        }
    }

    fn overlay(&mut self, key: Key, layer: &Layer, origin: &Origin) {
        if let Some((value, origin)) = layer.value(key, origin) {
            *self = Slot { value, origin };
        } else if let Some(error) = layer.why_unusable() {
            *self = Slot {
                value: Err(error.clone()),
                origin: error.origin(),
            };
        }
    }

    fn text(&self) -> Result<String, ConfigError> {
        let value = self.value.as_ref().map_err(ConfigError::clone)?;
        Ok(T::shown(&value.text()))
    }
}

macro_rules! define_values {
    ($($(#[doc = $doc:literal])+ $key:ident $name:ident: $kind:ty { $($row:tt)* })*) => {
        /// All settings, each with its type.
        #[derive(Debug, Clone)]
        pub(crate) struct Values {
            $(pub(crate) $name: Slot<$kind>,)*
            pub(crate) problems: Vec<ConfigError>,
        }

        impl Values {
            fn defaults() -> Values {
                Values {
                    $($name: Slot::default(Key::$key),)*
                    problems: Vec::new(),
                }
            }

            fn overlay(&mut self, layer: &Layer, origin: &Origin) {
                $(self.$name.overlay(Key::$key, layer, origin);)*
                self.problems.extend_from_slice(layer.problems());
            }
        }

        /// One accessor per setting. Each returns the error of its own key and of no other.
        impl Config {
            $(
                $(#[doc = $doc])+
                ///
                /// # Errors
                ///
                /// What was said about this setting is not a value of it, or the settings file cannot be used and nobody
                /// stronger said it.
                pub fn $name(&self) -> Result<$kind, ConfigError> {
                    self.values.$name.value.clone()
                }
            )*

            /// Who said the value of this setting, or the bad value in its place.
            #[must_use]
            pub fn origin(&self, key: Key) -> Origin {
                match key {
                    $(Key::$key => self.values.$name.origin.clone(),)*
                }
            }

            /// The value of this setting as text, in a spelling that every source understands; but of the URL of a proxy name
            /// and password are hidden.
            ///
            /// # Errors
            ///
            /// As the accessor of the setting.
            pub fn text(&self, key: Key) -> Result<String, ConfigError> {
                match key {
                    $(Key::$key => self.values.$name.text(),)*
                }
            }
        }
    };
}
settings!(define_values);
