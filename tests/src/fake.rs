//! The libraries of a machine with a GPU, faked: where they are, and what a test can ask of them.
//!
//! ```no_run
//! use kvik_tests::fake::{self, FakeCuda};
//!
//! let path = fake::cuda(); // for `KVIK_LIBCUDA`-like settings and for children
//! let cuda = FakeCuda::here(); // the one in this process: whoever loads that path gets the same
//! cuda.fail("cuMemcpyHtoDAsync_v2", "3", 700);
//! // ... the third copy fails ...
//! assert_eq!((cuda.pinned_bytes(), cuda.faults()), (0, Vec::new()));
//! ```

mod library;

use std::ffi::CString;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

pub use library::{Library, at};

/// Where the fake libcuda is.
#[track_caller]
#[must_use]
pub fn cuda() -> PathBuf {
    built("libcuda_fake.so")
}

/// A folder in which the fakes have the names of the real ones, for `LD_LIBRARY_PATH`.
#[track_caller]
#[must_use]
pub fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["libcuda.so.1", "libcuda.so"] {
        std::os::unix::fs::symlink(cuda(), folder.path().join(name)).unwrap();
    }
    folder
}

/// A copy of the library at `path` that lacks `symbols`, as one of an older release does.
#[track_caller]
#[must_use]
pub fn without(path: &Path, symbols: &[&str]) -> (TempDir, PathBuf) {
    let mut bytes = std::fs::read(path).unwrap();
    for symbol in symbols {
        // Its entry in the table of names: the loader compares names, and finds none that begins like this.
        let entry = [b"\0", symbol.as_bytes(), b"\0"].concat();
        let places: Vec<usize> = bytes
            .windows(entry.len())
            .enumerate()
            .filter_map(|(place, window)| (window == entry).then_some(place))
            .collect();
        assert!(!places.is_empty(), "{} has no {symbol}", path.display());
        for place in places {
            bytes[place + 1] = b'?';
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join(path.file_name().unwrap());
    std::fs::write(&copy, bytes).unwrap();
    (folder, copy)
}

/// The fake libcuda in this process. Calls of the driver go through [`Library::call`].
#[derive(Debug, Clone, Copy)]
pub struct FakeCuda(Library);

impl Deref for FakeCuda {
    type Target = Library;

    fn deref(&self) -> &Library {
        &self.0
    }
}

impl FakeCuda {
    /// The one at [`cuda`].
    #[track_caller]
    #[must_use]
    pub fn here() -> FakeCuda {
        FakeCuda::at(&cuda())
    }

    /// The one at `path`, a copy of it.
    #[track_caller]
    #[must_use]
    pub fn at(path: &Path) -> FakeCuda {
        FakeCuda(Library::load(path))
    }

    /// How many devices there are, before `cuInit` is called.
    pub fn set_devices(&self, count: usize) {
        self.control("fake_cuda_set_devices", [count]);
    }

    /// What `cuDriverGetVersion` says, such as 12080. Younger calls then answer 801.
    pub fn set_version(&self, version: usize) {
        self.control("fake_cuda_set_version", [version]);
    }

    /// What `cuInit` answers.
    pub fn set_init(&self, code: i32) {
        self.control("fake_cuda_set_init", [code as usize]);
    }

    /// Bytes of each device.
    pub fn set_memory(&self, bytes: usize) {
        self.control("fake_cuda_set_memory", [bytes]);
    }

    /// What each copy that is queued from now on takes longer.
    pub fn set_delay(&self, delay: Duration) {
        let microseconds = usize::try_from(delay.as_micros()).unwrap();
        self.control("fake_cuda_set_delay", [microseconds]);
    }

    /// Nothing that is queued on `stream` starts until it is released.
    pub fn hold(&self, stream: usize) {
        self.control("fake_cuda_hold", [stream, 1]);
    }

    /// Lets it go.
    pub fn release(&self, stream: usize) {
        self.control("fake_cuda_hold", [stream, 0]);
    }

    /// Nothing that is queued anywhere starts until it is released.
    pub fn hold_all(&self) {
        self.control("fake_cuda_hold_all", [1]);
    }

    /// Lets everything go that is not held by its stream.
    pub fn release_all(&self) {
        self.control("fake_cuda_hold_all", [0]);
    }

    /// Has `stream` say that it is capturing (1), or not (0).
    pub fn set_capturing(&self, stream: usize, status: i32) {
        self.control("fake_cuda_set_capturing", [stream, status as usize]);
    }

    /// Spoils the current context: from now on every call in it returns `code`.
    pub fn break_context(&self, code: i32) {
        self.control("fake_cuda_break_context", [code as usize]);
    }

    /// Lets calls of `name` (`*`: all calls) return `code`: `when` is `N` (the Nth from now), `N+` (from it on) or `*N` (each Nth).
    pub fn fail(&self, name: &str, when: &str, code: i32) {
        self.rules(&format!("{name}:{when}:{code}"));
    }

    /// The same, but the call succeeds and what it queued fails when it runs, and spoils its context.
    pub fn fail_late(&self, name: &str, when: &str, code: i32) {
        self.rules(&format!("{name}:{when}:{code}:late"));
    }

    /// Forgets all rules.
    pub fn succeed(&self) {
        self.control("fake_cuda_fail_clear", []);
    }

    /// How often `name` was called; `*` for all calls together.
    #[must_use]
    pub fn calls(&self, name: &str) -> usize {
        let mut name = text(name);
        self.call_for_word("fake_cuda_calls", [at(name.as_mut_slice())])
    }

    /// Starts the log of calls, or empties it.
    pub fn start_log(&self) {
        self.control("fake_cuda_log_start", []);
    }

    /// The log of calls: thread and name.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        self.lines("fake_cuda_log")
    }

    /// What a correct program would not have done.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        self.lines("fake_cuda_fault_text")
    }

    /// How many copies were queued on a stream of another device than that of the memory.
    #[must_use]
    pub fn strays(&self) -> usize {
        self.call_for_word("fake_cuda_strays", [])
    }

    /// What stands at an address of the device.
    #[track_caller]
    #[must_use]
    pub fn peek(&self, address: usize, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        let to = at(bytes.as_mut_slice());
        self.control("fake_cuda_peek", [address, to, len]);
        bytes
    }

    /// Puts bytes there.
    #[track_caller]
    pub fn poke(&self, address: usize, bytes: &[u8]) {
        let mut bytes = bytes.to_vec();
        let from = at(bytes.as_mut_slice());
        self.control("fake_cuda_poke", [address, from, bytes.len()]);
    }

    /// Bytes of pinned memory that were not freed.
    #[must_use]
    pub fn pinned_bytes(&self) -> usize {
        self.call_for_word("fake_cuda_live_pinned_bytes", [])
    }

    /// Bytes that are registered.
    #[must_use]
    pub fn registered_bytes(&self) -> usize {
        self.call_for_word("fake_cuda_live_registered_bytes", [])
    }

    /// Bytes of all devices that are in use.
    #[must_use]
    pub fn device_bytes(&self) -> usize {
        self.call_for_word("fake_cuda_live_device_bytes", [])
    }

    /// Allocations and registrations of all kinds.
    #[must_use]
    pub fn allocations(&self) -> usize {
        self.call_for_word("fake_cuda_live_allocations", [])
    }

    /// Contexts that were not destroyed, and primary ones that are retained.
    #[must_use]
    pub fn contexts(&self) -> usize {
        self.call_for_word("fake_cuda_live_contexts", [])
    }

    /// How often the primary context of `device` is retained.
    #[must_use]
    pub fn retained(&self, device: usize) -> i32 {
        self.call("fake_cuda_retained", [device])
    }

    /// Streams that were not destroyed, without the default ones.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.call_for_word("fake_cuda_live_streams", [])
    }

    /// Events that were not destroyed.
    #[must_use]
    pub fn events(&self) -> usize {
        self.call_for_word("fake_cuda_live_events", [])
    }

    fn rules(&self, rules: &str) {
        let mut rules = text(rules);
        self.control("fake_cuda_fail", [at(rules.as_mut_slice())]);
    }

    #[track_caller]
    fn control<const N: usize>(&self, name: &str, words: [usize; N]) {
        assert_eq!(self.call(name, words), 0, "{name} {words:?}");
    }

    fn lines(&self, name: &str) -> Vec<String> {
        let len = self.call_for_word(name, [0, 0]);
        // Others may add to it meanwhile; what does not fit is cut off.
        let mut bytes = vec![0_u8; len + 1];
        self.call_for_word(name, [at(bytes.as_mut_slice()), len + 1]);
        bytes.truncate(len);
        let lines = String::from_utf8(bytes).unwrap();
        lines.lines().map(str::to_owned).collect()
    }
}

fn text(text: &str) -> Vec<u8> {
    CString::new(text).unwrap().into_bytes_with_nul()
}

/// Cargo puts a library that a test depends on beside the test, and that of a program into the folder below.
#[track_caller]
fn built(name: &str) -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let folder = program.parent().unwrap();
    let mut places = ["deps", "."]
        .map(|place| folder.join(place).join(name))
        .into_iter();
    places.find(|place| place.exists()).unwrap_or_else(|| {
        panic!(
            "there is no {name} beside {}: `cargo test -p kvik-tests` builds it",
            program.display()
        )
    })
}
