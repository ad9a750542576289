//! The page cache: how much of a file is in it, and how to get it out.

use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, PosixFadviseAdvice, posix_fadvise};
use nix::sys::stat::fstat;
use nix::sys::statfs::{OVERLAYFS_SUPER_MAGIC, fstatfs};
use nix::unistd::{AccessFlags, Uid, faccessat, fdatasync};

use crate::error::{Error, ErrorKind, Op, Place, Result};
use crate::file_ref::{FileRef, cached_size};
use crate::os;

/// How much of a range is in the page cache, in pages. Pages that the range only touches count in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PageCacheInfo {
    /// Pages in the cache, those not yet written to storage among them. At most `total_pages`.
    pub resident_pages: u64,
    /// Pages of the range.
    pub total_pages: u64,
    /// Bytes in a page.
    pub page_size: u64,
}

impl std::fmt::Display for PageCacheInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let PageCacheInfo {
            resident_pages,
            total_pages,
            page_size,
        } = self;
        write!(
            f,
            "{resident_pages} of {total_pages} pages of {page_size} bytes"
        )
    }
}

/// Counts the pages of `offset..offset + length` that are in the page cache. A `length` of 0 means to the end of the file.
///
/// The range is widened to whole pages and ends with the file; at or past its end there are 0 of 0 pages. A descriptor must be open
/// for reading. The answer is of the moment: pages come and go. `cachestat(2)` is asked where the kernel has it, else `mincore(2)`.
///
/// # Errors
/// - `PermissionDenied`: the file cannot be opened, or it belongs to somebody else and may not be written to. The kernel tells such
///   callers nothing (`cachestat`) or that everything is cached (`mincore`), so there is no answer to give.
/// - `IsADirectory`, `NotSeekable`, `Unsupported`: it is no regular file and no block device.
/// - `NotFound` and what else opening a file reports.
///
/// # Example: is the file hot?
/// ```
/// let info = kvik_core::page_cache_info("/proc/self/exe", 0, 0)?;
/// println!("{} of {} pages", info.resident_pages, info.total_pages);
/// # assert!(info.resident_pages <= info.total_pages && info.total_pages > 0);
/// # Ok::<(), kvik_core::Error>(())
/// ```
pub fn page_cache_info<'a>(
    file: impl Into<FileRef<'a>>,
    offset: u64,
    length: u64,
) -> Result<PageCacheInfo> {
    let file = file.into();
    let place = file.place();
    let opened = file.open(Op::Inspect)?;
    let fd = opened.as_fd();
    let size = cached_size(fd, Op::Inspect, &place)?;
    let page_size = os::page_size();
    let Some(range) = whole_pages(offset, length, size, page_size) else {
        return Ok(PageCacheInfo {
            resident_pages: 0,
            total_pages: 0,
            page_size,
        });
    };
    let total_pages = (range.end - range.start).div_ceil(page_size);
    let resident = resident_pages(fd, &range, page_size, &place)?;
    Ok(PageCacheInfo {
        // The file may have grown since its size was read.
        resident_pages: resident.min(total_pages),
        total_pages,
        page_size,
    })
}

/// Asks the kernel to drop the pages that lie wholly inside `offset..offset + length` from the page cache. A `length` of 0 means to the
/// end of the file.
///
/// Pages that are dirty, mapped or in use stay, without an error, and so do pages that the kernel keeps in one larger piece (a large
/// folio) that reaches beyond the range. With `sync_first` the file's data is written out before
/// (`fdatasync`), so that freshly written pages can go too. A path is opened for reading only.
///
/// # Errors
/// - `IsADirectory`, `NotSeekable`, `Unsupported`: it is no regular file and no block device.
/// - `Misuse`: the range ends beyond the largest offset, 2^63 - 1.
/// - `StorageFull`, `Io`: writing the data out failed.
/// - `NotFound`, `PermissionDenied` and what else opening a file reports.
pub fn drop_file_page_cache<'a>(
    file: impl Into<FileRef<'a>>,
    offset: u64,
    length: u64,
    sync_first: bool,
) -> Result<()> {
    let file = file.into();
    let place = file.place();
    let signed = |value| {
        i64::try_from(value).map_err(|_| {
            Error::new(
                ErrorKind::Misuse,
                Op::DropCache,
                "the range ends beyond the largest offset of a file, 2^63 - 1",
            )
            .at(&place)
        })
    };
    let _end = signed(offset.saturating_add(length))?;
    let (start, length) = (signed(offset)?, signed(length)?);
    let opened = file.open(Op::DropCache)?;
    let fd = opened.as_fd();
    cached_size(fd, Op::DropCache, &place)?;
    if sync_first {
        retry(|| fdatasync(fd)).map_err(|errno| Error::os(Op::Sync, errno).at(&place))?;
    }
    posix_fadvise(fd, start, length, PosixFadviseAdvice::POSIX_FADV_DONTNEED)
        .map_err(|errno| Error::os(Op::DropCache, errno).at(&place))
}

/// Drops the page cache of the whole machine; with `reclaim_dentries_and_inodes` also cached names and attributes.
///
/// With `sync_first` all dirty data of the machine is written out before, since dirty pages cannot be dropped. Runs
/// `/sbin/sysctl vm.drop_caches=3` (or `=1`), and if that fails the same by `sudo -n`, which never asks for a password.
///
/// # Errors
/// - `PermissionDenied`: neither this user nor `sudo` without a password may do it; the text holds both answers.
/// - `Unsupported`: `/sbin/sysctl` could not be started.
pub fn drop_system_page_cache(reclaim_dentries_and_inodes: bool, sync_first: bool) -> Result<()> {
    if sync_first {
        nix::unistd::sync();
    }
    drop_system_with(reclaim_dentries_and_inodes, run)
}

