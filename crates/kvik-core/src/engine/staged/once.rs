//! A small read or write of device memory at once, on the calling thread: what a lane does, without its queues.
//!
//! Of a read of 4 KiB the copy to the device takes most of the time; what a lane needs to keep several tasks under way would
//! add half as much again.

use std::fs::File;
use std::ptr::NonNull;
use std::slice;

use super::sizes::Sizes;
use crate::corridor::FillWindow;
use crate::device::{CopyStream, Entered, Slab, Spot, default_stream};
use crate::engine::posix;
use crate::error::{Error, Result};
use crate::os;
use crate::target::{Source, Target};

/// Moves bytes between a file and memory of a device, through one slab.
pub(crate) struct Once {
    // Dropped in this order: all of it happens in the context.
    // Where other streams than the default one come first; else the copy is one on the default stream, which waits for it
    // by itself, and is the quickest.
    stream: Option<CopyStream>,
    slab: Slab,
    _entered: Entered,
}

impl Once {
    /// Whether `len` bytes are no more than a slab takes.
    pub(crate) fn fits(bounce_buffer_size: u64, len: usize) -> bool {
        len as u64 <= Sizes::of(bounce_buffer_size).room
    }

    /// For as many bytes as fit, once there is a slab.
    ///
    /// # Errors
    /// `Misuse` if one of the streams to wait for records a graph, or there are too many; `OutOfMemory` if no memory can be pinned; `Device` if the
    /// driver fails.
    pub(crate) fn take(spot: &Spot, bounce_buffer_size: u64) -> Result<Once> {
        let sizes = Sizes::of(bounce_buffer_size);
        spot.check()?;
        let entered = spot.context.enter()?;
        let slab = Slab::take(spot.context, sizes.slab, sizes.limit)?;
        let mut named = spot.streams.into_iter().flatten().peekable();
        let stream = match named.peek() {
            None => None,
            Some(_) => {
                let stream = CopyStream::lend(spot.context)?;
                stream.follow_default()?;
                named.try_for_each(|named| stream.follow(named))?;
                Some(stream)
            }
        };
        Ok(Once {
            stream,
            slab,
            _entered: entered,
        })
    }

    /// Fills the target, of the spot that this was taken for, from `offset` on; returns how many bytes there were, and what
    /// stopped it.
    pub(crate) fn read(
        self,
        file: &File,
        target: &mut Target<'_>,
        offset: u64,
    ) -> (usize, Option<Error>) {
        let len = target.len();
        let place = self.place(offset, len);
        // SAFETY: the place is part of the slab, which is ours alone, and has `len` bytes.
        let bytes = unsafe { slice::from_raw_parts_mut(place.cast().as_ptr(), len) };
        let mut window = FillWindow::of(bytes);
        let outcome = posix::fill(file, &mut window, offset);
        let filled = window.filled();
        let address = target.memory().start().addr() as u64;
        let copied = match &self.stream {
            Some(stream) => {
                // SAFETY: the target has `len` bytes of the device and is borrowed, like the filled part of the slab, until
                // the copy is done or the slab is given up.
                let queued = unsafe { stream.to_device(address, place, filled) };
                queued.and_then(|()| stream.synchronize())
            }
            None => {
                if let Err(error) = default_stream::refuse_capture() {
                    return (0, Some(error));
                }
                // SAFETY: as above.
                unsafe { default_stream::to_device(address, place, filled) }
            }
        };
        match copied {
            Ok(()) => (filled, outcome.err()),
            Err(error) => {
                self.give_up();
                (0, Some(error))
            }
        }
    }

    /// Writes the source, of the spot that this was taken for, at `offset`; returns how many bytes were written, and what
    /// stopped it.
    pub(crate) fn write(
        self,
        file: &File,
        source: Source<'_>,
        offset: u64,
    ) -> (usize, Option<Error>) {
        let len = source.len();
        let place = self.place(offset, len);
        let address = source.memory().start().addr() as u64;
        let copied = match &self.stream {
            Some(stream) => {
                // SAFETY: as in `read`, the other way.
                let queued = unsafe { stream.to_host(place, address, len) };
                queued.and_then(|()| stream.synchronize())
            }
            None => {
                if let Err(error) = default_stream::refuse_capture() {
                    return (0, Some(error));
                }
                // SAFETY: as above.
                unsafe { default_stream::to_host(place, address, len) }
            }
        };
        if let Err(error) = copied {
            self.give_up();
            return (0, Some(error));
        }
        // SAFETY: the place is part of the slab, which is ours alone, has `len` bytes, and the device is done with it.
        let bytes = unsafe { slice::from_raw_parts(place.as_ptr(), len) };
        posix::drain(file, bytes, offset)
    }

    /// Where in the slab the bytes from `offset` on lie: as in their page of the file, if there is room for that.
    fn place(&self, offset: u64, len: usize) -> NonNull<u8> {
        let in_page = (offset % os::page_size()) as usize;
        let before = if in_page + len <= self.slab.len() {
            in_page
        } else {
            0
        };
        // SAFETY: the slab goes on for `len` bytes from there: its users have asked `fits`.
        unsafe { self.slab.start().add(before) }
    }

    /// After a failure: a slab that the device may still be at is nobody's any more.
    fn give_up(self) {
        let quiet = match &self.stream {
            Some(stream) => stream.is_quiet(),
            None => default_stream::is_quiet(),
        };
        if !quiet {
            self.slab.abandon();
        }
    }
}
