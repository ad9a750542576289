//! A file as the host tools take it: by path or by an open descriptor.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::sys::stat::{FileStat, SFlag, fstat, stat};

use crate::error::{Error, ErrorKind, Op, Place, Result};
use crate::os;

/// A file by path or by open descriptor. A path is opened for reading; a descriptor is used as it is and stays open.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum FileRef<'a> {
    /// By path. Symbolic links are followed.
    Path(&'a Path),
    /// By descriptor.
    Fd(BorrowedFd<'a>),
}

impl<'a> FileRef<'a> {
    /// How errors name it.
    pub(crate) fn place(&self) -> Place {
        match self {
            FileRef::Path(path) => Place::from(*path),
            FileRef::Fd(fd) => Place::Descriptor(fd.as_raw_fd()),
        }
    }

    /// `stat(2)`, without opening anything.
    pub(crate) fn stat(&self) -> Result<FileStat> {
        let stat = match self {
            FileRef::Path(path) => stat(*path),
            FileRef::Fd(fd) => fstat(fd),
        };
        stat.map_err(|errno| Error::os(Op::Inspect, errno).at(&self.place()))
    }

    /// A descriptor to ask for facts that need no access to the contents: whatever kind of file it is, nothing happens to it.
    pub(crate) fn look(&self) -> Result<Opened<'a>> {
        match self {
            FileRef::Path(path) => open_reading(path, libc::O_PATH)
                .map(Opened::Ours)
                .map_err(|error| Error::io(Op::Inspect, error).at(&self.place())),
            FileRef::Fd(fd) => Ok(Opened::Theirs(*fd)),
        }
    }

    /// A descriptor for reading. Opening never waits: a FIFO without a writer opens at once.
    pub(crate) fn open(&self, op: Op) -> Result<Opened<'a>> {
        match self {
            FileRef::Path(path) => open_reading(path, 0)
                .map(Opened::Ours)
                .map_err(|error| Error::io(op, error).at(&self.place())),
            FileRef::Fd(fd) => Ok(Opened::Theirs(*fd)),
        }
    }
}

/// Opens for reading with `flags` besides, closed on exec, never waiting and never becoming the controlling terminal.
pub(crate) fn open_reading(path: &Path, flags: libc::c_int) -> std::io::Result<File> {
    File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | flags)
        .open(path)
}

/// The size in bytes of a file that has pages in the page cache: a regular file or a block device.
pub(crate) fn cached_size(fd: BorrowedFd<'_>, op: Op, place: &Place) -> Result<u64> {
    let stat = fstat(fd).map_err(|errno| Error::os(op, errno).at(place))?;
    let refused = |kind, why| Err(Error::new(kind, op, why).at(place));
    match file_type(&stat) {
        SFlag::S_IFREG => Ok(u64::try_from(stat.st_size).unwrap_or(0)),
        SFlag::S_IFBLK => os::block_device_size(fd).map_err(|errno| Error::os(op, errno).at(place)),
        SFlag::S_IFDIR => refused(
            ErrorKind::IsADirectory,
            "a directory has no pages in the page cache",
        ),
        SFlag::S_IFIFO | SFlag::S_IFSOCK => refused(
            ErrorKind::NotSeekable,
            "a FIFO or socket has no pages in the page cache",
        ),
        _ => refused(
            ErrorKind::Unsupported,
            "a character device has no pages in the page cache",
        ),
    }
}

/// The type bits of the mode.
pub(crate) fn file_type(stat: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT
}

/// What [`FileRef::open`] gives: a descriptor of ours, closed on drop, or the caller's.
#[derive(Debug)]
pub(crate) enum Opened<'a> {
    Ours(File),
    Theirs(BorrowedFd<'a>),
}

impl AsFd for Opened<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Opened::Ours(file) => file.as_fd(),
            Opened::Theirs(fd) => *fd,
        }
    }
}

impl<'a> From<&'a Path> for FileRef<'a> {
    fn from(path: &'a Path) -> Self {
        FileRef::Path(path)
    }
}

impl<'a> From<&'a PathBuf> for FileRef<'a> {
    fn from(path: &'a PathBuf) -> Self {
        FileRef::Path(path)
    }
}

impl<'a> From<&'a str> for FileRef<'a> {
    fn from(path: &'a str) -> Self {
        FileRef::Path(Path::new(path))
    }
}

impl<'a> From<&'a String> for FileRef<'a> {
    fn from(path: &'a String) -> Self {
        FileRef::Path(Path::new(path))
    }
}

impl<'a> From<BorrowedFd<'a>> for FileRef<'a> {
    fn from(fd: BorrowedFd<'a>) -> Self {
        FileRef::Fd(fd)
    }
}

impl<'a> From<&'a OwnedFd> for FileRef<'a> {
    fn from(fd: &'a OwnedFd) -> Self {
        FileRef::Fd(fd.as_fd())
    }
}

impl<'a> From<&'a File> for FileRef<'a> {
    fn from(file: &'a File) -> Self {
        FileRef::Fd(file.as_fd())
    }
}
