//! What was being done when an error arose, and where.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use kvik_stats::Direction;

/// The operation during which an [`Error`](crate::Error) arose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Op {
    /// Opening a file.
    Open,
    /// Reading a range.
    Read,
    /// Writing a range.
    Write,
    /// Making written data durable.
    Sync,
    /// Setting the length of a file.
    SetLen,
    /// Asking for facts about a file or the machine.
    Inspect,
    /// Dropping the cached pages of a file.
    DropCache,
    /// Dropping the page cache of the machine.
    DropSystemCache,
    /// Getting memory from the system or a device.
    Allocate,
    /// Copying between the memories of host and device.
    Copy,
    /// Starting threads.
    Start,
    /// Resolving settings.
    Configure,
}

impl From<Direction> for Op {
    fn from(direction: Direction) -> Op {
        match direction {
            Direction::Read => Op::Read,
            Direction::Write => Op::Write,
        }
    }
}

/// Where an operation took place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Place {
    /// A file by its path.
    File(Arc<Path>),
    /// A file by its descriptor.
    Descriptor(i32),
    /// An object by its URL, without secrets.
    Url(Arc<str>),
    /// Memory of the process.
    Memory,
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Op::Open => "open",
            Op::Read => "read",
            Op::Write => "write",
            Op::Sync => "sync",
            Op::SetLen => "set the length of",
            Op::Inspect => "inspect",
            Op::DropCache => "drop the cache of",
            Op::DropSystemCache => "drop the system page cache",
            Op::Allocate => "allocate",
            Op::Copy => "copy",
            Op::Start => "start threads",
            Op::Configure => "settings",
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File(path) => plainly(f, &path.to_string_lossy()),
            Place::Url(url) => plainly(f, url),
            Place::Descriptor(fd) => write!(f, "descriptor {fd}"),
            Place::Memory => f.write_str("memory"),
        }
    }
}

/// Control characters are escaped: a name must not be able to forge a line of a log.
fn plainly(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    name.chars().try_for_each(|c| match c.is_control() {
        true => write!(f, "{}", c.escape_default()),
        false => write!(f, "{c}"),
    })
}

impl From<&Path> for Place {
    fn from(path: &Path) -> Place {
        Place::File(path.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_a_line_of_a_log() {
        let place = Place::from(Path::new("a\nb\x1b[2J"));
        assert_eq!(place.to_string(), "a\\nb\\u{1b}[2J");
        let place = Place::Url("http://a/\nb".into());
        assert_eq!(place.to_string(), "http://a/\\nb");
    }
}
