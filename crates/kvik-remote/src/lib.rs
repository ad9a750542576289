//! Parallel ranged reads of remote objects into host or device memory: door three.
//!
//! # Not here
//! Files (`kvik-core`) and settings (`kvik-config`).

#![forbid(unsafe_code)]
