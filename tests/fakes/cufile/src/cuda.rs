//! The fake libcuda that this process has loaded. It is looked for beside this library, and never loaded from here.

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use kvik_fake_common::text;

use crate::status::{Answer, CUDA_MEMORY_TYPE_INVALID, CUDA_POINTER_INVALID, Status};

/// Whether it is there and initialised. Without that, the real library waits for ever when its driver is opened.
pub(crate) fn is_ready() -> bool {
    let Some(address) = find(c"fake_cuda_is_initialised") else {
        return false;
    };
    // SAFETY: the control has this type; both fakes are built from one tree.
    let call = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn() -> i32>(address) };
    call() != 0
}

/// Memory that cuFile does not take: the driver moves its pages.
pub(crate) fn refuse_managed(at: usize) -> Answer {
    let Some(address) = find(c"fake_cuda_is_managed") else {
        return Ok(());
    };
    // SAFETY: as above.
    let call = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(usize) -> i32>(address) };
    match call(at) {
        0 => Ok(()),
        _ => Err(CUDA_MEMORY_TYPE_INVALID),
    }
}

/// Where the CPU finds `len` bytes that the caller names by an address of a device or of the host.
pub(crate) fn translate(at: usize, len: usize) -> Answer<usize> {
    type Translate = extern "C" fn(usize, usize, *mut usize) -> i32;
    let address = find(c"fake_cuda_translate").ok_or(CUDA_POINTER_INVALID)?;
    // SAFETY: as above.
    let call = unsafe { std::mem::transmute::<*mut c_void, Translate>(address) };
    let mut alias = 0;
    match call(at, len, &raw mut alias) {
        0 => Ok(alias),
        _ => Err(CUDA_POINTER_INVALID),
    }
}

/// Has `call` run with `data` when `stream` gets there.
pub(crate) fn launch(stream: usize, call: extern "C" fn(*mut c_void), data: usize) -> Answer {
    type Launch = extern "C" fn(usize, extern "C" fn(*mut c_void), usize) -> i32;
    let address = find(c"fake_cuda_launch").ok_or(Status::of_cuda(3))?;
    // SAFETY: as above.
    let launch = unsafe { std::mem::transmute::<*mut c_void, Launch>(address) };
    match launch(stream, call, data) {
        0 => Ok(()),
        code => Err(Status::of_cuda(code)),
    }
}

fn find(name: &CStr) -> Option<*mut c_void> {
    let path = match text("FAKE_CUFILE_CUDA") {
        Some(path) => PathBuf::from(path),
        None => here()?.parent()?.join("libcuda_fake.so"),
    };
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let flags = libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_NOLOAD;
    // SAFETY: with RTLD_NOLOAD nothing is loaded, so nothing of a library runs.
    let library = unsafe { libc::dlopen(path.as_ptr(), flags) };
    if library.is_null() {
        return None;
    }
    // SAFETY: the handle is that of a loaded library, and the name ends with a zero.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    // The handle is kept: it counts, and the library is meant to stay.
    (!address.is_null()).then_some(address)
}

/// The file of this library, behind any link by whose name it was loaded.
fn here() -> Option<PathBuf> {
    // SAFETY: it is a plain structure of pointers, for which zeros are good.
    let mut info = unsafe { std::mem::zeroed::<libc::Dl_info>() };
    // SAFETY: the address is that of a function of this library, and `info` is stored through.
    let found = unsafe { libc::dladdr(here as *const c_void, &raw mut info) };
    if found == 0 || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: not null, so the loader's name of the library, which stays while it is loaded.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    let name = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
    name.canonicalize().ok()
}
