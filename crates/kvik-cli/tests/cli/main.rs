//! The command from outside: files on disk, bytes on standard output, exit codes.

// A test that cannot go on should stop where it is; the lint knows tests only by their attribute.
#![allow(clippy::unwrap_used)]

mod bench_gpu;
mod bench_remote;
mod cat;
mod copy;
mod doctor;
mod doctor_urls;
mod documented;
mod interrupt;
mod log;
mod output;
mod part;
mod refused_copy;
mod reports;
mod resume;
mod serve;
mod server;
mod settings;
mod support;
mod urls;
mod via_gpu;
