//! Forking a process whose pool is warm, whose transfers are in flight, whose threads are in the middle of something.

use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use kvik::{
    ByteSize, Config, ErrorKind, FileHandle, Layer, ReadOptions, ThreadPool, drop_file_page_cache,
};
use kvik_tests::engine::{Gate, Scripted};
use kvik_tests::os::forked;
use kvik_tests::pattern::{UNTOUCHED, assert_same, pattern};

/// `forked-child-works FOLDER`
pub(crate) fn child_works(args: &[String]) {
    let folder = Path::new(&args[0]);
    let path = folder.join("warm");
    std::fs::write(&path, pattern(1, 0, LEN)).unwrap();
    let file = FileHandle::open(&path).unwrap();
    let own = ThreadPool::new("own");
    let on_own_pool = FileHandle::options()
        .read(true)
        .thread_pool(&own)
        .open(&path)
        .unwrap();
    check(&file);
    check(&on_own_pool);
    let threads = ThreadPool::global().threads();
    assert!(threads >= 3, "the pool is not warm: {threads} threads");

    forked(|| {
        assert_eq!(
            ThreadPool::global().threads(),
            0,
            "threads that the child does not have"
        );
        check(&file);
        assert!(
            ThreadPool::global().threads() >= 3,
            "the child works without threads of its own"
        );
        // The parent's pool has no threads here; the read is made all the same.
        check(&on_own_pool);
        assert_eq!(own.grow(100).unwrap_err().kind(), ErrorKind::Forked);
        check(&FileHandle::open(&path).unwrap());

        let other = FileHandle::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(folder.join("child's"))
            .unwrap();
        other.write_at_with(&pattern(1, 0, LEN), 0, &cut()).unwrap();
        check(&other);
        let pending = other.submit_read_with(vec![0; LEN], 0, &cut());
        assert_eq!(pending.wait().unwrap(), LEN);
        // And once more, one generation further on.
        forked(|| check(&other)).succeeded();
        drop((on_own_pool, own));
    })
    .succeeded();
    assert_same(
        &std::fs::read(folder.join("child's")).unwrap(),
        &pattern(1, 0, LEN),
    );
    assert_eq!(
        ThreadPool::global().threads(),
        threads,
        "the parent's pool is as it was"
    );
    check(&file);
}

/// `forked-pending`: what the parent has in flight is `Forked` in the child, at once.
pub(crate) fn pending() {
    let gate = Gate::new();
    let call = Scripted::behind(&gate).call(1, 4096);
    let in_flight = call.submit_read(vec![UNTOUCHED; 8192], 0);
    let queued = call.submit_read(vec![UNTOUCHED; 4096], 4096);
    gate.wait_for(1);

    forked(|| {
        let error = in_flight.wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forked, "{error}");
        assert_eq!(error.to_string(), "read scripted: the transfer belongs to the parent process; open files and start transfers after the fork");
        let again = in_flight.wait_timeout(Duration::from_secs(20)).unwrap().unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Forked);
        assert!(in_flight.is_done());
        in_flight.cancel();
        let mut queued = queued;
        match pin!(&mut queued).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Err(error)) => assert_eq!(error.kind(), ErrorKind::Forked),
            other => panic!("{other:?}"),
        }
        drop(in_flight);
        let (outcome, buffer) = queued.finish();
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Forked);
        assert_eq!(buffer.len(), 4096);
    })
    .succeeded();

    forked(|| {
        // A child that never asks ends like any other.
    })
    .succeeded();
}

/// `fork-in-full-flight FOLDER`: children are forked at moments that nobody chose.
pub(crate) fn in_full_flight(args: &[String]) {
    let path = Path::new(&args[0]).join("flight");
    std::fs::write(&path, pattern(1, 0, LEN)).unwrap();
    let file = FileHandle::open(&path).unwrap();
    let over = AtomicBool::new(false);
    let rounds = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (file, over, rounds) = (&file, &over, &rounds);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    match thread {
                        0 => check(file),
                        1 => drop(file.submit_read_with(vec![0; LEN], 0, &cut())),
                        _ => {
                            let _monitor = kvik::stats::SummaryMonitor::start();
                            let _context =
                                kvik::Config::enter(kvik::Layer::new().num_threads(3)).unwrap();
                            file.read_at(&mut vec![0; LEN], 5).unwrap();
                        }
                    }
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let forks = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            while rounds.load(Ordering::Relaxed) < 10 {
                std::thread::yield_now();
            }
            for _ in 0..40 {
                let pending = file.submit_read_with(vec![0; LEN], 0, &cut());
                let child = forked(|| {
                    assert_eq!(pending.wait().unwrap_err().kind(), ErrorKind::Forked);
                    check(&file);
                    let _monitor = kvik::stats::SummaryMonitor::start();
                    check(&FileHandle::open(&path).unwrap());
                });
                child.succeeded();
                assert_eq!(pending.wait().unwrap(), LEN);
            }
        }));
        over.store(true, Ordering::Relaxed);
        if let Err(panic) = forks {
            std::panic::resume_unwind(panic);
        }
    });
}

/// `fork-at-the-first-cold-read FOLDER`: a thread is just opening what a handle needs to read past the page cache. Children
/// waited for it for ever, or used a descriptor that they did not have.
pub(crate) fn at_the_first_cold_read(args: &[String]) {
    let path = Path::new(&args[0]).join("cold");
    std::fs::write(&path, pattern(1, 0, LEN)).unwrap();
    let hint = Layer::new().auto_direct_io_read(true);
    let config = Config::resolve([hint]).unwrap();
    for round in 0..300 {
        drop_file_page_cache(&path, 0, 0, true).unwrap();
        let file = FileHandle::options().read(true).open_with(&path, &config);
        let file = file.unwrap();
        let together = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                together.wait();
                check(&file);
            });
            together.wait();
            // At another moment each time.
            (0..round * 7).for_each(|_| std::hint::spin_loop());
            forked(|| check(&file)).succeeded();
        });
    }
}

#[track_caller]
fn check(file: &FileHandle) {
    let mut target = vec![UNTOUCHED; LEN];
    assert_eq!(file.read_at_with(&mut target, 0, &cut()).unwrap(), LEN);
    assert_same(&target, &pattern(1, 0, LEN));
}

fn cut() -> ReadOptions {
    ReadOptions::new()
        .num_threads(4)
        .task_size(ByteSize::kib(16))
}

const LEN: usize = 500_003;
