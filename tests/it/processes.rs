//! Fork, resize and growth: libraries with threads of their own break here, and a thread pool that joins itself hangs.

use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc;

use kvik::corridor::Task;
use kvik::{FileHandle, ThreadPool};
use kvik_tests::child::Child;
use kvik_tests::engine::{Scripted, Step};
use kvik_tests::pattern::{assert_same, file, pattern};

use crate::{BINARY, child, cut};

#[test]
fn a_forked_child_reads_and_writes_with_threads_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    child("forked-child-works").arg(folder.path()).succeeds();
}

#[test]
fn a_transfer_of_the_parent_is_forked_in_the_child_at_once() {
    child("forked-pending").succeeds();
}

#[test]
fn a_child_forked_while_threads_are_in_transfers_works() {
    let folder = tempfile::tempdir().unwrap();
    child("fork-in-full-flight").arg(folder.path()).succeeds();
}

#[test]
fn a_child_forked_while_a_thread_opens_the_way_past_the_cache_has_one_of_its_own() {
    // On a disk: `/tmp` may be a tmpfs.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let arg = folder.path();
    child("fork-at-the-first-cold-read").arg(arg).succeeds();
}

#[test]
fn memory_and_descriptors_do_not_grow_over_a_hundred_thousand_operations() {
    let folder = tempfile::tempdir().unwrap();
    child("growth").arg(folder.path()).succeeds();
}

#[test]
fn a_pool_is_resized_and_used_from_inside_one_of_its_own_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let inner = file(folder.path(), "inner", 2, 300_000);
    let pool = ThreadPool::new("inside");
    let other = FileHandle::options()
        .read(true)
        .thread_pool(&pool)
        .open(&inner)
        .unwrap();
    let (done, inside) = mpsc::channel();
    let own = pool.clone();
    // On a worker, in the middle of a transfer, the pool is told to grow and another file is read.
    let script = move |_: &Task| {
        own.grow(own.threads() + 3).unwrap();
        let mut target = vec![0; 300_000];
        let cut = cut(3, 4 << 10);
        other.read_at_with(&mut target, 0, &cut).unwrap();
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        done.send((thread, target)).unwrap();
        Step::Move
    };
    let mut outer = Scripted::new(script).call(1, 100_000);
    outer.pool = pool.clone();

    // One worker, which runs the transfer alone: it would wait for itself.
    let pending = outer.submit_read(vec![0; 100_000], 0);
    while !pending.is_done() {
        std::thread::yield_now();
    }
    assert_eq!(pending.wait().unwrap(), 100_000);
    assert_same(&pending.into_buf(), &pattern(0, 0, 100_000));
    let (thread, target) = inside.recv().unwrap();
    assert_eq!(thread, "inside-0");
    assert_same(&target, &pattern(2, 0, 300_000));
    assert!(pool.threads() >= 4, "{} threads", pool.threads());
}

#[test]
fn a_process_that_may_start_no_threads_reads_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let path = file(folder.path(), "file", 1, 1_000_000);
    let limited = "exec prlimit --nproc=1 \"$@\"";
    Child::new_by(limited, BINARY, "no-threads")
        .arg(&path)
        .succeeds();
}
