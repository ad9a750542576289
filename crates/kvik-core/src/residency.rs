//! How much of a range is in the page cache, cheaply enough to be asked before every task.

use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use crate::error::{Op, Place};
use crate::file_ref::{cached_size, open_reading};
use crate::once::Once;
use crate::os;
use crate::page_cache;
use crate::sync::{AtomicU64, Ordering};

/// How much of a range of a file is in the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "lowercase")
)]
#[non_exhaustive]
pub enum Residency {
    /// All of it, as far as was looked; so is a range that holds no data.
    Hot,
    /// None of it.
    Cold,
    /// Some of it.
    Mixed,
    /// The kernel does not tell.
    Unknown,
}

impl fmt::Display for Residency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Residency::Hot => "hot",
            Residency::Cold => "cold",
            Residency::Mixed => "mixed",
            Residency::Unknown => "unknown",
        })
    }
}

/// Asks about the cached pages of one file.
///
/// `cachestat(2)` counts them, some microseconds for 4 MiB. It tells only the owner of a file and who may write to it. To
/// others `mincore(2)` would report every page as cached, so a few pages are tried instead: a read that may not wait
/// (`RWF_NOWAIT`) succeeds on those that are there.
#[derive(Debug)]
pub(crate) struct CachedPages {
    file: Arc<File>,
    // Made when the count is refused, which it then always is. `None`: there is no way to look.
    sampler: Once<Option<Sampler>>,
}

impl CachedPages {
    pub(crate) fn new(file: Arc<File>) -> CachedPages {
        CachedPages {
            file,
            sampler: Once::new(),
        }
    }

    /// What of `range` is in the page cache now. Pages come and go: the answer is good for a decision, not for a promise.
    pub(crate) fn residency(&self, range: Range<u64>) -> Residency {
        match self.look(range) {
            Some(share) => share.residency(),
            None => Residency::Unknown,
        }
    }

    /// The same in pages; `None` if the kernel does not tell.
    pub(crate) fn look(&self, range: Range<u64>) -> Option<Share> {
        let fd = self.file.as_fd();
        let place = Place::Descriptor(fd.as_raw_fd());
        let size = cached_size(fd, Op::Inspect, &place).ok()?;
        let page = os::page_size();
        let start = range.start - range.start % page;
        let end = range.end.min(size);
        if range.start >= end {
            return Some(Share { cached: 0, of: 0 });
        }
        let pages = (end - start).div_ceil(page);
        if self.sampler.get().is_none() {
            match page_cache::count(fd, start, end - start) {
                Ok(cached) => return Some(Share { cached, of: pages }),
                Err(Errno::EPERM | Errno::ENOSYS | Errno::EOPNOTSUPP) => {}
                Err(_) => return None,
            }
        }
        let sampler = self.sampler.get_or_make(|| Sampler::of(&self.file));
        sampler.as_ref()?.look(start, pages, page)
    }
}

/// How many of some pages are cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    cached: u64,
    of: u64,
}

impl Share {
    pub(crate) fn residency(self) -> Residency {
        match self.cached {
            cached if cached >= self.of => Residency::Hot,
            0 => Residency::Cold,
            _ => Residency::Mixed,
        }
    }

    /// Whether there are no pages, cached or not: behind the end of the file.
    pub(crate) fn is_nothing(self) -> bool {
        self.of == 0
    }

    /// Whether a quarter at most is there. When a piece is read through the cache, the kernel reads on behind it, into the next
    /// one: that one is still a cold piece.
    pub(crate) fn is_nearly_cold(self) -> bool {
        self.of > 0 && self.cached <= self.of / 4
    }
}

/// A descriptor of its own to try pages with.
#[derive(Debug)]
struct Sampler {
    file: File,
    // Moves on with each try.
    seed: AtomicU64,
}

impl Sampler {
    fn of(file: &File) -> Option<Sampler> {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let file = open_reading(path.as_ref(), 0).ok()?;
        // A page that is not there is fetched, though nobody waits for it: that page alone, and not those behind it.
        posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_RANDOM).ok()?;
        Some(Sampler {
            file,
            seed: AtomicU64::new(1),
        })
    }

    /// Tries a page in each of a few equal parts.
    fn look(&self, start: u64, pages: u64, page: u64) -> Option<Share> {
        let tries = pages.min(TRIES);
        let (mut there, mut missing) = (0, 0);
        for part in 0..tries {
            let (from, to) = (pages * part / tries, pages * (part + 1) / tries);
            // Another page each time: one that was tried and fetched must not stand for all that are not there.
            let seed = self
                .seed
                .fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
            let at = from + (seed >> 32) % (to - from);
            match os::pread_nowait(self.file.as_fd(), start + at * page) {
                Ok(()) => there += 1,
                Err(Errno::EAGAIN) => missing += 1,
                Err(_) => return None,
            }
            // What is known already is worth no further page from the device.
            if missing > 0 && (there > 0 || missing == ENOUGH) {
                break;
            }
        }
        Some(Share {
            cached: there,
            of: there + missing,
        })
    }
}

// Half a microsecond each where the page is there. A hole of an eighth of the range is seen in two looks of five.
const TRIES: u64 = 4;
// So many missing pages in a row are taken for all.
const ENOUGH: u64 = 2;

#[cfg(test)]
#[path = "residency_tests.rs"]
mod tests;
