//! Reads and writes in the order of a stream of the program's own.

use kvik_stats::Direction;

use super::FileHandle;
use crate::buffer::{IoBuf, IoBufMut};
use crate::device::{RawStream, Spot};
use crate::engine::flagged::OnStream;
use crate::error::{Error, ErrorKind, Op, Result};
use crate::gds::{CuFileOnStream, Started};
use crate::memory::Memory;
use crate::options::ReadOptions;
use crate::stream_pending::{Inner, StreamPending};
use crate::target::{Source, Target};

impl FileHandle {
    /// Queues a read of the file from `offset` on into `buffer`, on a device, as many bytes as it is long, and returns at once.
    ///
    /// The read begins when the stream is there, and so finds what a write before it has put into the file, through whichever
    /// handle. Work that is queued on the stream after the call waits, on the device, until the bytes are in the buffer. At the end of
    /// the file the count is short, and the bytes of the buffer behind it are not specified: the stream has been told of the
    /// whole length before the file was looked at. Between this call's return and [`check`](StreamPending::check) no thread of kvik's
    /// calls the CUDA driver for it.
    ///
    /// A transfer that is no longer than about a gigabyte is queued without waiting; of a longer one a stream takes no more
    /// (some thousand entries) before it has come some way, and the call returns when the rest is queued. The first calls take
    /// some milliseconds more, to pin memory that the process keeps ([`free_pinned_memory`](crate::free_pinned_memory)).
    ///
    /// Where a direct path was proven for the file, cuFile moves the bytes; the first such call of a process makes what cuFile needs
    /// for it, and may wait for streams that are held. Elsewhere kvik does, under the compat mode `off` too.
    ///
    /// # Errors
    /// Refused, with nothing queued and the buffer dropped: `PermissionDenied` if the handle is not open for reading; `Misuse` for
    /// memory of the host, a stream that records a graph or is another device's, or a range beyond 2^63 - 1; `Unsupported` if the
    /// driver has no streams that wait for words in memory; `OutOfMemory`, `Device`, `Config`; `Forked` in a child of the
    /// process that used a device. What goes wrong later is told by [`check`](StreamPending::check).
    ///
    /// # Example: a read between two kernels
    /// ```no_run
    /// # fn main() -> kvik_core::Result<()> {
    /// # use kvik_core::{DeviceBuffer, FileHandle, RawStream};
    /// # let stream = RawStream::DEFAULT;
    /// let file = FileHandle::open("weights.bin")?;
    /// let weights = DeviceBuffer::new(0, file.len()? as usize)?;
    /// // ... queue a kernel on the stream ...
    /// let pending = file.read_on_stream(weights, 0, stream)?;
    /// // ... queue one that works with the weights ...
    /// let count = pending.check()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_on_stream<B: IoBufMut>(
        &self,
        buffer: B,
        offset: u64,
        stream: RawStream,
    ) -> Result<StreamPending<B>> {
        let mut buffer = Box::new(buffer);
        let target = buffer.target();
        // SAFETY: the buffer owns the memory, alone, and the answer owns the buffer until the stream is past it.
        let inner = unsafe { self.read_behind(&target, offset, stream) }?;
        Ok(StreamPending::new(inner, buffer))
    }

    /// [`read_on_stream`](FileHandle::read_on_stream) into memory that somebody else owns.
    ///
    /// # Errors
    /// As for `read_on_stream`.
    ///
    /// # Safety
    /// What [`Target::from_raw`] was promised of the memory holds from when the stream comes to the read until it is past it, also
    /// if the answer is leaked. What is queued on the stream before and behind the read may use it.
    pub unsafe fn read_on_stream_raw(
        &self,
        target: Target<'_>,
        offset: u64,
        stream: RawStream,
    ) -> Result<StreamPending<()>> {
        // SAFETY: the caller's promise.
        let inner = unsafe { self.read_behind(&target, offset, stream) }?;
        Ok(StreamPending::new(inner, Box::new(())))
    }

    /// Queues a write of all of `buffer`, on a device, at `offset` of the file, and returns at once.
    ///
    /// The bytes are those that the stream finds when it is there. Work that is queued on the stream after the call waits, on the
    /// device, until they are in the file, or the write has failed. For the rest see
    /// [`read_on_stream`](FileHandle::read_on_stream).
    ///
    /// # Errors
    /// As for `read_on_stream`; `PermissionDenied` if the handle is not open for writing.
    pub fn write_on_stream<B: IoBuf>(
        &self,
        buffer: B,
        offset: u64,
        stream: RawStream,
    ) -> Result<StreamPending<B>> {
        let buffer = Box::new(buffer);
        let source = buffer.source();
        // SAFETY: the buffer owns the memory, and the answer owns the buffer until the stream is past it.
        let inner = unsafe { self.write_behind(source, offset, stream) }?;
        Ok(StreamPending::new(inner, buffer))
    }

    /// [`write_on_stream`](FileHandle::write_on_stream) from memory that somebody else owns.
    ///
    /// # Errors
    /// As for `write_on_stream`.
    ///
    /// # Safety
    /// What [`Source::from_raw`] was promised of the memory holds from when the stream comes to the write until it is past it,
    /// also if the answer is leaked. What is queued on the stream before and behind the write may use it.
    pub unsafe fn write_on_stream_raw(
        &self,
        source: Source<'_>,
        offset: u64,
        stream: RawStream,
    ) -> Result<StreamPending<()>> {
        // SAFETY: the caller's promise.
        let inner = unsafe { self.write_behind(source, offset, stream) }?;
        Ok(StreamPending::new(inner, Box::new(())))
    }

    /// # Safety
    /// As for [`OnStream::start`].
    unsafe fn read_behind(
        &self,
        target: &Target<'_>,
        offset: u64,
        stream: RawStream,
    ) -> Result<Inner> {
        self.may_read()?;
        let memory = target.memory().within_offsets(offset);
        // SAFETY: the caller's promise.
        unsafe { self.behind(Direction::Read, memory, target.spot(), offset, stream) }
            .map_err(|error| error.during(Op::Read).at(&self.0.place))
    }

    /// # Safety
    /// As for [`OnStream::start`].
    unsafe fn write_behind(
        &self,
        source: Source<'_>,
        offset: u64,
        stream: RawStream,
    ) -> Result<Inner> {
        self.may_write()?;
        let (memory, offset) = (source.memory(), self.write_offset(offset)?);
        // SAFETY: the caller's promise.
        unsafe { self.behind(Direction::Write, memory, source.spot(), offset, stream) }
            .map_err(|error| error.during(Op::Write).at(&self.0.place))
    }

    /// # Safety
    /// As for [`OnStream::start`].
    unsafe fn behind(
        &self,
        direction: Direction,
        memory: Memory,
        spot: Option<Spot>,
        offset: u64,
        stream: RawStream,
    ) -> Result<Inner> {
        let call = self.call(memory.len() as u64, &ReadOptions::default())?;
        if memory.len() == 0 {
            return Ok(Inner::Empty);
        }
        let Some(spot) = spot else {
            let why = "memory of the host is not read or written in the order of a stream; synchronize the stream, then use read_at or \
                       write_at";
            return Err(Error::new(ErrorKind::Misuse, Op::Copy, why));
        };
        let mut span = None;
        if let Some(cufile) = &call.cufile
            && cufile.takes(memory.len() as u64, &[spot])?
        {
            // SAFETY: the caller's promise.
            let started = unsafe {
                CuFileOnStream::start(cufile, &call, direction, memory, &spot, offset, stream)
            }?;
            match started {
                Started::ByCuFile(started) => return Ok(Inner::CuFile(started)),
                Started::Otherwise(begun) => span = begun,
            }
        }
        // SAFETY: the caller's promise.
        let started =
            unsafe { OnStream::start(&call, direction, memory, &spot, offset, stream, span) };
        started.map(Inner::Flagged)
    }
}
