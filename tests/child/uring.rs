//! Processes that may not have a ring of io_uring, or no longer, or that fork with rings in use.

use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kvik::stats::names::FALLBACKS;
use kvik::{ByteSize, EngineKind, EnginePreference, FileHandle, ReadOptions};
use kvik_tests::os::{forbid, forked};
use kvik_tests::pattern::{UNTOUCHED, assert_same, pattern};
use nix::sys::resource::{Resource, setrlimit};

/// `uring-forbidden PATH ERRNO`: the kernel refuses rings from the start.
pub(crate) fn forbidden(args: &[String]) {
    forbid(libc::SYS_io_uring_setup, args[1].parse().unwrap());
    for handles in 1..3 {
        let file = open(&args[0]);
        assert!(!file.route().allows(EngineKind::Uring), "{}", file.route());
        assert!(
            file.route().to_string().contains("uring     ruled out: "),
            "{}",
            file.route()
        );
        check(&file);
        check(&file);
        write_and_read(&file);
        assert_eq!(FALLBACKS.get(), handles, "once for each handle");
    }
}

/// `uring-forbidden-later PATH`: a handle and this thread have their ring; new threads get none.
pub(crate) fn forbidden_later(args: &[String]) {
    let file = open(&args[0]);
    assert!(file.route().allows(EngineKind::Uring));
    check_with(&file, 1);
    assert_eq!(FALLBACKS.get(), 0);
    forbid(libc::SYS_io_uring_setup, libc::EPERM);
    check_with(&file, 1);
    assert_eq!(FALLBACKS.get(), 0, "this thread keeps its ring");
    let pending = file.submit_read_with(vec![UNTOUCHED; LEN], 0, &cut(4));
    while !pending.is_done() {
        std::thread::yield_now();
    }
    let (outcome, bytes) = pending.finish();
    assert_eq!(outcome.unwrap(), LEN);
    assert_same(&bytes, &pattern(1, 0, LEN));
    assert_eq!(FALLBACKS.get(), 1);
    check(&file);
    assert_eq!(FALLBACKS.get(), 1);
}

/// `uring-without-locked-memory PATH`: no memory may be locked, which old kernels count rings as.
pub(crate) fn without_locked_memory(args: &[String]) {
    setrlimit(Resource::RLIMIT_MEMLOCK, 0, 0).unwrap();
    if nix::unistd::geteuid().is_root() {
        nix::unistd::setuid(65534.into()).unwrap();
    }
    let file = FileHandle::options()
        .read(true)
        .engine(EnginePreference::Only(EngineKind::Uring))
        .open(&args[0])
        .unwrap();
    check(&file);
    let may = file.route().allows(EngineKind::Uring);
    assert_eq!(FALLBACKS.get(), u64::from(!may), "{}", file.route());
}

/// `uring-few-descriptors PATH`, with a limit of 64: as many threads have read by rings.
pub(crate) fn few_descriptors(args: &[String]) {
    let file = open(&args[0]);
    let all_have_read = Barrier::new(65);
    let files_are_open = Barrier::new(65);
    std::thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                check_with(&file, 1);
                all_have_read.wait();
                files_are_open.wait();
            });
        }
        all_have_read.wait();
        let files: Vec<_> = (0..12).map(|_| FileHandle::open(&args[0])).collect();
        files_are_open.wait();
        assert!(files.iter().all(Result::is_ok), "{files:?}");
    });
    assert_eq!(FALLBACKS.get(), 1);
}

/// `uring-forks PATH`: children are forked while this thread has a ring and others are using theirs.
pub(crate) fn forks(args: &[String]) {
    let file = open(&args[0]);
    check(&file);
    let over = AtomicBool::new(false);
    let rounds = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    check(&file);
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let forks = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            while rounds.load(Ordering::Relaxed) < 10 {
                std::thread::yield_now();
            }
            for _ in 0..30 {
                check(&file);
                forked(|| {
                    check(&file);
                    check(&open(&args[0]));
                    forked(|| check(&file)).succeeded();
                })
                .succeeded();
                check(&file);
            }
        }));
        over.store(true, Ordering::Relaxed);
        if let Err(panic) = forks {
            std::panic::resume_unwind(panic);
        }
    });
    assert_eq!(FALLBACKS.get(), 0);
}

fn open(path: &str) -> FileHandle {
    FileHandle::options()
        .read(true)
        .write(true)
        .engine(EnginePreference::Only(EngineKind::Uring))
        .open(Path::new(path))
        .unwrap()
}

#[track_caller]
fn check(file: &FileHandle) {
    check_with(file, 4);
}

#[track_caller]
fn check_with(file: &FileHandle, threads: usize) {
    let mut target = vec![UNTOUCHED; LEN];
    let count = file.read_at_with(&mut target, 0, &cut(threads)).unwrap();
    assert_eq!(count, LEN);
    assert_same(&target, &pattern(1, 0, LEN));
}

fn write_and_read(file: &FileHandle) {
    let bytes = pattern(2, 0, 100_000);
    file.write_at_with(&bytes, LEN as u64, &cut(2)).unwrap();
    let mut target = vec![UNTOUCHED; 200_000];
    let count = file.read_at_with(&mut target, LEN as u64, &cut(2)).unwrap();
    assert_same(&target[..count], &bytes);
    file.set_len(LEN as u64).unwrap();
}

fn cut(threads: usize) -> ReadOptions {
    ReadOptions::new()
        .num_threads(threads)
        .task_size(ByteSize::kib(16))
}

/// How long the file is; its bytes are the pattern 1.
const LEN: usize = 500_003;
