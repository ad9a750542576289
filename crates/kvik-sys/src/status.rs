//! What the two libraries answer when a call fails: numbers, among them such as this version has never heard of.

use std::error::Error;
use std::fmt;

use crate::library::Unsupported;
use crate::raw::cuda::CUresult;
use crate::raw::cufile::{CODES, CUfileError_t, CUfileOpError};

/// An answer of the driver other than success.
///
/// Its text is the library's to tell: [`Cuda::text`](crate::Cuda::text).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CudaStatus(i32);

impl CudaStatus {
    /// An argument is outside of what the call accepts, or two contradict each other.
    pub const INVALID_VALUE: Self = Self::of(CUresult::CUDA_ERROR_INVALID_VALUE);
    /// No memory is left, of the device's or of the host's.
    pub const OUT_OF_MEMORY: Self = Self::of(CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    /// `init` was not called, or it failed.
    pub const NOT_INITIALIZED: Self = Self::of(CUresult::CUDA_ERROR_NOT_INITIALIZED);
    /// The driver is shutting down, as it does while the process exits.
    pub const DEINITIALIZED: Self = Self::of(CUresult::CUDA_ERROR_DEINITIALIZED);
    /// The library is a stand-in that lies beside the toolkit for linking.
    pub const STUB_LIBRARY: Self = Self::of(CUresult::CUDA_ERROR_STUB_LIBRARY);
    /// The driver is there and no device is.
    pub const NO_DEVICE: Self = Self::of(CUresult::CUDA_ERROR_NO_DEVICE);
    /// No device has this ordinal.
    pub const INVALID_DEVICE: Self = Self::of(CUresult::CUDA_ERROR_INVALID_DEVICE);
    /// No context is current, or the one that is was destroyed.
    pub const INVALID_CONTEXT: Self = Self::of(CUresult::CUDA_ERROR_INVALID_CONTEXT);
    /// A handle is none of the driver's.
    pub const INVALID_HANDLE: Self = Self::of(CUresult::CUDA_ERROR_INVALID_HANDLE);
    /// A name or a symbol was not found.
    pub const NOT_FOUND: Self = Self::of(CUresult::CUDA_ERROR_NOT_FOUND);
    /// Work that was asked about goes on. Calls that ask turn it into a value.
    pub const NOT_READY: Self = Self::of(CUresult::CUDA_ERROR_NOT_READY);
    /// The device touched an address that is none of its own; the context is lost.
    pub const ILLEGAL_ADDRESS: Self = Self::of(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
    /// The context was destroyed while it was current.
    pub const CONTEXT_IS_DESTROYED: Self = Self::of(CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED);
    /// Host memory is registered already, all of it or a part.
    pub const HOST_MEMORY_ALREADY_REGISTERED: Self =
        Self::of(CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    /// Host memory is not registered.
    pub const HOST_MEMORY_NOT_REGISTERED: Self =
        Self::of(CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    /// The device, the driver or the memory does not support what was asked for.
    pub const NOT_SUPPORTED: Self = Self::of(CUresult::CUDA_ERROR_NOT_SUPPORTED);
    /// The stream records its work for a graph, and the call must not be recorded.
    pub const STREAM_CAPTURE_UNSUPPORTED: Self =
        Self::of(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);

    /// The status of this number.
    pub const fn new(code: i32) -> Self {
        Self(code)
    }

    /// The number.
    pub const fn code(self) -> i32 {
        self.0
    }

    const fn of(result: CUresult) -> Self {
        Self(result.0.cast_signed())
    }

    /// The vendor's type.
    pub(crate) const fn raw(self) -> CUresult {
        CUresult(self.0.cast_unsigned())
    }

    /// Success, or the status.
    pub(crate) fn check(result: CUresult) -> Result<(), Self> {
        match result {
            CUresult::CUDA_SUCCESS => Ok(()),
            other => Err(Self::of(other)),
        }
    }

    /// Whether the work is done: `NOT_READY` is an answer and no failure.
    pub(crate) fn is_done(result: CUresult) -> Result<bool, Self> {
        match Self::check(result) {
            Err(Self::NOT_READY) => Ok(false),
            other => other.map(|()| true),
        }
    }
}

impl fmt::Display for CudaStatus {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "CUDA status {}", self.0)
    }
}

impl Error for CudaStatus {}

/// An answer of cuFile other than success: its own number, and the driver's where the driver failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CuFileStatus {
    /// cuFile's number.
    pub op: i32,
    /// The driver's number; 0 where the driver did not fail.
    pub cuda: i32,
}

impl CuFileStatus {
    /// nvidia-fs is not loaded, and the compatible mode is not allowed.
    pub const DRIVER_NOT_INITIALIZED: i32 = CUfileOpError::CU_FILE_DRIVER_NOT_INITIALIZED
        .0
        .cast_signed();
    /// The file lies where no direct path leads.
    pub const IO_NOT_SUPPORTED: i32 = CUfileOpError::CU_FILE_IO_NOT_SUPPORTED.0.cast_signed();
    /// A size that the driver does not take.
    pub const DRIVER_UNSUPPORTED_LIMIT: i32 = CUfileOpError::CU_FILE_DRIVER_UNSUPPORTED_LIMIT
        .0
        .cast_signed();
    /// Arguments that cuFile does not take.
    pub const INVALID_VALUE: i32 = CUfileOpError::CU_FILE_INVALID_VALUE.0.cast_signed();
    /// The driver is open already.
    pub const DRIVER_ALREADY_OPEN: i32 = CUfileOpError::CU_FILE_DRIVER_ALREADY_OPEN.0.cast_signed();
    /// The descriptor was not registered, or could not be.
    pub const HANDLE_NOT_REGISTERED: i32 =
        CUfileOpError::CU_FILE_HANDLE_NOT_REGISTERED.0.cast_signed();

