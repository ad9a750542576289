//! A plugin for Nsight Systems: how many bytes each network interface of this machine receives and sends, as counters of NVTX.
//!
//! `nsys profile --enable=kvikio_nic` starts the program `kvikio_nic_nsys_plugin` beside the one that is profiled, and has it
//! load a library of its own, by the variable `NVTX_INJECTION64_PATH`. The plugin reads the counters of the kernel at steady
//! intervals, and tells that library the rates.
//!
//! ```text
//! args -> Options -> Plugin::start -> Plugin::sample, every interval, until SIGTERM or SIGINT
//!                       |                |
//!                    Interfaces       Sampler -> rates -> nvtx -> the library of the tool
//! ```
//! Program, options, exit codes and counters are called what KvikIO's plugin calls them, so that command lines, manifests and
//! saved views of its users go on working.
//!
//! # Example: where the plugin is found
//!
//! ```
//! use std::path::Path;
//!
//! let folder = kvik_nsys::search_dir(Path::new("/opt/kvik"));
//! assert_eq!(folder, Path::new("/opt/kvik/share/kvikio/nsys-plugins"));
//! ```
//!
//! # Not here
//!
//! What kvik itself reads and writes: that is no plugin's to know. This crate knows no other one of ours.

mod options;

mod interfaces;
mod rate;
mod sampler;

mod nvtx;

mod plugin;
mod run;

mod manifest;

pub use manifest::{EXECUTABLE, MANIFEST, NAME, search_dir};
pub use nvtx::Deaf;
pub use options::{Device, Options, Request, Wrong};
pub use plugin::{Failure, Plugin};
pub use run::{run, usage};

/// The README's example, compiled with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
