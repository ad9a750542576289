//! Many copies in one call, in the form that the loaded driver has.
//!
//! CUDA 12.8 brought the call with an argument for the copy that failed, 13.0 a second form without it. Drivers of CUDA 13
//! have both.

use super::Cuda;
use crate::handle::{DevicePtr, Stream};
use crate::library::Unsupported;
use crate::raw::cuda::{
    CUdeviceptr, CUmemLocation, CUmemLocation_st__bindgen_ty_1, CUmemLocationType,
    CUmemcpyAttributes, CUmemcpySrcAccessOrder, cuMemcpyBatchAsync, cuMemcpyBatchAsync_v2,
};
use crate::status::{CallError, CudaStatus};

/// The call as one driver has it.
#[derive(Clone, Copy)]
enum Form {
    /// With the place of the copy that failed.
    First(cuMemcpyBatchAsync),
    /// Without.
    Second(cuMemcpyBatchAsync_v2),
}

impl Cuda {
    /// Whether [`memcpy_batch_async`](Self::memcpy_batch_async) can be called.
    ///
    /// # Errors
    ///
    /// [`CallError::Unsupported`], or the status where the driver does not tell its version.
    pub fn memcpy_batch_supported(&self) -> Result<(), CallError<CudaStatus>> {
        self.form().map(|_| ())
    }

    /// Queues many copies between addresses that the driver knows. They run in no order among each other, and read their
    /// sources in the order of the stream.
    ///
    /// The three slices are parallel: copy `i` moves `sizes[i]` bytes from `from[i]` to `to[i]`.
    ///
    /// # Errors
    ///
    /// The driver's status, of this call or of work before it; where there is one, any of the copies may have been queued.
    /// Drivers answer `INVALID_VALUE` to a batch of no copies, to a copy of no bytes, and on the legacy default stream; so
    /// does this call where the slices differ in length. [`CallError::Unsupported`] before CUDA 12.8.
    ///
    /// # Safety
    ///
    /// 1. The stream is alive (rule 1).
    /// 2. All ranges are memory for their bytes (rule 2), and stay so until the stream is past the batch (rule 3).
    /// 3. No copy writes to what another one of the batch reads or writes.
    pub unsafe fn memcpy_batch_async(
        &self,
        to: &[DevicePtr],
        from: &[DevicePtr],
        sizes: &[usize],
        stream: Stream,
    ) -> Result<(), CallError<CudaStatus>> {
        let form = self.form()?;
        let count = sizes.len();
        if to.len() != count || from.len() != count {
            return Err(CudaStatus::INVALID_VALUE.into());
        }
        // The driver reads all arrays during the call and writes to none of them; the first form only lacks the `const`.
        let to: *const CUdeviceptr = to.as_ptr().cast();
        let from: *const CUdeviceptr = from.as_ptr().cast();
        let mut attributes = in_stream_order();
        let mut first = 0;
        let result = match form {
            Form::First(function) => {
                let mut failed = 0;
                // SAFETY: points 1 to 3; the arrays have `count` entries, and the one set of attributes begins at copy 0.
                unsafe {
                    function(
                        to.cast_mut(),
                        from.cast_mut(),
                        sizes.as_ptr().cast_mut(),
                        count,
                        &raw mut attributes,
                        &raw mut first,
                        1,
                        // The second form does not tell it, so nobody can rely on it.
                        &raw mut failed,
                        stream.give(),
                    )
                }
            }
            // SAFETY: as above.
            Form::Second(function) => unsafe {
                function(
                    to.cast_mut(),
                    from.cast_mut(),
                    sizes.as_ptr().cast_mut(),
                    count,
                    &raw mut attributes,
                    &raw mut first,
                    1,
                    stream.give(),
                )
            },
        };
        CudaStatus::check(result)?;
        Ok(())
    }

    /// A library may export more than the driver below it supports, so its version is asked as well.
    fn form(&self) -> Result<Form, CallError<CudaStatus>> {
        let first = self.table().cuMemcpyBatchAsync;
        let second = self.table().cuMemcpyBatchAsync_v2;
        let version = self.version()?;
        match (first, second) {
            (_, Ok(function)) if version >= SECOND => Ok(Form::Second(function)),
            (Ok(function), _) if version >= FIRST => Ok(Form::First(function)),
            _ => Err(Unsupported {
                symbol: "cuMemcpyBatchAsync",
                since: "12.8",
            }
            .into()),
        }
    }
}

fn in_stream_order() -> CUmemcpyAttributes {
    // Hints for managed memory, which none of our copies needs.
    let nowhere = CUmemLocation {
        type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_INVALID,
        __bindgen_anon_1: CUmemLocation_st__bindgen_ty_1 { id: 0 },
    };
    CUmemcpyAttributes {
        srcAccessOrder: CUmemcpySrcAccessOrder::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
        srcLocHint: nowhere,
        dstLocHint: nowhere,
        flags: 0,
    }
}

/// The versions of CUDA that brought the two forms.
const FIRST: i32 = 12080;
const SECOND: i32 = 13000;
