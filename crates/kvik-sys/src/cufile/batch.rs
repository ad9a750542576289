//! Batches: many reads and writes submitted at once and collected as they are done.

use std::ffi::{c_uint, c_void};
use std::fmt;
use std::ptr::{self, NonNull};
use std::time::Duration;

use super::{CuFile, CuFileHandle};
use crate::handle::DevicePtr;
use crate::raw::cufile::{
    CUFILEStatus_enum as Raw, CUfileBatchHandle_t, CUfileBatchMode_t, CUfileIOEvents_t,
    CUfileIOParams__bindgen_ty_1, CUfileIOParams__bindgen_ty_1__bindgen_ty_1, CUfileIOParams_t,
    CUfileOpcode_t,
};
use crate::status::{CallError, CuFileFailure, CuFileStatus};

/// Room for a number of requests in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct CuFileBatch(NonNull<c_void>);

// SAFETY: a batch belongs to no thread; one that was destroyed is kept from being used by the promise that each unsafe call
// asks for.
unsafe impl Send for CuFileBatch {}

/// One read or write of a batch.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct BatchRequest(CUfileIOParams_t);

/// What became of one request.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct BatchEvent(CUfileIOEvents_t);

/// How far a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BatchState(u32);

impl BatchState {
    /// It waits to be submitted.
    pub const WAITING: Self = Self(Raw::CUFILE_WAITING.0);
    /// It was submitted.
    pub const PENDING: Self = Self(Raw::CUFILE_PENDING.0);
    /// It could not be submitted.
    pub const INVALID: Self = Self(Raw::CUFILE_INVALID.0);
    /// It was cancelled.
    pub const CANCELED: Self = Self(Raw::CUFILE_CANCELED.0);
    /// It is done.
    pub const COMPLETE: Self = Self(Raw::CUFILE_COMPLETE.0);
    /// It took too long.
    pub const TIMEOUT: Self = Self(Raw::CUFILE_TIMEOUT.0);
    /// It failed.
    pub const FAILED: Self = Self(Raw::CUFILE_FAILED.0);
}

impl BatchRequest {
    /// A read from a place of the file to a place behind `base`. The cookie comes back with the event.
    pub fn read(
        handle: CuFileHandle,
        base: DevicePtr,
        bytes: usize,
        file_offset: i64,
        base_offset: i64,
        cookie: usize,
    ) -> Self {
        let place = place(base, bytes, file_offset, base_offset);
        Self::of(CUfileOpcode_t::CUFILE_READ, handle, place, cookie)
    }

    /// A write from a place behind `base` to a place of the file. The cookie comes back with the event.
    pub fn write(
        handle: CuFileHandle,
        base: DevicePtr,
        bytes: usize,
        file_offset: i64,
        base_offset: i64,
        cookie: usize,
    ) -> Self {
        let place = place(base, bytes, file_offset, base_offset);
        Self::of(CUfileOpcode_t::CUFILE_WRITE, handle, place, cookie)
    }

    fn of(
        opcode: CUfileOpcode_t,
        handle: CuFileHandle,
        batch: CUfileIOParams__bindgen_ty_1__bindgen_ty_1,
        cookie: usize,
    ) -> Self {
        Self(CUfileIOParams_t {
            mode: CUfileBatchMode_t::CUFILE_BATCH,
            u: CUfileIOParams__bindgen_ty_1 { batch },
            fh: handle.as_raw(),
            opcode,
            cookie: ptr::without_provenance_mut(cookie),
        })
    }
}

impl fmt::Debug for BatchRequest {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let write = self.0.opcode == CUfileOpcode_t::CUFILE_WRITE;
        to.debug_struct(if write { "BatchWrite" } else { "BatchRead" })
            .field("handle", &self.0.fh)
            .field("cookie", &self.0.cookie.addr())
            .finish_non_exhaustive()
    }
}

impl BatchEvent {
    /// No event: what an array is filled with before events are written to it.
    pub const EMPTY: Self = Self(CUfileIOEvents_t {
        cookie: ptr::null_mut(),
        status: Raw(0),
        ret: 0,
    });

    /// The cookie of the request.
    pub fn cookie(&self) -> usize {
        self.0.cookie.addr()
    }

    /// How far it is.
    pub fn state(&self) -> BatchState {
        BatchState(self.0.status.0)
    }

    /// How many bytes were moved.
    ///
    /// # Errors
    ///
    /// The file system's errno, or cuFile's status.
    pub fn count(&self) -> Result<usize, CuFileFailure> {
        CuFileFailure::split(self.0.ret.cast_signed(), None)
    }
}

impl fmt::Debug for BatchEvent {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("BatchEvent")
            .field("cookie", &self.cookie())
            .field("state", &self.state())
            .field("count", &self.count())
            .finish()
    }
}

