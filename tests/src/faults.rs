//! Faults on demand: a shared library that is loaded before libc and answers `pread`, `pwrite` and `open` as the rules say.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::need;

/// The compiled library. The rules for it are described where they are read, in `shim/faults.c`.
#[derive(Debug)]
pub struct Shim {
    _folder: TempDir,
    path: PathBuf,
}

impl Shim {
    /// Compiles it.
    #[track_caller]
    #[must_use]
    pub fn build() -> Shim {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("faults.c");
        let path = folder.path().join("faults.so");
        std::fs::write(&source, include_str!("../shim/faults.c")).unwrap();
        let built = Command::new(need::program("cc", "gcc"))
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
            .arg(&path)
            .arg(&source)
            .output()
            .unwrap();
        assert!(
            built.status.success(),
            "cc: {}",
            String::from_utf8_lossy(&built.stderr)
        );
        Shim {
            _folder: folder,
            path,
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}
