//! A logical operation: what was asked, and what became of it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Who moved the bytes of an operation. The names are KvikIO's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Backend {
    /// A local file by system calls, whichever engine made them.
    Posix,
    /// A local file by cuFile.
    Gds,
    /// A mapped file.
    Mmap,
    /// An object behind HTTP(S), S3 among them.
    RemoteHttp,
    /// A file behind WebHDFS.
    RemoteHdfs,
}

impl Backend {
    /// Every backend, in the order in which totals list them.
    pub const ALL: &[Backend] = &[
        Backend::Posix,
        Backend::Gds,
        Backend::Mmap,
        Backend::RemoteHttp,
        Backend::RemoteHdfs,
    ];

    /// KvikIO's name: `POSIX`, `GDS`, `MMAP`, `REMOTE_HTTP` or `REMOTE_HDFS`.
    pub const fn name(self) -> &'static str {
        match self {
            Backend::Posix => "POSIX",
            Backend::Gds => "GDS",
            Backend::Mmap => "MMAP",
            Backend::RemoteHttp => "REMOTE_HTTP",
            Backend::RemoteHdfs => "REMOTE_HDFS",
        }
    }

    /// Position in [`ALL`](Backend::ALL).
    pub(crate) const fn index(self) -> usize {
        self as usize
    }

    /// How many there are, for arrays indexed by [`index`](Backend::index).
    pub(crate) const COUNT: usize = Backend::ALL.len();
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Which way the bytes went, seen from the caller. There is no third.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From storage into memory.
    Read,
    /// From memory to storage.
    Write,
}

impl Direction {
    /// `READ` or `WRITE`.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Read => "READ",
            Direction::Write => "WRITE",
        }
    }
}

/// Where the caller's memory is. Kinds of memory that both a CPU and a GPU reach may be told apart one day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Memory {
    /// Memory of the process.
    Host,
    /// Memory of a GPU.
    Device,
}

impl Memory {
    /// `HOST` or `DEVICE`.
    pub const fn name(self) -> &'static str {
        match self {
            Memory::Host => "HOST",
            Memory::Device => "DEVICE",
        }
    }
}

/// What a door says of an operation that starts.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// Who is to move the bytes.
    pub backend: Backend,
    /// Read or write.
    pub direction: Direction,
    /// Host or device.
    pub memory: Memory,
    /// The path or URL, without secrets.
    pub source: &'a Arc<str>,
    /// First byte asked for, from the start of the file or object.
    pub offset: u64,
    /// Bytes asked for.
    pub size: u64,
}

/// What one call of the user asked for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Operation {
    /// Unique in this process, never 0. Operations that nobody listened to have no number.
    pub id: u64,
    /// Who was to move the bytes when the operation started.
    pub backend: Backend,
    /// Read or write.
    pub direction: Direction,
    /// Host or device.
    pub memory: Memory,
    /// The path or URL, without secrets.
    pub source: Arc<str>,
    /// First byte asked for, from the start of the file or object.
    pub offset: u64,
    /// Bytes asked for.
    pub size: u64,
    /// When the operation started.
    pub start: Instant,
}

/// What became of an operation, or of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// Bytes moved. 0 when an operation failed, even if some bytes had arrived: a caller cannot use them. Those of a task count.
    pub bytes: u64,
    /// Whether the bytes were moved without an error. A count that is short at the end of the data is none, even where the
    /// caller asked for all or nothing and gets an error for it.
    pub ok: bool,
    /// When the operation was over. Never before its start.
    pub end: Instant,
}

impl Outcome {
    /// An operation that ends now. Of one that failed no byte counts.
    pub(crate) fn now(bytes: u64, ok: bool) -> Outcome {
        Outcome {
            bytes: if ok { bytes } else { 0 },
            ok,
            end: Instant::now(),
        }
    }

    /// How long `operation` took.
    pub fn duration(&self, operation: &Operation) -> Duration {
        self.since(operation.start)
    }

    /// The same for what started at `start`: a task.
    pub fn since(&self, start: Instant) -> Duration {
        self.end.saturating_duration_since(start)
    }
}

#[cfg(test)]
mod tests {
    use super::Backend;

    #[test]
    fn backends_have_the_names_kvikio_gives_them_and_stand_in_order() {
        let names: Vec<&str> = Backend::ALL.iter().map(|backend| backend.name()).collect();
        assert_eq!(
            names,
            ["POSIX", "GDS", "MMAP", "REMOTE_HTTP", "REMOTE_HDFS"]
        );
        for (position, backend) in Backend::ALL.iter().enumerate() {
            assert_eq!(backend.index(), position);
        }
    }
}
