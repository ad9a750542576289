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
mod gds;
mod maps;
mod remote;

mod batches;
mod behavior;
mod cold;
mod direct;
mod field_cases;
mod listeners;
mod settings;
mod statistics;

mod adopting;
mod cudarc;
mod faults;
mod moving_files;
mod offsets;
mod opening;
mod probing;
mod processes;
mod ranges;
mod special_files;
mod uring;

use std::path::Path;

use kvik::{ByteSize, FileHandle, ReadOptions};
use kvik_tests::child::Child;

/// The child binary with a scenario of `child/main.rs`.
fn child(scenario: &str) -> Child {
    Child::new(BINARY, scenario)
}

/// What a child said has all of these lines.
#[track_caller]
fn says(said: &str, lines: &[&str]) {
    for line in lines {
        assert!(
            said.lines().any(|found| found == *line),
            "`{line}` is not in:\n{said}"
        );
    }
}

/// A handle on an existing file, for both directions.
#[track_caller]
fn read_write(path: &Path) -> FileHandle {
    let options = FileHandle::options().read(true).write(true);
    options.open(path).unwrap()
}

/// Options that cut a call into tasks of so many bytes, for so many threads.
fn cut(threads: usize, task_size: u64) -> ReadOptions {
    ReadOptions::new()
        .num_threads(threads)
        .task_size(ByteSize::new(task_size))
}

const BINARY: &str = env!("CARGO_BIN_EXE_kvik-tests-child");
