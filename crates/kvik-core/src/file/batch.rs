//! Entries of batches, which are moved together with others of the same handle.

use std::ops::Range;
use std::sync::Arc;

use kvik_stats::Direction;

use super::{FileHandle, ranges};
use crate::corridor::{Call, Plan};
use crate::device::Spot;
use crate::error::{Error, Op, Place, Result};
use crate::memory::Memory;
use crate::options::ReadOptions;

impl FileHandle {
    /// The range of an entry in the file, and as much of its memory as that has bytes for.
    ///
    /// # Errors
    /// `PermissionDenied` if the handle is not open for it; `Misuse` for a range beyond 2^63 - 1.
    pub(crate) fn entry(
        &self,
        direction: Direction,
        offset: u64,
        memory: Memory,
    ) -> Result<(Range<u64>, Memory)> {
        let (offset, memory, op) = match direction {
            Direction::Read => {
                self.may_read()?;
                (offset, memory.within_offsets(offset), Op::Read)
            }
            Direction::Write => {
                self.may_write()?;
                (self.write_offset(offset)?, memory, Op::Write)
            }
        };
        let explain = |error: Error| error.during(op).at(&self.0.place);
        let plan = Plan::new(offset, memory.len() as u64, u64::MAX).map_err(explain)?;
        Ok((plan.range(), memory))
    }

    /// Whether an entry of so many bytes at `spot` is for cuFile.
    pub(crate) fn entry_is_for_cufile(&self, len: usize, spot: Option<Spot>) -> Result<bool> {
        self.is_for_cufile(len, spot)
            .map_err(|error| error.at(&self.0.place))
    }

    /// What moves entries of `size` bytes in all, and up to how many bytes between two of them are read along.
    pub(crate) fn entries_call(&self, size: u64, options: &ReadOptions) -> Result<(Call, u64)> {
        Ok((self.call(size, options)?, ranges::gap(options)))
    }

    /// What tells the open file from all others.
    pub(crate) fn identity(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    pub(crate) fn place(&self) -> &Place {
        &self.0.place
    }
}
