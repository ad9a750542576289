//! What kvik's transfers did: logical operations as they start and finish, totals by backend, and counters of rare events and of
//! the ways that bytes took.
//!
//! A *logical operation* is one call of the user: one read or one write through one door, however many tasks it was cut into.
//! A door calls [`begin`] and gets a [`Span`]; finishing or dropping the span reports the end. Whoever wants to know implements
//! [`Listener`] and registers it with [`listen`]; a [`SummaryMonitor`] is a listener that keeps sums.
//!
//! ```text
//! door:      begin ----> Span ----> finish          one start, exactly one finish, also on drop and unwind
//!              |                       |
//! listeners: started                finished        any number, independent; the list is read without a lock
//!              |                       |
//!        SummaryMonitor ---------> Summary          operations, bytes, errors, busy time, by backend; growth of counters
//! ```
//!
//! Each operation is a span of `tracing` as well, of the level `DEBUG`, and each task one of `TRACE` below it.
//!
//! While nobody listens or traces, [`begin`] costs two relaxed atomic loads: no clock is read and nothing is allocated. With a listener there
//! is still no lock on the way, so a fork in another thread cannot leave one held in the child.
//!
//! # Example: what one read of a file cost
//!
//! ```
//! use std::sync::Arc;
//! use kvik_stats::{Backend, Direction, Memory, Start, SummaryMonitor, begin};
//!
//! let monitor = SummaryMonitor::start();
//! let source: Arc<str> = "/data/a.bin".into();
//! let span = begin(Start {
//!     backend: Backend::Posix,
//!     direction: Direction::Read,
//!     memory: Memory::Host,
//!     source: &source,
//!     offset: 0,
//!     size: 4096,
//! });
//! // ... the bytes are moved here ...
//! span.finish(4096, true);
//!
//! let summary = monitor.get();
//! assert_eq!((summary.reads, summary.bytes_read, summary.errors), (1, 4096, 0));
//! assert!(summary.busy_ns <= summary.wall_ns());
//! ```
//!
//! # Not here
//!
//! Nothing in this crate reads the
//! environment, starts a thread or prints.
#![forbid(unsafe_code)]

mod operation;
mod task;

mod counter;
mod gauge;
mod metric;
pub mod names;

mod listener;
mod span;
mod trace;

mod gate;
mod sharded;
mod sync;

mod busy;
#[cfg(all(test, loom))]
mod models;
mod monitor;
mod summary;

mod anchor;
mod bytes;
mod distribution;
mod distributions;
mod json;
mod kvikio_bytes;
mod monitor_options;
mod prometheus;
mod report;
mod units;

pub use bytes::NotSummary;
pub use counter::Counter;
pub use distribution::Distribution;
pub use gauge::Gauge;
pub use kvikio_bytes::{KVIKIO_BYTES, NotKvikio};
pub use listener::{InListener, Listener, Listening, Wanted, in_listener, listen, try_listen};
pub use monitor::SummaryMonitor;
pub use monitor_options::MonitorOptions;
pub use operation::{Backend, Direction, Memory, Operation, Outcome, Start};
pub use span::{Span, begin};
pub use summary::{BackendTotals, NotEarlier, Summary};
pub use task::{Task, TaskSpan, Tasks};

/// The README's example, compiled with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
