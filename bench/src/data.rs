//! The data of a run: a file of our own whose every byte is known, or a file of somebody else that is only read.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use kvik::{ErrorKind, FileHandle, Op, Place};

use crate::folder::Folder;
use crate::loops::size_name;
use crate::options::Progress;
use crate::pattern;
use crate::race::go_on;
use crate::trouble::{Doing, Outcome, Trouble};

/// A file to read from.
pub(crate) struct Data {
    pub(crate) path: PathBuf,
    pub(crate) file: File,
    /// Bytes from its start that are read.
    pub(crate) len: u64,
    /// The pattern it holds from its first byte on, if it is ours.
    pub(crate) seed: Option<u64>,
}

impl Data {
    /// Makes the file, of `len` bytes, or of fewer if the disk needs longer than `limit` to take them. On the disk when done.
    pub(crate) fn make(
        folder: &Folder,
        len: u64,
        limit: Duration,
        progress: &mut dyn FnMut(Progress<'_>),
        stop: &AtomicBool,
    ) -> Outcome<Self> {
        let path = folder.path().join("data.bin");
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .doing("create", &path)?;
        let began = Instant::now();
        let mut written = 0;
        let mut chunk = vec![0; STEP as usize];
        while written < len {
            go_on(stop)?;
            progress(Progress::Data {
                path: &path,
                bytes: written,
                total: len,
            });
            let piece = &mut chunk[..(len - written).min(STEP) as usize];
            pattern::fill(piece, SEED, written);
            file.write_all_at(piece, written).doing("write", &path)?;
            written += piece.len() as u64;
            // Synced bit by bit, since a page cache takes everything at once and the bill comes at the end.
            if written.is_multiple_of(SYNC_EVERY) {
                file.sync_data().doing("sync", &path)?;
                if began.elapsed() > limit {
                    break;
                }
            }
        }
        file.sync_all().doing("sync", &path)?;
        progress(Progress::Data {
            path: &path,
            bytes: written,
            total: written,
        });
        Ok(Self {
            path,
            file,
            len: written,
            seed: Some(SEED),
        })
    }

    /// An existing file of somebody else: at most its first `most` bytes, read only.
    pub(crate) fn existing(path: &Path, most: u64) -> Outcome<Self> {
        if let Ok(found) = fs::metadata(path)
            && found.file_type().is_char_device()
        {
            let why = "it is a character device, which has no size";
            let error = kvik::Error::new(ErrorKind::NotSeekable, Op::Open, why);
            return Err(error.at(&Place::from(path)).into());
        }
        // kvik refuses directories, FIFOs and sockets without waiting, and knows how large a block device is.
        let len = FileHandle::open(path)?.len()?.min(most);
        let file = File::open(path).doing("open", path)?;
        if len < LEAST {
            return Err(Trouble::Misuse(format!(
                "{} has {len} bytes; a benchmark needs {} at least",
                path.display(),
                size_name(LEAST)
            )));
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            len,
            seed: None,
        })
    }

    /// Brings what is read into the page cache, all of it: a case that came before may have dropped it, and the lap before the
    /// rounds need not reach its end.
    pub(crate) fn warm(&self, stop: &AtomicBool) -> Outcome<()> {
        let mut scratch = vec![0; STEP as usize];
        for offset in (0..self.len).step_by(STEP as usize) {
            go_on(stop)?;
            let piece = &mut scratch[..(self.len - offset).min(STEP) as usize];
            self.file
                .read_exact_at(piece, offset)
                .doing("read", &self.path)?;
        }
        Ok(())
    }

    /// The position of the first byte of `bytes` that is not what the file holds from its start.
    pub(crate) fn first_difference(&self, bytes: &[u8]) -> Outcome<Option<u64>> {
        self.difference_at(bytes, 0)
    }

    /// The same for what the file holds from `start`, a multiple of 8: a position in the file.
    pub(crate) fn difference_at(&self, bytes: &[u8], start: u64) -> Outcome<Option<u64>> {
        if let Some(seed) = self.seed {
            let difference = pattern::first_difference(bytes, seed, start);
            return Ok(difference.map(|at| start + at as u64));
        }
        let mut reference = vec![0; bytes.len().min(STEP as usize)];
        for (piece, offset) in bytes
            .chunks(STEP as usize)
            .zip((start..).step_by(STEP as usize))
        {
            let reference = &mut reference[..piece.len()];
            self.file
                .read_exact_at(reference, offset)
                .doing("read", &self.path)?;
            if let Some(at) = first_unequal(piece, reference) {
                return Ok(Some(offset + at as u64));
            }
        }
        Ok(None)
    }
}

