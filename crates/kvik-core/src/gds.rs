//! cuFile: its driver, which the first use of it opens, and the files that it knows.
//!
//! ```text
//! handle -> CuFileWay -> (first use of a device) driver -> RegisteredFile -> engine/gds.rs reads and writes by it
//! ```
//! cuFile's driver is opened once in a process, after CUDA's was started, and stays open: what is registered needs it, and cuFile
//! closes it at exit. A child of the process that opened it is refused by [`device`](crate::device), and leaves alone what
//! it inherited.

mod driver;
mod file;
mod on_stream;
mod registered_stream;

pub use file::CuFileWay;
pub(crate) use file::{CuFileFile, RegisteredFile};
pub(crate) use on_stream::CuFileOnStream;
pub use registered_stream::RegisteredStream;

use crate::error::{Error, ErrorKind, Op};

/// The error of a handle that may use cuFile alone; `why` completes "cuFile, which is".
fn unavailable(why: &str) -> Error {
    let why = format!("the compat mode OFF requires cuFile, which is {why}");
    Error::new(ErrorKind::GdsUnavailable, Op::Inspect, why)
}
