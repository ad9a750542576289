//! cuFile: its driver, which the first use of it opens, and the files and buffers that it knows.
//!
//! ```text
//! handle -> CuFileWay -> (first use of a device) driver -> RegisteredFile -> engine/gds.rs reads and writes by it
//! ```
//! The driver is opened after CUDA's was started, and stays open for as long as something is registered, or the program has it
//! open; cuFile closes it at exit. A child of the process that opened it is refused by [`device`](crate::device), and leaves
//! alone what it inherited.

pub(crate) mod buffers;
pub(crate) mod driver;
pub(crate) mod edges;
mod file;
pub(crate) mod library;
mod on_stream;
mod opening;
mod queue;
mod refusal;
mod registered_stream;
pub(crate) mod sign;
mod turns;

pub use file::CuFileWay;
pub(crate) use file::{CuFileFile, RegisteredFile, Standing};
pub(crate) use on_stream::{CuFileOnStream, Started};
pub(crate) use queue::RequestQueue;
pub use registered_stream::RegisteredStream;
