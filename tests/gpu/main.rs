//! Reads into the memory of a device and writes from it. CI runs this on the fake driver; the same binary, carried to a machine
//! with a GPU, runs on the real one with `KVIK_TEST_GPU=real`. Nothing here may know which of the two it is.

// A panic here is a failed test, and its message says why.
#![allow(clippy::unwrap_used)]
#![expect(
    clippy::disallowed_methods,
    reason = "who uses kvik has threads of their own"
)]
#![forbid(unsafe_code)]

mod batches;
mod beside;
mod exams;
mod field_cases;
mod gds;
mod kernels;
mod memory;
mod on_stream;
mod order;
mod queued;
mod ranges;
mod several;
mod summed;
