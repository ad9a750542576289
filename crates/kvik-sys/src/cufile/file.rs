//! Files and buffers that cuFile knows, and reads and writes that return when they are done.

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::RawFd;
use std::ptr::{self, NonNull};

use super::CuFile;
use crate::handle::DevicePtr;
use crate::raw::cufile::{
    CUfileDescr_t, CUfileDescr_t__bindgen_ty_1, CUfileFileHandleType, CUfileHandle_t,
};
use crate::status::{CuFileFailure, CuFileStatus};

/// A file that cuFile knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct CuFileHandle(NonNull<c_void>);

// SAFETY: the reference lets any thread read and write by a handle; one that was deregistered is kept from being used by the
// promise that each unsafe call asks for.
unsafe impl Send for CuFileHandle {}
// SAFETY: as above; the value itself never changes.
unsafe impl Sync for CuFileHandle {}

impl CuFileHandle {
    /// The vendor's `CUfileHandle_t`.
    pub fn as_raw(self) -> *mut c_void {
        self.0.as_ptr()
    }
}

impl CuFile {
    /// Makes a file known to cuFile. A file can be known under one descriptor once.
    ///
    /// # Errors
    ///
    /// cuFile's status.
    ///
    /// # Safety
    ///
    /// 1. The descriptor is open, and stays so until the handle is deregistered.
    pub unsafe fn handle_register(&self, file: RawFd) -> Result<CuFileHandle, CuFileStatus> {
        let mut handle: CUfileHandle_t = ptr::null_mut();
        let mut description = CUfileDescr_t {
            type_: CUfileFileHandleType::CU_FILE_HANDLE_TYPE_OPAQUE_FD,
            handle: CUfileDescr_t__bindgen_ty_1 { fd: file },
            fs_ops: ptr::null(),
        };
        // SAFETY: point 1; both arguments are writable for the call.
        CuFileStatus::check(unsafe {
            (self.table().cuFileHandleRegister)(&raw mut handle, &raw mut description)
        })?;
        NonNull::new(handle).map(CuFileHandle).ok_or(CuFileStatus {
            op: CuFileStatus::HANDLE_NOT_REGISTERED,
            cuda: 0,
        })
    }

    /// Ends what [`handle_register`](Self::handle_register) began.
    ///
    /// # Safety
    ///
    /// 1. The handle is alive, and is used no more (rule 1).
    /// 2. No read or write by it is in flight (rule 3).
    pub unsafe fn handle_deregister(&self, handle: CuFileHandle) {
        // SAFETY: points 1 and 2.
        unsafe { (self.table().cuFileHandleDeregister)(handle.as_raw()) }
    }

    /// Pins memory for the direct path.
    ///
    /// # Errors
    ///
    /// cuFile's status.
    ///
    /// # Safety
    ///
    /// 1. The range is memory (rule 2), and stays so until it is deregistered.
    pub unsafe fn buf_register(&self, base: DevicePtr, bytes: usize) -> Result<(), CuFileStatus> {
        // SAFETY: point 1; no flags are defined that we use.
        CuFileStatus::check(unsafe {
            (self.table().cuFileBufRegister)(base.as_mut_ptr(), bytes, NO_FLAGS)
        })
    }

    /// Ends what [`buf_register`](Self::buf_register) began.
    ///
    /// # Errors
    ///
    /// cuFile's status.
    ///
    /// # Safety
    ///
    /// 1. No read or write of the memory is in flight (rule 3).
    pub unsafe fn buf_deregister(&self, base: DevicePtr) -> Result<(), CuFileStatus> {
        // SAFETY: point 1; memory that is not registered is answered with a status.
        CuFileStatus::check(unsafe { (self.table().cuFileBufDeregister)(base.as_mut_ptr()) })
    }

    /// Reads from a place of the file to a place behind `base`, and returns how many bytes came.
    ///
    /// `base` is the start of what was registered, where something was.
    ///
    /// # Errors
    ///
    /// The file system's errno, or cuFile's status.
    ///
    /// # Safety
    ///
    /// 1. The handle is alive (rule 1).
    /// 2. `bytes` bytes from `base_offset` behind `base` are memory (rule 2).
    pub unsafe fn read(
        &self,
        handle: CuFileHandle,
        base: DevicePtr,
        bytes: usize,
        file_offset: i64,
        base_offset: i64,
    ) -> Result<usize, CuFileFailure> {
        let base = base.as_mut_ptr();
        // SAFETY: points 1 and 2.
        let count = unsafe {
            (self.table().cuFileRead)(handle.as_raw(), base, bytes, file_offset, base_offset)
        };
        CuFileFailure::split(count, last_errno())
    }

    /// Writes from a place behind `base` to a place of the file, and returns how many bytes went.
    ///
    /// `base` is the start of what was registered, where something was.
    ///
    /// # Errors
    ///
    /// The file system's errno, or cuFile's status.
    ///
    /// # Safety
    ///
    /// 1. The handle is alive (rule 1).
    /// 2. `bytes` bytes from `base_offset` behind `base` are memory (rule 2).
    pub unsafe fn write(
        &self,
        handle: CuFileHandle,
        base: DevicePtr,
        bytes: usize,
        file_offset: i64,
        base_offset: i64,
    ) -> Result<usize, CuFileFailure> {
        let base = base.as_mut_ptr();
        // SAFETY: points 1 and 2.
        let count = unsafe {
            (self.table().cuFileWrite)(handle.as_raw(), base, bytes, file_offset, base_offset)
        };
        CuFileFailure::split(count, last_errno())
    }
}

/// The cause of a -1, as long as nothing else was called on this thread since.
fn last_errno() -> Option<i32> {
    io::Error::last_os_error().raw_os_error()
}

const NO_FLAGS: c_int = 0;
