//! What the end-to-end tests stand on: the exam that every door sits, fixtures, and faults on demand.
//!
//! ```text
//! it/ servers/ stress/   the tests               child/    a process for the tests whose subject is a process
//!        |                                         |
//! conformance -> model          engine, pattern, os          faults -> shim/faults.c
//! hostile: a server that does what it is told; hdfs: a cluster of such
//! mounts, server -> need                              fake -> fakes/cuda: libraries of a machine with a GPU
//! ```
//! A test that was asked for and cannot run fails, and says what it needs (`need`).

// A panic here is a failed test, and its message says why.
#![allow(clippy::unwrap_used)]
#![deny(unsafe_code)]

pub mod conformance;
pub mod model;

pub mod child;
pub mod engine;
pub mod fake;
pub mod faults;
pub mod gpu;
pub mod hdfs;
pub mod hostile;
pub mod mounts;
pub mod need;
pub mod os;
pub mod pattern;
pub mod percent;
pub mod remote;
pub mod s3;
pub mod server;
pub mod tls;
