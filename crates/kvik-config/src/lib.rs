//! Settings of kvik: what somebody said, what it means, and who said it.
//!
//! A [`Layer`] is what one source said. A [`Config`] is what it all means: immutable, with one value, or one error, and one
//! [`Origin`] per [`Key`]. Later layers win:
//!
//! ```text
//! default < suggestion < user file < environment < process < context < handle < call
//!           '---------------- Config::current() -----------------'   for_handle()  with()
//! ```
//!
//! # Example: from layers to values
//!
//! ```
//! use kvik_config::{ByteSize, Config, Key, Layer, Origin};
//!
//! let config = Config::resolve([
//!     Layer::from_vars([("KVIKIO_NTHREADS", "4"), ("KVIK_TASK_SIZE", "1MiB")]),
//!     Layer::new().task_size(ByteSize::mib(8)),
//! ])?;
//! assert_eq!(config.num_threads()?, 4);
//! assert_eq!(config.task_size()?, ByteSize::mib(8));
//! assert_eq!(config.origin(Key::NumThreads), Origin::Environment("KVIKIO_NTHREADS"));
//! # Ok::<(), kvik_config::ConfigError>(())
//! ```
//!
//! # Rules
//!
//! - Nothing is half parsed: `4MiB` is four mebibytes, `4abc` an error.
//! - A bad value from the environment or the settings file is the error of the first use of *that key*; all others work.
//!   [`Config::problems`] lists what is wrong.
//! - Values said in code are checked at once, whole or not at all.
//! - The environment and the settings file are read once per process, at the first [`Config::current`]. What changes there
//!   later has no effect; [`Layer::from_env`] reads the environment again for who wants it.
//! - Reading settings takes no lock, so a child process forked at any moment can go on reading them.
//!
//! # Not here
//!
//! What a setting does: that is up to the crates that ask. Credentials: they are not settings of ours, though [`variable`]
//! reads the environment for those who look for them.

#![forbid(unsafe_code)]

mod config;
mod context;
mod cores;
mod env;
mod error;
mod file;
mod key;
mod layer;
mod nearest;
mod origin;
mod parse;
mod process;
mod proxy;
mod reference;
#[cfg(feature = "serde")]
mod serialize;
mod size;
mod value;

pub use config::Config;
pub use context::Context;
pub use env::variable;
pub use error::{ConfigError, ParseValueError};
pub use key::{Effect, Key};
pub use layer::Layer;
pub use nearest::nearest;
pub use origin::Origin;
pub use proxy::ProxyUrl;
pub use reference::reference;
pub use size::ByteSize;
pub use value::{CompatMode, DirectIo, LogLevel, RemoteIoBackend, RemoteReactorDispatch};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
