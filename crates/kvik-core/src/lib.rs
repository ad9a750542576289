//! Parallel reads and writes between files and host or device memory.
//!
//! Open a [`FileHandle`], then [`read_at`](FileHandle::read_at) any range of it into a [`Target`]. The range becomes a
//! [`Plan`](corridor::Plan) of tasks; a transfer runs them on the calling thread and on workers of a [`ThreadPool`]; the
//! engine chosen when the file was opened moves each task's bytes:
//!
//! ```text
//! read_at -> plan -> transfer -> pool -> engine -> pread(2), with or without the page cache
//!                       |                  |
//!                    Pending            windows of the Target, or of slabs whose bytes go on to a device
//! ```
//!
//! # Example: a file in parallel, with errors that say what happened
//! ```
//! # fn main() -> kvik_core::Result<()> {
//! # let path = std::env::temp_dir().join(format!("kvik-core-{}", std::process::id()));
//! use kvik_core::{FileHandle, ReadAtExt};
//!
//! let file = FileHandle::options().read(true).write(true).create(true).open(&path)?;
//! file.write_all_at(b"the bytes", 0)?;
//! assert_eq!(file.read_to_end(4)?, b"bytes");
//!
//! let error = file.read_exact_at(&mut [0; 8], 4).unwrap_err();
//! assert_eq!(error.kind(), kvik_core::ErrorKind::UnexpectedEof);
//! # std::fs::remove_file(&path).unwrap();
//! # Ok(())
//! # }
//! ```
//!
//! # Example: to the memory of a GPU and back
//! Memory of a device is a target and a source like any other: a [`DeviceBuffer`], or what lies at an address
//! ([`Target::from_raw`]). Its bytes go through a few page-locked slabs of the host, one filled while another is copied; or by
//! cuFile, where a direct path between storage and device was proven for the file, or the compat mode is `off`. NVIDIA's
//! libraries are loaded at the first use of a device, and for nothing else.
//! ```no_run
//! # fn main() -> kvik_core::Result<()> {
//! use kvik_core::{DeviceBuffer, FileHandle};
//!
//! let file = FileHandle::open("weights.bin")?;
//! let mut weights = DeviceBuffer::new(0, file.len()? as usize)?;
//! file.read_exact_at(&mut weights, 0)?;
//! FileHandle::create("copy.bin")?.write_all_at(&weights, 0)?;
//! # Ok(())
//! # }
//! ```
//! What was queued on the default stream of the memory's context before a call comes first, and so does what was queued on a
//! stream that the call names ([`Target::behind`]). When a call has returned, its bytes are there for every stream.
//!
//! # Not here
//! URLs and retries are `kvik-remote`'s, maps that stay `kvik-mmap`'s, settings `kvik-config`'s, statistics `kvik-stats`'.
//!
//! # Foreign types in the public interface
//! `kvik_config::{ByteSize, CompatMode, Config, ConfigError}` and `kvik_stats::Backend`, both of this workspace; no others.

#[cfg(not(target_os = "linux"))]
compile_error!("kvik needs Linux 5.10 or newer: its engines are built on Linux system calls");

#[cfg(not(target_pointer_width = "64"))]
compile_error!("kvik needs a 64-bit target: file offsets and sizes in memory are the same numbers");

pub mod corridor;
pub mod driver;

mod adopt;
mod batch;
mod error;
mod file;
mod open;
mod options;
mod pending;
mod read_at;
mod stream_pending;

mod any_buffer;
mod buffer;
mod choice;
mod copy;
mod host_buffer;
mod memory;
mod piece;
mod target;
mod window;

mod engine;
mod layout;
mod plan;
mod pool;
mod ranges;
mod scatter;
mod stretch;
mod told;
mod transfer;

mod device;
mod gds;

mod block_device;
mod compat;
mod page_cache;
mod probe;
mod rereads;
mod residency;

mod budget;
mod fetch;
mod file_ref;
mod fork;
#[cfg(target_arch = "x86_64")]
mod guard;
mod once;
mod os;
mod pages;
mod sync;

pub use any_buffer::AnyBuffer;
pub use batch::{Batch, Completed, Finished, PendingBatch};
pub use block_device::{BlockDevice, block_device_of};
pub use budget::{ScratchMemory, free_scratch_memory, scratch_memory};
pub use buffer::{IoBuf, IoBufMut};
pub use compat::{
    Allowed, AllowedWay, Check, CuFileCheck, DeviceRoute, DeviceWay, EnginePreference, Route,
    RuledOut,
};
pub use device::{
    DeviceBuffer, PinnedBuffer, PinnedMemory, RawStream, RegisteredBuffer, free_pinned_memory,
    pinned_memory,
};
pub use engine::EngineKind;
pub use error::{Error, ErrorKind, Op, Place, Result};
pub use file::FileHandle;
pub use file_ref::FileRef;
pub use gds::RegisteredStream;
pub use gds::buffers::{Registration, deregister_memory, register_memory};
pub use host_buffer::{HostBuffer, HostBufferPool};
pub use options::{OpenOptions, ReadOptions, WriteOptions};
pub use page_cache::{
    PageCacheInfo, drop_file_page_cache, drop_system_page_cache, page_cache_info,
};
pub use pending::Pending;
pub use piece::{ReadPiece, WritePiece};
pub use pool::ThreadPool;
pub use probe::{
    CuFileLibrary, CudaDriver, DirectAlignment, Fact, FileKind, FileProbe, FileSystem, GpuDevice,
    GpuProbe, Limit, Probe, Support,
};
pub use read_at::{ReadAt, ReadAtExt};
pub use residency::Residency;
pub use stream_pending::StreamPending;
pub use target::{Source, Target};

/// The README's example, compiled with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
