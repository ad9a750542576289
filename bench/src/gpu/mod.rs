//! The device in the benches: the suite `kvik bench gpu`, its scenes, and the plain loops that are its limit.
//!
//! ```text
//! suite -> rig (device, its memory, checker) -> scenes -> kvik, or loops -> lane (stream, slabs) -> driver -> kvik-sys
//! ```
//! Whoever takes part moves the same bytes to the same memory of the device. Before a turn that memory is made wrong, and
//! after it all bytes are fetched and compared, by the device's copies and the processor, with kvik not in between.

mod cast;
mod check;
mod driver;
mod kernel;
mod lane;
mod line;
mod loops;
mod memory;
mod rig;
mod scenes;
mod suite;

pub(crate) use cast::{DeviceKind, Storage};
pub(crate) use check::Checker;
pub(crate) use driver::Gpu;
pub(crate) use lane::{Lane, SlabUse};
pub(crate) use line::Line;
pub(crate) use memory::DeviceMemory;
pub(crate) use rig::Rig;
pub use suite::gpu_suite;
