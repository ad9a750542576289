//! A device for tests, real or faked: memory of all kinds, contexts and streams, made and looked at by the driver's own
//! calls, so that kvik is judged by somebody else.
//!
//! Which driver it is, [`need::gpu`](crate::need::gpu) decides. Nothing here knows whether it is the fake.
//!
//! ```no_run
//! use kvik_tests::gpu::{Gpu, Kind, Memory};
//!
//! let gpu = kvik_tests::need::gpu();
//! let mut memory = Memory::new(&gpu, 0, Kind::Plain, 1000);
//! memory.set(0xEE);
//! kvik::FileHandle::open("file").unwrap().read_at(memory.target(3..903), 0).unwrap();
//! assert_eq!(memory.bytes()[..3], [0xEE; 3]);
//! ```
#![expect(unsafe_code, reason = "each call has its argument beside it")]

mod context;
mod kernel;
mod memory;
mod registered;
mod registering;
mod stream;

use std::sync::{Condvar, Mutex, OnceLock, PoisonError};

use kvik::{Config, Layer};
use kvik_sys::{Candidates, Cuda};

use crate::fake;

pub use context::{OwnContext, current};
pub use kernel::Kernels;
pub use memory::{Kind, Memory};
pub use registered::Registered;
pub use registering::{deregister, register};
pub use stream::{Held, Stream};

/// The driver, started, and its devices. One test of a process has it at a time: what the process has pinned is looked at.
#[derive(Debug)]
pub struct Gpu {
    devices: i32,
    _turn: Turn,
}

impl Gpu {
    /// How many devices there are, one at least.
    #[must_use]
    pub fn devices(&self) -> i32 {
        self.devices
    }

    /// The system's driver if `real`, else the fake one.
    ///
    /// # Errors
    /// Why it shows no device.
    pub(crate) fn take(real: bool) -> Result<Gpu, String> {
        let turn = Turn::take();
        if !real {
            Config::set_process(Layer::new().cuda_library(Some(fake::cuda()))).unwrap();
            // A machine that has one has the real cuFile, too, which must not meet the fake driver.
            kvik::driver::for_tests::show_direct_path(Err("the device is a fake"));
        }
        let cuda = driver(real)?;
        let devices = cuda
            .device_get_count()
            .map_err(|status| cuda.text(status))?;
        match devices {
            0 => Err("the driver shows no device".to_owned()),
            devices => Ok(Gpu {
                devices,
                _turn: turn,
            }),
        }
    }
}

/// The driver that the first `Gpu` of this process chose.
fn cuda() -> &'static Cuda {
    match CUDA.get() {
        Some(Ok(cuda)) => cuda,
        _ => panic!("need::gpu comes first"),
    }
}

fn driver(real: bool) -> Result<&'static Cuda, String> {
    let load = || {
        let candidates = match real {
            true => Candidates::cuda(),
            false => Candidates::only(fake::cuda()),
        };
        // SAFETY: the names are those of the vendor's library, or the fake that cargo has built.
        let cuda = unsafe { Cuda::load(&candidates) }.map_err(|error| error.to_string())?;
        cuda.init().map_err(|status| cuda.text(status))?;
        Ok(cuda)
    };
    CUDA.get_or_init(load).as_ref().map_err(String::clone)
}

/// Whoever has it is the only one. Unlike the guard of a lock it may be handed to other threads.
#[derive(Debug)]
struct Turn;

impl Turn {
    fn take() -> Turn {
        let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = GIVEN_BACK.wait_while(taken, |taken| *taken);
        *waited.unwrap_or_else(PoisonError::into_inner) = true;
        Turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = false;
        GIVEN_BACK.notify_one();
    }
}

static TAKEN: Mutex<bool> = Mutex::new(false);
static GIVEN_BACK: Condvar = Condvar::new();
static CUDA: OnceLock<Result<Cuda, String>> = OnceLock::new();
