//! A transfer in the order of a stream, with the buffer that it still touches.

use std::fmt;

use crate::engine::flagged::OnStream;
use crate::error::Result;
use crate::gds::CuFileOnStream;

/// A read or write that a stream of the program's comes to in its turn, and the buffer that it owns until then.
///
/// The program goes on at once, and may queue more on the stream: what comes behind a read finds the bytes in the buffer, and
/// what comes behind a write finds them in the file. Whether all went well is known when the stream is past it:
/// [`check`](StreamPending::check) waits for that. Dropping it waits, too, since the buffer goes with it; leaking it leaks the
/// buffer, and nothing worse. It cannot be cancelled: what is queued on a stream stays there.
#[must_use = "dropping it waits for the stream"]
pub struct StreamPending<B> {
    inner: Inner,
    // None once `finish` has taken it. Boxed before its address was taken: it does not move with this value.
    buffer: Option<Box<B>>,
}

pub(crate) enum Inner {
    /// There was nothing to move.
    Empty,
    Flagged(OnStream),
    CuFile(Box<CuFileOnStream>),
}

impl<B> StreamPending<B> {
    pub(crate) fn new(inner: Inner, buffer: Box<B>) -> StreamPending<B> {
        StreamPending {
            inner,
            buffer: Some(buffer),
        }
    }

    /// Waits until the stream is past the transfer, and gives the count of bytes: of a read, short only at the end of the data as
    /// it was in the stream's order. It can be asked for again.
    ///
    /// # Errors
    /// What stopped it: the kinds of [`FileHandle::read_at`](crate::FileHandle::read_at) and
    /// [`write_at`](crate::FileHandle::write_at). `Device` if something else went wrong in the stream's context, of which nothing
    /// works any more then. `Forked` in a child of the process that started it.
    pub fn check(&self) -> Result<usize> {
        match &self.inner {
            Inner::Empty => Ok(0),
            Inner::Flagged(flagged) => flagged.wait(),
            Inner::CuFile(cufile) => cufile.wait(),
        }
    }

    /// Whether the outcome is there, so that [`check`](StreamPending::check) returns at once. Of a transfer that is not done for a
    /// second, it asks the driver from time to time whether the stream's context has failed.
    #[must_use]
    pub fn is_done(&self) -> bool {
        match &self.inner {
            Inner::Empty => true,
            Inner::Flagged(flagged) => flagged.is_done(),
            Inner::CuFile(cufile) => cufile.is_done(),
        }
    }

    /// Waits, then gives the buffer back, whatever the outcome was. Ask [`check`](StreamPending::check) first for the count.
    #[must_use]
    pub fn into_buf(self) -> B {
        self.finish().1
    }

    /// Waits, then gives outcome and buffer.
    pub fn finish(mut self) -> (Result<usize>, B) {
        let outcome = self.check();
        // Only this function, which consumes the value, takes it out.
        let buffer = self
            .buffer
            .take()
            .expect("a pending transfer holds its buffer");
        (outcome, *buffer)
    }
}

impl<B> Drop for StreamPending<B> {
    fn drop(&mut self) {
        // The outcome is nobody's concern any more; in a forked child this returns at once.
        let _ = self.check();
    }
}

impl<B> fmt::Debug for StreamPending<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inner {
            Inner::Empty => write!(f, "StreamPending"),
            Inner::Flagged(flagged) => write!(f, "StreamPending({flagged:?})"),
            Inner::CuFile(cufile) => write!(f, "StreamPending({cufile:?})"),
        }
    }
}
