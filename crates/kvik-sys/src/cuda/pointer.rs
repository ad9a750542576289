//! What the driver knows of an address.

use std::ffi::c_void;

use super::Cuda;
use crate::handle::DevicePtr;
use crate::raw::cuda::{CUmemorytype, CUpointer_attribute};
use crate::status::CudaStatus;

/// What can be asked about an address. Each answer fits into a `u64`; those that do not are not here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct PointerAttribute(CUpointer_attribute);

impl PointerAttribute {
    /// The context of the allocation, as the vendor's `CUcontext`; 0 for memory of a pool.
    pub const CONTEXT: Self = Self(CUpointer_attribute::CU_POINTER_ATTRIBUTE_CONTEXT);
    /// Where the memory is, see [`MemoryType`].
    pub const MEMORY_TYPE: Self = Self(CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
    /// The address under which the current context's device sees the memory.
    pub const DEVICE_POINTER: Self = Self(CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER);
    /// The address under which the host sees the memory.
    pub const HOST_POINTER: Self = Self(CUpointer_attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER);
    /// 1 for managed memory.
    pub const IS_MANAGED: Self = Self(CUpointer_attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED);
    /// The ordinal of the device, an `i32`.
    pub const DEVICE_ORDINAL: Self = Self(CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
    /// The start of the allocation.
    pub const RANGE_START_ADDR: Self =
        Self(CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
    /// The bytes of the allocation.
    pub const RANGE_SIZE: Self = Self(CUpointer_attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE);
    /// 1 where memory stands behind the address.
    pub const MAPPED: Self = Self(CUpointer_attribute::CU_POINTER_ATTRIBUTE_MAPPED);
    /// 1 where nvidia-fs and network cards can reach the memory.
    pub const IS_GPU_DIRECT_RDMA_CAPABLE: Self =
        Self(CUpointer_attribute::CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE);
    /// The pool of the allocation, as the vendor's `CUmemoryPool`; 0 for memory of no pool.
    pub const MEMPOOL_HANDLE: Self = Self(CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
    /// An identity of the allocation that no other one of this process ever has.
    pub const BUFFER_ID: Self = Self(CUpointer_attribute::CU_POINTER_ATTRIBUTE_BUFFER_ID);
}

/// Answers of [`PointerAttribute::MEMORY_TYPE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryType(u64);

impl MemoryType {
    /// None that the driver knows.
    pub const UNKNOWN: Self = Self(0);
    /// Pinned host memory.
    pub const HOST: Self = Self(CUmemorytype::CU_MEMORYTYPE_HOST.0 as u64);
    /// The device's memory, or managed memory.
    pub const DEVICE: Self = Self(CUmemorytype::CU_MEMORYTYPE_DEVICE.0 as u64);

    /// The type that an answer names.
    pub const fn new(answer: u64) -> Self {
        Self(answer)
    }
}

impl Cuda {
    /// One attribute of an address, in the low bytes of a `u64` whose other bytes are 0.
    ///
    /// # Errors
    ///
    /// The driver's status; `INVALID_VALUE` where it knows nothing of the address.
    pub fn pointer_get_attribute(
        &self,
        attribute: PointerAttribute,
        address: DevicePtr,
    ) -> Result<u64, CudaStatus> {
        let mut answer = 0_u64;
        let to = (&raw mut answer).cast::<c_void>();
        // SAFETY: `to` takes eight bytes, which is the largest answer of a `PointerAttribute`; the address is looked up
        // and not followed.
        CudaStatus::check(unsafe {
            (self.table().cuPointerGetAttribute)(to, attribute.0, address.address())
        })?;
        Ok(answer)
    }

    /// Several attributes of an address in one call. Each answer is in the low bytes of a `u64` whose other bytes are 0;
    /// where the driver knows nothing of the address, or an attribute does not apply, the answer is 0.
    ///
    /// # Errors
    ///
    /// The driver's status.
    pub fn pointer_get_attributes<const N: usize>(
        &self,
        attributes: [PointerAttribute; N],
        address: DevicePtr,
    ) -> Result<[u64; N], CudaStatus> {
        let mut attributes = attributes.map(|attribute| attribute.0);
        let mut answers = [0_u64; N];
        let mut places = answers
            .each_mut()
            .map(|answer| (&raw mut *answer).cast::<c_void>());
        let Ok(count) = u32::try_from(N) else {
            return Err(CudaStatus::INVALID_VALUE);
        };
        // SAFETY: `attributes` and `places` have `count` entries; each place takes eight bytes, which is the largest answer
        // of a `PointerAttribute`; the address is looked up and not followed.
        CudaStatus::check(unsafe {
            (self.table().cuPointerGetAttributes)(
                count,
                attributes.as_mut_ptr(),
                places.as_mut_ptr(),
                address.address(),
            )
        })?;
        Ok(answers)
    }
}

// An answer of four bytes is to be read as a `u64`.
const _: () = assert!(cfg!(target_endian = "little"));
