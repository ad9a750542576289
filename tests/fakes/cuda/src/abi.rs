//! What crosses the C interface: status codes, handles, and pointers of the caller that are checked before use.

pub(crate) use kvik_fake_common::{In, Out, Text, hand_out};

/// A `CUresult`.
pub(crate) type Code = i32;

/// What the inside of a call returns; `Err` becomes the status that its caller sees.
pub(crate) type Answer<T = ()> = Result<T, Code>;

/// A `CUcontext`, `CUstream`, `CUevent` or `CUmemoryPool`. Never dereferenced, by us or by anybody.
pub(crate) type Handle = usize;

pub(crate) const SUCCESS: Code = 0;
pub(crate) const INVALID_VALUE: Code = kvik_fake_common::NULL;
pub(crate) const OUT_OF_MEMORY: Code = 2;
pub(crate) const NOT_INITIALIZED: Code = 3;
pub(crate) const NO_DEVICE: Code = 100;
pub(crate) const INVALID_DEVICE: Code = 101;
pub(crate) const INVALID_CONTEXT: Code = 201;
pub(crate) const INVALID_PTX: Code = 218;
pub(crate) const INVALID_HANDLE: Code = 400;
pub(crate) const NOT_FOUND: Code = 500;
pub(crate) const NOT_READY: Code = 600;
pub(crate) const ILLEGAL_ADDRESS: Code = 700;
pub(crate) const CONTEXT_IS_DESTROYED: Code = 709;
pub(crate) const HOST_MEMORY_ALREADY_REGISTERED: Code = 712;
pub(crate) const HOST_MEMORY_NOT_REGISTERED: Code = 713;
pub(crate) const NOT_PERMITTED: Code = 800;
pub(crate) const NOT_SUPPORTED: Code = 801;
pub(crate) const STREAM_CAPTURE_UNSUPPORTED: Code = 900;
pub(crate) const STREAM_CAPTURE_IMPLICIT: Code = 906;
pub(crate) const UNKNOWN: Code = 999;
