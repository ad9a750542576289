//! Ranges on their way into windows: requests under way on the runtime, the bytes put where they belong by the lane.
//!
//! ```text
//! runtime:  ask -> judge -> chunk, chunk, ... -> (what failed is asked for again from there) -> end
//!                             |                                                                  |
//! lane:                  window.put                                                      completion
//! ```
//! A window is touched by the thread of its lane alone, and each task has one row of requests at a time, so that what a
//! late answer brings can land nowhere.

mod engine;
mod lane;
mod requests;
mod stretch;

pub(crate) use engine::{Fetch, Room};
pub(crate) use requests::again;
pub(crate) use stretch::Stretch;
