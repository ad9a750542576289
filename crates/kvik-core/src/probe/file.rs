//! Facts about one file.

use std::fmt;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use nix::sys::stat::{FileStat, SFlag, major, minor};

use super::{Fact, FileSystem, LABEL, Support, udev};
use crate::block_device::{BlockDevice, block_device_of};
use crate::error::{Error, Op, Result};
use crate::file_ref::{FileRef, cached_size, file_type, open_reading};
use crate::os;
use crate::page_cache::{PageCacheInfo, page_cache_info};

/// Facts about one file that decide by which way its bytes can move.
///
/// # Example: what lies behind a path
/// ```
/// let file = kvik_core::FileProbe::of("/proc/self/exe")?;
/// println!("{file}");
/// assert_eq!(file.kind, kvik_core::FileKind::Regular);
/// # Ok::<(), kvik_core::Error>(())
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct FileProbe {
    /// Path or descriptor, as it was given.
    pub place: String,
    /// What kind of file it is.
    pub kind: FileKind,
    /// Size in bytes, of a block device its capacity.
    pub size: Fact<u64>,
    /// The file system it lies on.
    pub file_system: Fact<FileSystem>,
    /// The alignment that direct I/O asks for, as `statx(2)` reports it (Linux 6.1).
    pub direct_alignment: Fact<DirectAlignment>,
    /// Whether it can be opened for reading past the page cache (`O_DIRECT`).
    pub direct_opens: Support,
    /// The block device below it.
    pub block_device: Fact<BlockDevice>,
    /// Whether udev has a record of that device (of the partition, where there is one) that names the file system: cuFile
    /// registers no file without it.
    pub udev_record: Support,
    /// How much of it is in the page cache.
    pub cached: Fact<PageCacheInfo>,
}

/// What kind of file something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "kebab-case")
)]
#[non_exhaustive]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A folder.
    Directory,
    /// A block device.
    BlockDevice,
    /// A character device, a terminal for instance.
    CharacterDevice,
    /// A FIFO or pipe.
    Fifo,
    /// A socket.
    Socket,
    /// Something else that has a descriptor, an epoll set for instance.
    Other,
}

/// The alignment in bytes that direct I/O asks for on one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct DirectAlignment {
    /// Of the address in memory.
    pub memory: u32,
    /// Of offset and length in the file.
    pub offset: u32,
    /// Of offset and length when reading, where the file system asks for less there than when writing (Linux 6.16).
    pub read_offset: Option<u32>,
}

impl FileProbe {
    /// Collects the facts about a file. Only regular files and block devices are opened for reading: opening others can
    /// wait or have effects.
    ///
    /// # Errors
    /// `NotFound`, `PermissionDenied` and what else `stat(2)` reports. All that fails later is an absent fact with its reason.
    pub fn of<'a>(file: impl Into<FileRef<'a>>) -> Result<FileProbe> {
        let file = file.into();
        let stat = file.stat()?;
        let kind = FileKind::of(file_type(&stat));
        let seen = file.look().map_err(|error| reason(&error));
        let fd = seen.as_ref().map(AsFd::as_fd).map_err(String::as_str);
        Ok(FileProbe {
            place: file.place().to_string(),
            kind,
            size: size(&file, kind, stat.st_size),
            file_system: with(fd, FileSystem::of),
            direct_alignment: with(fd, direct_alignment),
            direct_opens: direct_opens(&file, kind),
            udev_record: udev_record(&stat, kind),
            block_device: from_result(block_device_of(file)),
            cached: match kind {
                FileKind::Regular | FileKind::BlockDevice => {
                    from_result(page_cache_info(file, 0, 0))
                }
                _ => Fact::absent(format!("a {kind} has no pages in the page cache")),
            },
        })
    }
}