    /// The header's name of cuFile's number, where this version knows it.
    pub fn name(self) -> Option<&'static str> {
        let op = u32::try_from(self.op).ok()?;
        CODES
            .iter()
            .find(|(code, _)| *code == op)
            .map(|(_, name)| *name)
    }

    /// The driver's part, where the driver failed.
    pub fn driver(self) -> Option<CudaStatus> {
        (self.cuda != 0).then(|| CudaStatus::new(self.cuda))
    }

    /// Success, or the status.
    pub(crate) fn check(error: CUfileError_t) -> Result<(), Self> {
        match error.err {
            CUfileOpError::CU_FILE_SUCCESS => Ok(()),
            other => Err(Self {
                op: other.0.cast_signed(),
                cuda: error.cu_err.0.cast_signed(),
            }),
        }
    }
}

impl fmt::Display for CuFileStatus {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(to, "{name} ({})", self.op)?,
            None => write!(to, "cuFile status {}", self.op)?,
        }
        match self.driver() {
            Some(status) => write!(to, ", {status}"),
            None => Ok(()),
        }
    }
}

impl Error for CuFileStatus {}

/// What a read or a write of cuFile's answers when it moves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CuFileFailure {
    /// The file system failed, with this errno; none where the answer came without one, as in a stream.
    System(Option<i32>),
    /// cuFile failed.
    Status(CuFileStatus),
}

impl CuFileFailure {
    /// Takes a signed count apart as the header says: bytes; or -1, with the cause in `errno`; or a negative number, which
    /// is one of cuFile's past 5000 and an errno up to there.
    ///
    /// # Errors
    ///
    /// Every negative count.
    ///
    /// # Example: the answers of a read
    ///
    /// ```
    /// use kvik_sys::{CuFileFailure, CuFileStatus};
    ///
    /// assert_eq!(CuFileFailure::split(4096, None), Ok(4096));
    /// assert_eq!(CuFileFailure::split(-1, Some(5)), Err(CuFileFailure::System(Some(5))));
    /// let refused = CuFileStatus { op: 5008, cuda: 0 };
    /// assert_eq!(CuFileFailure::split(-5008, Some(5)), Err(CuFileFailure::Status(refused)));
    /// ```
    pub fn split(count: isize, errno: Option<i32>) -> Result<usize, Self> {
        if let Ok(bytes) = usize::try_from(count) {
            return Ok(bytes);
        }
        if count == -1 {
            return Err(Self::System(errno));
        }
        // No code of either kind leaves the range of an `i32`; a number that does is told as the nearest.
        let code = i32::try_from(count.unsigned_abs()).unwrap_or(i32::MAX);
        Err(if code > LARGEST_ERRNO {
            Self::Status(CuFileStatus { op: code, cuda: 0 })
        } else {
            Self::System(Some(code))
        })
    }
}