pub(crate) fn first_unequal(a: &[u8], b: &[u8]) -> Option<usize> {
    if a == b {
        None
    } else {
        a.iter().zip(b).position(|(a, b)| a != b)
    }
}

/// The least data that gives every thread of a small machine something to do.
pub(crate) const LEAST: u64 = 4 << 20;
/// Sizes are whole multiples of this where they are ours to choose.
pub(crate) const STEP: u64 = 4 << 20;
const SYNC_EVERY: u64 = 64 << 20;
const SEED: u64 = 0x6b76_696b;

// Whoever changes one of these must keep `Data::make` syncing.
const _: () = assert!(SYNC_EVERY.is_multiple_of(STEP));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Options, options_in};

    #[test]
    fn the_data_file_holds_its_pattern_and_the_folder_goes() {
        let parent = tempfile::tempdir().expect("a temporary folder");
        let folder = Folder::make(&options_in(parent.path())).expect("a folder");
        let mut told = Vec::new();
        let mut progress = |now: Progress<'_>| {
            if let Progress::Data { bytes, total, .. } = now {
                told.push((bytes, total));
            }
        };
        let len = (9 << 20) + 13;
        let data = Data::make(
            &folder,
            len,
            Duration::from_secs(60),
            &mut progress,
            &AtomicBool::new(false),
        )
        .expect("made");
        let mut content = std::fs::read(&data.path).expect("read back");
        assert_eq!((content.len() as u64, data.len), (len, len));
        assert_eq!(data.first_difference(&content).expect("compared"), None);
        content[5_000_001] ^= 4;
        assert_eq!(
            data.first_difference(&content).expect("compared"),
            Some(5_000_001)
        );
        assert_eq!(told.last(), Some(&(len, len)));
        folder.remove().expect("removed");
        assert_eq!(std::fs::read_dir(parent.path()).expect("listed").count(), 0);
    }

    #[test]
    fn a_slow_disk_gets_less_data() {
        let folder = Folder::make(&Options::default()).expect("a folder");
        let data = Data::make(
            &folder,
            256 << 20,
            Duration::ZERO,
            &mut |_| {},
            &AtomicBool::new(false),
        )
        .expect("made");
        assert_eq!(data.len, SYNC_EVERY);
    }

    #[test]
    fn a_stop_while_the_data_is_made_removes_the_folder() {
        let parent = tempfile::tempdir().expect("a temporary folder");
        let folder = Folder::make(&options_in(parent.path())).expect("a folder");
        let stop = AtomicBool::new(true);
        let outcome = Data::make(&folder, 64 << 20, Duration::MAX, &mut |_| {}, &stop);
        assert!(matches!(outcome.err(), Some(Trouble::Stopped)));
        drop(folder);
        assert_eq!(std::fs::read_dir(parent.path()).expect("listed").count(), 0);
    }

    #[test]
    fn warm_data_is_in_the_page_cache_to_its_end() {
        let folder = Folder::make(&Options::default()).expect("a folder");
        let stop = AtomicBool::new(false);
        let len = (48 << 20) + 7;
        let data = Data::make(&folder, len, Duration::MAX, &mut |_| {}, &stop).expect("made");
        crate::ours::drop_from_cache(&data.path, len).expect("dropped");
        data.warm(&stop).expect("read");
        let info = kvik::page_cache_info(&data.path, 0, 0).expect("told");
        assert_eq!(info.resident_pages, info.total_pages);
    }

    #[test]
    fn somebody_elses_file_is_compared_with_what_it_holds() {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        let mut content = vec![7; LEAST as usize + 3];
        std::io::Write::write_all(&mut file, &content).expect("written");
        let data = Data::existing(file.path(), u64::MAX).expect("opened");
        assert_eq!(data.first_difference(&content).expect("compared"), None);
        content[LEAST as usize + 2] = 0;
        assert_eq!(
            data.first_difference(&content).expect("compared"),
            Some(LEAST + 2)
        );
        assert!(Data::existing(Path::new("missing.bin"), 1 << 30).is_err());
    }
}
