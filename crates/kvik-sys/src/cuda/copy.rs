//! Copies and fills, one at a time.

use super::Cuda;
use crate::handle::{DevicePtr, Stream};
use crate::status::CudaStatus;

impl Cuda {
    /// Copies from the host to the device, and returns when the source may be used again.
    ///
    /// # Errors
    ///
    /// The driver's status, of this call or of work before it.
    ///
    /// # Safety
    ///
    /// 1. Both ranges are memory for `bytes` bytes (rule 2).
    pub unsafe fn memcpy_htod(
        &self,
        to: DevicePtr,
        from: *const u8,
        bytes: usize,
    ) -> Result<(), CudaStatus> {
        // SAFETY: point 1.
        CudaStatus::check(unsafe {
            (self.table().cuMemcpyHtoD_v2)(to.address(), from.cast(), bytes)
        })
    }

    /// Copies from the device to the host, and returns when the bytes are there.
    ///
    /// # Errors
    ///
    /// The driver's status, of this call or of work before it.
    ///
    /// # Safety
    ///
    /// 1. Both ranges are memory for `bytes` bytes (rule 2).
    pub unsafe fn memcpy_dtoh(
        &self,
        to: *mut u8,
        from: DevicePtr,
        bytes: usize,
    ) -> Result<(), CudaStatus> {
        // SAFETY: point 1.
        CudaStatus::check(unsafe {
            (self.table().cuMemcpyDtoH_v2)(to.cast(), from.address(), bytes)
        })
    }

    /// Queues a copy from the host to the device.
    ///
    /// # Errors
    ///
    /// The driver's status, of this call or of work before it.
    ///
    /// # Safety
    ///
    /// 1. The stream is alive (rule 1).
    /// 2. Both ranges are memory for `bytes` bytes (rule 2), and stay so until the stream is past the copy (rule 3).
    pub unsafe fn memcpy_htod_async(
        &self,
        to: DevicePtr,
        from: *const u8,
        bytes: usize,
        stream: Stream,
    ) -> Result<(), CudaStatus> {
        // SAFETY: points 1 and 2.
        CudaStatus::check(unsafe {
            (self.table().cuMemcpyHtoDAsync_v2)(to.address(), from.cast(), bytes, stream.give())
        })
    }

    /// Queues a copy from the device to the host.
    ///
    /// # Errors
    ///
    /// The driver's status, of this call or of work before it.
    ///
    /// # Safety
    ///
    /// 1. The stream is alive (rule 1).
    /// 2. Both ranges are memory for `bytes` bytes (rule 2), and stay so until the stream is past the copy (rule 3).
    pub unsafe fn memcpy_dtoh_async(
        &self,
        to: *mut u8,
        from: DevicePtr,
        bytes: usize,
        stream: Stream,
    ) -> Result<(), CudaStatus> {
        // SAFETY: points 1 and 2.
        CudaStatus::check(unsafe {
            (self.table().cuMemcpyDtoHAsync_v2)(to.cast(), from.address(), bytes, stream.give())
        })
    }

    /// Queues a copy between two addresses that the driver knows, of host or device memory.
    ///
    /// # Errors
    ///
    /// The driver's status, of this call or of work before it.
    ///
    /// # Safety
    ///
    /// 1. The stream is alive (rule 1).
    /// 2. Both ranges are memory for `bytes` bytes (rule 2), and stay so until the stream is past the copy (rule 3).
    pub unsafe fn memcpy_async(
        &self,
        to: DevicePtr,
        from: DevicePtr,
        bytes: usize,
        stream: Stream,
    ) -> Result<(), CudaStatus> {
        // SAFETY: points 1 and 2.
        CudaStatus::check(unsafe {
            (self.table().cuMemcpyAsync)(to.address(), from.address(), bytes, stream.give())
        })
    }

    /// Fills memory of the device with one byte. It may return before the memory is filled.
    ///
    /// # Errors
    ///
    /// The driver's status, of this call or of work before it.
    ///
    /// # Safety
    ///
    /// 1. The range is memory for `bytes` bytes (rule 2), and stays so until the default stream is past the call (rule 3).
    pub unsafe fn memset_d8(
        &self,
        to: DevicePtr,
        byte: u8,
        bytes: usize,
    ) -> Result<(), CudaStatus> {
        // SAFETY: point 1.
        CudaStatus::check(unsafe { (self.table().cuMemsetD8_v2)(to.address(), byte, bytes) })
    }

    /// Queues a fill of the device's memory with one byte.
    ///
    /// # Errors
    ///
    /// The driver's status, of this call or of work before it.
    ///
    /// # Safety
    ///
    /// 1. The stream is alive (rule 1).
    /// 2. The range is memory for `bytes` bytes (rule 2), and stays so until the stream is past the fill (rule 3).
    pub unsafe fn memset_d8_async(
        &self,
        to: DevicePtr,
        byte: u8,
        bytes: usize,
        stream: Stream,
    ) -> Result<(), CudaStatus> {
        // SAFETY: points 1 and 2.
        CudaStatus::check(unsafe {
            (self.table().cuMemsetD8Async)(to.address(), byte, bytes, stream.give())
        })
    }
}
