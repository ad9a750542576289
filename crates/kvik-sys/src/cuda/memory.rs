//! Memory: of the device, managed, and pinned on the host.

use std::ffi::{c_uint, c_void};
use std::ops::BitOr;
use std::ptr::{self, NonNull};

use super::Cuda;
use crate::handle::{DevicePtr, Stream};
use crate::raw::cuda as raw;
use crate::status::{CallError, CudaStatus};

/// How host memory is pinned. For allocating and for registering the values are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct HostFlags(c_uint);

impl HostFlags {
    /// Pinned for the current context.
    pub const NONE: Self = Self(0);
    /// Pinned for all contexts.
    pub const PORTABLE: Self = Self(raw::CU_MEMHOSTALLOC_PORTABLE);
    /// The device can address it, see [`mem_host_get_device_pointer`](Cuda::mem_host_get_device_pointer).
    pub const DEVICEMAP: Self = Self(raw::CU_MEMHOSTALLOC_DEVICEMAP);
}

const _: () = assert!(
    raw::CU_MEMHOSTALLOC_PORTABLE == raw::CU_MEMHOSTREGISTER_PORTABLE
        && raw::CU_MEMHOSTALLOC_DEVICEMAP == raw::CU_MEMHOSTREGISTER_DEVICEMAP
);

impl BitOr for HostFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Cuda {
    /// Free and total bytes of the current context's device.
    ///
    /// # Errors
    ///
    /// The driver's status.
    pub fn mem_get_info(&self) -> Result<(usize, usize), CudaStatus> {
        let mut free = 0;
        let mut total = 0;
        // SAFETY: both results are writable for the call.
        CudaStatus::check(unsafe {
            (self.table().cuMemGetInfo_v2)(&raw mut free, &raw mut total)
        })?;
        Ok((free, total))
    }

    /// Allocates memory of the current context's device.
    ///
    /// # Errors
    ///
    /// The driver's status; `INVALID_VALUE` for no bytes.
    pub fn mem_alloc(&self, bytes: usize) -> Result<DevicePtr, CudaStatus> {
        let mut address = 0;
        // SAFETY: `address` is writable for the call.
        CudaStatus::check(unsafe { (self.table().cuMemAlloc_v2)(&raw mut address, bytes) })?;
        Ok(DevicePtr::new(address))
    }

    /// Frees memory of [`mem_alloc`](Self::mem_alloc) or [`mem_alloc_managed`](Self::mem_alloc_managed). It may wait for
    /// work of the whole device.
    ///
    /// # Errors
    ///
    /// The driver's status, of this call or of work before it.
    ///
    /// # Safety
    ///
    /// 1. The address is the start of such an allocation, which is freed once.
    /// 2. Nothing uses it any more (rule 3).
    pub unsafe fn mem_free(&self, address: DevicePtr) -> Result<(), CudaStatus> {
        // SAFETY: points 1 and 2.
        CudaStatus::check(unsafe { (self.table().cuMemFree_v2)(address.address()) })
    }

    /// Allocates memory from the pool of the stream's device. It may be used by work that is queued behind this call.
    ///
    /// # Errors
    ///
    /// The driver's status, or [`CallError::Unsupported`] before CUDA 11.2.
    ///
    /// # Safety
    ///
    /// 1. The stream is alive (rule 1).
    pub unsafe fn mem_alloc_async(
        &self,
        bytes: usize,
        stream: Stream,
    ) -> Result<DevicePtr, CallError<CudaStatus>> {
        let function = self.table().cuMemAllocAsync?;
        let mut address = 0;
        // SAFETY: point 1; `address` is writable for the call.
        CudaStatus::check(unsafe { function(&raw mut address, bytes, stream.give()) })?;
        Ok(DevicePtr::new(address))
    }

    /// Frees memory of a pool behind the work that is in the stream now.
    ///
    /// # Errors
    ///
    /// The driver's status, or [`CallError::Unsupported`] before CUDA 11.2.
    ///
    /// # Safety
    ///
    /// 1. The stream is alive (rule 1).
    /// 2. The address is the start of an allocation from a pool, which is freed once.
    /// 3. Nothing uses it any more by the time the stream arrives here (rule 3).
    pub unsafe fn mem_free_async(
        &self,
        address: DevicePtr,
        stream: Stream,
    ) -> Result<(), CallError<CudaStatus>> {
        let function = self.table().cuMemFreeAsync?;
        // SAFETY: points 1 to 3.
        CudaStatus::check(unsafe { function(address.address(), stream.give()) })?;
        Ok(())
    }

