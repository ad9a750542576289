//! Ranges on their way into windows: requests under way, several at a time, driven by the thread that has the lane.
//!
//! ```text
//! ask -> judge -> chunk, chunk, ... -> (what failed is asked for again from there) -> completion
//!                   |
//!               window.put
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
