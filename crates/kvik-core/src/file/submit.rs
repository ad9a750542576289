//! Reads and writes that are started now and waited for later, with buffers that the transfer owns meanwhile.

use super::FileHandle;
use crate::buffer::{IoBuf, IoBufMut};
use crate::options::{ReadOptions, WriteOptions};
use crate::pending::Pending;

impl FileHandle {
    /// Starts to read into `buffer`, as many bytes as it is long, and returns at once. Errors are in the outcome.
    pub fn submit_read<B: IoBufMut>(&self, buffer: B, offset: u64) -> Pending<B> {
        self.submit_read_with(buffer, offset, &ReadOptions::default())
    }

    /// [`submit_read`](FileHandle::submit_read) with wishes of its own.
    pub fn submit_read_with<B: IoBufMut>(
        &self,
        mut buffer: B,
        offset: u64,
        options: &ReadOptions,
    ) -> Pending<B> {
        let len = buffer.target().len() as u64;
        match self.may_read().and_then(|()| self.call(len, options)) {
            Ok(call) => call.submit_read(buffer, offset),
            Err(error) => Pending::refused(error, buffer),
        }
    }

    /// Starts to write all of `buffer` at `offset` and returns at once. Errors are in the outcome.
    pub fn submit_write<B: IoBuf>(&self, buffer: B, offset: u64) -> Pending<B> {
        self.submit_write_with(buffer, offset, &WriteOptions::default())
    }

    /// [`submit_write`](FileHandle::submit_write) with wishes of its own.
    pub fn submit_write_with<B: IoBuf>(
        &self,
        buffer: B,
        offset: u64,
        options: &WriteOptions,
    ) -> Pending<B> {
        let len = buffer.source().len() as u64;
        let call = self.may_write().and_then(|()| self.call(len, options));
        match call.and_then(|call| Ok((call, self.write_offset(offset)?))) {
            Ok((call, offset)) => call.submit_write(buffer, offset),
            Err(error) => Pending::refused(error, buffer),
        }
    }
}
