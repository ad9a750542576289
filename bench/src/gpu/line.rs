//! Two streams: one on which reads are queued, and one on which a kernel waits for what was read.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use kvik::RawStream;
use kvik_sys::{Event, EventFlags, Stream, StreamFlags};

use super::Gpu;
use super::kernel::Spin;

pub(crate) struct Line {
    gpu: Arc<Gpu>,
    reads: Stream,
    kernels: Stream,
    read: Event,
    spin: Spin,
}

impl Line {
    pub(crate) fn new(gpu: &Arc<Gpu>) -> io::Result<Self> {
        gpu.enter()?;
        let stream = || {
            let made = gpu.cuda.stream_create(StreamFlags::NON_BLOCKING);
            made.map_err(|status| gpu.failed("cuStreamCreate", status))
        };
        let (reads, kernels) = (stream()?, stream()?);
        let read = gpu.cuda.event_create(EventFlags::DISABLE_TIMING);
        Ok(Self {
            gpu: Arc::clone(gpu),
            reads,
            kernels,
            read: read.map_err(|status| gpu.failed("cuEventCreate", status))?,
            spin: Spin::load(gpu, kernels)?,
        })
    }

    /// That of the reads.
    pub(crate) fn stream(&self) -> Stream {
        self.reads
    }

    /// The same for kvik.
    pub(crate) fn raw(&self) -> RawStream {
        // SAFETY: `new` made the stream, and whoever queues on it waits before the line goes.
        unsafe { RawStream::from_raw(self.reads.as_raw()) }
    }

    /// Queues a kernel that begins when all reads are done that are queued now, and then takes so long.
    pub(crate) fn queue_kernel(&self, time: Duration) -> io::Result<()> {
        // SAFETY: `new` made event and stream, and they live as long as the line.
        let recorded = unsafe { self.gpu.cuda.event_record(self.read, self.reads) };
        recorded.map_err(|status| self.gpu.failed("cuEventRecord", status))?;
        // SAFETY: as above.
        let waits = unsafe { self.gpu.cuda.stream_wait_event(self.kernels, self.read) };
        waits.map_err(|status| self.gpu.failed("cuStreamWaitEvent", status))?;
        self.spin.queue(self.kernels, time)
    }

    /// Waits until everything is done.
    pub(crate) fn wait(&self) -> io::Result<()> {
        for stream in [self.reads, self.kernels] {
            // SAFETY: `new` made the stream, and it lives as long as the line.
            let waited = unsafe { self.gpu.cuda.stream_synchronize(stream) };
            waited.map_err(|status| self.gpu.failed("cuStreamSynchronize", status))?;
        }
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.gpu.enter().is_err() {
            return;
        }
        let _ = self.wait();
        // SAFETY: `new` made it, and this is its only release.
        let _ = unsafe { self.gpu.cuda.event_destroy(self.read) };
        for stream in [self.reads, self.kernels] {
            // SAFETY: `new` made it, this is its only release, and nothing runs on it.
            let _ = unsafe { self.gpu.cuda.stream_destroy(stream) };
        }
    }
}
