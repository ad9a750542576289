//! The scenes with a device: what a case prepares, times, checks and proves.

mod list;
mod read;
mod stream;
mod write;

pub(super) use list::{ListScene, Order, list_len};
pub(super) use read::{ReadScene, Reader};
pub(super) use stream::{Queued, StreamScene};
pub(super) use write::WriteScene;
