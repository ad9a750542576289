//! Small reads and writes of device memory, on the calling thread.

use std::ops::Range;

use kvik_config::Config;
use kvik_stats::{Direction, Memory, Span};

use super::FileHandle;
use crate::device::Spot;
use crate::engine::staged::Once;
use crate::error::{Error, Op, Result};
use crate::options::{ReadOptions, WriteOptions};
use crate::target::{Source, Target};

impl FileHandle {
    /// Fills a small target on a device.
    pub(super) fn read_to_device(
        &self,
        mut target: Target<'_>,
        offset: u64,
        options: &ReadOptions,
    ) -> Result<usize> {
        let len = target.len();
        let once = target.spot().map(|spot| self.once(&spot, len, Op::Read));
        let Some(once) = once.transpose()?.flatten() else {
            return self.call(len as u64, options)?.read(&mut target, offset);
        };
        let span = self.begin(Direction::Read, Memory::Device, offset, len as u64);
        let (moved, error) = once.read(&self.0.file, &mut target, offset);
        self.end_on_device(span, Op::Read, offset..offset + len as u64, moved, error)
    }

    /// Writes a small source on a device; `offset` is one of the file.
    pub(super) fn write_from_device(
        &self,
        source: Source<'_>,
        offset: u64,
        options: &WriteOptions,
    ) -> Result<usize> {
        let len = source.len();
        let once = source.spot().map(|spot| self.once(&spot, len, Op::Write));
        let Some(once) = once.transpose()?.flatten() else {
            return self.call(len as u64, options)?.write(source, offset);
        };
        let span = self.begin(Direction::Write, Memory::Device, offset, len as u64);
        let (moved, error) = once.write(&self.0.file, source, offset);
        self.end_on_device(span, Op::Write, offset..offset + len as u64, moved, error)
    }

    fn once(&self, spot: &Spot, len: usize, op: Op) -> Result<Option<Once>> {
        let size = match &self.0.config {
            Some(config) => config.bounce_buffer_size(),
            None => Config::current().bounce_buffer_size(),
        };
        Once::take(spot, size?.bytes(), len).map_err(|error| error.during(op).at(&self.0.place))
    }

    fn end_on_device(
        &self,
        span: Span,
        op: Op,
        range: Range<u64>,
        moved: usize,
        error: Option<Error>,
    ) -> Result<usize> {
        span.finish(moved as u64, error.is_none());
        match error {
            Some(error) => {
                let error = error.during(op).at(&self.0.place);
                Err(error.within(range, moved as u64))
            }
            None => Ok(moved),
        }
    }
}
