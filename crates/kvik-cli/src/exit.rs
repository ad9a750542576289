//! Exit codes: the one table behind `kvik --help`, the README and the mapping from errors.

use std::fmt::Write;

use kvik::ErrorKind;

/// How a run of `kvik` ended. The numbers are stable: a release may add one, never change one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// Everything asked for was done.
    Ok = 0,
    /// An I/O error, or any failure that has no code of its own.
    Failed = 1,
    /// An argument or a setting is wrong.
    Usage = 2,
    /// A file or directory does not exist.
    NotFound = 3,
    /// Permission denied.
    Denied = 4,
    /// The bytes cannot be trusted.
    Integrity = 5,
    /// No room left for the bytes.
    NoSpace = 6,
    /// This machine, file system or kind of file cannot do it.
    Unsupported = 7,
    /// Stopped by Ctrl-C (SIGINT): 128 + 2, as shells report it.
    Interrupted = 130,
    /// Stopped by SIGTERM: 128 + 15.
    Terminated = 143,
}

impl Exit {
    /// Every code, in the order of the table.
    pub const ALL: &'static [Exit] = &[
        Exit::Ok,
        Exit::Failed,
        Exit::Usage,
        Exit::NotFound,
        Exit::Denied,
        Exit::Integrity,
        Exit::NoSpace,
        Exit::Unsupported,
        Exit::Interrupted,
        Exit::Terminated,
    ];

    /// The number that the process exits with.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }

    /// What the number means, in a few words.
    #[must_use]
    pub fn meaning(self) -> &'static str {
        match self {
            Exit::Ok => "done (also when the reader of a pipe went away early)",
            Exit::Failed => "failed: I/O error, or anything without a code of its own",
            Exit::Usage => {
                "wrong arguments, a wrong setting, or a call that cannot make sense; nothing was changed"
            }
            Exit::NotFound => "no such file or directory",
            Exit::Denied => "permission denied",
            Exit::Integrity => {
                "integrity: the source changed or ended early, or --verify found a difference"
            }
            Exit::NoSpace => "no space left, or over quota",
            Exit::Unsupported => "not supported by this machine, file system or kind of file",
            Exit::Interrupted => "stopped by Ctrl-C (SIGINT)",
            Exit::Terminated => "stopped by SIGTERM",
        }
    }

    /// The table as plain text, one line a code, two spaces in.
    #[must_use]
    pub fn table() -> String {
        let mut text = String::new();
        for exit in Exit::ALL {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {:>3}  {}", exit.code(), exit.meaning());
        }
        text.truncate(text.trim_end().len());
        text
    }
}

impl From<ErrorKind> for Exit {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::NotFound => Exit::NotFound,
            ErrorKind::PermissionDenied => Exit::Denied,
            ErrorKind::Changed | ErrorKind::UnexpectedEof | ErrorKind::BadReply => Exit::Integrity,
            ErrorKind::StorageFull => Exit::NoSpace,
            ErrorKind::Misuse
            | ErrorKind::Config
            | ErrorKind::IsADirectory
            | ErrorKind::NotSeekable => Exit::Usage,
            ErrorKind::Unsupported | ErrorKind::GdsUnavailable | ErrorKind::RangeUnsupported => {
                Exit::Unsupported
            }
            _ => Exit::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_listed_once_and_in_ascending_order() {
        let codes: Vec<u8> = Exit::ALL.iter().map(|exit| exit.code()).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7, 130, 143]);
        assert_eq!(Exit::table().lines().count(), codes.len());
    }

    #[test]
    fn kinds_map_to_the_documented_codes() {
        for (kind, exit) in [
            (ErrorKind::NotFound, Exit::NotFound),
            (ErrorKind::PermissionDenied, Exit::Denied),
            (ErrorKind::Changed, Exit::Integrity),
            (ErrorKind::UnexpectedEof, Exit::Integrity),
            (ErrorKind::StorageFull, Exit::NoSpace),
            (ErrorKind::Config, Exit::Usage),
            (ErrorKind::Misuse, Exit::Usage),
            (ErrorKind::IsADirectory, Exit::Usage),
            (ErrorKind::Unsupported, Exit::Unsupported),
            (ErrorKind::GdsUnavailable, Exit::Unsupported),
            (ErrorKind::RangeUnsupported, Exit::Unsupported),
            (ErrorKind::BadReply, Exit::Integrity),
            (ErrorKind::Unreachable, Exit::Failed),
            (ErrorKind::Io, Exit::Failed),
            (ErrorKind::Internal, Exit::Failed),
        ] {
            assert_eq!(Exit::from(kind), exit, "{kind:?}");
        }
    }

    #[test]
    fn the_readme_carries_the_same_table() {
        let readme = include_str!("../README.md");
        for exit in Exit::ALL {
            let row = format!("| {} | {} |", exit.code(), exit.meaning());
            assert!(readme.contains(&row), "README.md lacks the row: {row}");
        }
    }
}
