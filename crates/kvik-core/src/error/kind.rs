//! The kinds of errors: what a program may decide on, and what each advises.

use std::fmt;
use std::io;

use nix::errno::Errno;

/// What went wrong, as far as a program may want to decide on it. The text of the [`Error`](crate::Error) has the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No such file or object. Nothing was moved.
    NotFound,
    /// The operating system or the server refuses it to this user, or the handle was not opened for it.
    PermissionDenied,
    /// The file was to be created anew and is there already.
    AlreadyExists,
    /// A directory was named where a file is needed.
    IsADirectory,
    /// A FIFO, socket or terminal: it has no offsets to read at.
    NotSeekable,
    /// The data ended before the range asked for did.
    UnexpectedEof,
    /// The file system, the quota or the file size limit is exhausted.
    StorageFull,
    /// The limit of open descriptors of the process or the machine is reached.
    TooManyOpenFiles,
    /// Memory, or a limit on locked memory or threads, is exhausted.
    OutOfMemory,
    /// The deadline of the call passed. What had not started was cancelled.
    TimedOut,
    /// The transfer was cancelled by its owner.
    Cancelled,
    /// The object changed while it was being read; the bytes in the target are not to be used.
    Changed,
    /// The kernel, the file system or this build cannot do it.
    Unsupported,
    /// The server sends no ranges of the object, and all of it is more than is read at once.
    RangeUnsupported,
    /// The server could not be reached, or the connection broke, more often than is tried.
    Unreachable,
    /// The server's certificate does not prove who it is; the text names the check that failed.
    Untrusted,
    /// The server refuses or fails, and says so; the text has its status and its reason.
    Refused,
    /// What the server sent is no answer to what was asked. None of it is in the target, unless an error counts it.
    BadReply,
    /// cuFile was required and is not usable here; the text names the check that failed.
    GdsUnavailable,
    /// The arguments contradict each other. Fix the call; trying again cannot help.
    Misuse,
    /// A listener of statistics called back into kvik, which it must not. Nothing was moved.
    InListener,
    /// A setting holds a value that cannot be used; the text names it and where it came from.
    Config,
    /// The transfer, pool or device belongs to the process from which this one was forked.
    Forked,
    /// The CUDA driver refused or failed; the text has its name for the reason.
    Device,
    /// A storage device or the operating system reports a failure that has no kind of its own.
    Io,
    /// A fault of kvik itself, a panic in a worker for instance. Please report it.
    Internal,
}

impl ErrorKind {
    /// The next step, where there is one for the whole kind.
    pub(super) fn advice(self) -> Option<&'static str> {
        Some(match self {
            ErrorKind::IsADirectory => "name a file inside it",
            ErrorKind::StorageFull => "free space or raise the quota, then run it again",
            ErrorKind::TooManyOpenFiles => "close files or raise the limit (ulimit -n)",
            ErrorKind::OutOfMemory => "free memory or raise the limit, then run it again",
            ErrorKind::Changed => "read it again once nobody writes to it",
            ErrorKind::RangeUnsupported => "fetch the whole object first, by another program",
            ErrorKind::GdsUnavailable => "set `compat_mode` to `auto` or `on`",
            ErrorKind::Forked => "open files and start transfers after the fork",
            ErrorKind::Internal => "please report this as a bug of kvik",
            _ => return None,
        })
    }
}

impl fmt::Display for ErrorKind {
    /// The name of the kind, as in the code.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The kind for an `errno` of the operating system.
pub(super) fn of_errno(errno: Errno) -> ErrorKind {
    match errno {
        Errno::ENOENT | Errno::ENOTDIR => ErrorKind::NotFound,
        Errno::EACCES | Errno::EPERM | Errno::EROFS | Errno::EBADF => ErrorKind::PermissionDenied,
        Errno::EEXIST => ErrorKind::AlreadyExists,
        Errno::EISDIR => ErrorKind::IsADirectory,
        Errno::ESPIPE | Errno::ENXIO => ErrorKind::NotSeekable,
        Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG => ErrorKind::StorageFull,
        Errno::EMFILE | Errno::ENFILE => ErrorKind::TooManyOpenFiles,
        Errno::ENOMEM => ErrorKind::OutOfMemory,
        Errno::ETIMEDOUT => ErrorKind::TimedOut,
        Errno::EOPNOTSUPP | Errno::ENOSYS => ErrorKind::Unsupported,
        Errno::EINVAL | Errno::ENAMETOOLONG | Errno::ELOOP => ErrorKind::Misuse,
        _ => ErrorKind::Io,
    }
}

/// The nearest kind of the standard library.
pub(super) fn io_kind_of(kind: ErrorKind) -> io::ErrorKind {
    match kind {
        ErrorKind::NotFound => io::ErrorKind::NotFound,
        ErrorKind::PermissionDenied => io::ErrorKind::PermissionDenied,
        ErrorKind::AlreadyExists => io::ErrorKind::AlreadyExists,
        ErrorKind::IsADirectory => io::ErrorKind::IsADirectory,
        ErrorKind::NotSeekable => io::ErrorKind::NotSeekable,
        ErrorKind::UnexpectedEof => io::ErrorKind::UnexpectedEof,
        ErrorKind::StorageFull => io::ErrorKind::StorageFull,
        ErrorKind::OutOfMemory => io::ErrorKind::OutOfMemory,
        ErrorKind::TimedOut => io::ErrorKind::TimedOut,
        ErrorKind::Unsupported | ErrorKind::GdsUnavailable | ErrorKind::RangeUnsupported => {
            io::ErrorKind::Unsupported
        }
        ErrorKind::Unreachable => io::ErrorKind::NotConnected,
        ErrorKind::BadReply => io::ErrorKind::InvalidData,
        ErrorKind::Misuse | ErrorKind::Config => io::ErrorKind::InvalidInput,
        _ => io::ErrorKind::Other,
    }
}
