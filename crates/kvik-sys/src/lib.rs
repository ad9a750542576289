//! NVIDIA's driver library and cuFile as tables of functions, loaded at run time.
//!
//! [`Cuda::load`] and [`CuFile::load`] open the first of their [`Candidates`] and look up each function by its name. What is
//! missing is a value: a library is a [`LoadError`], a function that only newer libraries have is [`Unsupported`]. A call returns
//! its value or a status, whatever number that is. One build serves drivers of CUDA 12 and 13.
//!
//! ```text
//!  Candidates --load--> Cuda, CuFile --call--> Ok(value) | Err(status)
//!  (names, paths)       (tables of functions)
//!      |                     |
//!      '-- LoadError         '-- Unsupported { symbol, since }
//! ```
//!
//! # Example: is there a driver, and what does it see?
//!
//! ```
//! use kvik_sys::{Candidates, Cuda};
//!
//! // SAFETY: these names are the driver's own, and whoever installs a driver wants it to be loaded.
//! match unsafe { Cuda::load(&Candidates::cuda()) } {
//!     Err(why) => println!("{why}"),
//!     Ok(cuda) => match cuda.init().and_then(|()| cuda.device_get_count()) {
//!         Ok(count) => println!("{count} devices"),
//!         Err(status) => println!("{}", cuda.text(status)),
//!     },
//! }
//! ```
//!
//! # Rules of the caller
//!
//! The libraries believe what they are told, so most calls are `unsafe`, and name which of these rules the caller answers for:
//!
//! 1. **Handles are alive.** A context, stream, event, module, file or batch came from the library and was not destroyed; a stream,
//!    event or module dies with its context. [`Stream::DEFAULT`], [`Stream::LEGACY`] and [`Stream::PER_THREAD`] live as long as the
//!    current context.
//! 2. **Memory is there.** A range lies within one allocation (of the host or of a device, as the call asks), may be read or
//!    written as the call does, and nobody else writes to it meanwhile, nor reads what the call writes.
//! 3. **It stays so until the work is done.** Queued work uses its memory until its stream is past it, which an event, a query
//!    or a wait tells; after a failed one nothing tells it but the death of the context.
//!
//! Calls whose arguments the libraries check themselves, and answer with a status where they are wrong, are safe.
//!
//! # Not here
//!
//! Owners that release what they hold, and every decision: which route a byte takes, what is tried again, what is logged.
//! They are in `kvik-core`. Environment variables and settings are read in `kvik-config`; paths come here as arguments.

mod cuda;
mod cufile;
mod handle;
mod library;
mod raw;
mod status;

pub use crate::cuda::{
    CaptureMode, ContextFlags, Cuda, DeviceAttribute, EventFlags, HostFlags, HostFn, MemoryType,
    PointerAttribute, PrimaryState, StreamFlags, WaitCondition,
};
pub use crate::cufile::{
    AsyncArguments, BatchEvent, BatchRequest, BatchState, BoolParameter, CuFile, CuFileBatch,
    CuFileHandle, DriverProperties, SizeParameter, StreamHints, StringParameter,
};
pub use crate::handle::{Context, Device, DevicePtr, Event, Function, Module, Stream};
pub use crate::library::{Candidates, LoadError, Refusal, Unsupported};
pub use crate::status::{CallError, CuFileFailure, CuFileStatus, CudaStatus};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
