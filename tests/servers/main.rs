//! Real servers: nginx, an S3 server that checks signatures, HDFS, and a proxy. `cargo xtask test servers` starts them.
//!
//! What is tested here is, first, that they are what the tests of remote reads take them for: that they serve the fixtures, byte
//! for byte, answer ranges, and refuse whom they should. It is asked by requests written by hand, so that a fault of a client
//! cannot hide one of a server. Then kvik reads from them (`s3_objects`).

// A panic here is a failed test, and its message says why.
#![allow(clippy::unwrap_used)]
#![forbid(unsafe_code)]

mod http;
mod missing;
mod plain;
mod proxy;
mod s3;
mod s3_objects;
mod tls;
mod webhdfs;
