//! Doors sit the exam: once KvikIO's two paths disagreed about the end of a file, and tools differ by file system.

use std::path::Path;

use kvik::EngineKind;
use kvik::stats::names::FALLBACKS;
use kvik_tests::conformance::{Cached, Files, exam, exam_of_large_tasks};
use kvik_tests::os::forbid;

#[test]
fn local_files_in_the_temporary_folder_pass() {
    exam(&Files::in_folder(tempfile::tempdir().unwrap().path()));
}

/// By a ring, and nothing else: whatever gives way is counted.
#[track_caller]
pub(crate) fn past_the_page_cache(folder: &Path) {
    exam(&Files::in_folder(folder).only(EngineKind::Direct));
    assert_eq!(FALLBACKS.get(), 0, "this process may have no io_uring");
}

/// By blocking calls: to this thread and to those it starts the kernel answers as one that has no rings.
#[track_caller]
pub(crate) fn past_the_page_cache_without_a_ring(folder: &Path) {
    forbid(libc::SYS_io_uring_setup, libc::ENOSYS);
    exam(&Files::in_folder(folder).only(EngineKind::Direct));
    assert!(FALLBACKS.get() > 0, "somebody has a ring");
}

#[test]
fn local_files_past_the_page_cache_pass() {
    past_the_page_cache(tempfile::tempdir_in("/var/tmp").unwrap().path());
}

#[test]
fn local_files_past_the_page_cache_without_a_ring_pass() {
    past_the_page_cache_without_a_ring(tempfile::tempdir_in("/var/tmp").unwrap().path());
}

/// It has direct I/O since Linux 6.6.
#[test]
fn local_files_past_the_page_cache_of_tmpfs_pass() {
    past_the_page_cache(tempfile::tempdir_in("/dev/shm").unwrap().path());
}

#[test]
fn local_files_past_the_page_cache_of_tmpfs_without_a_ring_pass() {
    past_the_page_cache_without_a_ring(tempfile::tempdir_in("/dev/shm").unwrap().path());
}

#[test]
fn local_files_that_are_not_in_the_page_cache_pass() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    exam_of_large_tasks(&Files::in_folder(folder.path()).cached(Cached::Nothing));
}

#[test]
fn local_files_of_which_half_is_in_the_page_cache_pass() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    exam_of_large_tasks(&Files::in_folder(folder.path()).cached(Cached::Half));
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

#[test]
fn local_files_read_through_a_scratch_pass() {
    let folder = tempfile::tempdir().unwrap();
    exam(&Files::in_folder(folder.path()).only(EngineKind::Scratch));
}

#[test]
fn local_files_on_tmpfs_read_through_a_scratch_pass() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    exam(&Files::in_folder(folder.path()).only(EngineKind::Scratch));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn local_files_read_by_map_pass() {
    let folder = tempfile::tempdir().unwrap();
    exam(&Files::in_folder(folder.path()).only(EngineKind::Mapped));
}

#[cfg(target_arch = "x86_64")]
#[test]
fn local_files_on_tmpfs_read_by_map_pass() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    exam(&Files::in_folder(folder.path()).only(EngineKind::Mapped));
}

#[test]
fn local_files_by_io_uring_pass() {
    let folder = tempfile::tempdir().unwrap();
    exam(&Files::in_folder(folder.path()).only(EngineKind::Uring));
}
