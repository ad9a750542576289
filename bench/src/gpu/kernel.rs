//! A kernel that takes as long as it is told, for cases in which the device is busy.

use std::ffi::CStr;
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kvik_sys::{Function, Stream};

use super::Gpu;

/// The kernel `spin`, loaded, and how fast the device's clock runs. It stays loaded: the process ends with the run.
pub(crate) struct Spin {
    gpu: Arc<Gpu>,
    kernel: Function,
    ticks_per_second: f64,
}

impl Spin {
    /// Compiles it, and measures how long it takes on `stream`, on which nothing else is queued.
    pub(crate) fn load(gpu: &Arc<Gpu>, stream: Stream) -> io::Result<Self> {
        gpu.enter()?;
        // SAFETY: the image is text.
        let module = unsafe { gpu.cuda.module_load_data(TEXT) };
        let module = module.map_err(|why| gpu.told("cuModuleLoadData", why))?;
        // SAFETY: the module was just loaded, and is never unloaded.
        let kernel = unsafe { gpu.cuda.module_get_function(module, c"spin") };
        let mut spin = Self {
            gpu: Arc::clone(gpu),
            kernel: kernel.map_err(|why| gpu.told("cuModuleGetFunction", why))?,
            ticks_per_second: 1.0,
        };
        // The first launch loads it.
        spin.ticks(stream, 1)?;
        spin.wait(stream)?;
        let began = Instant::now();
        spin.ticks(stream, MEASURED)?;
        spin.wait(stream)?;
        spin.ticks_per_second = MEASURED as f64 / began.elapsed().as_secs_f64();
        Ok(spin)
    }

    /// Queues it on `stream` for so long.
    pub(crate) fn queue(&self, stream: Stream, time: Duration) -> io::Result<()> {
        self.ticks(stream, (time.as_secs_f64() * self.ticks_per_second) as u64)
    }

    fn ticks(&self, stream: Stream, mut ticks: u64) -> io::Result<()> {
        let mut arguments = [NonNull::from(&mut ticks).as_ptr().cast()];
        // SAFETY: `load` got the kernel, and its callers made the stream in the same context; the kernel declares one
        // argument of this type, and touches no memory.
        let launched =
            unsafe { (self.gpu.cuda).launch_kernel(self.kernel, (1, 1), stream, &mut arguments) };
        launched.map_err(|why| self.gpu.told("cuLaunchKernel", why))
    }

    fn wait(&self, stream: Stream) -> io::Result<()> {
        // SAFETY: the callers of `load` made the stream.
        let waited = unsafe { self.gpu.cuda.stream_synchronize(stream) };
        waited.map_err(|status| self.gpu.failed("cuStreamSynchronize", status))
    }
}

/// A few milliseconds of any device's clock.
const MEASURED: u64 = 10_000_000;

/// Ended by a zero, as the driver wants it.
const TEXT: &CStr = c"
.version 6.4
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 ticks)
{
    .reg .pred %again;
    .reg .u64 %wanted, %began, %now;
    ld.param.u64 %wanted, [ticks];
    mov.u64 %began, %clock64;
more:
    mov.u64 %now, %clock64;
    sub.u64 %now, %now, %began;
    setp.lt.u64 %again, %now, %wanted;
    @%again bra more;
    ret;
}
";
