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

mod controls;
mod cuda;
mod cufile;
mod library;

use std::path::{Path, PathBuf};

use tempfile::TempDir;

pub use controls::Controls;
pub use cuda::FakeCuda;
pub use cufile::FakeCuFile;
pub use library::{Library, at};

/// Where the fake libcuda is.
#[track_caller]
#[must_use]
pub fn cuda() -> PathBuf {
    built("libcuda_fake.so")
}

/// Where the fake libcufile is. It works on the fake libcuda of the same process.
#[track_caller]
#[must_use]
pub fn cufile() -> PathBuf {
    built("libcufile_fake.so")
}

/// A folder in which the fakes have the names of the real ones, for `LD_LIBRARY_PATH`.
#[track_caller]
#[must_use]
pub fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    // cudarc asks for the first name first, and must not find the real one.
    let names = [
        (cuda(), "libcuda.so"),
        (cuda(), "libcuda.so.1"),
        (cufile(), "libcufile.so.0"),
    ];
    for (path, name) in names {
        std::os::unix::fs::symlink(path, folder.path().join(name)).unwrap();
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
