//! The conformance exam with many more cases, which are others in each run.

use std::path::Path;

use kvik_tests::conformance::{Files, long_exam};

#[test]
fn local_files_pass_a_long_exam() {
    long_exam(&Files::in_folder(tempfile::tempdir().unwrap().path()), 40);
}

#[test]
fn local_files_on_tmpfs_pass_a_long_exam() {
    long_exam(
        &Files::in_folder(tempfile::tempdir_in(Path::new("/dev/shm")).unwrap().path()),
        40,
    );
}
