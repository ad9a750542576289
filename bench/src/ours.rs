//! Ours: all that the benchmarks ask of kvik, in one place.

use std::path::Path;

use kvik::config::{ByteSize, Layer};
use kvik::{
    CompatMode, Config, EngineKind, EnginePreference, ErrorKind, FileHandle, HostBuffer, RawStream,
    ReadOptions, ReadPiece, Source, StreamPending, Target,
};

use crate::options::Options;
use crate::trouble::{Outcome, Trouble};

/// How kvik is asked to move the bytes. The default: the plain calls, with the settings of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wish {
    /// Threads of a call, at most.
    pub(crate) threads: Option<usize>,
    pub(crate) task_size: Option<u64>,
    pub(crate) engine: EnginePreference,
    /// Which way memory of a device goes; `None`: what the settings say.
    pub(crate) compat: Option<CompatMode>,
}

impl Wish {
    /// What the options of the run say about each call.
    pub(crate) fn of(options: &Options) -> Self {
        Self {
            threads: options.threads,
            task_size: options.task_size,
            ..Self::default()
        }
    }

    /// The same, by this engine and no other.
    pub(crate) fn only(&self, engine: EngineKind) -> Self {
        Self {
            engine: EnginePreference::Only(engine),
            ..self.clone()
        }
    }

    /// `None` if nothing is said about a call.
    fn options(&self) -> Option<ReadOptions> {
        if self.threads.is_none() && self.task_size.is_none() {
            return None;
        }
        let mut how = ReadOptions::new();
        if let Some(threads) = self.threads {
            how = how.num_threads(threads);
        }
        if let Some(task_size) = self.task_size {
            how = how.task_size(ByteSize::new(task_size));
        }
        Some(how)
    }
}

/// The engine of this name, if this build of kvik has it.
pub(crate) fn engine(name: &str) -> Outcome<EngineKind> {
    let found = EngineKind::ALL.iter().find(|kind| kind.to_string() == name);
    found
        .copied()
        .ok_or_else(|| Trouble::Unfit(format!("this build of kvik has no engine {name}")))
}

/// A file as a user of kvik has it: opened with the settings of this process, read with one call.
pub(crate) struct Ours {
    handle: FileHandle,
    how: Option<ReadOptions>,
}

impl Ours {
    pub(crate) fn open(path: &Path, wish: &Wish) -> Outcome<Self> {
        let mut options = FileHandle::options().read(true).engine(wish.engine);
        if let Some(compat) = wish.compat {
            options = options.compat(compat);
        }
        Ok(Self {
            handle: options.open(path)?,
            how: wish.options(),
        })
    }

    pub(crate) fn create(path: &Path, wish: &Wish) -> Outcome<Self> {
        let handle = FileHandle::options()
            .read(true)
            .write(true)
            .create(true)
            .engine(wish.engine)
            .open(path)?;
        Ok(Self {
            handle,
            how: wish.options(),
        })
    }

    /// For reads in the order of a stream, which go by what the handle says, and not the call.
    pub(crate) fn open_for_streams(path: &Path, threads: usize) -> Outcome<Self> {
        let layer = Layer::new().num_threads(threads);
        let config = Config::current().with(layer).map_err(kvik::Error::from)?;
        Ok(Self {
            handle: FileHandle::options().read(true).open_with(path, &config)?,
            how: None,
        })
    }

    /// Reads up to `inline_size` bytes stay on the caller's thread, larger ones go to the pool.
    pub(crate) fn open_with_inline_size(
        path: &Path,
        wish: &Wish,
        inline_size: u64,
    ) -> Outcome<Self> {
        let layer = Layer::new().inline_size(ByteSize::new(inline_size));
        let config = Config::current().with(layer).map_err(kvik::Error::from)?;
        Ok(Self {
            handle: FileHandle::options().read(true).open_with(path, &config)?,
            how: wish.options(),
        })
    }

    /// Fills `target` with what the file has at `offset`.
    pub(crate) fn read(&self, target: &mut [u8], offset: u64) -> Outcome<()> {
        self.read_to(Target::from(target), offset)
    }

    /// The same for memory that is no slice.
    pub(crate) fn read_to(&self, target: Target<'_>, offset: u64) -> Outcome<()> {
        let len = target.len();
        let count = match &self.how {
            None => self.handle.read_at(target, offset)?,
            Some(how) => self.handle.read_at_with(target, offset, how)?,
        };
        whole(count, len)
    }

    /// Queues a read to memory of a device on `stream`.
    ///
    /// # Safety
    /// While the answer is there, nobody else uses the memory.
    pub(crate) unsafe fn read_on_stream(
        &self,
        target: Target<'_>,
        offset: u64,
        stream: RawStream,
    ) -> Outcome<OnStream> {
        let len = target.len();
        // SAFETY: the caller's promise; dropping the answer waits.
        let pending = unsafe { self.handle.read_on_stream_raw(target, offset, stream) }?;
        Ok(OnStream { pending, len })
    }

