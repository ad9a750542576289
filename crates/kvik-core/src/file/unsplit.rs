//! Reads and writes in one go on the calling thread, for those who cut and spread the work themselves.

use super::FileHandle;
use crate::corridor::Call;
use crate::error::Result;
use crate::options::ReadOptions;
use crate::target::{Source, Target};

impl FileHandle {
    /// Reads into `target` from `offset` on, as [`read_at`](FileHandle::read_at), by the calling thread alone and without cutting
    /// the range into tasks. Where cuFile moves the bytes, that is one call of cuFile's unless it falls short; what is staged
    /// goes slab by slab.
    ///
    /// # Errors
    /// As for `read_at`.
    pub fn read_unsplit<'a>(&self, target: impl Into<Target<'a>>, offset: u64) -> Result<usize> {
        self.may_read()?;
        let mut target = target.into();
        self.unsplit(target.len())?.read(&mut target, offset)
    }

    /// Writes all of `source` at `offset` and returns its length, as [`write_at`](FileHandle::write_at), in the way of
    /// [`read_unsplit`](FileHandle::read_unsplit).
    ///
    /// # Errors
    /// As for `write_at`.
    pub fn write_unsplit<'a>(&self, source: impl Into<Source<'a>>, offset: u64) -> Result<usize> {
        self.may_write()?;
        let source = source.into();
        let offset = self.write_offset(offset)?;
        self.unsplit(source.len())?.write(source, offset)
    }

    fn unsplit(&self, len: usize) -> Result<Call> {
        let mut call = self.call(len as u64, &ReadOptions::new().num_threads(1))?;
        call.task_size = u64::MAX;
        Ok(call)
    }
}
