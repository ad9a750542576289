//! Who said a value.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Who said a value, weakest first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// Nobody: the table's default.
    Default,
    /// A library on top of kvik, by [`Config::suggest`](crate::Config::suggest).
    Suggestion,
    /// The settings file with this path.
    UserFile(Arc<Path>),
    /// The environment variable with this name.
    Environment(&'static str),
    /// A layer given to [`Config::resolve`](crate::Config::resolve).
    Code,
    /// The program, for the whole process, by [`Config::set_process`](crate::Config::set_process).
    Process,
    /// A context of this thread, by [`Config::enter`](crate::Config::enter).
    Context,
    /// The options of a handle, by [`Config::for_handle`](crate::Config::for_handle).
    Handle,
    /// The options of a call, by [`Config::with`](crate::Config::with).
    Call,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.pad("default"),
            Origin::Suggestion => f.pad("suggestion"),
            Origin::UserFile(path) => f.pad(&format!("file {}", path.display())),
            Origin::Environment(variable) => f.pad(&format!("environment {variable}")),
            Origin::Code => f.pad("code"),
            Origin::Process => f.pad("process"),
            Origin::Context => f.pad("context"),
            Origin::Handle => f.pad("handle"),
            Origin::Call => f.pad("call"),
        }
    }
}
