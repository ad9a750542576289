//! Making a handle of a file that somebody else has opened.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use crate::error::{Error, ErrorKind, Op, Place, Result};
use crate::open::{self, Access, Opened};
use crate::options::OpenOptions;

/// Makes a handle of the file behind `fd`, as the options say.
pub(crate) fn adopt(fd: OwnedFd, options: &OpenOptions) -> Result<Opened> {
    let file = File::from(fd);
    let place = Place::Descriptor(file.as_raw_fd());
    access(&file, options)
        .and_then(|access| {
            open::check(&file)?;
            let path = path(&file);
            open::open_at(&path, &Place::from(&*path), access, || Ok(file), options)
        })
        .map_err(|error| error.at(&place))
}

/// What the descriptor may be used for, or as much of it as the options ask for. Its flags stay as they are: others may use
/// the same open file.
fn access(file: &File, options: &OpenOptions) -> Result<Access> {
    let misuse = |why| Err(Error::new(ErrorKind::Misuse, Op::Open, why));
    let asks_to_make = options.create || options.create_new || options.mode.is_some();
    if asks_to_make || options.truncate || options.append {
        return misuse(
            "a file that is open already cannot be created, truncated or opened for append",
        );
    }
    let flags = fcntl(file, FcntlArg::F_GETFL).map_err(|errno| Error::os(Op::Open, errno))?;
    let flags = OFlag::from_bits_retain(flags);
    if flags.contains(OFlag::O_PATH) {
        return misuse("it was opened with O_PATH, which allows neither reading nor writing");
    }
    if flags.contains(OFlag::O_APPEND) {
        return misuse(
            "it was opened with O_APPEND, and then the kernel ignores offsets of writes",
        );
    }
    if flags.contains(OFlag::O_DIRECT) {
        return misuse(
            "it was opened with O_DIRECT; without it, kvik goes past the page cache where that is \
             wished for and possible",
        );
    }
    let mode = flags & OFlag::O_ACCMODE;
    let there = Access {
        read: mode != OFlag::O_WRONLY,
        write: mode != OFlag::O_RDONLY,
    };
    if !options.read && !options.write {
        return Ok(there);
    }
    if (options.read && !there.read) || (options.write && !there.write) {
        return Err(Error::os(Op::Open, Errno::EACCES));
    }
    Ok(Access {
        read: options.read,
        write: options.write,
    })
}

/// Where the file was found, or is now; the kernel adds ` (deleted)` to the name of one that has none any more.
fn path(file: &File) -> PathBuf {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    // Without /proc there is no better name than the one that it would have there.
    std::fs::read_link(&link).unwrap_or_else(|_| Path::new(&link).to_owned())
}
