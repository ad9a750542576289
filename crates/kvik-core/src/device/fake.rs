//! The fake driver as tests of this module see it. Each test has a process to itself, as `cargo xtask test` runs them.

use std::ffi::{CString, c_void};
use std::path::PathBuf;
use std::sync::OnceLock;

use kvik_config::{Config, Layer};
use kvik_sys::Cuda;

use super::context::Context;
use super::driver::driver;
use super::slab::Slab;
use crate::error::{Op, Result};

/// The driver's library, not loaded by kvik yet.
pub(super) struct Fake(*mut c_void);

impl Fake {
    /// Chooses the fake, with its two devices, as the driver of this process.
    #[track_caller]
    pub(super) fn choose() -> Fake {
        let path = path();
        let here = "cargo builds libcuda_fake.so beside the tests of kvik-core";
        assert!(path.exists(), "there is no {}: {here}", path.display());
        Config::set_process(Layer::new().cuda_library(Some(path.clone()))).unwrap();
        let name = CString::new(path.into_os_string().into_encoded_bytes()).unwrap();
        // SAFETY: the name ends with a zero; loading the fake runs nothing.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        assert!(!library.is_null());
        Fake(library)
    }

    /// The same, loaded and started.
    #[track_caller]
    pub(super) fn start() -> Fake {
        let fake = Fake::choose();
        driver().unwrap();
        fake
    }

    /// Calls what the library exports, with machine words for arguments.
    #[track_caller]
    pub(super) fn call<const N: usize>(&self, name: &str, words: [usize; N]) -> usize {
        let symbol = CString::new(name).unwrap();
        // SAFETY: the library is loaded for good, and the name ends with a zero.
        let address = unsafe { libc::dlsym(self.0, symbol.as_ptr()) };
        assert!(!address.is_null(), "no such call: {name}");
        type Call = extern "C" fn(usize, usize, usize, usize) -> usize;
        // SAFETY: each of these functions takes at most four integers or pointers, which all go into registers.
        let call = unsafe { std::mem::transmute::<*mut c_void, Call>(address) };
        let mut all = [0; 4];
        all[..N].copy_from_slice(&words);
        call(all[0], all[1], all[2], all[3])
    }

    /// The same for a call that answers with a status, which is to be success.
    #[track_caller]
    pub(super) fn ok<const N: usize>(&self, name: &str, words: [usize; N]) {
        assert_eq!(self.call(name, words) as i32, 0, "{name}");
    }

    /// Adds rules for failures, as the fake's inject.rs describes them.
    #[track_caller]
    pub(super) fn fail(&self, rules: &str) {
        let rules = CString::new(rules).unwrap();
        self.ok("fake_cuda_fail", [rules.as_ptr().addr()]);
    }

    /// Forgets them.
    pub(super) fn succeed(&self) {
        self.ok("fake_cuda_fail_clear", []);
    }

    /// How often a call was made.
    pub(super) fn calls(&self, name: &str) -> usize {
        let name = CString::new(name).unwrap();
        self.call("fake_cuda_calls", [name.as_ptr().addr()])
    }

    /// What stands at an address of a device.
    #[track_caller]
    pub(super) fn peek(&self, address: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let to = bytes.as_mut_ptr().addr();
        self.ok("fake_cuda_peek", [address as usize, to, len]);
        bytes
    }

    /// What a correct program would not have done, a line for each.
    pub(super) fn faults(&self) -> String {
        self.text("fake_cuda_fault_text")
    }

    /// The names of the calls since the log was begun.
    pub(super) fn log(&self) -> Vec<String> {
        let log = self.text("fake_cuda_log");
        let name = |line: &str| line.rsplit(' ').next().unwrap_or_default().to_owned();
        log.lines().map(name).collect()
    }

    /// What is alive: contexts, streams, events, and all allocations and registrations.
    pub(super) fn live(&self) -> [usize; 4] {
        ["contexts", "streams", "events", "allocations"]
            .map(|what| self.call(&format!("fake_cuda_live_{what}"), []))
    }

    fn text(&self, name: &str) -> String {
        let len = self.call(name, [0, 0]);
        let mut bytes = vec![0_u8; len + 1];
        self.call(name, [bytes.as_mut_ptr().addr(), len + 1]);
        bytes.truncate(len);
        String::from_utf8(bytes).unwrap()
    }
}

/// The functions of the driver, for what a program of the user's does.
pub(super) fn cuda() -> &'static Cuda {
    driver().unwrap().cuda()
}

/// Makes a context of the program's own, which is current then.
pub(super) fn own_context(device: i32) -> Context {
    let device = kvik_sys::Device::from_raw(device);
    cuda()
        .ctx_create(kvik_sys::ContextFlags::AUTO, device)
        .unwrap();
    Context::current().unwrap().unwrap()
}

/// A slab for work in the current context.
pub(super) fn take_slab(len: usize, limit: u64) -> Result<Slab> {
    Slab::take(Context::current_or_misuse(Op::Allocate)?, len, limit)
}

/// The same, or `None` instead of waiting.
pub(super) fn try_take_slab(len: usize, limit: u64) -> Result<Option<Slab>> {
    Slab::try_take(Context::current_or_misuse(Op::Allocate)?, len, limit)
}

/// Destroys it.
pub(super) fn destroy(context: Context) {
    // SAFETY: `own_context` made it, and the test uses it no more.
    unsafe { cuda().ctx_destroy(context.handle()) }.unwrap();
}

/// Bytes that repeat with a period that no power of two has.
pub(super) fn numbers(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 % 251) as u8).collect()
}

fn path() -> PathBuf {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    let find = || {
        std::env::current_exe()
            .unwrap()
            .with_file_name("libcuda_fake.so")
    };
    PATH.get_or_init(find).clone()
}