fn with<T>(
    fd: Result<BorrowedFd<'_>, &str>,
    ask: impl FnOnce(BorrowedFd<'_>) -> Fact<T>,
) -> Fact<T> {
    match fd {
        Ok(fd) => ask(fd),
        Err(why) => Fact::absent(why),
    }
}

fn from_result<T>(result: Result<T>) -> Fact<T> {
    match result {
        Ok(value) => Fact::Known(value),
        Err(error) => Fact::absent(reason(&error)),
    }
}

/// The error's clause alone: operation and place are known to whoever reads the fact.
fn reason(error: &Error) -> String {
    let text = error.to_string();
    let known = match error.place() {
        Some(place) => format!("{} {place}: ", error.op()),
        None => format!("{}: ", error.op()),
    };
    text.strip_prefix(&known).unwrap_or(&text).to_owned()
}

fn size(file: &FileRef<'_>, kind: FileKind, by_stat: i64) -> Fact<u64> {
    match kind {
        FileKind::Regular => Fact::Known(u64::try_from(by_stat).unwrap_or(0)),
        FileKind::BlockDevice => from_result(
            file.open(Op::Inspect)
                .and_then(|opened| cached_size(opened.as_fd(), Op::Inspect, &file.place())),
        ),
        _ => Fact::absent(format!("a {kind} has no size")),
    }
}

fn direct_alignment(fd: BorrowedFd<'_>) -> Fact<DirectAlignment> {
    match os::statx(fd) {
        Ok(facts) => match facts.direct {
            None => Fact::absent("not reported by this kernel or file system"),
            Some((0, _) | (_, 0)) => Fact::absent("direct I/O is not possible on this file"),
            Some((memory, offset)) => Fact::Known(DirectAlignment {
                memory,
                offset,
                read_offset: facts.direct_read,
            }),
        },
        Err(errno) => Fact::absent(format!("statx: {errno}")),
    }
}

fn direct_opens(file: &FileRef<'_>, kind: FileKind) -> Support {
    if !matches!(kind, FileKind::Regular | FileKind::BlockDevice) {
        return Support::no(format!("it is a {kind}"));
    }
    let opened: std::io::Result<File> = match file {
        FileRef::Path(path) => open_reading(path, libc::O_DIRECT),
        // The same file anew, also when it has no name any more.
        FileRef::Fd(fd) => {
            let path = PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()));
            open_reading(Path::new(&path), libc::O_DIRECT)
        }
    };
    match opened {
        Ok(_) => Support::Yes,
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            Support::no("the file system does not offer it (EINVAL)")
        }
        Err(error) => Support::no(reason(&Error::io(Op::Open, error))),
    }
}

/// Looked for by the number of the device itself, as cuFile does; file systems without a device have the major number 0.
fn udev_record(stat: &FileStat, kind: FileKind) -> Support {
    let device = match kind {
        FileKind::BlockDevice => stat.st_rdev,
        _ => stat.st_dev,
    };
    match (major(device), minor(device)) {
        (0, _) => Support::no("the file system has no block device of its own"),
        numbers => udev::record(Path::new("/"), numbers),
    }
}

impl FileKind {
    fn of(bits: SFlag) -> FileKind {
        match bits {
            SFlag::S_IFREG => FileKind::Regular,
            SFlag::S_IFDIR => FileKind::Directory,
            SFlag::S_IFBLK => FileKind::BlockDevice,
            SFlag::S_IFCHR => FileKind::CharacterDevice,
            SFlag::S_IFIFO => FileKind::Fifo,
            SFlag::S_IFSOCK => FileKind::Socket,
            _ => FileKind::Other,
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            FileKind::Regular => "regular file",
            FileKind::Directory => "directory",
            FileKind::BlockDevice => "block device",
            FileKind::CharacterDevice => "character device",
            FileKind::Fifo => "FIFO",
            FileKind::Socket => "socket",
            FileKind::Other => "file of another kind",
        })
    }
}

impl fmt::Display for DirectAlignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory {}, offset {} bytes", self.memory, self.offset)?;
        match self.read_offset {
            Some(read) => write!(f, " (reading {read})"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for FileProbe {
    /// A table of labels and values, one fact a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:LABEL$}{}", "file", self.place)?;
        writeln!(f, "{:LABEL$}{}", "kind", self.kind)?;
        writeln!(f, "{:LABEL$}{}", "size, bytes", self.size)?;
        writeln!(f, "{:LABEL$}{}", "file system", self.file_system)?;
        writeln!(
            f,
            "{:LABEL$}{}",
            "direct I/O alignment", self.direct_alignment
        )?;
        writeln!(f, "{:LABEL$}{}", "direct I/O opens", self.direct_opens)?;
        writeln!(f, "{:LABEL$}{}", "block device", self.block_device)?;
        writeln!(f, "{:LABEL$}{}", "record of udev", self.udev_record)?;
        write!(f, "{:LABEL$}{}", "cached", self.cached)
    }
}
