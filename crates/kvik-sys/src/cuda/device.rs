//! Devices and what they can do. None of these calls needs a context.

use std::ffi::{CStr, c_char, c_int};

use super::Cuda;
use crate::handle::Device;
use crate::raw::cuda::{CUdevice_attribute, CUuuid};
use crate::status::CudaStatus;

/// What can be asked about a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeviceAttribute(CUdevice_attribute);

macro_rules! attributes {
    ($($(#[$doc:meta])* $name:ident = $raw:ident;)*) => {
        impl DeviceAttribute {
            $($(#[$doc])* pub const $name: Self = Self(CUdevice_attribute::$raw);)*

            /// The attribute of this number, for such as have no name here.
            pub const fn new(code: u32) -> Self {
                Self(CUdevice_attribute(code))
            }
        }
    };
}

attributes! {
    /// How many copies can run beside a kernel.
    ASYNC_ENGINE_COUNT = CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT;
    /// The device can address pinned host memory.
    CAN_MAP_HOST_MEMORY = CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY;
    /// The device and the host can use managed memory at the same time.
    CONCURRENT_MANAGED_ACCESS = CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
    /// Major number of the compute capability.
    COMPUTE_CAPABILITY_MAJOR = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
    /// Minor number of the compute capability.
    COMPUTE_CAPABILITY_MINOR = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
    /// Memory of the device can be reached by other devices on the bus, as nvidia-fs needs it.
    GPU_DIRECT_RDMA_SUPPORTED = CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED;
    /// Host memory can be registered.
    HOST_REGISTER_SUPPORTED = CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED;
    /// The device shares the host's memory.
    INTEGRATED = CU_DEVICE_ATTRIBUTE_INTEGRATED;
    /// Managed memory can be had.
    MANAGED_MEMORY = CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY;
    /// Memory can be had in stream order.
    MEMORY_POOLS_SUPPORTED = CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
    /// Number of the device's node of memory; -1 where it has none.
    HOST_NUMA_ID = CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID;
    /// The device can read ordinary host memory.
    PAGEABLE_MEMORY_ACCESS = CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS;
    /// One address means the same memory to host and devices.
    UNIFIED_ADDRESSING = CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING;
}

impl Cuda {
    /// How many devices this process sees.
    ///
    /// # Errors
    ///
    /// The driver's status.
    pub fn device_get_count(&self) -> Result<i32, CudaStatus> {
        let mut count = 0;
        // SAFETY: `count` is writable for the call.
        CudaStatus::check(unsafe { (self.table().cuDeviceGetCount)(&raw mut count) })?;
        Ok(count)
    }

    /// The device of an ordinal.
    ///
    /// # Errors
    ///
    /// The driver's status.
    pub fn device_get(&self, ordinal: i32) -> Result<Device, CudaStatus> {
        let mut device: c_int = 0;
        // SAFETY: `device` is writable for the call; a wrong ordinal is answered with a status.
        CudaStatus::check(unsafe { (self.table().cuDeviceGet)(&raw mut device, ordinal) })?;
        Ok(Device::from_raw(device))
    }

    /// The device's name for people.
    ///
    /// # Errors
    ///
    /// The driver's status.
    pub fn device_get_name(&self, device: Device) -> Result<String, CudaStatus> {
        let function = self.table().cuDeviceGetName;
        // SAFETY: the driver writes at most as many bytes as it is told there are.
        text(|to, length| unsafe { function(to, length, device.as_raw()) })
    }

    /// The device's place on the bus, `0000:3b:00.0`.
    ///
    /// # Errors
    ///
    /// The driver's status.
    pub fn device_get_pci_bus_id(&self, device: Device) -> Result<String, CudaStatus> {
        let function = self.table().cuDeviceGetPCIBusId;
        // SAFETY: the driver writes at most as many bytes as it is told there are.
        text(|to, length| unsafe { function(to, length, device.as_raw()) })
    }

    /// The device's identity, of the slice where the device is one.
    ///
    /// Before CUDA 11.4 a slice has the identity of the whole.
    ///
    /// # Errors
    ///
    /// The driver's status.
    pub fn device_get_uuid(&self, device: Device) -> Result<[u8; 16], CudaStatus> {
        let function = self
            .table()
            .cuDeviceGetUuid_v2
            .unwrap_or(self.table().cuDeviceGetUuid);
        let mut uuid = CUuuid { bytes: [0; 16] };
        // SAFETY: `uuid` is writable for the call; a wrong device is answered with a status.
        CudaStatus::check(unsafe { function(&raw mut uuid, device.as_raw()) })?;
        Ok(uuid.bytes.map(|byte| byte.to_ne_bytes()[0]))
    }

    /// The value of an attribute.
    ///
    /// # Errors
    ///
    /// The driver's status; `INVALID_VALUE` where the driver is older than the attribute.
    pub fn device_get_attribute(
        &self,
        attribute: DeviceAttribute,
        device: Device,
    ) -> Result<i32, CudaStatus> {
        let mut value = 0;
        // SAFETY: `value` is writable for the call; a wrong attribute or device is answered with a status.
        CudaStatus::check(unsafe {
            (self.table().cuDeviceGetAttribute)(&raw mut value, attribute.0, device.as_raw())
        })?;
        Ok(value)
    }

    /// Bytes of memory on the device.
    ///
    /// # Errors
    ///
    /// The driver's status.
    pub fn device_total_mem(&self, device: Device) -> Result<usize, CudaStatus> {
        let mut bytes = 0;
        // SAFETY: `bytes` is writable for the call; a wrong device is answered with a status.
        CudaStatus::check(unsafe {
            (self.table().cuDeviceTotalMem_v2)(&raw mut bytes, device.as_raw())
        })?;
        Ok(bytes)
    }
}

/// A text that a call writes into a buffer, up to its NUL.
fn text(
    call: impl FnOnce(*mut c_char, c_int) -> crate::raw::cuda::CUresult,
) -> Result<String, CudaStatus> {
    let mut buffer = [0_u8; LONGEST_TEXT as usize];
    CudaStatus::check(call(buffer.as_mut_ptr().cast(), LONGEST_TEXT))?;
    let text = CStr::from_bytes_until_nul(&buffer).unwrap_or_default();
    Ok(text.to_string_lossy().into_owned())
}

/// The vendor's own structures give a device's name 256 bytes.
const LONGEST_TEXT: c_int = 256;
