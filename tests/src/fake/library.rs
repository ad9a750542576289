//! Loads a shared library and calls what it exports, with machine words for arguments.
#![expect(unsafe_code, reason = "each call has its argument beside it")]

use std::ffi::{CStr, CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A loaded library. It stays loaded: its threads run until the process ends.
#[derive(Debug, Clone, Copy)]
pub struct Library(*mut c_void);

// SAFETY: the handle names a library that is never unloaded, and dlsym may be called from any thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// Loads it, with its symbols to itself, as kvik does; a library that is loaded already is the same one.
    #[track_caller]
    #[must_use]
    pub fn load(path: &Path) -> Library {
        let name = CString::new(path.as_os_str().as_bytes()).unwrap();
        let flags = libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_NODELETE;
        // SAFETY: the libraries that tests name run nothing of their own while they are loaded.
        let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
        assert!(!handle.is_null(), "{}: {}", path.display(), last_error());
        Library(handle)
    }

    /// Whether it exports `name`.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        !self.address(name).is_null()
    }

    /// Calls `name`, and returns the word that comes back. What the words mean, and that addresses among them are good for
    /// what the call does with them, is for the test to answer for.
    #[track_caller]
    pub fn call_for_word<const N: usize>(&self, name: &str, words: [usize; N]) -> usize {
        let address = self.address(name);
        assert!(!address.is_null(), "no such call: {name}");
        let mut all = [0; 11];
        all[..N].copy_from_slice(&words);
        let [a, b, c, d, e, f, g, h, i, j, k] = all;
        type Call = extern "C" fn(
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
            usize,
        ) -> usize;
        // SAFETY: in the C interfaces of Linux on x86-64 and AArch64 each integer or pointer takes one register or one
        // place on the stack, however wide it is, and the caller clears them away; more than are read do no harm.
        let call = unsafe { std::mem::transmute::<*mut c_void, Call>(address) };
        call(a, b, c, d, e, f, g, h, i, j, k)
    }

    /// The same for a call that returns a status.
    #[track_caller]
    pub fn call<const N: usize>(&self, name: &str, words: [usize; N]) -> i32 {
        // The upper half of the word is not part of an `int`.
        self.call_for_word(name, words) as c_int
    }

    fn address(&self, name: &str) -> *mut c_void {
        let name = CString::new(name).unwrap();
        // SAFETY: the handle is that of a loaded library, and the name ends with a zero.
        unsafe { libc::dlsym(self.0, name.as_ptr()) }
    }
}

/// The address of `place`, for a call that stores into it or reads from it.
pub fn at<T: ?Sized>(place: &mut T) -> usize {
    (&raw mut *place).cast::<()>() as usize
}

fn last_error() -> String {
    // SAFETY: dlerror takes nothing.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null, so a text of the loader that stays until this thread's next call of it.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}
