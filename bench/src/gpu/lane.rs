//! What one thread of a loop works with: a stream of its own, and slabs of pinned memory.

use std::io;
use std::sync::Arc;

use kvik_sys::{DevicePtr, Event, EventFlags, Stream, StreamFlags};

use super::Gpu;
use super::memory::{DeviceMemory, Pinned};

/// A stream and slabs. All of it is made before the clock runs, and used by one thread at a time.
pub(crate) struct Lane {
    gpu: Arc<Gpu>,
    // Dropped after `Lane::drop` has waited for the stream.
    slabs: Vec<Slab>,
    stream: Stream,
    batch: Batch,
}

/// Pinned memory, and the mark behind the last copy from it or to it.
struct Slab {
    memory: Pinned,
    copied: Event,
    under_way: bool,
}

/// Lists for the driver, kept from call to call.
#[derive(Default)]
struct Batch {
    to: Vec<DevicePtr>,
    from: Vec<DevicePtr>,
    sizes: Vec<usize>,
}

/// For whom the slabs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SlabUse {
    /// For the processor and the device.
    Copies,
    /// For the disk, too.
    DirectIo,
}

impl Lane {
    /// So many slabs of `len` bytes each.
    pub(crate) fn new(gpu: &Arc<Gpu>, slabs: usize, len: usize, what: SlabUse) -> io::Result<Self> {
        gpu.enter()?;
        let stream = gpu.cuda.stream_create(StreamFlags::NON_BLOCKING);
        let mut lane = Self {
            gpu: Arc::clone(gpu),
            slabs: Vec::with_capacity(slabs),
            stream: stream.map_err(|status| gpu.failed("cuStreamCreate", status))?,
            batch: Batch::default(),
        };
        for _ in 0..slabs {
            let memory = match what {
                SlabUse::Copies => Pinned::allocated(gpu, len),
                SlabUse::DirectIo => Pinned::registered(gpu, len),
            }?;
            let copied = gpu.cuda.event_create(EventFlags::DISABLE_TIMING);
            lane.slabs.push(Slab {
                memory,
                copied: copied.map_err(|status| gpu.failed("cuEventCreate", status))?,
                under_way: false,
            });
        }
        Ok(lane)
    }

    /// For each thread one.
    pub(crate) fn several(
        gpu: &Arc<Gpu>,
        threads: usize,
        slabs: usize,
        len: usize,
        what: SlabUse,
    ) -> io::Result<Vec<Self>> {
        (0..threads)
            .map(|_| Self::new(gpu, slabs, len, what))
            .collect()
    }

    pub(crate) fn enter(&self) -> io::Result<()> {
        self.gpu.enter()
    }

    pub(crate) fn slabs(&self) -> usize {
        self.slabs.len()
    }

