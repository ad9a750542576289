//! The fake libcuda, and what a test can ask of it.

use std::ops::Deref;
use std::path::Path;
use std::time::Duration;

use super::{Controls, Library, at, cuda};

/// The fake libcuda in this process. Calls of the driver go through [`Library::call`].
#[derive(Debug, Clone, Copy)]
pub struct FakeCuda(Controls);

impl Deref for FakeCuda {
    type Target = Controls;

    fn deref(&self) -> &Controls {
        &self.0
    }
}

impl FakeCuda {
    /// The one at [`cuda`].
    #[track_caller]
    #[must_use]
    pub fn here() -> FakeCuda {
        FakeCuda::at(&cuda())
    }

    /// The one at `path`, a copy of it.
    #[track_caller]
    #[must_use]
    pub fn at(path: &Path) -> FakeCuda {
        FakeCuda(Controls::new(Library::load(path), "fake_cuda"))
    }

    /// How many devices there are, before `cuInit` is called.
    pub fn set_devices(&self, count: usize) {
        self.control("set_devices", [count]);
    }

    /// What `cuDriverGetVersion` says, such as 12080. Younger calls then answer 801.
    pub fn set_version(&self, version: usize) {
        self.control("set_version", [version]);
    }

    /// What `cuInit` answers.
    pub fn set_init(&self, code: i32) {
        self.control("set_init", [code as usize]);
    }

    /// Bytes of each device.
    pub fn set_memory(&self, bytes: usize) {
        self.control("set_memory", [bytes]);
    }

    /// What each copy that is queued from now on takes longer.
    pub fn set_delay(&self, delay: Duration) {
        let microseconds = usize::try_from(delay.as_micros()).unwrap();
        self.control("set_delay", [microseconds]);
    }

    /// From now on, small allocations of a device follow each other without room in between, as with the real driver.
    pub fn set_dense(&self) {
        self.control("set_dense", [1]);
    }

    /// Nothing that is queued on `stream` starts until it is released.
    pub fn hold(&self, stream: usize) {
        self.control("hold", [stream, 1]);
    }

    /// Lets it go.
    pub fn release(&self, stream: usize) {
        self.control("hold", [stream, 0]);
    }

    /// Nothing that is queued anywhere starts until it is released.
    pub fn hold_all(&self) {
        self.control("hold_all", [1]);
    }

    /// Lets everything go that is not held by its stream.
    pub fn release_all(&self) {
        self.control("hold_all", [0]);
    }

    /// Has `stream` say that it is capturing (1), or not (0).
    pub fn set_capturing(&self, stream: usize, status: i32) {
        self.control("set_capturing", [stream, status as usize]);
    }

    /// Spoils the current context: from now on every call in it returns `code`.
    pub fn break_context(&self, code: i32) {
        self.control("break_context", [code as usize]);
    }

    /// How many copies were queued on a stream of another device than that of the memory.
    #[must_use]
    pub fn strays(&self) -> usize {
        self.number("strays")
    }

    /// What stands at an address of the device.
    #[track_caller]
    #[must_use]
    pub fn peek(&self, address: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let to = at(bytes.as_mut_slice());
        self.control("peek", [address, to, len]);
        bytes
    }

    /// Puts bytes there.
    #[track_caller]
    pub fn poke(&self, address: usize, bytes: &[u8]) {
        let mut bytes = bytes.to_vec();
        let from = at(bytes.as_mut_slice());
        self.control("poke", [address, from, bytes.len()]);
    }

    /// Bytes of pinned memory that were not freed.
    #[must_use]
    pub fn pinned_bytes(&self) -> usize {
        self.number("live_pinned_bytes")
    }

    /// Bytes that are registered.
    #[must_use]
    pub fn registered_bytes(&self) -> usize {
        self.number("live_registered_bytes")
    }

    /// Bytes of all devices that are in use.
    #[must_use]
    pub fn device_bytes(&self) -> usize {
        self.number("live_device_bytes")
    }

    /// Allocations and registrations of all kinds.
    #[must_use]
    pub fn allocations(&self) -> usize {
        self.number("live_allocations")
    }

    /// Contexts that were not destroyed, and primary ones that are retained.
    #[must_use]
    pub fn contexts(&self) -> usize {
        self.number("live_contexts")
    }

    /// How often the primary context of `device` is retained.
    #[must_use]
    pub fn retained(&self, device: usize) -> i32 {
        self.call("fake_cuda_retained", [device])
    }

    /// Streams that were not destroyed, without the default ones.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.number("live_streams")
    }

    /// Events that were not destroyed.
    #[must_use]
    pub fn events(&self) -> usize {
        self.number("live_events")
    }

    /// Whether a thread loads a kernel.
    pub fn is_loading(&self) -> bool {
        self.call("fake_cuda_loading", []) == 1
    }
}
