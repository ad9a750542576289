//! The engine that copies out of mapped windows of the file: user space's copy, past the cache, instead of the kernel's.
//!
//! A mapping shows what a `pread(2)` would bring, but for the end of the file: bytes behind it are zeros up to the end of the
//! page, and a fault from there on. So the length is asked for before a window is copied, only what lies before the end is
//! taken, and when the copy met a fault, or the file is found changed after it, the window is read once more by `pread`,
//! which tells the truth: a short count, or the error of the device. The same is done for what cannot be mapped at all. So
//! the answers are those of [`posix`]. Writes go as by it, too.
//!
//! A window is mapped for its copy alone, or lies in a map that somebody keeps ([`FileMapping`]).

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kvik_stats::{Backend, names};

use super::{Engine, Lane, kept, posix};
use crate::corridor::{FileMapping, FillWindow};
use crate::error::Result;
use crate::guard::{FileMap, Unmapped, copy_kept};
use crate::os;

/// Copies out of mappings of one file.
#[derive(Debug)]
pub(crate) struct Mapped {
    file: Arc<File>,
    // Whether it has read without a map what it was to read by one, and has counted that.
    fell_back: AtomicBool,
}

impl Mapped {
    pub(crate) fn new(file: Arc<File>) -> Mapped {
        Mapped {
            file,
            fell_back: AtomicBool::new(false),
        }
    }

    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader {
            engine: self,
            kept: None,
            maps: true,
        }
    }

    /// A reader that takes what lies in `map` from there.
    pub(crate) fn reader_of<'e>(&'e self, map: &'e dyn FileMapping) -> Reader<'e> {
        Reader {
            kept: Some(map),
            ..self.reader()
        }
    }

    fn fall_back(&self, error: &Unmapped) {
        if !self.fell_back.swap(true, Ordering::Relaxed) {
            names::FALLBACKS.increment();
            names::FALLBACKS_OF_MAP.increment();
            tracing::debug!(%error, "read without a map");
        }
    }
}

impl Engine for Mapped {
    fn backend(&self) -> Backend {
        Backend::Posix
    }

    fn lane<'w>(&'w self) -> Result<Box<dyn Lane<'w> + 'w>> {
        let mut reader = self.reader();
        Ok(posix::lane("mapped", &self.file, move |window, offset| {
            reader.fill(&self.file, window, offset)
        }))
    }
}

/// One lane's reads out of maps.
pub(crate) struct Reader<'e> {
    engine: &'e Mapped,
    kept: Option<&'e dyn FileMapping>,
    // Somebody who changes the file, and what keeps it from being mapped, will go on to: a lane tries no further.
    maps: bool,
}

impl Reader<'_> {
    /// Fills the window from `offset` on; it stays short only where the data ends.
    pub(crate) fn fill(
        &mut self,
        file: &File,
        window: &mut FillWindow<'_>,
        offset: u64,
    ) -> Result<()> {
        let before = window.filled();
        while self.maps && window.remaining() > 0 {
            match fill_mapped(file, self.kept, window, offset) {
                Ok(Progress::Filled) => {}
                Ok(Progress::AtEnd) => break,
                Ok(Progress::Changed) => self.maps = false,
                Err(error) => {
                    self.engine.fall_back(&error);
                    self.maps = false;
                }
            }
        }
        names::BYTES_BY_MAP.add((window.filled() - before) as u64);
        // What a map that stays lacks, its engine reads, and no further than the map reaches.
        match self.kept {
            None => posix::fill(file, window, offset),
            Some(_) => Ok(()),
        }
    }
}

/// How a step of [`fill_mapped`] ended.
enum Progress {
    /// With bytes.
    Filled,
    /// The file has no bytes here, as far as its length tells.
    AtEnd,
    /// What was copied may never have been in the file.
    Changed,
}

/// Copies the next piece of the file out of a map into the window, which is to be filled from `offset` on: out of the one that
/// is `kept`, which has all of it, or one for this piece.
fn fill_mapped(
    file: &File,
    kept: Option<&dyn FileMapping>,
    window: &mut FillWindow<'_>,
    offset: u64,
) -> Result<Progress, Unmapped> {
    let at = offset + window.filled() as u64;
    let before = Stamp::of(file)?;
    let len = kept.map_or(before.len, |map| before.len.min(kept::end(map)));
    if at >= len {
        return Ok(Progress::AtEnd);
    }
    let page = os::page_size();
    let start = at - at % page;
    let end = len.min(start + PIECE).min(at + window.remaining() as u64);
    let room = &mut window.room()[..(end - at) as usize];
    let asked = room.len();
    let copied = match kept {
        Some(map) => {
            map.touch(at..end);
            copy_kept(map, (at - map.offset()) as usize, room)?
        }
        None => {
            let map = FileMap::populated(file, start, (end - start) as usize)?;
            map.copy((at - start) as usize, room)?
        }
    };
    // In this order: a change that was made before the last byte was copied is seen.
    if copied < asked || Stamp::of(file)? != before {
        return Ok(Progress::Changed);
    }
    // SAFETY: so many bytes were copied, and `asked` is within the room.
    unsafe { window.advance(asked) };
    Ok(Progress::Filled)
}