    /// The bytes of a slab, once the last copy from it or to it is done.
    pub(crate) fn bytes(&mut self, slab: usize) -> io::Result<&mut [u8]> {
        let slab = &mut self.slabs[slab];
        if slab.under_way {
            // SAFETY: `new` made the event, and it lives as long as the lane.
            let waited = unsafe { self.gpu.cuda.event_synchronize(slab.copied) };
            waited.map_err(|status| self.gpu.failed("cuEventSynchronize", status))?;
            slab.under_way = false;
        }
        let (start, len) = (slab.memory.start(), slab.memory.len());
        // SAFETY: the slab owns these bytes, all of which were written once, and no copy is under way; the borrow of the
        // lane keeps everybody else out.
        Ok(unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) })
    }

    /// Starts to copy the first `len` bytes of a slab to `at` in the device's memory.
    pub(crate) fn send(
        &mut self,
        slab: usize,
        memory: &DeviceMemory,
        at: usize,
        len: usize,
    ) -> io::Result<()> {
        let (from, to) = (self.start(slab, len), memory.part(at, len));
        self.slabs[slab].under_way = true;
        // SAFETY: both ends are memory for `len` bytes. The slab stays, unchanged, until the event is waited for; the
        // device's memory is not freed before the driver is done with it.
        let copy = unsafe { (self.gpu.cuda).memcpy_htod_async(to, from, len, self.stream) };
        copy.map_err(|status| self.gpu.failed("cuMemcpyHtoDAsync", status))?;
        self.mark(slab)
    }

    /// Starts to copy `len` bytes from `at` in the device's memory to the begin of a slab.
    pub(crate) fn fetch(
        &mut self,
        slab: usize,
        memory: &DeviceMemory,
        at: usize,
        len: usize,
    ) -> io::Result<()> {
        let (to, from) = (self.start(slab, len), memory.part(at, len));
        self.slabs[slab].under_way = true;
        // SAFETY: as in `send`; nobody looks at the slab until the event is waited for.
        let copy = unsafe { (self.gpu.cuda).memcpy_dtoh_async(to, from, len, self.stream) };
        copy.map_err(|status| self.gpu.failed("cuMemcpyDtoHAsync", status))?;
        self.mark(slab)
    }

    /// Starts to copy the pieces of `size` bytes that stand one after the other in a slab to these places in the device's
    /// memory, all by one call.
    pub(crate) fn send_batch(
        &mut self,
        slab: usize,
        memory: &DeviceMemory,
        places: impl Iterator<Item = usize>,
        size: usize,
    ) -> io::Result<()> {
        let Batch { to, from, sizes } = &mut self.batch;
        to.clear();
        to.extend(places.map(|at| memory.part(at, size)));
        let start = self.slabs[slab].memory.start();
        assert!(to.len() * size <= self.slabs[slab].memory.len());
        from.clear();
        from.extend((0..to.len()).map(|index| {
            DevicePtr::of_host(start.as_ptr().wrapping_add(index * size).cast_const())
        }));
        sizes.clear();
        sizes.resize(to.len(), size);
        self.slabs[slab].under_way = true;
        let Batch { to, from, sizes } = &self.batch;
        // SAFETY: as in `send`, for each piece; pieces go to different places.
        let copies = unsafe { (self.gpu.cuda).memcpy_batch_async(to, from, sizes, self.stream) };
        copies.map_err(|why| self.gpu.told("cuMemcpyBatchAsync", why))?;
        self.mark(slab)
    }

    /// Waits until all copies are done.
    pub(crate) fn wait(&mut self) -> io::Result<()> {
        // SAFETY: `new` made the stream, and it lives as long as the lane.
        let waited = unsafe { self.gpu.cuda.stream_synchronize(self.stream) };
        waited.map_err(|status| self.gpu.failed("cuStreamSynchronize", status))?;
        self.slabs
            .iter_mut()
            .for_each(|slab| slab.under_way = false);
        Ok(())
    }

    fn start(&self, slab: usize, len: usize) -> *mut u8 {
        let memory = &self.slabs[slab].memory;
        assert!(len <= memory.len(), "a copy lies within its slab");
        memory.start().as_ptr()
    }

    fn mark(&mut self, slab: usize) -> io::Result<()> {
        // SAFETY: `new` made both, and they live as long as the lane.
        let marked = unsafe { (self.gpu.cuda).event_record(self.slabs[slab].copied, self.stream) };
        marked.map_err(|status| self.gpu.failed("cuEventRecord", status))
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        if self.gpu.enter().is_err() {
            return;
        }
        // Before the slabs go: the device may still read them.
        let _ = self.wait();
        for slab in &self.slabs {
            // SAFETY: `new` made the event, this is its only release.
            let _ = unsafe { self.gpu.cuda.event_destroy(slab.copied) };
        }
        // SAFETY: `new` made the stream, this is its only release, and nothing runs on it.
        let _ = unsafe { self.gpu.cuda.stream_destroy(self.stream) };
    }
}
