//! Buffers that are registered. Transfers work with and without that.

use std::ffi::c_int;

use crate::cuda;
use crate::driver::open_quietly;
use crate::entry::cufile;
use crate::state::state;
use crate::status::{
    GPU_MEMORY_PINNING_FAILED, INVALID_VALUE, MEMORY_ALREADY_REGISTERED, MEMORY_NOT_REGISTERED,
};

cufile! {
    fn cuFileBufRegister(base: usize, len: usize, _flags: c_int) {
        if base == 0 || len == 0 {
            return Err(INVALID_VALUE);
        }
        let mut state = state();
        open_quietly(&mut state)?;
        cuda::refuse_managed(base)?;
        cuda::translate(base, len)?;
        if state.buffers.values().sum::<usize>() + len > state.limits.pinned << 10 {
            return Err(GPU_MEMORY_PINNING_FAILED);
        }
        if state.buffers.contains_key(&base) {
            return Err(MEMORY_ALREADY_REGISTERED);
        }
        state.buffers.insert(base, len);
        Ok(())
    }

    fn cuFileBufDeregister(base: usize) {
        let mut state = state();
        let known = state.buffers.remove(&base);
        known.map(drop).ok_or(MEMORY_NOT_REGISTERED)
    }
}
