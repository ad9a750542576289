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
//! map.read_exact_at(&mut bytes, map.file_len()? - 1024)?;
//! assert_eq!(bytes, [7; 1024]);
//! # std::fs::remove_file(&path).unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! # When a map is the better way
//! For a file in the page cache that is read again and again: the copy is user space's, and pages that were mapped once are not
//! asked for again. For what lies on a disk, [`FileHandle`](kvik_core::FileHandle) reads past the cache and is faster.
//!
//! # A file that changes
//! What is read is the file as it is at that moment, as with `pread(2)`. A file that is cut short under its map ends other
//! programs with `SIGBUS`; here the read fails with `Changed`, and the process lives: see the text of `kvik-core`'s guard.
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
