//! What can go wrong in a benchmark, and which of it ends the run: our own word until it becomes the one error of all crates.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use kvik::{ErrorKind, Op, Place};

pub(crate) type Outcome<T> = Result<T, Trouble>;

#[derive(Debug)]
pub(crate) enum Trouble {
    /// The caller's stop flag was raised.
    Stopped,
    /// Bytes that are not what they must be: never a slow case, always the end of the run.
    Mismatch {
        case: String,
        contender: String,
        position: u64,
    },
    /// The options contradict each other or the machine.
    Misuse(String),
    /// Less room than the smallest run needs.
    NoRoom {
        directory: PathBuf,
        free: u64,
        needed: u64,
    },
    /// A call of ours failed. Within a case it is the reason why the case could not run.
    Io {
        doing: String,
        path: PathBuf,
        source: io::Error,
    },
    /// A case cannot be run here for a reason that is no failure.
    Unfit(String),
    /// kvik failed. Within a case it is the reason why the case could not run.
    Kvik(kvik::Error),
}

impl Trouble {
    /// Whether the run goes on with the next case.
    pub(crate) fn ends_only_the_case(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::Kvik(_) | Self::Unfit(_))
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("the benchmark was stopped; its files are removed"),
            Self::Mismatch {
                case,
                contender,
                position,
            } => write!(
                f,
                "case {case}: {contender} brought a wrong byte at position {position}; no figure of this run is to be used, please report it"
            ),
            Self::Misuse(what) | Self::Unfit(what) => f.write_str(what),
            Self::NoRoom {
                directory,
                free,
                needed,
            } => write!(
                f,
                "{} has {free} bytes free and the smallest benchmark needs {needed}; name another folder",
                directory.display()
            ),
            Self::Io {
                doing,
                path,
                source,
            } => write!(f, "{doing} {}: {source}", path.display()),
            Self::Kvik(error) => write!(f, "{error}"),
        }
    }
}

impl From<Trouble> for kvik::Error {
    fn from(trouble: Trouble) -> Self {
        let (kind, op) = match &trouble {
            Trouble::Stopped => (ErrorKind::Cancelled, Op::Inspect),
            Trouble::Mismatch { .. } => (ErrorKind::Internal, Op::Read),
            Trouble::Misuse(_) => (ErrorKind::Misuse, Op::Configure),
            Trouble::NoRoom { .. } => (ErrorKind::StorageFull, Op::Inspect),
            Trouble::Unfit(_) => (ErrorKind::Unsupported, Op::Inspect),
            Trouble::Io { .. } => (ErrorKind::Io, Op::Inspect),
            Trouble::Kvik(_) => (ErrorKind::Internal, Op::Inspect),
        };
        match trouble {
            Trouble::Kvik(error) => error,
            Trouble::Io { path, source, .. } => {
                kvik::Error::io(op, source).at(&Place::from(path.as_path()))
            }
            trouble => kvik::Error::new(kind, op, trouble.to_string()),
        }
    }
}

impl From<kvik::Error> for Trouble {
    fn from(error: kvik::Error) -> Self {
        Self::Kvik(error)
    }
}

/// Gives an `io::Error` the sentence that it lacks.
pub(crate) trait Doing<T> {
    fn doing(self, doing: &str, path: &Path) -> Outcome<T>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, doing: &str, path: &Path) -> Outcome<T> {
        self.map_err(|source| Trouble::Io {
            doing: doing.to_owned(),
            path: path.to_owned(),
            source,
        })
    }
}
