//! The end-to-end tests that need no GPU and no network. One binary, a module per subject.
//!
//! Those in `file_systems` mount things and need root; they fail elsewhere and say how to leave them out.

// A panic here is a failed test, and its message says why.
#![allow(clippy::unwrap_used)]
#![expect(
    clippy::disallowed_methods,
    reason = "who uses kvik has threads of their own"
)]
#![forbid(unsafe_code)]

mod devices;
mod exams;
mod fakes;
mod file_systems;

mod behavior;
mod direct;
mod field_cases;
mod settings;
mod statistics;

mod faults;
mod moving_files;
mod offsets;
mod opening;
mod processes;
mod ranges;
mod special_files;
mod uring;

use kvik_tests::child::Child;

/// The child binary with a scenario of `child/main.rs`.
fn child(scenario: &str) -> Child {
    Child::new(BINARY, scenario)
}

const BINARY: &str = env!("CARGO_BIN_EXE_kvik-tests-child");
