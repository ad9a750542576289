//! Reads of pieces that are not in the page cache: past it (`O_DIRECT`) or through it.
//!
//! Past it is taken where it was found to be clearly faster on the device in question, for bytes that are read for the first
//! time, and for those that the cache did not keep; see [`rereads`](crate::rereads).

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
// Not those of sync.rs: what was learnt lies in statics, which loom's cannot.
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::direct::DirectEngine;
use super::posix;
use crate::choice::Choice;
use crate::corridor::FillWindow;
use crate::error::{Error, Op, Result};
use crate::once::Once;
use crate::rereads::{FileId, Found, REREADS, Way};
use crate::residency::{CachedPages, Residency};

/// The two ways for the cold pieces of one file.
#[derive(Debug)]
pub(crate) struct Cold {
    direct: DirectEngine,
    // Asked for at the first cold piece.
    about: Once<About>,
    read_on: ReadOn,
}

/// The last piece that was read through the cache.
///
/// The kernel reads on behind it, and still further as soon as somebody copies what it has read: left to itself, one such
/// piece would turn the rest of the file to the page cache, and nobody would see what that costs.
#[derive(Debug)]
struct ReadOn {
    // Where the piece ended, and when, in nanoseconds after `origin`.
    end: AtomicU64,
    at: AtomicU64,
    origin: Instant,
}

impl ReadOn {
    fn new() -> ReadOn {
        ReadOn {
            end: AtomicU64::new(u64::MAX),
            at: AtomicU64::new(0),
            origin: Instant::now(),
        }
    }

    fn take_note(&self, end: u64) {
        self.end.store(end, Ordering::Relaxed);
        self.at.store(self.now(), Ordering::Relaxed);
    }

    fn reaches(&self, offset: u64) -> bool {
        let end = self.end.load(Ordering::Relaxed);
        offset >= end
            && offset - end < FAR
            && self.now().saturating_sub(self.at.load(Ordering::Relaxed)) < MOMENT
    }

    fn now(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }
}

/// What the process knows a file by.
#[derive(Debug)]
struct About {
    id: FileId,
    learnt: &'static Learnt,
}

impl Cold {
    /// With an engine that may read past the page cache and gives way where it cannot.
    pub(crate) fn new(direct: DirectEngine) -> Cold {
        Cold {
            direct,
            about: Once::new(),
            read_on: ReadOn::new(),
        }
    }

    /// Whether what is cached from `offset` on is there only because the kernel reads on, as far as can be told: this handle
    /// has just read in front of it, and further on nothing is cached.
    pub(super) fn is_read_ahead(&self, offset: u64, cached: &CachedPages) -> bool {
        if !self.read_on.reaches(offset) {
            return false;
        }
        let far = offset.saturating_add(FAR);
        let share = cached.look(far..far.saturating_add(1));
        share.is_none_or(|share| share.is_nothing() || share.residency() != Residency::Hot)
    }

    /// Fills the window from `offset` on, a piece that was found so; it stays short only where the data ends.
    pub(super) fn fill(
        &self,
        file: &File,
        window: &mut FillWindow<'_>,
        offset: u64,
        found: Found,
    ) -> Result<()> {
        let asked = window.remaining();
        let start = offset + window.filled() as u64;
        let address = window.room().as_ptr().addr();
        let Some(in_place) = self.direct.fills_in_place(address, start) else {
            return posix::fill(file, window, offset);
        };
        let About { id, learnt } = self.about(file)?;
        let choice = match in_place {
            true => &learnt.in_place,
            false => &learnt.by_scratch,
        };
        let end = start + asked as u64;
        let way = match choice.pick() {
            PAST => REREADS.next(*id, &(start..end), found),
            _ => Way::Through,
        };
        // Before the read, for the threads that have the pieces behind it, and after it, when the kernel is reading on.
        let through = way == Way::Through;
        if through {
            self.read_on.take_note(end);
        }
        let began = Instant::now();
        self.go(way, file, window, offset)?;
        let took = began.elapsed();
        if through {
            self.read_on.take_note(end);
        }
        // A piece that met the end is no sample of the whole.
        if window.remaining() == 0 {
            let way = match way {
                Way::Past => PAST,
                Way::Through => THROUGH,
            };
            choice.report(way, asked, took);
        }
        Ok(())
    }

