//! Benchmarks of kvik that say what they are worth: every figure stands beside a limit measured in the same minute.
//!
//! A case has contenders: kvik, and the plain loops that were written for this one job and are its limit. In every round each
//! of them runs once, and the ratio is taken round by round, because on a shared machine only what ran side by side can be
//! compared. Bytes are compared, too: a wrong one is an error, never a slow case.
//!
//! ```text
//! default_suite, file_suite, map_suite, gpu_suite, compare_suite, remote_suite -> session -> race -> scenes -> kvik, a loop, or a rival
//!                                                           \-> figures -> report -> table, JSON
//! ```
//!
//! The command `kvik bench` is made of this. Start with [`default_suite`] and [`Options`]; a [`Report`] prints as a table
//! and serializes as JSON. [`compare_suite`] lets KvikIO and fio take part, where somebody has installed them, as
//! `cargo xtask bench file --against-kvikio` does; [`remote_suite`] does the same for objects of a server, and
//! [`remote_reading`] measures one object wherever it is.
//!
//! # Example: one case, and whether it is near its limit
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use std::time::Duration;
//!
//! let options = kvik_bench::Options {
//!     size: 8 << 20, // a small run; the default is about a minute
//!     rounds: 3,
//!     budget: Duration::from_millis(300),
//!     cases: vec!["host-read-64k".into()],
//!     ..Default::default()
//! };
//! let report = kvik_bench::default_suite(&options, &mut |_| {}, &AtomicBool::new(false))?;
//! let case = &report.cases[0];
//! assert!(case.spread.0 <= case.ratio && case.ratio <= case.spread.1);
//! println!("{case}");
//! # Ok::<(), kvik::Error>(())
//! ```
//!
//! # Not here
//!
//! The other programs themselves, and thresholds below which a build fails. No benchmark is a timed test.

mod casting;
mod compare;
mod contender;
mod data;
mod figures;
mod folder;
mod gpu;
mod loops;
mod machine;
mod maps;
mod memory;
mod options;
mod our_map;
mod ours;
mod pattern;
mod race;
mod remote;
mod report;
mod rivals;
mod scenes;
mod session;
mod streaming;
mod suite;
mod table;
mod thresholds;
mod trouble;
mod worth;

pub use compare::compare_suite;
pub use gpu::gpu_suite;
pub use machine::Machine;
pub use maps::{compare_maps_suite, map_suite};
pub use options::{Options, Progress};
pub use remote::{
    Reading, ReadingFigure, ReadingOptions, remote_reading, remote_suite, with_served_file,
};
pub use report::{Aim, Beside, Case, NotRun, Report};
pub use rivals::Peers;
pub use suite::{default_suite, file_suite};
pub use thresholds::Threshold;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