    /// Allocates memory that moves between host and device as it is touched, for any stream to use.
    ///
    /// # Errors
    ///
    /// The driver's status.
    pub fn mem_alloc_managed(&self, bytes: usize) -> Result<DevicePtr, CudaStatus> {
        let mut address = 0;
        let flags = raw::CUmemAttach_flags::CU_MEM_ATTACH_GLOBAL.0;
        // SAFETY: `address` is writable for the call.
        CudaStatus::check(unsafe {
            (self.table().cuMemAllocManaged)(&raw mut address, bytes, flags)
        })?;
        Ok(DevicePtr::new(address))
    }

    /// Allocates pinned host memory. What stands in it at first is not said.
    ///
    /// # Errors
    ///
    /// The driver's status.
    pub fn mem_host_alloc(
        &self,
        bytes: usize,
        flags: HostFlags,
    ) -> Result<NonNull<u8>, CudaStatus> {
        let mut pointer: *mut c_void = ptr::null_mut();
        // SAFETY: `pointer` is writable for the call.
        CudaStatus::check(unsafe {
            (self.table().cuMemHostAlloc)(&raw mut pointer, bytes, flags.0)
        })?;
        NonNull::new(pointer.cast()).ok_or(CudaStatus::OUT_OF_MEMORY)
    }

    /// Frees memory of [`mem_host_alloc`](Self::mem_host_alloc).
    ///
    /// # Errors
    ///
    /// The driver's status, of this call or of work before it.
    ///
    /// # Safety
    ///
    /// 1. The pointer is the start of such an allocation, which is freed once.
    /// 2. Nothing uses it any more (rule 3).
    pub unsafe fn mem_free_host(&self, pointer: NonNull<u8>) -> Result<(), CudaStatus> {
        // SAFETY: points 1 and 2.
        CudaStatus::check(unsafe { (self.table().cuMemFreeHost)(pointer.as_ptr().cast()) })
    }

    /// Pins host memory that somebody else allocated.
    ///
    /// # Errors
    ///
    /// The driver's status; `HOST_MEMORY_ALREADY_REGISTERED` where a part of it is pinned already.
    ///
    /// # Safety
    ///
    /// 1. All of it is mapped, and stays so until it is unregistered.
    pub unsafe fn mem_host_register(
        &self,
        pointer: NonNull<u8>,
        bytes: usize,
        flags: HostFlags,
    ) -> Result<(), CudaStatus> {
        // SAFETY: point 1.
        CudaStatus::check(unsafe {
            (self.table().cuMemHostRegister_v2)(pointer.as_ptr().cast(), bytes, flags.0)
        })
    }

    /// Ends the pinning of registered memory.
    ///
    /// # Errors
    ///
    /// The driver's status; `HOST_MEMORY_NOT_REGISTERED` where it was not.
    ///
    /// # Safety
    ///
    /// 1. No copy that was queued uses it any more (rule 3).
    pub unsafe fn mem_host_unregister(&self, pointer: NonNull<u8>) -> Result<(), CudaStatus> {
        // SAFETY: point 1; memory that is not registered is answered with a status.
        CudaStatus::check(unsafe { (self.table().cuMemHostUnregister)(pointer.as_ptr().cast()) })
    }

    /// The address under which the device sees pinned host memory.
    ///
    /// # Errors
    ///
    /// The driver's status; `INVALID_VALUE` where the memory is not pinned and mapped.
    pub fn mem_host_get_device_pointer(&self, pointer: *const u8) -> Result<DevicePtr, CudaStatus> {
        let mut address = 0;
        let pointer = pointer.cast_mut().cast();
        // SAFETY: `address` is writable for the call; `pointer` is looked up and not followed.
        CudaStatus::check(unsafe {
            (self.table().cuMemHostGetDevicePointer_v2)(&raw mut address, pointer, 0)
        })?;
        Ok(DevicePtr::new(address))
    }

    /// Start and bytes of the allocation in which an address lies.
    ///
    /// # Errors
    ///
    /// The driver's status; `NOT_FOUND` or `INVALID_VALUE` where it lies in none of the current context.
    pub fn mem_get_address_range(
        &self,
        address: DevicePtr,
    ) -> Result<(DevicePtr, usize), CudaStatus> {
        let mut start = 0;
        let mut bytes = 0;
        // SAFETY: both results are writable for the call; the address is looked up and not followed.
        CudaStatus::check(unsafe {
            (self.table().cuMemGetAddressRange_v2)(
                &raw mut start,
                &raw mut bytes,
                address.address(),
            )
        })?;
        Ok((DevicePtr::new(start), bytes))
    }
}
