//! Long runs, outside CI: `cargo xtask test stress`. Scenarios are data; `runner.rs` carries them out and checks every byte.

// A panic here is a failed test, and its message says why.
#![allow(clippy::unwrap_used)]
#![expect(
    clippy::disallowed_methods,
    reason = "who uses kvik has threads of their own"
)]
#![forbid(unsafe_code)]

mod runner;
mod scenarios;