/// What changes when the file is cut. Two cuts within one tick of the file system's clock (some milliseconds, before Linux
/// 6.13) may look like none; `pread`, too, reads zeros behind an end that is being moved.
#[derive(PartialEq, Eq)]
struct Stamp {
    len: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(file: &File) -> Result<Stamp, Unmapped> {
        let metadata = file.metadata().map_err(Unmapped::Length)?;
        Ok(Stamp {
            len: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

// Large enough that mapping and unmapping are shared by 4096 pages, small enough that their page table entries stay cached.
const PIECE: u64 = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corridor::{Task, Window};
    use crate::target::Target;
    use std::os::unix::fs::FileExt;

    fn numbers(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at * 31 % 251) as u8).collect()
    }

    fn file_of(content: &[u8]) -> Arc<File> {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(content, 0).unwrap();
        Arc::new(file)
    }

    /// One task on a lane of its own: its bytes, count and error.
    fn read(engine: &Mapped, len: usize, offset: u64) -> (Vec<u8>, usize, Option<crate::Error>) {
        let mut bytes = vec![0xee; len + 1];
        let mut target = Target::from(&mut bytes[..len]);
        let mut lane = engine.lane().unwrap();
        let task = Task {
            index: 0,
            range: offset..offset + len as u64,
        };
        lane.start(task, Window::Fill(target.window().unwrap()));
        let mut done = Vec::new();
        lane.poll(&mut done);
        let completion = done.pop().unwrap();
        let (moved, error) = (completion.moved, completion.error);
        drop(lane);
        assert_eq!(bytes[len], 0xee, "wrote behind the window");
        (bytes, moved, error)
    }

    #[test]
    fn windows_of_every_size_are_filled_from_any_offset_up_to_the_end() {
        let piece = PIECE as usize;
        let content = numbers(2 * piece + 5000);
        let engine = Mapped::new(file_of(&content));
        for (offset, len) in [
            (0, 0),
            (0, 1),
            (1, 4095),
            (4095, 2),
            (4097, 100_000),
            (piece - 1, 2),
            (100, 2 * piece),
            (2 * piece + 4096, 10_000),
            (content.len() - 1, 1),
            (content.len(), 10),
            (content.len() + 5000, 10),
        ] {
            let (bytes, moved, error) = read(&engine, len, offset as u64);
            assert!(error.is_none(), "{error:?}");
            assert_eq!(
                moved,
                len.min(content.len().saturating_sub(offset)),
                "{len} at {offset}"
            );
            assert!(
                bytes[..moved] == content[offset.min(content.len())..][..moved],
                "{len} at {offset}"
            );
            assert!(
                bytes[moved..].iter().all(|byte| *byte == 0xee),
                "{len} at {offset}"
            );
        }
        assert!(!engine.fell_back.load(Ordering::Relaxed));
    }

    #[test]
    fn a_step_maps_and_says_where_the_file_ends() {
        let file = file_of(&numbers(5000));
        let mut bytes = [0; 6000];
        let mut target = Target::from(&mut bytes);
        let mut window = target.window().unwrap();
        assert!(matches!(
            fill_mapped(&file, None, &mut window, 0),
            Ok(Progress::Filled)
        ));
        assert_eq!(window.filled(), 5000);
        assert!(matches!(
            fill_mapped(&file, None, &mut window, 0),
            Ok(Progress::AtEnd)
        ));
        assert_eq!(bytes[..5000], numbers(5000));
        assert_eq!(bytes[5000..], [0; 1000]);
    }

    #[test]
    fn what_cannot_be_mapped_is_read_and_counted_once() {
        let status = File::open("/proc/self/maps").unwrap();
        let engine = Mapped::new(Arc::new(status));
        // Its length is 0, so nothing is mapped, and it is read all the same.
        let (bytes, moved, error) = read(&engine, 50, 0);
        assert!(error.is_none() && moved == 50 && bytes.contains(&b'-'));

        // A length, and no way to map it.
        let folder = tempfile::tempdir().unwrap();
        let engine = Mapped::new(Arc::new(File::open(folder.path()).unwrap()));
        for _ in 0..2 {
            let (_, moved, error) = read(&engine, 50, 0);
            assert_eq!((moved, error.unwrap().os_error()), (0, Some(libc::EISDIR)));
        }
        assert_eq!(
            engine.fell_back.load(Ordering::Relaxed),
            folder.path().metadata().unwrap().len() > 0
        );
    }

    #[test]
    fn writes_go_by_pwrite() {
        let file = file_of(b"0123456789");
        let engine = Mapped::new(Arc::clone(&file));
        let mut lane = engine.lane().unwrap();
        lane.start(
            Task {
                index: 0,
                range: 8..12,
            },
            Window::Drain(b"abcd"),
        );
        let mut done = Vec::new();
        lane.poll(&mut done);
        assert_eq!((done[0].moved, done[0].error.is_none()), (4, true));
        let mut bytes = [0; 12];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"01234567abcd");
    }
}
