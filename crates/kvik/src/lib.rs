//! Parallel reads and writes of local files, at any offset from any thread, with errors that say what, where and how far.
//!
//! This crate is the front door: it re-exports the crates that do the work.
//!
//! ```text
//!                kvik             you are here
//!             kvik-remote         remote objects (feature `remote`): RemoteHandle
//!             kvik-mmap           mapped files (feature `mmap`): MmapHandle
//!             kvik-core           files, transfers, engines: FileHandle, Target, Pending
//!     kvik-config   kvik-stats    settings with origins; what happened
//! ```
//!
//! # Example: write a file, read it back in parallel, ask what it cost
//! ```
//! # fn main() -> kvik::Result<()> {
//! # let path = std::env::temp_dir().join(format!("kvik-facade-{}", std::process::id()));
//! use kvik::{FileHandle, stats::SummaryMonitor};
//!
//! let monitor = SummaryMonitor::start();
//! FileHandle::create(&path)?.write_all_at(&vec![7; 8 << 20], 0)?;
//!
//! let file = FileHandle::open(&path)?;
//! let mut bytes = vec![0; file.len()? as usize];
//! file.read_exact_at(&mut bytes, 0)?;
//!
//! assert!(bytes.iter().all(|byte| *byte == 7));
//! assert_eq!(monitor.get().bytes_read, 8 << 20);
//! # std::fs::remove_file(&path).unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//! - `cudarc`: module `cudarc`, for slices and streams of that crate.
//! - `mmap`: files read out of memory maps: `MmapHandle`.
//! - `remote`: objects of HTTP servers, of S3 and of HDFS, by URL: `RemoteHandle`.
//! - `serde`: `Config`, `Probe`, `FileProbe` and `Route` implement `Serialize`.
//!
//! # Planned, not here yet
//! Zarr.
#![cfg_attr(not(feature = "cudarc"), forbid(unsafe_code))]
#![deny(unsafe_code)]

pub use kvik_config as config;
pub use kvik_stats as stats;

pub use kvik_config::{ByteSize, CompatMode, Config, ConfigError, DirectIo, Layer};
pub use kvik_core::*;

#[cfg(feature = "mmap")]
pub use kvik_mmap::*;

#[cfg(feature = "remote")]
pub use kvik_remote::*;

#[cfg(feature = "cudarc")]
#[allow(
    unsafe_code,
    reason = "addresses and handles of another crate's; each promise has its argument beside it"
)]
pub mod cudarc;

/// The README's example, compiled with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

/// The examples of the book's first page, too: `quick-start.md` is a link to it.
#[cfg(doctest)]
#[doc = include_str!("../quick-start.md")]
pub struct QuickStart;

/// And those of its page on remote objects, likewise.
#[cfg(all(doctest, feature = "remote"))]
#[doc = include_str!("../remote.md")]
pub struct Remote;
