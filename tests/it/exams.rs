//! Doors sit the exam: once KvikIO's two paths disagreed about the end of a file, and tools differ by file system.

use std::path::Path;

use kvik::EngineKind;
use kvik_tests::conformance::{Files, exam};

#[test]
fn local_files_in_the_temporary_folder_pass() {
    exam(&Files::in_folder(tempfile::tempdir().unwrap().path()));
}

#[test]
fn local_files_on_tmpfs_pass() {
    let shm = Path::new("/dev/shm");
    assert!(
        shm.is_dir(),
        "this test needs a tmpfs at /dev/shm: mount -t tmpfs tmpfs /dev/shm"
    );
    exam(&Files::in_folder(tempfile::tempdir_in(shm).unwrap().path()));
}

fn by(engine: EngineKind) {
    exam(&Files::in_folder(tempfile::tempdir().unwrap().path()).by(engine));
    let shm = tempfile::tempdir_in("/dev/shm").unwrap();
    exam(&Files::in_folder(shm.path()).by(engine));
}

#[test]
fn local_files_read_through_a_scratch_pass() {
    by(EngineKind::Scratch);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn local_files_read_by_map_pass() {
    by(EngineKind::Mapped);
}
