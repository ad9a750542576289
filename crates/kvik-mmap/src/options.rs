//! How a file is mapped: [`MmapOptions`].

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use kvik_config::Config;
use kvik_core::corridor::{open_to_read, outside_listeners};
use kvik_core::{Error, ErrorKind, Op, Place, Result, ThreadPool};

use crate::handle::{Manner, MmapHandle};
use crate::map::Map;

/// What the system may be told of how a map will be read (madvise(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// From front to back: pages are read ahead, and may go soon after.
    Sequential,
    /// Here and there: nothing is read ahead.
    Random,
    /// All of it, soon.
    WillNeed,
    /// By huge pages, where the file system has such.
    HugePage,
}

/// How a file is mapped. Unless said otherwise it is mapped from its first byte to its last.
///
/// # Example: a piece of a file, its pages brought in at once
/// ```
/// # fn main() -> kvik_core::Result<()> {
/// # let path = std::env::temp_dir().join(format!("kvik-mmap-options-{}", std::process::id()));
/// # std::fs::write(&path, [7; 20_000]).unwrap();
/// use kvik_mmap::MmapHandle;
///
/// let map = MmapHandle::options().offset(4097).len(8191).populate(true).open(&path)?;
/// let mut bytes = [0; 100];
/// // Offsets are those of the file.
/// assert_eq!(map.read_at(&mut bytes, 5000)?, 100);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "nothing is mapped before `open` is called"]
pub struct MmapOptions {
    offset: u64,
    len: Option<u64>,
    populate: bool,
    advice: Option<Advice>,
    config: Option<Config>,
    pool: Option<ThreadPool>,
}

impl MmapOptions {
    /// Options that map all of a file.
    pub fn new() -> MmapOptions {
        MmapOptions::default()
    }

    /// The first byte of the file that is mapped; any, not only the first of a page.
    pub fn offset(mut self, offset: u64) -> MmapOptions {
        self.offset = offset;
        self
    }

    /// How many bytes are mapped; all up to the end of the file unless said.
    pub fn len(mut self, bytes: u64) -> MmapOptions {
        self.len = Some(bytes);
        self
    }

    /// Brings all pages in when the file is mapped (`MAP_POPULATE`).
    pub fn populate(mut self, yes: bool) -> MmapOptions {
        self.populate = yes;
        self
    }

    /// Tells the system how the map will be read.
    pub fn advice(mut self, advice: Advice) -> MmapOptions {
        self.advice = Some(advice);
        self
    }

    /// The settings of the handle. Without this each call follows [`Config::current`].
    pub fn config(mut self, config: &Config) -> MmapOptions {
        self.config = Some(config.clone());
        self
    }

    /// The pool whose workers copy, in place of the one that all files share.
    pub fn pool(mut self, pool: &ThreadPool) -> MmapOptions {
        self.pool = Some(pool.clone());
        self
    }

    /// Maps the file at `path`. An empty file is a map of nothing, whatever else is said.
    ///
    /// # Errors
    /// - `NotFound`, `PermissionDenied`, `IsADirectory` and the like: the file cannot be opened.
    /// - `Misuse`: the piece is empty, or does not lie in the file.
    /// - `NotSeekable`, `Unsupported`: it is a FIFO, a terminal or another file that is not a regular one.
    /// - `OutOfMemory`, `Io`: the system does not map it.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<MmapHandle> {
        let path = path.as_ref();
        let place = Place::File(path.into());
        outside_listeners(Op::Open)
            .and_then(|()| open_to_read(path))
            .and_then(|file| self.map(file, &place))
            .map_err(|error| error.at(&place))
    }

    /// Maps the file of an open descriptor, which may be closed afterwards.
    ///
    /// # Errors
    /// As for [`open`](MmapOptions::open).
    pub fn open_fd(&self, fd: impl AsFd) -> Result<MmapHandle> {
        let fd = fd.as_fd();
        let place = Place::Descriptor(fd.as_raw_fd());
        let clone = || {
            fd.try_clone_to_owned()
                .map_err(|cause| Error::io(Op::Open, cause))
        };
        outside_listeners(Op::Open)
            .and_then(|()| clone())
            .and_then(|fd| self.map(File::from(fd), &place))
            .map_err(|error| error.at(&place))
    }

    fn map(&self, file: File, place: &Place) -> Result<MmapHandle> {
        let metadata = file
            .metadata()
            .map_err(|cause| Error::io(Op::Open, cause))?;
        if !metadata.is_file() {
            let why = "only regular files can be mapped";
            return Err(Error::new(ErrorKind::Unsupported, Op::Open, why));
        }
        let map = match piece(self.offset, self.len, metadata.len())? {
            None => Map::nothing(),
            Some((offset, len)) => Map::new(&file, offset, len, self.populate)
                .map_err(|cause| Error::io(Op::Open, cause))?,
        };
        self.advise(&map);
        let manner = Manner {
            place: place.clone(),
            config: self.config.clone(),
            pool: self.pool.clone(),
        };
        Ok(MmapHandle::new(file, metadata.len(), map, manner))
    }

    /// A system that does not know an advice reads as well without.
    fn advise(&self, map: &Map) {
        let Some(advice) = self.advice else {
            return;
        };
        let known = match advice {
            Advice::Sequential => memmap2::Advice::Sequential,
            Advice::Random => memmap2::Advice::Random,
            Advice::WillNeed => memmap2::Advice::WillNeed,
            Advice::HugePage => memmap2::Advice::HugePage,
        };
        let _ = map.advise(known);
    }
}

/// The piece of a file of `file_len` bytes that is meant: its offset and its length, or nothing of an empty file.
fn piece(offset: u64, len: Option<u64>, file_len: u64) -> Result<Option<(u64, usize)>> {
    let wrong = |why: String| Err(Error::new(ErrorKind::Misuse, Op::Open, why));
    if file_len == 0 {
        return Ok(None);
    }
    if offset >= file_len {
        return wrong(format!(
            "the piece to map begins at byte {offset}, and the file has {file_len} bytes"
        ));
    }
    let len = len.unwrap_or(file_len - offset);
    if len == 0 {
        return wrong("the piece to map is empty".to_owned());
    }
    if len > file_len - offset {
        return wrong(format!(
            "the piece to map, {len} bytes from byte {offset} on, reaches beyond the end of the file, which has {file_len} bytes"
        ));
    }
    // A file has no more bytes than an address space on 64 bits.
    Ok(Some((offset, len as usize)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_lies_in_the_file_or_is_refused() {
        for (offset, len, file_len, expected) in [
            (0, None, 10, Ok(Some((0, 10)))),
            (9, None, 10, Ok(Some((9, 1)))),
            (3, Some(7), 10, Ok(Some((3, 7)))),
            (
                3,
                Some(8),
                10,
                Err("reaches beyond the end of the file, which has 10 bytes"),
            ),
            (3, Some(u64::MAX), 10, Err("reaches beyond the end")),
            (
                10,
                None,
                10,
                Err("begins at byte 10, and the file has 10 bytes"),
            ),
            (u64::MAX, Some(u64::MAX), 10, Err("begins at byte")),
            (3, Some(0), 10, Err("is empty")),
            (7, Some(0), 0, Ok(None)),
        ] {
            let found = piece(offset, len, file_len);
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(error), Err(why)) => {
                    assert_eq!(error.kind(), ErrorKind::Misuse);
                    assert!(error.to_string().contains(why), "{error}");
                }
                (found, expected) => panic!("{found:?} instead of {expected:?}"),
            }
        }
    }
}
