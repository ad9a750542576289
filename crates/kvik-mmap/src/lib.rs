//! Parallel reads of memory-mapped files into host or device memory: door two.
//!
//! Open an [`MmapHandle`], then [`read_at`](MmapHandle::read_at) any range of what it maps into a
//! [`Target`](kvik_core::Target). Bytes are copied out of the map by the same corridor that files and remote objects go through:
//!
//! ```text
//! read_at -> plan -> transfer -> pool -> map -> target
//! ```
//!
//! # Example: the last kibibyte of a file
//! ```
//! # fn main() -> kvik_core::Result<()> {
//! # let path = std::env::temp_dir().join(format!("kvik-mmap-{}", std::process::id()));
//! # std::fs::write(&path, [7; 5000]).unwrap();
//! use kvik_mmap::MmapHandle;
//!
//! let map = MmapHandle::open(&path)?;
//! let mut bytes = [0; 1024];
//! map.read_exact_at(&mut bytes, map.map_offset() + map.map_len() - 1024)?;
//! assert_eq!(bytes, [7; 1024]);
//! # std::fs::remove_file(&path).unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! # What a map shows
//! The file as it is at that moment, as with `pread(2)`: small pieces, pieces for a device, and files over a network or in user
//! space are read by that call indeed. A map ends where the file ended when it was mapped. A file that is cut short under its
//! map ends other programs with `SIGBUS`; here the read fails with `Changed`, and the process lives: see the text of
//! `kvik-core`'s guard.
//!
//! # Not here
//! Writing to maps, and maps that a GPU reads by itself.
//!
//! # Foreign types in the public interface
//! Those of `kvik_config` and `kvik_core`, both of this workspace; no others.

mod handle;
mod map;
mod options;

pub use handle::MmapHandle;
pub use options::{Advice, MmapOptions};
