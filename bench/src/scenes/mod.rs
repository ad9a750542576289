//! The scenes: what a case prepares, times, checks and proves.

mod fresh;
mod joined;
mod list;
mod read;
mod small;
mod write;

pub(crate) use fresh::FreshScene;
pub(crate) use joined::{Joined, Rival};
pub(crate) use list::{LIST, ListScene};
pub(crate) use read::{Cache, ReadScene, Reads};
pub(crate) use small::{SmallScene, place};
pub(crate) use write::{WriteScene, WriteWay, difference};

/// Bytes that a turn moves at least: to begin and to end it must cost nothing beside them.
pub(crate) const LEAST_TURN: u64 = 32 << 20;
