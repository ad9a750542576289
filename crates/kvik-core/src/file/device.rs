//! Small reads and writes of device memory, on the calling thread.

use std::ops::Range;

use kvik_config::Config;
use kvik_stats::{Direction, Memory, Span};

use super::FileHandle;
use crate::corridor::CuFileWay;
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
        let (len, slab) = (target.len(), self.bounce_buffer_size()?);
        let once = !self.is_for_cufile(len, target.spot())?;
        let Some(spot) = target.spot().filter(|_| once && Once::fits(slab, len)) else {
            return self.call(len as u64, options)?.read(&mut target, offset);
        };
        // Before anything is held or entered: whoever listens may do anything, and read, too.
        let span = self.begin(Direction::Read, Memory::Device, offset, len as u64);
        let (moved, error) = match Once::take(&spot, slab) {
            Ok(once) => once.read(&self.0.file, &mut target, offset),
            Err(error) => (0, Some(error)),
        };
        self.end_on_device(span, Op::Read, offset..offset + len as u64, moved, error)
    }

    /// Writes a small source on a device; `offset` is one of the file.
    pub(super) fn write_from_device(
        &self,
        source: Source<'_>,
        offset: u64,
        options: &WriteOptions,
    ) -> Result<usize> {
        let (len, slab) = (source.len(), self.bounce_buffer_size()?);
        let once = !self.is_for_cufile(len, source.spot())?;
        let Some(spot) = source.spot().filter(|_| once && Once::fits(slab, len)) else {
            return self.call(len as u64, options)?.write(source, offset);
        };
        // As in `read_to_device`.
        let span = self.begin(Direction::Write, Memory::Device, offset, len as u64);
        let (moved, error) = match Once::take(&spot, slab) {
            Ok(once) => once.write(&self.0.file, source, offset),
            Err(error) => (0, Some(error)),
        };
        self.end_on_device(span, Op::Write, offset..offset + len as u64, moved, error)
    }

    /// How cuFile moves bytes of this file, if it is to.
    pub(super) fn cufile(&self, config: &Config) -> Option<CuFileWay> {
        let threshold = || Ok(config.gds_threshold()?.bytes());
        self.0.cufile.as_ref()?.way(threshold())
    }

    pub(super) fn is_for_cufile(&self, len: usize, spot: Option<Spot>) -> Result<bool> {
        if !self.0.cufile.as_ref().is_some_and(|file| file.is_open()) {
            return Ok(false);
        }
        let config = self.0.config.clone().unwrap_or_else(Config::current);
        match self.cufile(&config) {
            Some(way) => way.takes(len as u64, spot.as_slice()),
            None => Ok(false),
        }
    }

    fn bounce_buffer_size(&self) -> Result<u64> {
        let size = match &self.0.config {
            Some(config) => config.bounce_buffer_size(),
            None => Config::current().bounce_buffer_size(),
        };
        Ok(size?.bytes())
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
