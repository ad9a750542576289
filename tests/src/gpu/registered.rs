//! Memory of the test's own that the driver has pinned.
#![expect(unsafe_code, reason = "each call has its argument beside it")]

use std::ptr::NonNull;

use kvik_sys::{Context, HostFlags};

use super::context::{primary, within};
use super::{Gpu, cuda};

/// Host memory, registered with the driver; unregistered on drop, for which no copy may be under way.
#[derive(Debug)]
pub struct Registered {
    context: Context,
    bytes: Box<[u8]>,
}

impl Registered {
    /// `len` bytes, more than 0, registered in the primary context of a device.
    #[track_caller]
    #[must_use]
    pub fn new(_: &Gpu, device: i32, len: usize) -> Registered {
        let (context, mut bytes) = (primary(device), vec![0; len].into_boxed_slice());
        let start = NonNull::from(&mut *bytes).cast();
        within(context, || {
            // SAFETY: the bytes stay where they are until `drop` has unregistered them.
            unsafe { cuda().mem_host_register(start, len, HostFlags::PORTABLE) }
        })
        .unwrap();
        Registered { context, bytes }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let start = NonNull::from(&mut *self.bytes).cast();
        let done = within(self.context, || {
            // SAFETY: `new` registered it, and nothing copies to it or from it.
            unsafe { cuda().mem_host_unregister(start) }
        });
        done.unwrap();
    }
}