    /// Takes note of a piece that is in the page cache.
    pub(super) fn found_cached(&self, file: &File, piece: &Range<u64>) {
        if let Ok(about) = self.about(file) {
            REREADS.found_cached(about.id, piece);
        }
    }

    fn go(&self, way: Way, file: &File, window: &mut FillWindow<'_>, offset: u64) -> Result<()> {
        match way {
            Way::Past => self.direct.fill(window, offset),
            Way::Through => posix::fill(file, window, offset),
        }
    }

    fn about(&self, file: &File) -> Result<&About> {
        if let Some(about) = self.about.get() {
            return Ok(about);
        }
        let metadata = file
            .metadata()
            .map_err(|cause| Error::io(Op::Read, cause))?;
        Ok(self.about.get_or_make(|| About {
            id: FileId::of(&metadata),
            learnt: learnt_about(metadata.dev()),
        }))
    }
}

/// Which way was found to be faster on one device.
#[derive(Debug)]
struct Learnt {
    // The device's number and one, or 0 for a row that is free.
    device: AtomicU64,
    // Where the device fills the target itself, and where the bytes make a stop in a scratch.
    in_place: Choice<2>,
    by_scratch: Choice<2>,
}

/// The row of a device; those that come when all rows are taken share the last one.
fn learnt_about(device: u64) -> &'static Learnt {
    let wanted = device.wrapping_add(1);
    let is_its = |row: &&Learnt| {
        let taken = row
            .device
            .compare_exchange(0, wanted, Ordering::Relaxed, Ordering::Relaxed);
        taken.is_ok() || taken == Err(wanted)
    };
    let [rows @ .., last] = &LEARNT;
    rows.iter().find(is_its).unwrap_or(last)
}

static LEARNT: [Learnt; 16] = [const {
    Learnt {
        device: AtomicU64::new(0),
        in_place: Choice::of_storage(CLEARLY),
        by_scratch: Choice::of_storage(CLEARLY),
    }
}; 16];

