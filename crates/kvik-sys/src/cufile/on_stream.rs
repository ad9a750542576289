//! Reads and writes that wait in a stream for their turn.

use std::ffi::c_uint;
use std::mem::offset_of;
use std::ops::BitOr;
use std::ptr::NonNull;

use super::{CuFile, CuFileHandle};
use crate::handle::{DevicePtr, Stream};
use crate::raw::cufile as raw;
use crate::status::{CallError, CuFileStatus};

/// The arguments of a read or write in a stream, which are looked at when the stream arrives there, and its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct AsyncArguments {
    /// Bytes to move.
    pub bytes: usize,
    /// Place in the file.
    pub file_offset: i64,
    /// Place behind the start of the buffer.
    pub base_offset: i64,
    /// The signed count, for [`CuFileFailure::split`](crate::CuFileFailure::split), once the stream is past it.
    pub count: isize,
}

/// What is promised of all reads and writes of a stream, for cuFile to prepare more of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StreamHints(c_uint);

impl StreamHints {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// Places in the buffer are known at the call.
    pub const FIXED_BUF_OFFSET: Self = Self(raw::CU_FILE_STREAM_FIXED_BUF_OFFSET);
    /// Places in the file are known at the call.
    pub const FIXED_FILE_OFFSET: Self = Self(raw::CU_FILE_STREAM_FIXED_FILE_OFFSET);
    /// Bytes to move are known at the call.
    pub const FIXED_FILE_SIZE: Self = Self(raw::CU_FILE_STREAM_FIXED_FILE_SIZE);
    /// All of them are multiples of 4096.
    pub const PAGE_ALIGNED_INPUTS: Self = Self(raw::CU_FILE_STREAM_PAGE_ALIGNED_INPUTS);
    /// All of them.
    pub const ALL: Self = Self(
        Self::FIXED_BUF_OFFSET.0
            | Self::FIXED_FILE_OFFSET.0
            | Self::FIXED_FILE_SIZE.0
            | Self::PAGE_ALIGNED_INPUTS.0,
    );

    /// The hints of these bits; nothing where a bit is none of theirs.
    pub fn from_bits(bits: u32) -> Option<Self> {
        (bits & !Self::ALL.0 == 0).then_some(Self(bits))
    }

    /// Whether all of `others` are among them.
    pub fn contains(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }
}

impl BitOr for StreamHints {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl CuFile {
    /// Prepares a stream for reads and writes.
    ///
    /// # Errors
    ///
    /// cuFile's status, or [`CallError::Unsupported`].
    ///
    /// # Safety
    ///
    /// 1. The stream is alive (rule 1), and stays so until it is deregistered.
    /// 2. What the hints say is kept.
    pub unsafe fn stream_register(
        &self,
        stream: Stream,
        hints: StreamHints,
    ) -> Result<(), CallError<CuFileStatus>> {
        let function = self.table().cuFileStreamRegister?;
        // SAFETY: points 1 and 2.
        CuFileStatus::check(unsafe { function(stream.give(), hints.0) })?;
        Ok(())
    }

    /// Ends what [`stream_register`](Self::stream_register) began.
    ///
    /// # Errors
    ///
    /// cuFile's status, or [`CallError::Unsupported`].
    ///
    /// # Safety
    ///
    /// 1. The stream is alive (rule 1), and no read or write is in it (rule 3).
    pub unsafe fn stream_deregister(&self, stream: Stream) -> Result<(), CallError<CuFileStatus>> {
        let function = self.table().cuFileStreamDeregister?;
        // SAFETY: point 1.
        CuFileStatus::check(unsafe { function(stream.give()) })?;
        Ok(())
    }

    /// Queues a read.
    ///
    /// # Errors
    ///
    /// cuFile's status, or [`CallError::Unsupported`]. What happens later is told by
    /// [`count`](AsyncArguments::count).
    ///
    /// # Safety
    ///
    /// 1. Handle and stream are alive (rule 1) until the stream is past the read.
    /// 2. The arguments are readable and writable, and nobody else touches them, until the stream is past the read (rule 3);
    ///    only those that no hint of the stream promised may be set later, by work of the stream.
    /// 3. What they name is memory (rule 2), and stays so until the stream is past the read (rule 3).
    pub unsafe fn read_async(
        &self,
        handle: CuFileHandle,
        base: DevicePtr,
        arguments: NonNull<AsyncArguments>,
        stream: Stream,
    ) -> Result<(), CallError<CuFileStatus>> {
        let function = self.table().cuFileReadAsync?;
        // SAFETY: points 1 to 3; each pointer is to a field of its own.
        CuFileStatus::check(unsafe {
            function(
                handle.as_raw(),
                base.as_mut_ptr(),
                field(arguments, offset_of!(AsyncArguments, bytes)),
                field(arguments, offset_of!(AsyncArguments, file_offset)),
                field(arguments, offset_of!(AsyncArguments, base_offset)),
                field(arguments, offset_of!(AsyncArguments, count)),
                stream.give(),
            )
        })?;
        Ok(())
    }

    /// Queues a write.
    ///
    /// # Errors
    ///
    /// cuFile's status, or [`CallError::Unsupported`]. What happens later is told by
    /// [`count`](AsyncArguments::count).
    ///
    /// # Safety
    ///
    /// As of [`read_async`](Self::read_async).
    pub unsafe fn write_async(
        &self,
        handle: CuFileHandle,
        base: DevicePtr,
        arguments: NonNull<AsyncArguments>,
        stream: Stream,
    ) -> Result<(), CallError<CuFileStatus>> {
        let function = self.table().cuFileWriteAsync?;
        // SAFETY: points 1 to 3 of `read_async`; each pointer is to a field of its own.
        CuFileStatus::check(unsafe {
            function(
                handle.as_raw(),
                base.as_mut_ptr(),
                field(arguments, offset_of!(AsyncArguments, bytes)),
                field(arguments, offset_of!(AsyncArguments, file_offset)),
                field(arguments, offset_of!(AsyncArguments, base_offset)),
                field(arguments, offset_of!(AsyncArguments, count)),
                stream.give(),
            )
        })?;
        Ok(())
    }
}

/// A pointer to one field, without a reference to the whole.
fn field<T>(arguments: NonNull<AsyncArguments>, offset: usize) -> *mut T {
    arguments.as_ptr().wrapping_byte_add(offset).cast()
}
