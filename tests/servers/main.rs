//! Real servers: nginx, an S3 server that checks signatures, HDFS, and a proxy. `cargo xtask test servers` starts them.
//!
//! What is tested here is, first, that they are what the tests of remote reads take them for: that they serve the fixtures, byte
//! for byte, answer ranges, and refuse whom they should. It is asked by requests written by hand, so that a fault of a client
//! cannot hide one of a server. Then kvik reads from them: whole and in ranges (`http_objects`, `s3_objects`, `hdfs_files`),
//! in the exam of every door (`exams`), and by its command (`copies`).

// A panic here is a failed test, and its message says why.
#![allow(clippy::unwrap_used)]
#![forbid(unsafe_code)]

mod copies;
mod exams;
mod hdfs_files;
mod http;
mod http_objects;
mod missing;
mod plain;
mod proxy;
mod ranges;
mod s3;
mod s3_objects;
mod tls;
mod webhdfs;
