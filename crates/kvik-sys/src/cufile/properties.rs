//! What cuFile's driver says of itself and of the machine.

use std::mem::MaybeUninit;

use super::CuFile;
use crate::raw::cufile::{
    CUfileDriverControlFlags as Control, CUfileDriverStatusFlags as Status, CUfileDrvProps_t,
    CUfileFeatureFlags as Feature,
};
use crate::status::CuFileStatus;

/// What cuFile's driver says of itself and of the machine. Sizes are in KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DriverProperties {
    /// Version of nvidia-fs; 0 and 0 where there is none.
    pub nvfs_version: (u32, u32),
    /// Up to this size a thread looks again and again whether its request is done.
    pub poll_threshold_kib: usize,
    /// Largest request to the direct path.
    pub max_direct_io_kib: usize,
    /// Bit by bit, the file systems and devices that the driver supports.
    pub status_flags: u32,
    /// Bit by bit, the modes that are on.
    pub control_flags: u32,
    /// Bit by bit, what this cuFile can do here.
    pub feature_flags: u32,
    /// Device memory for buffers that are not registered.
    pub max_device_cache_kib: u32,
    /// The part of it that one buffer takes.
    pub per_buffer_cache_kib: u32,
    /// Device memory that may be registered.
    pub max_device_pinned_kib: u32,
    /// Requests in one batch.
    pub max_batch_io: u32,
    /// Milliseconds after which a batch gives up.
    pub max_batch_io_timeout_ms: u32,
}

impl DriverProperties {
    /// Requests may go through the file system where no direct path leads.
    pub fn allows_compat_mode(&self) -> bool {
        has(self.control_flags, Control::CU_FILE_ALLOW_COMPAT_MODE.0)
    }

    /// Small reads and writes wait for the device by looking again and again.
    pub fn polls(&self) -> bool {
        has(self.control_flags, Control::CU_FILE_USE_POLL_MODE.0)
    }

    /// Local NVMe drives have a direct path.
    pub fn supports_nvme(&self) -> bool {
        has(self.status_flags, Status::CU_FILE_NVME_SUPPORTED.0)
    }

    /// The kernel's own way between devices on the bus can be used.
    pub fn supports_p2p(&self) -> bool {
        has(self.feature_flags, Feature::CU_FILE_P2P_SUPPORTED.0)
    }

    /// Batches can be submitted.
    pub fn supports_batches(&self) -> bool {
        has(self.feature_flags, Feature::CU_FILE_BATCH_IO_SUPPORTED.0)
    }

    /// Reads and writes can be queued in streams.
    pub fn supports_streams(&self) -> bool {
        has(self.feature_flags, Feature::CU_FILE_STREAMS_SUPPORTED.0)
    }
}

impl CuFile {
    /// What the driver says of itself. Asking opens it where it is not open, see [`driver_open`](Self::driver_open).
    ///
    /// # Errors
    ///
    /// cuFile's status.
    pub fn driver_get_properties(&self) -> Result<DriverProperties, CuFileStatus> {
        let mut properties = MaybeUninit::<CUfileDrvProps_t>::zeroed();
        let function = self.table().cuFileDriverGetProperties;
        // SAFETY: `properties` is writable for the call.
        CuFileStatus::check(unsafe { function(properties.as_mut_ptr()) })?;
        // SAFETY: it was zeroed, and holds nothing but numbers.
        let raw = unsafe { properties.assume_init() };
        Ok(DriverProperties {
            nvfs_version: (raw.nvfs.major_version, raw.nvfs.minor_version),
            poll_threshold_kib: raw.nvfs.poll_thresh_size,
            max_direct_io_kib: raw.nvfs.max_direct_io_size,
            status_flags: raw.nvfs.dstatusflags,
            control_flags: raw.nvfs.dcontrolflags,
            feature_flags: raw.fflags,
            max_device_cache_kib: raw.max_device_cache_size,
            per_buffer_cache_kib: raw.per_buffer_cache_size,
            max_device_pinned_kib: raw.max_device_pinned_mem_size,
            max_batch_io: raw.max_batch_io_size,
            max_batch_io_timeout_ms: raw.max_batch_io_timeout_msecs,
        })
    }
}

/// Flags are numbers of bits.
fn has(flags: u32, bit: u32) -> bool {
    flags & (1 << bit) != 0
}
