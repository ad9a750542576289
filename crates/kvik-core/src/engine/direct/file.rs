//! The way past the page cache that a handle may have besides its descriptor, and what becomes of it: opened at the first
//! use, given up at the first refusal, by all clones of the handle at once.

use std::borrow::Cow;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::sync::Arc;

use kvik_stats::names;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};

use super::split::Alignment;
use crate::error::{Error, ErrorKind, Op, Result};
use crate::once::Once;
use crate::os;
use crate::probe::FileSystem;

/// A file by two descriptors: the handle's own, and one with `O_DIRECT`.
#[derive(Debug)]
pub(crate) struct DirectFile {
    buffered: Arc<File>,
    direct: Once<Result<Direct, Refusal>>,
    // Set once, and then for good: a file system that refuses one direct call may refuse any.
    given_up: Once<Refusal>,
}

/// The second descriptor and what it asks for.
#[derive(Debug)]
pub(crate) struct Direct {
    pub(crate) file: Arc<File>,
    pub(crate) alignment: Alignment,
}

/// Why there is no way past the page cache.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    why: Cow<'static, str>,
    errno: Option<Errno>,
}

impl DirectFile {
    pub(crate) fn new(buffered: Arc<File>) -> DirectFile {
        DirectFile {
            buffered,
            direct: Once::new(),
            given_up: Once::new(),
        }
    }

    /// With a second descriptor that is open already, whatever it asks for.
    #[cfg(test)]
    pub(super) fn with(buffered: Arc<File>, direct: Direct) -> DirectFile {
        DirectFile {
            direct: Once::from(Ok(direct)),
            ..DirectFile::new(buffered)
        }
    }

    /// The handle's own descriptor.
    pub(crate) fn buffered(&self) -> &Arc<File> {
        &self.buffered
    }

    /// Where it ends now.
    ///
    /// # Errors
    /// `Io` if the operating system cannot tell.
    pub(crate) fn end(&self) -> Result<u64> {
        end(&self.buffered)
    }

    /// The second descriptor, unless it was given up. Opens it at the first call; if that fails, gives it up.
    pub(crate) fn direct(&self) -> Option<&Direct> {
        if self.given_up.get().is_some() {
            return None;
        }
        match self.opened() {
            Ok(direct) => Some(direct),
            Err(refusal) => {
                self.give_up(refusal.clone());
                None
            }
        }
    }

    /// The second descriptor, for somebody who takes nothing else.
    ///
    /// # Errors
    /// `Unsupported`, naming flag and file system, or what else keeps it from being opened.
    pub(crate) fn insist(&self) -> Result<&Direct> {
        let opened = self.opened().as_ref();
        opened.map_err(|refusal| self.error(Op::Open, refusal))
    }

    /// The file system refused a direct call: from now on everything goes through the page cache.
    pub(crate) fn demote(&self, op: Op, errno: Errno) {
        self.give_up(Refusal::of_call(op, errno));
    }

    /// The error of a refused call, for somebody who takes nothing else.
    pub(crate) fn refused(&self, op: Op, errno: Errno) -> Error {
        self.error(op, &Refusal::of_call(op, errno))
    }

    /// Why it was given up, if it was: a clause without a stop.
    pub(crate) fn given_up(&self) -> Option<&str> {
        self.given_up.get().map(|refusal| &*refusal.why)
    }

    fn opened(&self) -> &Result<Direct, Refusal> {
        self.direct.get_or_make(|| Direct::open(&self.buffered))
    }

    fn give_up(&self, refusal: Refusal) {
        // Of several that are refused at once, one tells.
        let why = refusal.why.clone();
        if self.given_up.set(refusal).1 {
            names::FALLBACKS.increment();
            names::FALLBACKS_OF_DIRECT.increment();
            let fd = self.buffered.as_raw_fd();
            tracing::debug!(fd, %why, "no direct I/O on this file any more; the page cache serves");
        }
    }

    fn error(&self, op: Op, refusal: &Refusal) -> Error {
        let file_system = FileSystem::of(self.buffered.as_fd());
        let name = file_system
            .known()
            .map_or("of an unknown kind", |file_system| &*file_system.name);
        let why = format!(
            "direct I/O (O_DIRECT) was asked for and cannot be had on this file, which lies on a file system {name}: {}",
            refusal.why
        );
        match refusal.errno {
            // What a file system has no way for is EINVAL; to a program that is the same as not supported.
            None | Some(Errno::EINVAL) => Error::new(ErrorKind::Unsupported, op, why),
            Some(errno) => Error::new(Error::os(op, errno).kind(), op, why),
        }
    }
}

