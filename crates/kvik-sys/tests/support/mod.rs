//! Builds small libraries that answer by a plan. The compiler is the one that links Rust programs here.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A library that was just built, and the folder in which it lies.
pub(crate) struct Stub {
    pub(crate) path: PathBuf,
    _folder: TempDir,
}

impl Stub {
    /// Builds tests/stub/NAME.c with some of the things that it can have.
    pub(crate) fn build(name: &str, defines: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(format!("lib{name}_stub.so"));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/stub/{name}.c"));
        let status = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .arg(&path)
            .arg(source)
            .args(defines.iter().map(|define| format!("-D{define}")))
            .status()
            .expect("`cc`, the C compiler that links Rust programs, has to be installed");
        assert!(status.success(), "`cc` could not build tests/stub/{name}.c");
        Self {
            path,
            _folder: folder,
        }
    }
}
