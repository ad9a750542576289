//! One device, by the driver's own calls: what the plain loops and the checks are made of.

use std::io;
use std::sync::Arc;

use kvik_sys::{CallError, Candidates, Context, Cuda, CudaStatus};

use crate::trouble::{Outcome, Trouble};

/// The driver, and the primary context of one device, in which the CUDA runtime and every framework work.
pub(crate) struct Gpu {
    pub(super) cuda: Cuda,
    context: Context,
    /// How it is called, and by which version of the driver, in a sentence.
    pub(crate) about: String,
}

impl Gpu {
    /// The device of this ordinal. Its context is held until the process ends, and is current on this thread from now on.
    pub(crate) fn open(ordinal: i32) -> Outcome<Arc<Self>> {
        // SAFETY: the names are those of the vendor's library, or the file that the user names as such in the settings.
        let cuda = unsafe { Cuda::load(&candidates()?) }.map_err(|why| no_gpu(&why.to_string()))?;
        let said = |call: &str, status| no_gpu(&in_words(&cuda, call, status));
        cuda.init().map_err(|status| said("cuInit", status))?;
        let count = cuda
            .device_get_count()
            .map_err(|status| said("cuDeviceGetCount", status))?;
        if ordinal < 0 || ordinal >= count {
            let why = format!("there is no device {ordinal}: the driver shows {count}");
            return Err(no_gpu(&why));
        }
        let device = cuda
            .device_get(ordinal)
            .map_err(|status| said("cuDeviceGet", status))?;
        let context = cuda
            .device_primary_ctx_retain(device)
            .map_err(|status| said("cuDevicePrimaryCtxRetain", status))?;
        let name = cuda.device_get_name(device).unwrap_or_default();
        let version = cuda.driver_get_version().unwrap_or(0);
        let about = format!(
            "device {ordinal}: {name}, by a driver for CUDA {}.{}",
            version / 1000,
            version % 1000 / 10
        );
        let gpu = Arc::new(Self {
            cuda,
            context,
            about,
        });
        gpu.enter().map_err(|why| no_gpu(&why.to_string()))?;
        Ok(gpu)
    }

    /// Makes the context current on the calling thread, as every call that follows wants it.
    pub(crate) fn enter(&self) -> io::Result<()> {
        // SAFETY: the context is held by `open` and never given back.
        let entered = unsafe { self.cuda.ctx_set_current(Some(self.context)) };
        entered.map_err(|status| self.failed("cuCtxSetCurrent", status))
    }

    /// Bytes of the device's memory that are free.
    pub(crate) fn free_memory(&self) -> io::Result<u64> {
        let told = self.cuda.mem_get_info();
        let (free, _) = told.map_err(|status| self.failed("cuMemGetInfo", status))?;
        Ok(free as u64)
    }

    pub(super) fn failed(&self, call: &str, status: CudaStatus) -> io::Error {
        io::Error::other(in_words(&self.cuda, call, status))
    }

    /// The same for a call that the driver may lack.
    pub(super) fn told(&self, call: &str, why: CallError<CudaStatus>) -> io::Error {
        match why {
            CallError::Status(status) => self.failed(call, status),
            other => io::Error::other(other.to_string()),
        }
    }
}

/// Where the driver's library is looked for: where kvik looks for it.
fn candidates() -> Outcome<Candidates> {
    let named = kvik::Config::current()
        .cuda_library()
        .map_err(kvik::Error::from)?;
    Ok(match named {
        Some(path) => Candidates::only(path),
        None => Candidates::cuda(),
    })
}

fn in_words(cuda: &Cuda, call: &str, status: CudaStatus) -> String {
    format!("{call}: {}", cuda.text(status))
}

fn no_gpu(why: &str) -> Trouble {
    Trouble::Unfit(format!(
        "no GPU to measure: {why}; this suite wants a machine with an NVIDIA GPU and its driver, which the repository's \
         `cargo xtask gpu-bundle` carries everything to; `kvik doctor` says what is here"
    ))
}