    /// The first `len` bytes of the file, in memory that is allocated for them.
    pub(crate) fn read_fresh(&self, len: usize) -> Outcome<HostBuffer> {
        let mut bytes = HostBuffer::new(len)?;
        self.read(&mut bytes, 0)?;
        Ok(bytes)
    }

    /// Fills each `size` bytes of `target` with what the file has at the offset of the same number.
    pub(crate) fn read_list(&self, target: &mut [u8], offsets: &[u64], size: usize) -> Outcome<()> {
        let pieces = target.chunks_mut(size).zip(offsets);
        let mut pieces: Vec<_> = pieces
            .map(|(piece, &at)| ReadPiece::new(at, piece))
            .collect();
        self.read_pieces(&mut pieces)
    }

    /// Fills all of the pieces, in one call.
    pub(crate) fn read_pieces(&self, pieces: &mut [ReadPiece<'_>]) -> Outcome<()> {
        let counts = match &self.how {
            None => self.handle.read_ranges(pieces)?,
            Some(how) => self.handle.read_ranges_with(pieces, how)?,
        };
        let mut counts = counts.into_iter().zip(pieces);
        counts.try_for_each(|(count, piece)| whole(count, piece.len()))
    }

    pub(crate) fn write<'a>(&self, source: impl Into<Source<'a>>) -> Outcome<()> {
        let source = source.into();
        let len = source.len();
        let count = match &self.how {
            None => self.handle.write_at(source, 0)?,
            Some(how) => self.handle.write_at_with(source, 0, how)?,
        };
        whole(count, len)
    }

    pub(crate) fn sync_data(&self) -> Outcome<()> {
        Ok(self.handle.sync_data()?)
    }
}

/// A read that was queued on a stream.
pub(crate) struct OnStream {
    pending: StreamPending<()>,
    len: usize,
}

impl OnStream {
    /// Waits until the bytes are there.
    pub(crate) fn wait(self) -> Outcome<()> {
        whole(self.pending.check()?, self.len)
    }
}

pub(crate) fn whole(count: usize, len: usize) -> Outcome<()> {
    if count == len {
        Ok(())
    } else {
        Err(Trouble::Unfit(format!("kvik moved {count} of {len} bytes")))
    }
}

/// How many threads kvik uses for one call at most.
pub(crate) fn threads(options: &Options) -> Outcome<usize> {
    match options.threads {
        Some(0) => Err(Trouble::Misuse(
            "the number of threads must be positive".into(),
        )),
        Some(threads) => Ok(threads),
        None => Ok(Config::current().num_threads().map_err(kvik::Error::from)?),
    }
}

/// Takes the first `len` bytes of the file out of the page cache, so that they come from a disk.
pub(crate) fn make_cold(path: &Path, len: u64) -> Outcome<()> {
    if drop_from_cache(path, len)? > STILL_CACHED {
        let why = "the file stays in the page cache, so that nothing comes from a disk";
        return Err(Trouble::Unfit(why.into()));
    }
    Ok(())
}

/// Takes the file out of the page cache; what is still there afterwards, as a share of its first `len` bytes. Of a file of
/// somebody else the kernel does not tell; that counts as nothing.
pub(crate) fn drop_from_cache(path: &Path, len: u64) -> Outcome<f64> {
    kvik::drop_file_page_cache(path, 0, 0, true)?;
    match kvik::page_cache_info(path, 0, len) {
        Ok(info) => Ok(info.resident_pages as f64 / (info.total_pages as f64).max(1.0)),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(0.0),
        Err(error) => Err(error.into()),
    }
}

// A page or two that somebody holds on to do not make a file hot.
const STILL_CACHED: f64 = 0.02;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_found_by_its_name_and_a_missing_one_is_a_reason() {
        assert_eq!(engine("posix").expect("always there"), EngineKind::Posix);
        let missing = engine("teleport").expect_err("not there");
        assert!(missing.ends_only_the_case(), "{missing}");
    }

    #[test]
    fn fresh_memory_and_lists_hold_the_file() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let content: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
        std::fs::write(file.path(), &content).expect("written");
        let ours = Ours::open(file.path(), &Wish::default()).expect("opened");
        assert_eq!(ours.read_fresh(content.len()).expect("read")[..], content);
        let mut target = [0; 30];
        ours.read_list(&mut target, &[500, 0, 99_990], 10)
            .expect("read");
        assert_eq!(target[..10], content[500..510]);
        assert_eq!(target[10..20], content[..10]);
        assert_eq!(target[20..], content[99_990..]);
        assert!(ours.read_list(&mut target, &[99_991], 10).is_err());
    }

    #[test]
    fn a_wish_without_words_makes_no_options() {
        assert!(Wish::default().options().is_none());
        let wish = Wish {
            threads: Some(2),
            ..Wish::default()
        };
        assert!(wish.options().is_some());
        assert_eq!(
            wish.only(EngineKind::Posix).engine,
            EnginePreference::Only(EngineKind::Posix)
        );
    }
}
