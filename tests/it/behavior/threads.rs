//! Many threads at once, and how many threads work.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kvik::{ByteSize, Config, FileHandle, Layer, ReadOptions, ThreadPool};
use kvik_tests::engine::{Gate, Scripted, Step};
use kvik_tests::pattern::{assert_same, pattern};

use super::{LEN, cut, fixture};

/// "Handles can be used from many threads at once, and each gets its own bytes."
#[test]
fn many_threads_use_one_handle_and_each_gets_its_own_bytes() {
    let (_folder, path, handle) = fixture();
    const SHARE: usize = LEN / 8;
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let handle = handle.clone();
            scope.spawn(move || {
                let offset = thread * SHARE;
                for round in 0..20 {
                    let seed = (thread * 100 + round) as u64 + 2;
                    let options = if round % 2 == 0 {
                        cut(3, 4097)
                    } else {
                        ReadOptions::new()
                    };
                    handle
                        .write_at_with(&pattern(seed, 0, SHARE), offset as u64, &options)
                        .unwrap();
                    let mut target = vec![0; SHARE];
                    assert_eq!(
                        handle
                            .read_at_with(&mut target, offset as u64, &options)
                            .unwrap(),
                        SHARE
                    );
                    assert_same(&target, &pattern(seed, 0, SHARE));
                }
            });
        }
    });
    let stored = std::fs::read(&path).unwrap();
    for thread in 0..8 {
        assert_same(
            &stored[thread * SHARE..][..SHARE],
            &pattern((thread * 100 + 19) as u64 + 2, 0, SHARE),
        );
    }
}

/// "A huge transfer does not hold up small ones."
#[test]
fn a_small_transfer_is_done_before_a_huge_one_that_came_first() {
    // One worker. Task 0 of the huge transfer waits until the small one is in the queue as well.
    let gate = Gate::new();
    let done = Arc::new(AtomicUsize::new(0));
    let (wait, count) = (Arc::clone(&gate), Arc::clone(&done));
    let mut call = Scripted::new(move |_| {
        wait.pass();
        count.fetch_add(1, Ordering::SeqCst);
        Step::Move
    })
    .call(1, 16);
    let huge = call.submit_read(vec![0; 16_000], 0);
    gate.wait_for(1);
    let seen = Arc::new(AtomicUsize::new(usize::MAX));
    let note = Arc::clone(&seen);
    call.engine = Arc::new(Scripted::new(move |_| {
        note.store(done.load(Ordering::SeqCst), Ordering::SeqCst);
        Step::Move
    }));
    let small = call.submit_read(vec![0; 16], 0);
    gate.open();
    // Not `small.wait()`, which would lend this thread.
    assert_eq!(
        huge.wait_timeout(Duration::from_secs(60)).unwrap().unwrap(),
        16_000
    );
    assert_eq!(small.wait().unwrap(), 16);
    assert_eq!(
        seen.load(Ordering::SeqCst),
        1,
        "tasks of the huge transfer that were done before the small one"
    );
    assert_same(&huge.into_buf(), &pattern(0, 0, 16_000));
}

/// "`num_threads` in a call caps the tasks of that call; the pool itself only grows."
#[test]
fn num_threads_caps_the_tasks_of_a_call_and_the_pool_only_grows() {
    let (_folder, path, _) = fixture();
    let pool = ThreadPool::new("capped");
    let config = Config::resolve([Layer::new()
        .num_threads(5)
        .task_size(ByteSize::kib(4))
        .inline_size(ByteSize::new(0))])
    .unwrap();
    let handle = FileHandle::options()
        .read(true)
        .thread_pool(&pool)
        .open_with(&path, &config)
        .unwrap();
    let mut target = vec![0; LEN];
    // The calling thread is one of them.
    for (threads, in_pool) in [(1, 0), (3, 2), (2, 2), (1, 2)] {
        handle
            .read_at_with(&mut target, 0, &ReadOptions::new().num_threads(threads))
            .unwrap();
        assert_eq!(pool.threads(), in_pool);
    }
    handle.read_at(&mut target, 0).unwrap();
    assert_eq!(pool.threads(), 4, "the handle's setting");
    handle.submit_read(target, 0).wait().unwrap();
    assert_eq!(
        pool.threads(),
        5,
        "in the background all of them are workers"
    );

    // Three of ten tasks at a time, whatever the pool could do.
    let gate = Gate::new();
    let mut call = Scripted::behind(&gate).call(3, 16);
    call.pool = pool.clone();
    let pending = call.submit_read(vec![0; 160], 0);
    gate.wait_for(3);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(gate.came(), 3);
    gate.open();
    assert_eq!(pending.wait().unwrap(), 160);
}