impl fmt::Display for CuFileFailure {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System(Some(errno)) => std::io::Error::from_raw_os_error(*errno).fmt(to),
            Self::System(None) => to.write_str("the file system failed, and did not say why"),
            Self::Status(status) => status.fmt(to),
        }
    }
}

impl Error for CuFileFailure {}

/// Why a function that may be missing did not do what it was called for: it is missing, or it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError<S> {
    /// The loaded library is older than the function.
    Unsupported(Unsupported),
    /// The library's answer.
    Status(S),
}

impl<S> From<Unsupported> for CallError<S> {
    fn from(unsupported: Unsupported) -> Self {
        Self::Unsupported(unsupported)
    }
}

impl From<CudaStatus> for CallError<CudaStatus> {
    fn from(status: CudaStatus) -> Self {
        Self::Status(status)
    }
}

impl From<CuFileStatus> for CallError<CuFileStatus> {
    fn from(status: CuFileStatus) -> Self {
        Self::Status(status)
    }
}

impl<S: fmt::Display> fmt::Display for CallError<S> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(unsupported) => unsupported.fmt(to),
            Self::Status(status) => status.fmt(to),
        }
    }
}

impl<S: fmt::Debug + fmt::Display> Error for CallError<S> {}

/// cuFile's numbers begin behind this one (`CUFILEOP_BASE_ERR`).
const LARGEST_ERRNO: i32 = 5000;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(count: isize, errno: Option<i32>, expected: Result<usize, CuFileFailure>) {
        assert_eq!(CuFileFailure::split(count, errno), expected, "{count}");
    }

    fn status(op: i32) -> CuFileFailure {
        CuFileFailure::Status(CuFileStatus { op, cuda: 0 })
    }

    #[test]
    fn signed_counts_are_bytes_errnos_or_codes_of_cufile() {
        check(0, Some(5), Ok(0));
        check(isize::MAX, None, Ok(isize::MAX.unsigned_abs()));
        check(-1, Some(28), Err(CuFileFailure::System(Some(28))));
        check(-1, None, Err(CuFileFailure::System(None)));
        check(-22, Some(28), Err(CuFileFailure::System(Some(22))));
        check(-5000, None, Err(CuFileFailure::System(Some(5000))));
        check(-5001, None, Err(status(5001)));
        check(-9999, None, Err(status(9999)));
        check(isize::MIN, None, Err(status(i32::MAX)));
    }

    #[test]
    fn a_code_of_cufile_has_its_name_and_an_unknown_one_its_number() {
        let known = CuFileStatus { op: 5027, cuda: 0 };
        assert_eq!(known.to_string(), "CU_FILE_HANDLE_NOT_REGISTERED (5027)");
        let driver = CuFileStatus {
            op: 5011,
            cuda: 201,
        };
        assert_eq!(
            driver.to_string(),
            "CU_FILE_CUDA_DRIVER_ERROR (5011), CUDA status 201"
        );
        let unknown = CuFileStatus { op: 5999, cuda: 0 };
        assert_eq!(unknown.to_string(), "cuFile status 5999");
        let negative = CuFileStatus { op: -3, cuda: 0 };
        assert_eq!(negative.to_string(), "cuFile status -3");
    }

    #[test]
    fn every_number_is_a_status_of_the_driver() {
        assert_eq!(CudaStatus::check(CUresult(0)), Ok(()));
        for code in [1, 700, 917, 12_345, i32::MAX, -1] {
            let result = CUresult(code.cast_unsigned());
            assert_eq!(CudaStatus::check(result), Err(CudaStatus::new(code)));
        }
        assert_eq!(CudaStatus::is_done(CUresult(0)), Ok(true));
        assert_eq!(CudaStatus::is_done(CUresult(600)), Ok(false));
        assert_eq!(
            CudaStatus::is_done(CUresult(700)),
            Err(CudaStatus::ILLEGAL_ADDRESS)
        );
    }
}
