//! Door two: [`MmapHandle`], a mapped file read in parallel at any offset.

use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use kvik_config::Config;
use kvik_core::corridor::{
    Call, Engine, FileMapping, MapEngine, Plan, Wishes, outside_listeners, refused,
};
use kvik_core::{
    Error, ErrorKind, IoBufMut, Op, Pending, Place, ReadAt, ReadAtExt, ReadOptions, ReadPiece,
    Result, Target, ThreadPool,
};

use crate::map::Map;
use crate::options::MmapOptions;

/// A mapped file, or a piece of one. Cloning it gives another handle to the same map; all methods take `&self` and may be
/// called from any thread at once.
///
/// Offsets are those of the file, wherever the map begins. A file that is cut short under its map is an error, and not the end
/// of the process; one that grows is mapped as far as it was.
///
/// # Example: a map that is read and closed
/// ```no_run
/// # fn main() -> kvik_core::Result<()> {
/// let map = kvik_mmap::MmapHandle::open("weights.bin")?;
/// let mut bytes = vec![0; map.map_len() as usize];
/// map.read_exact_at(&mut bytes, 0)?;
/// map.close();
/// assert!(map.is_closed() && map.read_at(&mut bytes, 0).is_err());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MmapHandle(Arc<Shared>);

struct Shared {
    // Empty when it was closed.
    opened: ArcSwapOption<Opened>,
    name: Arc<str>,
    manner: Manner,
}

struct Opened {
    map: Arc<Map>,
    engine: Arc<dyn Engine>,
    for_device: Arc<dyn Engine>,
    file: Arc<File>,
    // When it was mapped.
    len: u64,
}

/// What holds for all its calls.
pub(crate) struct Manner {
    pub(crate) place: Place,
    pub(crate) config: Option<Config>,
    pub(crate) pool: Option<ThreadPool>,
}

impl MmapHandle {
    /// Maps all of the file at `path`.
    ///
    /// # Errors
    /// As for [`MmapOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<MmapHandle> {
        MmapOptions::new().open(path)
    }

    /// Options for everything else: short for [`MmapOptions::new`].
    pub fn options() -> MmapOptions {
        MmapOptions::new()
    }
}

