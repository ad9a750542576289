//! One error for all doors: what was being done, to what, how far it came, why it stopped, and what to do next.

mod kind;
mod place;

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use nix::errno::Errno;

pub use kind::ErrorKind;
pub use place::{Op, Place};

/// `Result` with the [`Error`] of all kvik crates.
pub type Result<T, E = Error> = std::result::Result<T, E>;

type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// The error of all kvik crates.
///
/// Its text names the operation, the place, the range in bytes, how many bytes of it were moved, the cause, and, where
/// there is one, the next step; [`source`](std::error::Error::source) carries the cause itself. It is cheap to clone,
/// so that the result of a [`Pending`](crate::Pending) can be asked for again.
///
/// # Example: what a missing file says
/// ```
/// let error = kvik_core::FileHandle::open("missing.bin").unwrap_err();
/// assert_eq!(error.kind(), kvik_core::ErrorKind::NotFound);
/// assert_eq!(error.to_string(), "open missing.bin: No such file or directory (ENOENT)");
/// ```
#[derive(Clone)]
pub struct Error(Box<Facts>);

#[derive(Clone)]
struct Facts {
    kind: ErrorKind,
    op: Op,
    place: Option<Place>,
    range: Option<Range<u64>>,
    done: u64,
    why: Cow<'static, str>,
    cause: Option<Cause>,
    errno: Option<Errno>,
    refused: bool,
    abandoned: bool,
}

impl Error {
    /// An error of `kind` during `op`, for the reason `why`: a clause that begins in lower case and ends without a stop.
    #[must_use]
    pub fn new(kind: ErrorKind, op: Op, why: impl Into<Cow<'static, str>>) -> Error {
        Error(Box::new(Facts {
            kind,
            op,
            place: None,
            range: None,
            done: 0,
            why: why.into(),
            cause: None,
            errno: None,
            refused: false,
            abandoned: false,
        }))
    }

    /// The error for an `errno` of the operating system.
    #[must_use]
    pub(crate) fn os(op: Op, errno: Errno) -> Error {
        let why = format!("{} ({errno:?})", errno.desc());
        let mut error = Error::new(kind::of_errno(errno), op, why);
        error.0.errno = Some(errno);
        error.because(io::Error::from(errno))
    }

    /// The error for a way of moving bytes that the kernel refuses, though another way may be open: direct I/O on a file
    /// system without it, a request that a ring does not take.
    #[must_use]
    pub(crate) fn refused(op: Op, errno: Errno) -> Error {
        let mut error = Error::os(op, errno);
        error.0.kind = ErrorKind::Unsupported;
        error.0.refused = true;
        error
    }

    /// Whether it was made by [`refused`](Error::refused): doing the same by another engine makes sense.
    pub(crate) fn is_refusal(&self) -> bool {
        self.0.refused
    }

    /// The same for memory that somebody outside of this process's reach may touch still: it must stay where it is.
    #[must_use]
    pub(crate) fn abandoned(mut self) -> Error {
        self.0.abandoned = true;
        self
    }

    /// Whether it was made by [`abandoned`](Error::abandoned).
    pub(crate) fn is_abandoned(&self) -> bool {
        self.0.abandoned
    }

    /// The error for an [`io::Error`] of the standard library.
    #[must_use]
    pub fn io(op: Op, cause: io::Error) -> Error {
        match cause.raw_os_error() {
            Some(code) => Error::os(op, Errno::from_raw(code)),
            None => {
                let kind = match cause.kind() {
                    io::ErrorKind::InvalidInput => ErrorKind::Misuse,
                    io::ErrorKind::UnexpectedEof => ErrorKind::UnexpectedEof,
                    io::ErrorKind::TimedOut => ErrorKind::TimedOut,
                    _ => ErrorKind::Io,
                };
                Error::new(kind, op, cause.to_string()).because(cause)
            }
        }
    }

    /// Says during which operation it arose, where the one who made it did not know.
    #[must_use]
    pub(crate) fn during(mut self, op: Op) -> Error {
        self.0.op = op;
        self
    }

