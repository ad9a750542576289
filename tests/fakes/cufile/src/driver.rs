//! The driver: opened and closed by count, with properties and parameters.

use std::ffi::{c_int, c_long, c_uint};

use kvik_fake_common::{Out, Text};

use crate::cuda;
use crate::entry::{RULES, cufile};
use crate::state::{Limits, State, state, wait};
use crate::status::{
    Answer, DRIVER_ALREADY_OPEN, DRIVER_NOT_INITIALIZED, DRIVER_UNSUPPORTED_LIMIT, INVALID_VALUE,
    Status,
};

cufile! {
    fn cuFileDriverOpen() {
        let mut state = state();
        while state.opening_held {
            state = wait(state);
        }
        ready(&mut state)?;
        state.opened += 1;
        Ok(())
    }

    fn cuFileDriverClose() {
        close()
    }

    fn cuFileDriverClose_v2() {
        close()
    }

    fn cuFileDriverGetProperties(properties: Out<Properties>) {
        let mut state = state();
        open_quietly(&mut state)?;
        Ok(properties.set(Properties::of(&state))?)
    }

    fn cuFileDriverSetPollMode(poll: bool, threshold: usize) {
        set_late("poll", &format!("{poll}:{threshold}"), |limits| {
            (limits.polls, limits.poll_threshold) = (poll, threshold);
        })
    }

    fn cuFileDriverSetMaxDirectIOSize(kib: usize) {
        set_late("max-direct-io", &kib.to_string(), |_| {})
    }

    fn cuFileDriverSetMaxCacheSize(kib: usize) {
        set_late("max-cache", &within(kib)?.to_string(), |limits| limits.cache = kib)
    }

    fn cuFileDriverSetMaxPinnedMemSize(kib: usize) {
        set_late("max-pinned", &within(kib)?.to_string(), |limits| limits.pinned = kib)
    }

    fn cuFileGetVersion(version: Out<c_int>) {
        Ok(version.set(state().version)?)
    }

    fn cuFileSetParameterBool(parameter: c_int, value: bool) {
        set("bool", parameter, &value.to_string())?;
        if parameter == ALLOW_COMPAT_MODE {
            state().allows_compat = value;
        }
        Ok(())
    }

    fn cuFileSetParameterSizeT(parameter: c_int, value: usize) {
        set("size", parameter, &value.to_string())
    }

    fn cuFileSetParameterString(parameter: c_int, value: Text) {
        set("string", parameter, &value.read()?)
    }

    fn cuFileGetParameterBool(parameter: c_int, value: Out<bool>) {
        if parameter != ALLOW_COMPAT_MODE {
            return Err(INVALID_VALUE);
        }
        Ok(value.set(state().allows_compat)?)
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuFileUseCount() -> c_long {
    RULES.verdict("cuFileUseCount");
    state().opened
}

/// `CUFILE_PARAM_PROPERTIES_ALLOW_COMPAT_MODE`.
const ALLOW_COMPAT_MODE: c_int = 1;

/// A `CUfileDrvProps_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Properties {
    major: c_uint,
    minor: c_uint,
    poll_threshold: usize,
    max_direct_io: usize,
    status_flags: c_uint,
    control_flags: c_uint,
    features: c_uint,
    max_cache: c_uint,
    per_buffer_cache: c_uint,
    max_pinned: c_uint,
    max_batch: c_uint,
    batch_timeout: c_uint,
}

impl Properties {
    fn of(state: &State) -> Properties {
        let direct = state.nvfs != 0;
        Properties {
            major: state.nvfs,
            minor: if direct { 22 } else { 0 },
            poll_threshold: state.limits.poll_threshold,
            max_direct_io: 16384,
            // NVMe, where there is a way to it.
            status_flags: if direct { 1 << 4 } else { 0 },
            control_flags: u32::from(state.limits.polls) | u32::from(state.allows_compat) << 1,
            // Batches, streams, parallel transfers, and the way between devices.
            features: u32::from(state.max_batch > 0) << 1 | 0b1100 | u32::from(state.p2p) << 4,
            max_cache: state.limits.cache as c_uint,
            per_buffer_cache: 1024,
            max_pinned: state.limits.pinned as c_uint,
            max_batch: c_uint::try_from(state.max_batch).unwrap_or(c_uint::MAX),
            batch_timeout: 0,
        }
    }
}

/// Opens the driver where nobody has done it, as registering something does.
pub(crate) fn open_quietly(state: &mut State) -> Answer {
    ready(state)?;
    state.opened = state.opened.max(1);
    Ok(())
}

/// The real library waits for ever for a driver of CUDA that is not there.
fn ready(state: &mut State) -> Answer {
    if cuda::is_ready() {
        return Ok(());
    }
    state.fault(
        "the driver was opened before cuInit had succeeded; the real one never returns".to_owned(),
    );
    Err(Status::of_cuda(3))
}

fn close() -> Answer {
    let mut state = state();
    while state.closing_held {
        state = wait(state);
    }
    if state.opened == 0 {
        state.fault("the driver was closed more often than opened".to_owned());
        return Err(DRIVER_NOT_INITIALIZED);
    }
    state.opened -= 1;
    if state.opened == 0 {
        state.limits = Limits::FIRST;
    }
    let left = (state.files.len(), state.buffers.len(), state.moving);
    if state.opened == 0 && left != (0, 0, 0) {
        let (files, buffers, moving) = left;
        state.fault(format!(
            "the driver was closed with {files} files and {buffers} buffers registered and {moving} transfers on their way"
        ));
    }
    Ok(())
}

/// A parameter, which must come before the driver is opened.
fn set(kind: &str, parameter: c_int, value: &str) -> Answer {
    let mut state = state();
    if state.opened > 0 {
        return Err(DRIVER_ALREADY_OPEN);
    }
    state.parameters.push(format!("{kind}:{parameter}={value}"));
    Ok(())
}

/// Sizes are numbers of 32 bits where the driver tells them, and whole pages of the device.
fn within(kib: usize) -> Answer<usize> {
    match kib.is_multiple_of(4) && c_uint::try_from(kib).is_ok() {
        true => Ok(kib),
        false => Err(DRIVER_UNSUPPORTED_LIMIT),
    }
}

/// A property, which can be changed while the driver is open.
fn set_late(name: &str, value: &str, change: impl FnOnce(&mut Limits)) -> Answer {
    let mut state = state();
    open_quietly(&mut state)?;
    change(&mut state.limits);
    state.parameters.push(format!("{name}={value}"));
    Ok(())
}
