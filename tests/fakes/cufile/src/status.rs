//! A `CUfileError_t`, and the statuses that the fake returns.

/// The status of cuFile, and that of CUDA where the first says so. It comes back by value, in one register.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) code: i32,
    pub(crate) cuda: i32,
}

pub(crate) type Answer<T = ()> = Result<T, Status>;

impl Status {
    pub(crate) const fn new(code: i32) -> Status {
        Status { code, cuda: 0 }
    }

    /// An error of CUDA.
    pub(crate) const fn of_cuda(cuda: i32) -> Status {
        let code = CUDA_DRIVER_ERROR;
        Status { code, cuda }
    }

    /// What a rule means by a number.
    pub(crate) const fn of_rule(code: i32) -> Status {
        if code > BASE {
            Status::new(code)
        } else {
            Status::of_cuda(code)
        }
    }
}

/// A null pointer, as the checks of kvik-fake-common report it.
impl From<i32> for Status {
    fn from(_: i32) -> Status {
        INVALID_VALUE
    }
}

/// Numbers above it are statuses of cuFile, others of the system.
pub(crate) const BASE: i32 = 5000;
const CUDA_DRIVER_ERROR: i32 = 5011;

pub(crate) const SUCCESS: Status = Status::new(0);
pub(crate) const DRIVER_NOT_INITIALIZED: Status = Status::new(5001);
pub(crate) const DRIVER_UNSUPPORTED_LIMIT: Status = Status::new(5003);
pub(crate) const IO_NOT_SUPPORTED: Status = Status::new(5008);
pub(crate) const CUDA_POINTER_INVALID: Status = Status::new(5012);
pub(crate) const CUDA_MEMORY_TYPE_INVALID: Status = Status::new(5013);
pub(crate) const INVALID_FILE_TYPE: Status = Status::new(5018);
pub(crate) const INVALID_VALUE: Status = Status::new(5022);
pub(crate) const MEMORY_ALREADY_REGISTERED: Status = Status::new(5023);
pub(crate) const MEMORY_NOT_REGISTERED: Status = Status::new(5024);
pub(crate) const DRIVER_ALREADY_OPEN: Status = Status::new(5026);
pub(crate) const HANDLE_NOT_REGISTERED: Status = Status::new(5027);
pub(crate) const HANDLE_ALREADY_REGISTERED: Status = Status::new(5028);
pub(crate) const INTERNAL_ERROR: Status = Status::new(5030);
pub(crate) const GPU_MEMORY_PINNING_FAILED: Status = Status::new(5036);
pub(crate) const BATCH_FULL: Status = Status::new(5037);
