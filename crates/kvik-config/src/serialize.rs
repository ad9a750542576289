//! The serialized forms: sizes and words, and a configuration with value, origin and error of every key.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::ByteSize;
use crate::config::{Config, Slot};
use crate::key::settings;
use crate::origin::Origin;
use crate::proxy::ProxyUrl;
use crate::value::{CompatMode, DirectIo, LogLevel, RemoteIoBackend, RemoteReactorDispatch};

/// A number of bytes.
impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.bytes())
    }
}

/// A number of bytes, or a text such as `4MiB`.
impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
        struct Size;
        impl Visitor<'_> for Size {
            type Value = ByteSize;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of bytes or a size such as \"4MiB\"")
            }

            fn visit_u64<E: Error>(self, bytes: u64) -> Result<ByteSize, E> {
                Ok(ByteSize::new(bytes))
            }

            fn visit_i64<E: Error>(self, bytes: i64) -> Result<ByteSize, E> {
                u64::try_from(bytes).map(ByteSize::new).map_err(E::custom)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ByteSize, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Size)
    }
}

macro_rules! words {
    ($($kind:ident),*) => {$(
        /// The canonical word.
        impl Serialize for $kind {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }

        /// Any of its words, in any case.
        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$kind, D::Error> {
                struct Word;
                impl Visitor<'_> for Word {
                    type Value = $kind;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($kind::EXPECTED)
                    }

                    fn visit_str<E: Error>(self, text: &str) -> Result<$kind, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Word)
            }
        }
    )*};
}
words!(
    CompatMode,
    DirectIo,
    RemoteIoBackend,
    RemoteReactorDispatch,
    LogLevel
);

/// As people read it: `environment KVIK_TASK_SIZE`.
impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

macro_rules! define_serialize {
    ($($(#[doc = $doc:literal])+ $key:ident $name:ident: $kind:ty { $($row:tt)* })*) => {
        /// A map from the name of every key to `{"value": ..., "origin": ..., "error": ...}`, where `value` is null if there
        /// is an error and `error` is null if there is none.
        impl Serialize for Config {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(None)?;
                $(map.serialize_entry(stringify!($name), &Entry::of(&self.values().$name))?;)*
                map.end()
            }
        }
    };
}
settings!(define_serialize);

#[derive(serde::Serialize)]
struct Entry<'a, V> {
    value: Option<V>,
    origin: &'a Origin,
    error: Option<String>,
}

impl<'a, V> Entry<'a, V> {
    fn of<T: Shown<As = V>>(slot: &'a Slot<T>) -> Entry<'a, V> {
        Entry {
            value: slot.value.as_ref().ok().map(T::shown),
            origin: &slot.origin,
            error: slot.value.as_ref().err().map(ToString::to_string),
        }
    }
}

/// How a value is shown in a serialized configuration.
trait Shown {
    type As: Serialize;
    fn shown(&self) -> Self::As;
}

macro_rules! shown_as_they_are {
    ($($kind:ty),*) => {$(
        impl Shown for $kind {
            type As = $kind;

            fn shown(&self) -> $kind {
                self.clone()
            }
        }
    )*};
}
shown_as_they_are!(usize, bool, ByteSize, Vec<u16>, Option<String>);
shown_as_they_are!(
    CompatMode,
    DirectIo,
    RemoteIoBackend,
    RemoteReactorDispatch,
    LogLevel
);

/// Seconds.
impl Shown for Duration {
    type As = f64;

    fn shown(&self) -> f64 {
        self.as_secs_f64()
    }
}

/// Without name and password.
impl Shown for Option<ProxyUrl> {
    type As = Option<String>;

    fn shown(&self) -> Option<String> {
        self.as_ref().map(ProxyUrl::to_string)
    }
}

impl Shown for Option<PathBuf> {
    type As = Option<String>;

    fn shown(&self) -> Option<String> {
        self.as_ref()
            .map(|path| path.to_string_lossy().into_owned())
    }
}
