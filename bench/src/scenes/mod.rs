//! The scenes: what a case prepares, times, checks and proves.

mod read;
mod small;
mod write;

pub(crate) use read::{Cache, ReadScene};
pub(crate) use small::SmallScene;
pub(crate) use write::WriteScene;

/// How the contender that the case is about is called in errors.
pub(crate) const OURS: &str = "kvik";