/// The pages that `offset` and `length` touch in a file of `size` bytes, as bytes: the start aligned down, the end clamped.
fn whole_pages(offset: u64, length: u64, size: u64, page_size: u64) -> Option<Range<u64>> {
    if offset >= size {
        return None;
    }
    let end = match length {
        0 => size,
        _ => offset.saturating_add(length).min(size),
    };
    Some(offset - offset % page_size..end)
}

fn resident_pages(
    fd: BorrowedFd<'_>,
    range: &Range<u64>,
    page_size: u64,
    place: &Place,
) -> Result<u64> {
    let length = range.end - range.start;
    match count(fd, range.start, length) {
        Ok(pages) => Ok(pages),
        // Not there (a kernel before 6.5, hugetlbfs, an overlay) or not allowed (by the kernel, or by a container's system call filter,
        // which also answers EPERM): mincore may still know.
        Err(errno @ (Errno::ENOSYS | Errno::EOPNOTSUPP | Errno::EPERM)) => {
            if !is_told_the_truth(fd) {
                return Err(
                    Error::new(ErrorKind::PermissionDenied, Op::Inspect, NOT_TOLD)
                        .because(std::io::Error::from(errno))
                        .at(place),
                );
            }
            resident_by_mincore(fd, range, page_size)
                .map_err(|errno| Error::os(Op::Inspect, errno).at(place))
        }
        Err(errno) => Err(Error::os(Op::Inspect, errno).at(place)),
    }
}

/// [`os::cachestat`], where it tells the truth. The pages of a file on an overlay are those of the file below, and the call,
/// which looks at the one above, finds none: there it counts as not supported.
pub(crate) fn count(fd: BorrowedFd<'_>, offset: u64, length: u64) -> Result<u64, Errno> {
    match fstatfs(fd)?.filesystem_type() {
        OVERLAYFS_SUPER_MAGIC => Err(Errno::EOPNOTSUPP),
        _ => os::cachestat(fd, offset, length),
    }
}

/// In windows, so that neither the mapping nor its byte per page grows with the file.
fn resident_by_mincore(
    fd: BorrowedFd<'_>,
    range: &Range<u64>,
    page_size: u64,
) -> Result<u64, Errno> {
    let window = WINDOW_PAGES * page_size;
    let mut resident = 0;
    let mut start = range.start;
    while start < range.end {
        let length = window.min(range.end - start);
        resident += os::mincore(
            fd,
            start,
            usize::try_from(length).map_err(|_| Errno::EOVERFLOW)?,
        )?;
        start += length;
    }
    Ok(resident)
}

/// Whether mincore answers truly: to the owner, and to who may write to the file. The kernel has a third case, CAP_FOWNER, which
/// cannot be asked for by a simple call; leaving it out refuses an answer, never gives a false one.
fn is_told_the_truth(fd: BorrowedFd<'_>) -> bool {
    let owner = fstat(fd).is_ok_and(|stat| Uid::from_raw(stat.st_uid) == Uid::effective());
    owner
        || faccessat(
            fd,
            "",
            AccessFlags::W_OK,
            AtFlags::AT_EMPTY_PATH | AtFlags::AT_EACCESS,
        )
        .is_ok()
}

fn drop_system_with(reclaim: bool, run: impl Fn(&[&str]) -> Result<(), Refusal>) -> Result<()> {
    let setting = if reclaim {
        "vm.drop_caches=3"
    } else {
        "vm.drop_caches=1"
    };
    let Err(plain) = run(&[SYSCTL, setting]) else {
        return Ok(());
    };
    let Err(sudo) = run(&["sudo", "-n", SYSCTL, setting]) else {
        return Ok(());
    };
    let kind = match plain {
        Refusal::NotStarted(_) => ErrorKind::Unsupported,
        Refusal::Answered(_) => ErrorKind::PermissionDenied,
    };
    let why = format!(
        "`{SYSCTL} {setting}` {plain}, and `sudo -n {SYSCTL} {setting}` {sudo}; run it as root or allow it in sudoers without a password"
    );
    Err(Error::new(kind, Op::DropSystemCache, why))
}

/// What a command that did not do its work had to say.
#[derive(Debug)]
enum Refusal {
    NotStarted(std::io::Error),
    Answered(String),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::NotStarted(error) => write!(f, "could not be started ({error})"),
            Refusal::Answered(text) => write!(f, "answered \"{text}\""),
        }
    }
}

fn run(words: &[&str]) -> Result<(), Refusal> {
    let (program, arguments) = words.split_first().unwrap_or((&SYSCTL, &[]));
    let output = Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(Refusal::NotStarted)?;
    let answer = String::from_utf8_lossy(&output.stderr);
    // Some versions of sysctl complain and still exit with 0.
    if output.status.success() && !answer.lines().any(|line| line.starts_with("sysctl:")) {
        return Ok(());
    }
    Err(Refusal::Answered(match answer.trim() {
        "" => output.status.to_string(),
        text => text.replace('\n', " / "),
    }))
}

fn retry(mut call: impl FnMut() -> Result<(), Errno>) -> Result<(), Errno> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            answer => return answer,
        }
    }
}

const SYSCTL: &str = "/sbin/sysctl";

const NOT_TOLD: &str =
    "which pages are cached is told only to the owner of a file and to who may write to it";

// 256 MiB of 4 KiB pages: 64 KiB of answers at a time.
const WINDOW_PAGES: u64 = 1 << 16;

#[cfg(test)]
#[path = "page_cache_tests.rs"]
pub(crate) mod tests;