impl Direct {
    fn open(buffered: &File) -> Result<Direct, Refusal> {
        let metadata = buffered.metadata().map_err(|cause| Refusal::io(&cause))?;
        let kind = metadata.file_type();
        // Opening anything else once more can wait or have effects.
        if !kind.is_file() && !kind.is_block_device() {
            return Err(Refusal::new("it is no regular file and no block device"));
        }
        let flags = fcntl(buffered, FcntlArg::F_GETFL).map_err(Refusal::of_open)?;
        let access = OFlag::from_bits_retain(flags) & OFlag::O_ACCMODE;
        let file = File::options()
            .read(access != OFlag::O_WRONLY)
            .write(access != OFlag::O_RDONLY)
            .custom_flags(libc::O_DIRECT | libc::O_NOCTTY)
            // The same file whatever has become of its name.
            .open(format!("/proc/self/fd/{}", buffered.as_raw_fd()))
            .map_err(|cause| Refusal::io(&cause))?;
        let alignment = alignment(&file, metadata.blksize())?;
        let file = Arc::new(file);
        Ok(Direct { file, alignment })
    }
}

impl Refusal {
    fn new(why: impl Into<Cow<'static, str>>) -> Refusal {
        Refusal {
            why: why.into(),
            errno: None,
        }
    }

    fn of_open(errno: Errno) -> Refusal {
        let why = match errno {
            Errno::EINVAL => "open does not take the flag (EINVAL)".to_owned(),
            errno => format!("opening it a second time: {} ({errno:?})", errno.desc()),
        };
        Refusal {
            why: why.into(),
            errno: Some(errno),
        }
    }

    fn io(cause: &std::io::Error) -> Refusal {
        Refusal::of_open(cause.raw_os_error().map_or(Errno::EIO, Errno::from_raw))
    }

    fn of_call(op: Op, errno: Errno) -> Refusal {
        Refusal {
            why: format!("a direct {op} was refused ({errno:?})").into(),
            errno: Some(errno),
        }
    }
}

/// Where the file ends now. A device ends at a block.
///
/// # Errors
/// `Io` if the operating system cannot tell.
pub(crate) fn end(file: &File) -> Result<u64> {
    let metadata = file.metadata();
    let metadata = metadata.map_err(|cause| Error::io(Op::Read, cause))?;
    match metadata.is_file() {
        true => Ok(metadata.len()),
        false => Ok(u64::MAX),
    }
}

/// What `statx(2)` says, else the size of a block, else a page.
fn alignment(file: &File, block_size: u64) -> Result<Alignment, Refusal> {
    let page = os::page_size();
    let (memory, write, read) = match os::statx(file.as_fd()) {
        Ok(facts) => match facts.direct {
            Some((0, _) | (_, 0)) => {
                return Err(Refusal::new("statx says that it has no direct I/O"));
            }
            Some((memory, offset)) => (
                u64::from(memory),
                u64::from(offset),
                facts.direct_read.map_or(u64::from(offset), u64::from),
            ),
            None => guess(block_size, page),
        },
        Err(_) => guess(block_size, page),
    };
    if [memory, write, read]
        .iter()
        .all(|size| size.is_power_of_two())
    {
        let boundary = write.max(page);
        return Ok(Alignment {
            memory,
            read,
            write,
            boundary,
        });
    }
    Err(Refusal::new(
        "statx reports an alignment that is no power of two",
    ))
}

/// Memory, write and read alignment where `statx` is silent. Network file systems call their transfer size the size of a
/// block; that is no alignment.
fn guess(block_size: u64, page: u64) -> (u64, u64, u64) {
    let usual = (512..=LARGEST_BLOCK).contains(&block_size) && block_size.is_power_of_two();
    let block = if usual { block_size } else { page };
    (block.max(page), block, block)
}

// The largest block of a local file system that Linux mounts on machines with pages of 64 KiB.
const LARGEST_BLOCK: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_that_is_a_transfer_size_is_no_alignment() {
        for (block_size, block) in [
            (512, 512),
            (4096, 4096),
            (16_384, 16_384),
            (1 << 20, 4096),
            (0, 4096),
            (3000, 4096),
        ] {
            let (memory, write, read) = guess(block_size, 4096);
            assert_eq!((memory, write, read), (block.max(4096), block, block));
        }
    }

    #[test]
    fn what_is_no_file_is_not_opened_again_and_the_reason_is_told_once() {
        let device = DirectFile::new(Arc::new(File::open("/dev/zero").unwrap()));
        assert_eq!(device.given_up(), None);
        assert!(device.direct().is_none());
        let why = "it is no regular file and no block device";
        assert_eq!(device.given_up(), Some(why));
        device.demote(Op::Read, Errno::EINVAL);
        assert_eq!(device.given_up(), Some(why));
        let error = device.insist().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("(O_DIRECT)"), "{error}");
    }

    #[test]
    fn a_file_without_a_name_is_opened_with_the_same_access() {
        let file = tempfile::tempfile_in("/var/tmp").unwrap();
        let file = DirectFile::new(Arc::new(file));
        let direct = file.direct().unwrap();
        let flags = fcntl(&direct.file, FcntlArg::F_GETFL).unwrap();
        assert_eq!(
            OFlag::from_bits_retain(flags) & (OFlag::O_ACCMODE | OFlag::O_DIRECT),
            OFlag::O_RDWR | OFlag::O_DIRECT
        );
        assert!(direct.alignment.boundary >= os::page_size());
    }
}
