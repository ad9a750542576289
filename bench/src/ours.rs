//! Ours: all that the benchmarks ask of kvik, in one place.

use std::path::Path;

use kvik::config::{ByteSize, Layer};
use kvik::{Config, ErrorKind, FileHandle, ReadOptions};

use crate::options::Options;
use crate::trouble::{Outcome, Trouble};

/// A file as a user of kvik has it: opened with the settings of this process, read with one call.
pub(crate) struct Ours {
    handle: FileHandle,
    /// `None`: the plain calls, without options.
    how: Option<ReadOptions>,
}

impl Ours {
    pub(crate) fn open(path: &Path, how: Option<ReadOptions>) -> Outcome<Self> {
        Ok(Self {
            handle: FileHandle::open(path)?,
            how,
        })
    }

    pub(crate) fn create(path: &Path, how: Option<ReadOptions>) -> Outcome<Self> {
        let handle = FileHandle::options()
            .read(true)
            .write(true)
            .create(true)
            .open(path)?;
        Ok(Self { handle, how })
    }

    /// Reads up to `inline_size` bytes stay on the caller's thread, larger ones go to the pool.
    pub(crate) fn open_with_inline_size(
        path: &Path,
        how: Option<ReadOptions>,
        inline_size: u64,
    ) -> Outcome<Self> {
        let layer = Layer::new().inline_size(ByteSize::new(inline_size));
        let config = Config::current().with(layer).map_err(kvik::Error::from)?;
        Ok(Self {
            handle: FileHandle::options().read(true).open_with(path, &config)?,
            how,
        })
    }

    /// Fills `target` with what the file has at `offset`.
    pub(crate) fn read(&self, target: &mut [u8], offset: u64) -> Outcome<()> {
        let len = target.len();
        let count = match &self.how {
            None => self.handle.read_at(target, offset)?,
            Some(how) => self.handle.read_at_with(target, offset, how)?,
        };
        whole(count, len)
    }

    pub(crate) fn write(&self, source: &[u8]) -> Outcome<()> {
        let count = match &self.how {
            None => self.handle.write_at(source, 0)?,
            Some(how) => self.handle.write_at_with(source, 0, how)?,
        };
        whole(count, source.len())
    }

    pub(crate) fn sync_data(&self) -> Outcome<()> {
        Ok(self.handle.sync_data()?)
    }
}

fn whole(count: usize, len: usize) -> Outcome<()> {
    if count == len {
        Ok(())
    } else {
        Err(Trouble::Unfit(format!("kvik moved {count} of {len} bytes")))
    }
}

/// What the options of the run say about each call; `None` if they say nothing.
pub(crate) fn how(threads: Option<usize>, task_size: Option<u64>) -> Option<ReadOptions> {
    if threads.is_none() && task_size.is_none() {
        return None;
    }
    let mut how = ReadOptions::new();
    if let Some(threads) = threads {
        how = how.num_threads(threads);
    }
    if let Some(task_size) = task_size {
        how = how.task_size(ByteSize::new(task_size));
    }
    Some(how)
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
