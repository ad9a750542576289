//! io_uring from outside: a machine, a container or a limit may refuse it, and rings do not survive a fork.

use std::path::PathBuf;

use kvik_tests::child::Child;
use kvik_tests::pattern::pattern;

use crate::{BINARY, child};

#[test]
fn a_ring_that_the_kernel_refuses_is_no_error_and_counted_once_for_each_handle() {
    // Containers and kernel.io_uring_disabled, kernels without it, old kernels at the limit of locked memory, too many
    // descriptors.
    for errno in [libc::EPERM, libc::ENOSYS, libc::ENOMEM, libc::EMFILE] {
        let (_folder, path) = file();
        child("uring-forbidden")
            .arg(path)
            .number(errno as u64)
            .succeeds();
    }
}

#[test]
fn threads_that_get_no_ring_read_by_other_means_when_others_have_one() {
    let (_folder, path) = file();
    child("uring-forbidden-later").arg(path).succeeds();
}

#[test]
fn a_process_that_may_lock_no_memory_reads_all_the_same() {
    let (folder, path) = file();
    let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), everyone).unwrap();
    child("uring-without-locked-memory").arg(path).succeeds();
}

/// Each thread keeps its ring, and with it a descriptor.
#[test]
fn rings_of_many_threads_leave_the_program_descriptors() {
    let (_folder, path) = file();
    let limited = "exec prlimit --nofile=64 \"$@\"";
    Child::new_by(limited, BINARY, "uring-few-descriptors")
        .arg(&path)
        .succeeds();
}

#[test]
fn forked_children_read_by_rings_of_their_own() {
    let (_folder, path) = file();
    child("uring-forks").arg(path).succeeds();
}

fn file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, pattern(1, 0, 500_003)).unwrap();
    (folder, path)
}
