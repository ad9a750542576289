//! The promises of docs/src/behavior.md about files and transfers, a module per section, each test with the sentence it keeps.
//!
//! Those about faults, processes, settings, statistics and special files are kept in the modules of that name.

mod background;
mod handle;
mod reading;
mod returning;
mod threads;
mod tools;
mod writing;

use std::path::PathBuf;

use kvik::FileHandle;
use kvik_tests::pattern::file;
use tempfile::TempDir;

use crate::{cut, read_write};

const LEN: usize = 1_000_000;

/// A folder with a file of `LEN` bytes of the pattern 1, and a handle that reads and writes it.
fn fixture() -> (TempDir, PathBuf, FileHandle) {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "file", 1, LEN);
    let handle = read_write(&path);
    (folder, path, handle)
}