impl CuFile {
    /// Makes room for a number of requests in flight.
    ///
    /// # Errors
    ///
    /// cuFile's status, or [`CallError::Unsupported`].
    pub fn batch_io_set_up(&self, requests: u32) -> Result<CuFileBatch, CallError<CuFileStatus>> {
        let function = self.table().cuFileBatchIOSetUp?;
        let mut batch: CUfileBatchHandle_t = ptr::null_mut();
        // SAFETY: `batch` is writable for the call.
        CuFileStatus::check(unsafe { function(&raw mut batch, requests) })?;
        NonNull::new(batch)
            .map(CuFileBatch)
            .ok_or(CallError::Status(CuFileStatus {
                op: CuFileStatus::INVALID_VALUE,
                cuda: 0,
            }))
    }

    /// Submits requests. Where it fails, none or some of them may be in flight.
    ///
    /// # Errors
    ///
    /// cuFile's status, or [`CallError::Unsupported`].
    ///
    /// # Safety
    ///
    /// 1. The batch is alive (rule 1), and has room for the requests.
    /// 2. The requests stay where they are, and nobody touches them, until their events came.
    /// 3. Their handles are alive, and what they name is memory (rule 2), until their events came (rule 3).
    pub unsafe fn batch_io_submit(
        &self,
        batch: CuFileBatch,
        requests: NonNull<[BatchRequest]>,
    ) -> Result<(), CallError<CuFileStatus>> {
        let function = self.table().cuFileBatchIOSubmit?;
        let count = count(requests.len())?;
        let first = requests.as_ptr().cast::<CUfileIOParams_t>();
        // SAFETY: points 1 to 3; no flags are defined.
        CuFileStatus::check(unsafe { function(batch.0.as_ptr(), count, first, 0) })?;
        Ok(())
    }

    /// Collects events: waits until at least `least` are there or the time is over, and says how many it wrote.
    ///
    /// # Errors
    ///
    /// cuFile's status, or [`CallError::Unsupported`].
    ///
    /// # Safety
    ///
    /// 1. The batch is alive (rule 1).
    pub unsafe fn batch_io_get_status(
        &self,
        batch: CuFileBatch,
        least: u32,
        events: &mut [BatchEvent],
        timeout: Option<Duration>,
    ) -> Result<usize, CallError<CuFileStatus>> {
        let function = self.table().cuFileBatchIOGetStatus?;
        let mut there = count(events.len())?;
        let mut limit = timeout.map(timespec);
        let limit = limit
            .as_mut()
            .map_or(ptr::null_mut(), |limit| &raw mut *limit);
        let first = events.as_mut_ptr().cast::<CUfileIOEvents_t>();
        // SAFETY: point 1; `events` has room for as many as `there` says, and cuFile writes at most so many.
        CuFileStatus::check(unsafe {
            function(batch.0.as_ptr(), least, &raw mut there, first, limit)
        })?;
        Ok(there as usize)
    }

    /// Cancels all requests of a batch that have not begun.
    ///
    /// # Errors
    ///
    /// cuFile's status, or [`CallError::Unsupported`].
    ///
    /// # Safety
    ///
    /// 1. The batch is alive (rule 1).
    pub unsafe fn batch_io_cancel(
        &self,
        batch: CuFileBatch,
    ) -> Result<(), CallError<CuFileStatus>> {
        let function = self.table().cuFileBatchIOCancel?;
        // SAFETY: point 1.
        CuFileStatus::check(unsafe { function(batch.0.as_ptr()) })?;
        Ok(())
    }

    /// Destroys a batch.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](crate::Unsupported).
    ///
    /// # Safety
    ///
    /// 1. The batch is alive, and is used no more (rule 1).
    /// 2. None of its requests is in flight (rule 3).
    pub unsafe fn batch_io_destroy(&self, batch: CuFileBatch) -> Result<(), crate::Unsupported> {
        let function = self.table().cuFileBatchIODestroy?;
        // SAFETY: points 1 and 2.
        unsafe { function(batch.0.as_ptr()) };
        Ok(())
    }
}

fn place(
    base: DevicePtr,
    bytes: usize,
    file_offset: i64,
    base_offset: i64,
) -> CUfileIOParams__bindgen_ty_1__bindgen_ty_1 {
    CUfileIOParams__bindgen_ty_1__bindgen_ty_1 {
        devPtr_base: base.as_mut_ptr(),
        file_offset,
        devPtr_offset: base_offset,
        size: bytes,
    }
}

fn count(length: usize) -> Result<c_uint, CuFileStatus> {
    c_uint::try_from(length).map_err(|_| CuFileStatus {
        op: CuFileStatus::INVALID_VALUE,
        cuda: 0,
    })
}

fn timespec(duration: Duration) -> libc::timespec {
    libc::timespec {
        // A time that no machine lives to see is cut.
        tv_sec: libc::time_t::try_from(duration.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(duration.subsec_nanos().cast_signed()),
    }
}