    /// Names the place, unless one is named already.
    #[must_use]
    pub fn at(mut self, place: &Place) -> Error {
        self.0.place.get_or_insert_with(|| place.clone());
        self
    }

    /// Names the range of the whole call and how many of its bytes, counted from its start, were moved.
    #[must_use]
    pub fn within(mut self, range: Range<u64>, done: u64) -> Error {
        self.0.range = Some(range);
        self.0.done = done;
        self
    }

    /// Attaches the cause, which [`source`](std::error::Error::source) gives back.
    #[must_use]
    pub fn because(mut self, cause: impl std::error::Error + Send + Sync + 'static) -> Error {
        self.0.cause = Some(Arc::new(cause));
        self
    }

    /// The same for a cause that others have, too.
    #[must_use]
    pub(crate) fn because_of(mut self, cause: Arc<dyn std::error::Error + Send + Sync>) -> Error {
        self.0.cause = Some(cause);
        self
    }

    /// What a program may decide on.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What was being done.
    #[must_use]
    pub fn op(&self) -> Op {
        self.0.op
    }

    /// Where, if it has a place.
    #[must_use]
    pub fn place(&self) -> Option<&Place> {
        self.0.place.as_ref()
    }

    /// The range of the whole call, in bytes from the start of the file.
    #[must_use]
    pub fn range(&self) -> Option<Range<u64>> {
        self.0.range.clone()
    }

    /// How many bytes from the start of the range were moved before it stopped.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.0.done
    }

    /// The `errno` of the operating system, if that is where the error came from.
    #[must_use]
    pub fn os_error(&self) -> Option<i32> {
        self.0.errno.map(|errno| errno as i32)
    }

    /// The next step that the text ends with, for the kinds that have one.
    #[must_use]
    pub fn advice(&self) -> Option<&'static str> {
        self.0.kind.advice()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.op)?;
        if let Some(place) = &self.0.place {
            write!(f, " {place}")?;
        }
        if let Some(range) = &self.0.range {
            write!(f, " {}..{}", range.start, range.end)?;
            if self.0.done > 0 {
                write!(f, " stopped after {} bytes", self.0.done)?;
            }
        }
        write!(f, ": {}", self.0.why)?;
        match self.advice() {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({:?}: {self})", self.0.kind)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0
            .cause
            .as_deref()
            .map(|cause| cause as &(dyn std::error::Error + 'static))
    }
}

impl From<kvik_config::ConfigError> for Error {
    fn from(cause: kvik_config::ConfigError) -> Error {
        Error::new(ErrorKind::Config, Op::Configure, cause.to_string()).because(cause)
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        let kind = kind::io_kind_of(error.kind());
        io::Error::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;
    use std::path::Path;

    #[track_caller]
    fn check(error: Error, text: &str) {
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn texts_say_what_where_how_far_why_and_the_next_step() {
        let file = Place::from(Path::new("data/a.bin"));
        check(
            Error::os(Op::Read, Errno::EIO)
                .at(&file)
                .within(8_388_608..12_582_912, 1_048_576),
            "read data/a.bin 8388608..12582912 stopped after 1048576 bytes: I/O error (EIO)",
        );
        check(
            Error::os(Op::Write, Errno::ENOSPC)
                .at(&file)
                .within(0..10, 0),
            "write data/a.bin 0..10: No space left on device (ENOSPC); free space or raise the quota, then run it again",
        );
        check(
            Error::os(Op::Open, Errno::EMFILE).at(&file),
            "open data/a.bin: Too many open files (EMFILE); close files or raise the limit (ulimit -n)",
        );
        check(
            Error::new(
                ErrorKind::Misuse,
                Op::Read,
                "the task size must be positive",
            )
            .at(&Place::Descriptor(7)),
            "read descriptor 7: the task size must be positive",
        );
    }

    #[test]
    fn the_cause_is_kept_and_found_by_source() {
        let error = Error::os(Op::Open, Errno::ENOENT);
        let cause = error
            .source()
            .and_then(|cause| cause.downcast_ref::<io::Error>());
        assert_eq!(cause.map(io::Error::kind), Some(io::ErrorKind::NotFound));
        assert_eq!(error.os_error(), Some(2));
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::NotFound);
    }
}