impl MmapHandle {
    /// Reads into `target` from byte `offset` of the file on; returns the count of bytes. It is short only where the map ends
    /// with the file, and 0 there and behind.
    ///
    /// # Errors
    /// `Misuse` if the range does not lie in what is mapped, or the map was closed; `Changed` if the file was cut short under
    /// its map, so that bytes of the range are not there any more; else what the first failing task met, after all others have
    /// stopped.
    pub fn read_at<'a>(&self, target: impl Into<Target<'a>>, offset: u64) -> Result<usize> {
        self.read_at_with(target, offset, &ReadOptions::default())
    }

    /// [`read_at`](MmapHandle::read_at) with wishes of its own.
    ///
    /// # Errors
    /// As for `read_at`; `TimedOut` if the deadline passed.
    pub fn read_at_with<'a>(
        &self,
        target: impl Into<Target<'a>>,
        offset: u64,
        options: &ReadOptions,
    ) -> Result<usize> {
        let mut target = target.into();
        self.call(offset, target.len() as u64, options)?
            .read(&mut target, offset)
    }

    /// Fills all of `target` from byte `offset` of the file on.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends before, else as for [`read_at`](MmapHandle::read_at).
    pub fn read_exact_at<'a>(&self, target: impl Into<Target<'a>>, offset: u64) -> Result<()> {
        let target = target.into();
        self.check(&*self.opened()?, offset, target.len() as u64)?;
        ReadAtExt::read_exact_at(self, target, offset)
            .map_err(|error| error.at(&self.0.manner.place))
    }

    /// Starts to read into `buffer` from byte `offset` of the file on. The map stays until the read has ended, even if it is
    /// closed before.
    pub fn submit_read<B: IoBufMut>(&self, buffer: B, offset: u64) -> Pending<B> {
        self.submit_read_with(buffer, offset, &ReadOptions::default())
    }

    /// [`submit_read`](MmapHandle::submit_read) with wishes of its own.
    pub fn submit_read_with<B: IoBufMut>(
        &self,
        mut buffer: B,
        offset: u64,
        options: &ReadOptions,
    ) -> Pending<B> {
        let len = buffer.target().len() as u64;
        match self.call(offset, len, options) {
            Ok(call) => call.submit_read(buffer, offset),
            Err(error) => refused(error, buffer),
        }
    }

    /// Reads all `pieces` in one call; returns the count of bytes of each, in the order of the pieces: short only where the map
    /// ends with the file. Each piece is read by itself: a [`gap`](ReadOptions::gap) is not asked for.
    ///
    /// # Errors
    /// As for [`read_at`](MmapHandle::read_at); range and count are those of the piece that failed.
    pub fn read_ranges(&self, pieces: &mut [ReadPiece<'_>]) -> Result<Vec<usize>> {
        self.read_ranges_with(pieces, &ReadOptions::default())
    }

    /// [`read_ranges`](MmapHandle::read_ranges) with wishes of its own.
    ///
    /// # Errors
    /// As for `read_ranges`; `TimedOut` if the deadline passed.
    pub fn read_ranges_with(
        &self,
        pieces: &mut [ReadPiece<'_>],
        options: &ReadOptions,
    ) -> Result<Vec<usize>> {
        let opened = self.opened()?;
        for piece in pieces.iter() {
            self.check(&opened, piece.offset(), piece.len() as u64)?;
        }
        self.ranges(&opened, pieces, options)
    }

    /// Which byte of the file is the first that is mapped; 0 if nothing is.
    #[must_use]
    pub fn map_offset(&self) -> u64 {
        self.map().map_or(0, |map| map.offset())
    }

    /// How many bytes are mapped: none of an empty file, and none after `close`.
    #[must_use]
    pub fn map_len(&self) -> u64 {
        self.map().map_or(0, |map| map.len() as u64)
    }

    /// How many bytes the file has now.
    ///
    /// # Errors
    /// `Misuse` after `close`; else that it cannot be known.
    pub fn file_len(&self) -> Result<u64> {
        let opened = self.opened()?;
        let metadata = opened.file.metadata();
        let metadata = metadata.map_err(|cause| Error::io(Op::Inspect, cause));
        Ok(metadata
            .map_err(|error| error.at(&self.0.manner.place))?
            .len())
    }

    /// Closes the map, for all clones of the handle. Transfers in flight go on; the file is unmapped and closed behind the last
    /// of them. Closing it again does nothing.
    pub fn close(&self) {
        self.0.opened.store(None);
    }

    /// Whether it was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.opened.load().is_none()
    }

    /// The mapped bytes, without a copy; empty after `close`.
    ///
    /// # Safety
    /// For as long as the slice is used:
    /// 1. nobody changes the mapped bytes of the file, by whatever process;
    /// 2. nobody cuts the file short, and its disk does not fail: reading a page that is gone ends the process with `SIGBUS`;
    /// 3. nobody closes the handle, or a clone of it.
    #[must_use]
    pub unsafe fn as_slice(&self) -> &[u8] {
        let Some(map) = self.map() else {
            return &[];
        };
        // SAFETY: so many bytes are mapped as long as the handle holds the map as well, which it does until somebody closes it:
        // our caller's promise 3. That they neither change nor vanish are promises 1 and 2.
        unsafe { &*map.bytes() }
    }

    pub(crate) fn new(file: File, len: u64, map: Map, manner: Manner) -> MmapHandle {
        let (map, file) = (Arc::new(map), Arc::new(file));
        let mapping = || Arc::clone(&map) as Arc<dyn FileMapping>;
        let opened = Opened {
            engine: Arc::new(MapEngine::new(mapping(), Arc::clone(&file))),
            for_device: Arc::new(MapEngine::for_slabs(mapping(), Arc::clone(&file))),
            map,
            file,
            len,
        };
        MmapHandle(Arc::new(Shared {
            opened: ArcSwapOption::from_pointee(opened),
            name: manner.place.to_string().into(),
            manner,
        }))
    }

    fn opened(&self) -> Result<Arc<Opened>> {
        self.0.opened.load_full().ok_or_else(|| {
            let why = "the map was closed";
            Error::new(ErrorKind::Misuse, Op::Read, why).at(&self.0.manner.place)
        })
    }

    fn map(&self) -> Option<Arc<Map>> {
        let opened = self.0.opened.load();
        Some(Arc::clone(&opened.as_ref()?.map))
    }

    /// How many of `len` bytes from `offset` on lie before the end of the map.
    fn within(&self, offset: u64, len: usize) -> Result<u64> {
        let end = self.opened()?.map.end();
        Ok(end.saturating_sub(offset).min(len as u64))
    }

    /// Refuses a range of which bytes are in the file and not in the map.
    fn check(&self, opened: &Opened, offset: u64, len: u64) -> Result<()> {
        let mapped = opened.map.offset()..opened.map.end();
        let end = offset.saturating_add(len);
        let is_beyond = end > mapped.end && mapped.end < opened.len;
        if len == 0 || (offset >= mapped.start && !is_beyond) {
            return Ok(());
        }
        let why = format!(
            "bytes {offset}..{end} are asked for, and {}..{} of the file are mapped",
            mapped.start, mapped.end
        );
        let error = Error::new(ErrorKind::Misuse, Op::Read, why);
        Err(error.at(&self.0.manner.place).within(offset..end, 0))
    }

    fn call(&self, offset: u64, len: u64, options: &ReadOptions) -> Result<Call> {
        let opened = self.opened()?;
        self.check(&opened, offset, len)?;
        self.call_of(&opened, len, options)
    }

    fn ranges(
        &self,
        opened: &Opened,
        pieces: &mut [ReadPiece<'_>],
        options: &ReadOptions,
    ) -> Result<Vec<usize>> {
        let len = pieces.iter().map(|piece| piece.len() as u64).sum();
        self.call_of(opened, len, options)?.read_ranges(pieces, 0)
    }

    fn call_of(&self, opened: &Opened, len: u64, options: &ReadOptions) -> Result<Call> {
        let manner = &self.0.manner;
        outside_listeners(Op::Read).map_err(|error| error.at(&manner.place))?;
        let config = manner.config.clone().unwrap_or_else(Config::current);
        let wishes = Wishes::from(options);
        let threads = match wishes.num_threads {
            Some(threads) => threads,
            None => config.num_threads()?,
        };
        let task_size = match wishes.task_size {
            Some(size) => size.bytes(),
            None => config.task_size()?.bytes().min(Plan::share(len, threads)),
        };
        Ok(Call {
            engine: Arc::clone(&opened.engine),
            for_device: Arc::clone(&opened.for_device),
            cufile: None,
            bounce_buffer_size: config.bounce_buffer_size()?.bytes(),
            pool: manner.pool.clone().unwrap_or_else(ThreadPool::global),
            threads,
            task_size,
            deadline: wishes.deadline,
            place: manner.place.clone(),
            name: Arc::clone(&self.0.name),
        })
    }
}

/// As of an object that ends where the map does, whatever the file has behind it.
impl ReadAt for MmapHandle {
    fn read_at(&self, mut target: Target<'_>, offset: u64) -> Result<usize> {
        let within = self.within(offset, target.len())?;
        self.call(offset, within, &ReadOptions::default())?
            .read(&mut target, offset)
    }

    /// Behind which byte of the file the map ends.
    fn len(&self) -> Result<u64> {
        Ok(self.opened()?.map.end())
    }

    fn read_ranges(&self, pieces: &mut [ReadPiece<'_>]) -> Result<Vec<usize>> {
        let opened = self.opened()?;
        for piece in pieces.iter() {
            let within = self.within(piece.offset(), piece.len())?;
            self.check(&opened, piece.offset(), within)?;
        }
        self.ranges(&opened, pieces, &ReadOptions::default())
    }
}

impl fmt::Debug for MmapHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (offset, len) = (self.map_offset(), self.map_len());
        write!(
            f,
            "MmapHandle({}, {len} bytes from {offset} on)",
            self.0.manner.place
        )
    }
}