// The first way is the one with the handicap: past the cache, nothing is left in it for the next reader.
const PAST: usize = 0;
const THROUGH: usize = 1;
const CLEARLY: u64 = 10;
// Twice as far as the kernel reads on where it is told to read far ahead (`read_ahead_kb`; 8 MiB have been seen, and 128 KiB
// are the default), in both of the windows that it keeps.
const FAR: u64 = 32 << 20;
// In nanoseconds. A reader who takes longer finds what the kernel has read, and copies it.
const MOMENT: u64 = 250_000_000;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::direct::{DirectFile, Wish};
    use super::*;
    use crate::page_cache::tests::make_cold;
    use crate::target::filling;
    use std::os::unix::fs::FileExt;

    #[test]
    fn both_ways_bring_the_same_bytes_and_only_one_leaves_them_in_the_cache() {
        let content: Vec<u8> = (0..(1 << 20) + 77)
            .map(|at| (at * 31 % 251) as u8)
            .collect();
        // On a disk: the pages of a tmpfs cannot be dropped.
        let file = Arc::new(tempfile::tempfile_in("/var/tmp").unwrap());
        file.write_all_at(&content, 0).unwrap();
        let direct = Arc::new(DirectFile::new(Arc::clone(&file)));
        let cold = Cold::new(DirectEngine::new(direct, Wish::May, Wish::Never));
        let cached = CachedPages::new(Arc::clone(&file));
        for (way, expected) in [(Way::Past, Residency::Cold), (Way::Through, Residency::Hot)] {
            for (offset, shift) in [(0, 0), (1, 16), (4096, 512), (513, 1000)] {
                make_cold(&file);
                let mut bytes = vec![0xee; content.len() + 1100];
                let mut window = filling(&mut bytes[shift..]);
                cold.go(way, &file, &mut window, offset).unwrap();
                let filled = window.filled();
                let offset = offset as usize;
                assert_eq!(filled, content.len() - offset);
                assert!(bytes[shift..][..filled] == content[offset..]);
                assert!(bytes[shift + filled..].iter().all(|byte| *byte == 0xee));
                assert_eq!(cached.residency(4096..u64::MAX), expected, "{way:?}");
            }
        }
    }

    /// Each page is in one of two versions, written as a whole through the page cache.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a writer beside the reader")]
    fn reads_past_the_cache_beside_a_writer_bring_bytes_of_the_file_and_no_others() {
        const PAGE: usize = 4096;
        const PAGES: usize = 256;
        let version = |odd: bool, page: usize| page as u8 ^ if odd { 0xff } else { 0 };
        let file = Arc::new(tempfile::tempfile_in("/var/tmp").unwrap());
        let write = |odd, page| {
            let bytes = [version(odd, page); PAGE];
            file.write_all_at(&bytes, (page * PAGE) as u64).unwrap();
        };
        (0..PAGES).for_each(|page| write(false, page));
        let direct = Arc::new(DirectFile::new(Arc::clone(&file)));
        let cold = Cold::new(DirectEngine::new(direct, Wish::May, Wish::Never));
        let done = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut round = 0;
                while done.load(Ordering::Relaxed) == 0 {
                    write((round / PAGES).is_multiple_of(2), round * 31 % PAGES);
                    round += 1;
                }
            });
            for shift in [0, 16, 512, 1].repeat(2) {
                let mut bytes = vec![0xee; PAGES * PAGE + shift];
                let mut window = filling(&mut bytes[shift..]);
                cold.go(Way::Past, &file, &mut window, 0).unwrap();
                for (page, found) in bytes[shift..].chunks(PAGE).enumerate() {
                    let known =
                        |byte: &u8| [false, true].map(|odd| version(odd, page)).contains(byte);
                    assert!(found.iter().all(known), "page {page}");
                }
            }
            done.store(1, Ordering::Relaxed);
        });
    }

    #[test]
    fn what_lies_close_behind_a_piece_is_read_ahead_unless_all_of_the_file_is_cached() {
        let read_on = ReadOn::new();
        assert!(!read_on.reaches(0) && !read_on.reaches(u64::MAX - 1));
        read_on.take_note(4096);
        // However long this takes, that moment is not over.
        read_on.at.store(u64::MAX / 2, Ordering::Relaxed);
        let reach = [4095, 4096, 4095 + FAR, 4096 + FAR].map(|at| read_on.reaches(at));
        assert_eq!(reach, [false, true, true, false]);

        let file = Arc::new(tempfile::tempfile_in("/var/tmp").unwrap());
        let cached = CachedPages::new(Arc::clone(&file));
        let direct = Arc::new(DirectFile::new(Arc::clone(&file)));
        let cold = Cold::new(DirectEngine::new(direct, Wish::May, Wish::Never));
        cold.read_on.take_note(4096);
        cold.read_on.at.store(u64::MAX / 2, Ordering::Relaxed);
        assert!(cold.is_read_ahead(4096, &cached), "the file ends before");
        file.write_all_at(&[1; 4096], 4096 + FAR).unwrap();
        assert!(!cold.is_read_ahead(4096, &cached), "it was just written");
        make_cold(&file);
        assert!(cold.is_read_ahead(4096, &cached), "nothing is cached there");
        assert!(!cold.is_read_ahead(0, &cached), "it lies in front");
    }

    #[test]
    fn each_device_has_a_row_of_its_own_until_there_is_none_left() {
        // The numbers of no device: major numbers are smaller.
        let numbers = u64::MAX - 40..u64::MAX;
        let rows: Vec<_> = numbers.clone().map(learnt_about).collect();
        for (number, row) in numbers.zip(&rows) {
            assert!(std::ptr::eq(learnt_about(number), *row));
        }
        assert!(!std::ptr::eq(rows[0], rows[1]));
        assert!(std::ptr::eq(rows[38], rows[39]));
    }
}
