//! Kernels: work of the device's own, by which a test keeps it busy or has it look at memory in the order of a stream.
#![expect(unsafe_code, reason = "each call has its argument beside it")]

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use kvik_sys::{Context, Function};

use super::context::{primary, within};
use super::{Gpu, Memory, Stream, cuda};

/// The kernels of kernels.ptx in the primary context of a device, compiled; each is loaded when it is launched first. They
/// are left to the process.
#[derive(Clone, Copy, Debug)]
pub struct Kernels {
    context: Context,
    spin: Function,
    differ: Function,
}

impl Kernels {
    /// Compiles them. With `CUDA_MODULE_LOADING=EAGER` they are loaded at once.
    #[track_caller]
    #[must_use]
    pub fn new(_: &Gpu, device: i32) -> Kernels {
        let context = primary(device);
        within(context, || {
            let text = CStr::from_bytes_with_nul(TEXT.as_bytes()).unwrap();
            // SAFETY: it is text.
            let module = unsafe { cuda().module_load_data(text) }.unwrap();
            let kernel = |name| {
                // SAFETY: the module was just loaded, and is never unloaded.
                unsafe { cuda().module_get_function(module, name) }.unwrap()
            };
            Kernels {
                context,
                spin: kernel(c"spin"),
                differ: kernel(c"differ"),
            }
        })
    }

    /// Queues one that takes so many ticks of the clock of the device: a nanosecond has two of them on a real one, about.
    #[track_caller]
    pub fn spin(&self, stream: Stream, mut ticks: u64) {
        self.launch(self.spin, (1, 1), stream, &mut [argument(&mut ticks)]);
    }

    /// Queues one that looks at two pieces of memory, of which the second is as long at least as the first, and adds to the
    /// first four bytes of `count` how many bytes of the first differ.
    ///
    /// All three are to be kept until the stream is past it, and nobody else queues one with the same `count` meanwhile.
    #[track_caller]
    pub fn differ(&self, stream: Stream, one: &Memory, other: &Memory, count: &Memory) {
        assert!(one.len() <= other.len() && count.len() >= 4);
        let (mut one, mut len) = (one.address(), one.len() as u64);
        let (mut other, mut count) = (other.address(), count.address());
        let mut arguments = [
            argument(&mut one),
            argument(&mut other),
            argument(&mut len),
            argument(&mut count),
        ];
        self.launch(self.differ, (1024, 256), stream, &mut arguments);
    }

    #[track_caller]
    fn launch(
        &self,
        kernel: Function,
        shape: (u32, u32),
        stream: Stream,
        arguments: &mut [*mut c_void],
    ) {
        within(self.context, || {
            // SAFETY: kernel and stream are never destroyed. The callers pass what the text declares, and memory that the
            // test keeps until it has waited.
            unsafe { cuda().launch_kernel(kernel, shape, stream.handle(), arguments) }
        })
        .unwrap();
    }
}

fn argument(value: &mut u64) -> *mut c_void {
    NonNull::from(value).as_ptr().cast()
}

/// Ended by a zero, as the driver wants it.
const TEXT: &str = concat!(include_str!("kernels.ptx"), "\0");
