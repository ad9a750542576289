//! Files that are registered.

use std::fs::{File, OpenOptions};
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use kvik_fake_common::{In, Out};

use crate::driver::open_quietly;
use crate::entry::{RULES, cufile};
use crate::state::{Registered, State, state};
use crate::status::{
    Answer, HANDLE_ALREADY_REGISTERED, HANDLE_NOT_REGISTERED, INVALID_FILE_TYPE, INVALID_VALUE,
    IO_NOT_SUPPORTED,
};

/// A `CUfileDescr_t`: kind, descriptor or pointer, operations of a file system in user space.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Descriptor {
    kind: i32,
    fd: i64,
    operations: usize,
}

cufile! {
    fn cuFileHandleRegister(handle: Out<usize>, descriptor: In<Descriptor>) {
        let descriptor = descriptor.read(1)?[0];
        if descriptor.kind != OPAQUE_FD {
            return Err(INVALID_FILE_TYPE);
        }
        // The descriptor is the lower half of a union with a pointer.
        let fd = descriptor.fd as RawFd;
        let registered = open(fd)?;
        let mut state = state();
        open_quietly(&mut state)?;
        if state.files.values().any(|file| file.fd == fd) {
            return Err(HANDLE_ALREADY_REGISTERED);
        }
        let direct = state.direct.unwrap_or(state.nvfs != 0);
        if !direct && !state.allows_compat {
            return Err(IO_NOT_SUPPORTED);
        }
        let made = state.handle();
        state.files.insert(made, Arc::new(registered));
        Ok(handle.set(made)?)
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuFileHandleDeregister(handle: usize) {
    RULES.verdict("cuFileHandleDeregister");
    let mut state = state();
    match state.files.remove(&handle) {
        None => state.fault(format!(
            "{handle:#x}, which is no registered file, was deregistered"
        )),
        // Whoever is moving bytes holds it too.
        Some(file) if Arc::strong_count(&file) > 1 => {
            state.fault("a file was deregistered while bytes were on their way".to_owned());
        }
        Some(file) => drop(check(&mut state, &file)),
    }
}

const OPAQUE_FD: i32 = 1;

/// The file of a handle, whose descriptor must still name what it named.
pub(crate) fn registered(state: &mut State, handle: usize) -> Answer<Arc<Registered>> {
    let file = state
        .files
        .get(&handle)
        .cloned()
        .ok_or(HANDLE_NOT_REGISTERED)?;
    check(state, &file)?;
    Ok(file)
}

/// cuFile uses the descriptor for as long as the file is registered.
fn check(state: &mut State, file: &Registered) -> Answer {
    if identity(file.fd) == Some(file.identity) {
        return Ok(());
    }
    state.fault("the descriptor of a registered file was closed".to_owned());
    Err(INVALID_VALUE)
}

fn open(fd: RawFd) -> Answer<Registered> {
    let identity = identity(fd).ok_or(INVALID_VALUE)?;
    // SAFETY: F_GETFL takes nothing and touches no memory.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    let access = flags & libc::O_ACCMODE;
    let file = OpenOptions::new()
        .read(access != libc::O_WRONLY)
        .write(access != libc::O_RDONLY)
        .open(format!("/proc/self/fd/{fd}"))
        .map_err(|_| INVALID_VALUE)?;
    Ok(Registered { fd, file, identity })
}

/// Device and inode behind a descriptor.
fn identity(fd: RawFd) -> Option<(u64, u64)> {
    if fd < 0 {
        return None;
    }
    // SAFETY: it is used for one call, which only asks, and one that is not open is an error of that call.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    let file = File::from(borrowed.try_clone_to_owned().ok()?);
    let known = file.metadata().ok()?;
    Some((known.dev(), known.ino()))
}
