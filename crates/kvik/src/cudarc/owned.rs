//! Memory of cudarc that a transfer in the background owns: [`Owned`].

use std::fmt;

use kvik_core::{IoBuf, IoBufMut, Result, Source, Target};

use super::bits::AnyBits;
use super::current::Current;
use super::driver::{CudaContext, CudaSlice, PinnedHostSlice};
use super::memory::{AsSource, AsTarget};

/// A `CudaSlice` or `PinnedHostSlice` for [`submit_read`](kvik_core::FileHandle::submit_read) and
/// [`submit_write`](kvik_core::FileHandle::submit_write), which own their buffer until they are done.
///
/// # Example: a read in the background
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use kvik::FileHandle;
/// use kvik::cudarc::{Owned, driver::CudaContext};
///
/// let slice = CudaContext::new(0)?.new_stream()?.alloc_zeros::<u8>(1 << 20)?;
/// let pending = FileHandle::open("weights.bin")?.submit_read(Owned::new(slice)?, 0);
/// let (count, buffer) = pending.finish();
/// let (count, slice) = (count?, buffer.into_inner());
/// # Ok(())
/// # }
/// ```
pub struct Owned<M: Own> {
    // Lent out by `IoBufMut` and `IoBuf` alone, for as long as this value is borrowed.
    target: Target<'static>,
    source: Source<'static>,
    // None only once `into_inner` has taken it.
    memory: Option<M>,
}

impl<M: Own> Owned<M> {
    /// Takes the memory, which nobody uses until it is given back. What was queued before is waited for by the transfer, on
    /// the device.
    ///
    /// # Errors
    /// As for [`target`](super::target); the memory is freed then.
    pub fn new(mut memory: M) -> Result<Owned<M>> {
        match lend(&mut memory) {
            Ok((target, source)) => Ok(Owned {
                target,
                source,
                memory: Some(memory),
            }),
            Err(error) => {
                free(memory);
                Err(error)
            }
        }
    }

    /// Gives the memory back.
    #[must_use]
    pub fn into_inner(mut self) -> M {
        self.memory
            .take()
            .expect("only this takes it, and consumes the value")
    }
}

// SAFETY: the memory is an allocation of the driver, which moving the value does not move and only dropping it frees; it
// cannot be used by anybody else, since nothing but `into_inner` gives access to it.
unsafe impl<M: Own> IoBuf for Owned<M> {
    fn source(&self) -> Source<'_> {
        self.source
    }
}

// SAFETY: as for `IoBuf`; no other value owns the memory.
unsafe impl<M: Own> IoBufMut for Owned<M> {
    fn target(&mut self) -> Target<'_> {
        self.target.reborrow()
    }
}

impl<M: Own> Drop for Owned<M> {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            free(memory);
        }
    }
}

/// What `memory` is lent out as by the [`Owned`] that it is moved into.
fn lend<M: Own>(memory: &mut M) -> Result<(Target<'static>, Source<'static>)> {
    let place = memory.writable()?;
    // SAFETY: the place is that of the memory, which moving it does not move (see `Own`), and which holds its stream. Its
    // owner hands out neither of the two for longer than it is borrowed itself.
    let target = unsafe { place.target() }?;
    // SAFETY: as above.
    let source = unsafe { place.source() }?;
    Ok((target, source))
}

/// Frees memory in its context: cudarc does it in the one that is current, and that is another one on other threads.
fn free<M: Own>(memory: M) {
    let current = Current::set(memory.context());
    drop(memory);
    drop(current);
}

impl<M: Own> fmt::Debug for Owned<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owned({} bytes)", self.source.len())
    }
}

/// Memory of cudarc that can be [`Owned`]: `CudaSlice` and `PinnedHostSlice` of [`AnyBits`].
pub trait Own: AsTarget + AsSource + sealed::Context + Send + 'static {}

impl<T: AnyBits + 'static> Own for CudaSlice<T> {}
impl<T: AnyBits + 'static> Own for PinnedHostSlice<T> {}

/// Only here: whoever implements it owns an allocation of the driver, whose address does not change when it is moved.
mod sealed {
    use super::{CudaContext, CudaSlice, PinnedHostSlice};

    pub trait Context {
        fn context(&self) -> &CudaContext;
    }

    impl<T> Context for CudaSlice<T> {
        fn context(&self) -> &CudaContext {
            CudaSlice::context(self)
        }
    }

    impl<T> Context for PinnedHostSlice<T> {
        fn context(&self) -> &CudaContext {
            PinnedHostSlice::context(self)
        }
    }
}
