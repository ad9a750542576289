//! What the driver hands out: contexts, streams, events, modules, devices and addresses, as types that cannot be mixed up.
//!
//! All of them are plain values: nothing is released when they are dropped. Owners are made one layer up.

use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};

use crate::raw::cuda as raw;

/// A context: one device's address space, streams and allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Context(NonNull<raw::CUctx_st>);

// SAFETY: the driver's reference lets any thread use a context, and several at once; a context that was destroyed is kept
// from being used by the promise that each unsafe call asks for.
unsafe impl Send for Context {}
// SAFETY: as above; the value itself never changes.
unsafe impl Sync for Context {}

/// A queue of work. Work of one stream runs in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Stream(raw::CUstream);

// SAFETY: the driver's reference lets any thread queue work on a stream; one that was destroyed is kept from being used by
// the promise that each unsafe call asks for.
unsafe impl Send for Stream {}
// SAFETY: as above; the value itself never changes.
unsafe impl Sync for Stream {}

/// A mark in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Event(NonNull<raw::CUevent_st>);

// SAFETY: the driver's reference lets any thread record, ask and wait for an event; one that was destroyed is kept from
// being used by the promise that each unsafe call asks for.
unsafe impl Send for Event {}
// SAFETY: as above; the value itself never changes.
unsafe impl Sync for Event {}

/// Code that was loaded into a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Module(NonNull<raw::CUmod_st>);

// SAFETY: the driver's reference lets any thread use a module; one that was unloaded is kept from being used by the promise
// that each unsafe call asks for.
unsafe impl Send for Module {}
// SAFETY: as above; the value itself never changes.
unsafe impl Sync for Module {}

/// A kernel of a module, and gone with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Function(NonNull<raw::CUfunc_st>);

// SAFETY: the driver's reference lets any thread launch a kernel; one whose module was unloaded is kept from being used by
// the promise that each unsafe call asks for.
unsafe impl Send for Function {}
// SAFETY: as above; the value itself never changes.
unsafe impl Sync for Function {}

/// A device, by the driver's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Device(c_int);

/// An address that the device understands. Under unified addressing, pinned host memory has one too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct DevicePtr(u64);

impl Context {
    /// From the vendor's `CUcontext`; nothing where it is null.
    pub fn from_raw(context: *mut c_void) -> Option<Self> {
        NonNull::new(context.cast()).map(Self)
    }

    /// The vendor's `CUcontext`.
    pub fn as_raw(self) -> *mut c_void {
        self.0.as_ptr().cast()
    }

    pub(crate) fn take(context: raw::CUcontext) -> Option<Self> {
        NonNull::new(context).map(Self)
    }

    pub(crate) fn give(self) -> raw::CUcontext {
        self.0.as_ptr()
    }
}

impl Stream {
    /// The legacy default stream, as stream 0 means it: it waits for all other streams of its context that were not made
    /// with [`StreamFlags::NON_BLOCKING`](crate::StreamFlags::NON_BLOCKING), and they for it.
    pub const DEFAULT: Self = Self(ptr::null_mut());

    /// The legacy default stream by its own handle, `CU_STREAM_LEGACY`.
    pub const LEGACY: Self = Self(ptr::without_provenance_mut(1));

    /// The calling thread's default stream, `CU_STREAM_PER_THREAD`.
    pub const PER_THREAD: Self = Self(ptr::without_provenance_mut(2));

    /// From the vendor's `CUstream`; null is [`DEFAULT`](Self::DEFAULT).
    pub fn from_raw(stream: *mut c_void) -> Self {
        Self(stream.cast())
    }

    /// The vendor's `CUstream`.
    pub fn as_raw(self) -> *mut c_void {
        self.0.cast()
    }

    pub(crate) fn give(self) -> raw::CUstream {
        self.0
    }
}

impl Event {
    /// From the vendor's `CUevent`; nothing where it is null.
    pub fn from_raw(event: *mut c_void) -> Option<Self> {
        NonNull::new(event.cast()).map(Self)
    }

    /// The vendor's `CUevent`.
    pub fn as_raw(self) -> *mut c_void {
        self.0.as_ptr().cast()
    }

    pub(crate) fn take(event: raw::CUevent) -> Option<Self> {
        NonNull::new(event).map(Self)
    }

    pub(crate) fn give(self) -> raw::CUevent {
        self.0.as_ptr()
    }
}

impl Module {
    pub(crate) fn take(module: raw::CUmodule) -> Option<Self> {
        NonNull::new(module).map(Self)
    }

    pub(crate) fn give(self) -> raw::CUmodule {
        self.0.as_ptr()
    }
}

impl Function {
    pub(crate) fn take(function: raw::CUfunction) -> Option<Self> {
        NonNull::new(function).map(Self)
    }

    pub(crate) fn give(self) -> raw::CUfunction {
        self.0.as_ptr()
    }
}

impl Device {
    /// From the vendor's `CUdevice`.
    pub const fn from_raw(device: c_int) -> Self {
        Self(device)
    }

    /// The vendor's `CUdevice`, which is the ordinal too.
    pub const fn as_raw(self) -> c_int {
        self.0
    }
}

impl DevicePtr {
    /// An address that came as a number, as array interfaces give it.
    pub const fn new(address: u64) -> Self {
        Self(address)
    }

    /// The address of host memory, for calls that take either.
    pub fn of_host<T: ?Sized>(pointer: *const T) -> Self {
        Self(pointer.expose_provenance() as u64)
    }

    /// The address as a number.
    pub const fn address(self) -> u64 {
        self.0
    }

    /// The address as cuFile takes it.
    pub fn as_mut_ptr(self) -> *mut c_void {
        // The device's memory is no allocation of this program's, or one whose provenance `of_host` exposed.
        ptr::with_exposed_provenance_mut(self.0 as usize)
    }

    /// The address this many bytes behind; nothing where there is none.
    #[must_use]
    pub fn checked_add(self, bytes: u64) -> Option<Self> {
        self.0.checked_add(bytes).map(Self)
    }
}
