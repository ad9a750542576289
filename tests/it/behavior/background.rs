//! Transfers in the background: who owns what, and every way to wait.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use kvik::{ErrorKind, FileHandle, ReadOptions, ThreadPool};
use kvik_tests::engine::{Gate, Scripted, Step};
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, pattern};

use super::{LEN, cut, fixture};

/// "A `Pending` owns its buffer and its handle: both may be dropped by the caller, and the transfer ends well."
#[test]
fn a_pending_owns_its_buffer_its_handle_and_its_pool() {
    let (_folder, path, handle) = fixture();
    let pool = ThreadPool::new("owned");
    let own = FileHandle::options()
        .read(true)
        .thread_pool(&pool)
        .open(&path)
        .unwrap();
    let pending = [
        handle.submit_read_with(vec![0; LEN], 0, &cut(4, 4096)),
        own.submit_read_with(vec![0; LEN], 0, &cut(4, 4096)),
    ];
    drop((handle, own, pool));
    std::fs::remove_file(&path).unwrap();
    for pending in pending {
        assert_eq!(pending.wait().unwrap(), LEN);
        assert_same(&pending.into_buf(), &pattern(1, 0, LEN));
    }
}

/// "`wait` may be called again and again, and gives the same result. KvikIO's second `get` fails."
#[test]
fn wait_gives_the_same_result_again_and_again() {
    let (_folder, _path, handle) = fixture();
    let pending = handle.submit_read_with(vec![0; 600_000], 500_000, &cut(3, 4096));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..3).for_each(|_| assert_eq!(pending.wait().unwrap(), 500_000)));
        }
    });
    assert!(pending.is_done());
    let refused = handle.submit_write(vec![0; 10], u64::MAX);
    let texts: Vec<_> = (0..3)
        .map(|_| refused.wait().unwrap_err().to_string())
        .collect();
    assert!(texts[0] == texts[1] && texts[1] == texts[2], "{texts:?}");
}

/// "`wait_timeout` returns `None` when the time is over, and the transfer goes on."
#[test]
fn wait_timeout_returns_none_and_the_transfer_goes_on() {
    let gate = Gate::new();
    let pending = Scripted::behind(&gate)
        .call(2, 4096)
        .submit_read(vec![0; 8192], 0);
    for _ in 0..3 {
        assert!(pending.wait_timeout(Duration::from_millis(5)).is_none());
        assert!(!pending.is_done());
    }
    gate.open();
    assert_eq!(
        pending
            .wait_timeout(Duration::from_secs(60))
            .unwrap()
            .unwrap(),
        8192
    );
    assert_eq!(pending.wait_timeout(Duration::ZERO).unwrap().unwrap(), 8192);
    assert_same(&pending.into_buf(), &pattern(0, 0, 8192));
}

/// "A `Pending` is a `Future`, on any runtime."
#[test]
fn a_pending_is_a_future_that_any_executor_can_await() {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    fn block_on<F: Future>(future: F) -> F::Output {
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        let mut future: Pin<&mut F> = pin!(future);
        loop {
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(output) => return output,
                Poll::Pending => std::thread::park(),
            }
        }
    }
    let (_folder, _path, handle) = fixture();
    let read = block_on(async {
        let mut first = handle.submit_read_with(vec![0; LEN], 0, &cut(3, 4096));
        let second = handle.submit_read(vec![0; 10], LEN as u64);
        assert_eq!((&mut first).await.unwrap(), LEN);
        assert_eq!((&mut first).await.unwrap(), LEN);
        assert_eq!(second.await.unwrap(), 0);
        first.into_buf()
    });
    assert_same(&read, &pattern(1, 0, LEN));
    // It can be moved to another thread while it runs, and awaited there.
    let pending = handle.submit_read_with(vec![0; LEN], 0, &cut(3, 4096));
    std::thread::scope(|scope| {
        let elsewhere = scope.spawn(move || block_on(pending).unwrap());
        assert_eq!(elsewhere.join().unwrap(), LEN);
    });
}

/// "`cancel` stops what has not started; if that leaves anything undone, the result is `Cancelled`."
#[test]
fn cancel_stops_what_has_not_started_and_says_how_far_it_came() {
    let gate = Gate::new();
    let call = Scripted::behind(&gate).call(1, 4096);
    let pending = call.submit_read(vec![UNTOUCHED; 40_960], 0);
    let queued = call.submit_read(vec![UNTOUCHED; 4096], 0);
    gate.wait_for(1);
    pending.cancel();
    queued.cancel();
    // What nobody works on has ended; what has started has not.
    assert_eq!(queued.wait().unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(!pending.is_done());
    gate.open();
    let (outcome, buffer) = pending.finish();
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), error.done()), (ErrorKind::Cancelled, 4096));
    assert_same(&buffer[..4096], &pattern(0, 0, 4096));
    assert_all(&buffer[4096..], UNTOUCHED);
    assert_eq!(gate.came(), 1);
    // Nothing left undone: no error.
    let done = call.submit_read(vec![0; 8192], 0);
    assert_eq!(done.wait().unwrap(), 8192);
    done.cancel();
    assert_eq!(done.wait().unwrap(), 8192);
}

/// "Dropping a `Pending` cancels what has not started and waits for what has."
#[test]
fn dropping_a_pending_waits_for_what_has_started() {
    let gate = Gate::new();
    let left = Arc::new(AtomicUsize::new(0));
    let (wait, count) = (Arc::clone(&gate), Arc::clone(&left));
    let pending = Scripted::new(move |_| {
        wait.pass();
        count.fetch_add(1, Ordering::SeqCst);
        Step::Move
    })
    .call(2, 4096)
    .submit_read(vec![0; 40_960], 0);
    gate.wait_for(2);
    std::thread::scope(|scope| {
        let (tell, told) = std::sync::mpsc::channel();
        let dropping = scope.spawn(move || {
            tell.send(nix::unistd::gettid()).unwrap();
            drop(pending);
        });
        let dropper = told.recv().unwrap();
        // Once it sleeps it has cancelled, and waits: nothing else in there can keep it waiting.
        while !dropping.is_finished() && !sleeps(dropper) {
            std::thread::yield_now();
        }
        assert!(!dropping.is_finished(), "the drop did not wait");
        gate.open();
        dropping.join().unwrap();
        assert_eq!(left.load(Ordering::SeqCst), 2);
    });
}

/// Whether a thread of this process is asleep, as the third field of its `stat` says.
fn sleeps(thread: nix::unistd::Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    stat.is_ok_and(|stat| {
        stat.rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('S'))
    })
}

/// "A deadline that passes ends the transfer with `TimedOut`."
#[test]
fn a_deadline_that_passes_is_timed_out_with_what_was_done() {
    let (_folder, _path, handle) = fixture();
    for options in [ReadOptions::new(), cut(3, 4096)] {
        let late = options.deadline(Instant::now());
        let mut target = vec![UNTOUCHED; 300_000];
        for len in [10, 300_000] {
            let error = handle
                .read_at_with(&mut target[..len], 0, &late)
                .unwrap_err();
            assert_eq!(
                (error.kind(), error.done(), error.range()),
                (ErrorKind::TimedOut, 0, Some(0..len as u64))
            );
            let error = handle
                .submit_write_with(vec![1; len], 0, &late)
                .wait()
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
        }
        assert_all(&target, UNTOUCHED);
    }
    let mut bytes = vec![0; LEN];
    handle
        .read_at_with(&mut bytes, 0, &cut(3, 4096).timeout(Duration::MAX))
        .unwrap();
    assert_same(&bytes, &pattern(1, 0, LEN));

    // Passed while a task is under way: that one ends, none starts after it.
    let gate = Gate::new();
    let mut call = Scripted::behind(&gate).call(1, 4096);
    call.deadline = Some(Instant::now() + Duration::from_millis(200));
    let pending = call.submit_read(vec![UNTOUCHED; 40_960], 0);
    // On a machine that is so slow that nothing started in time, the rest holds as well.
    while gate.came() == 0 && !pending.is_done() {
        std::thread::yield_now();
    }
    std::thread::sleep(Duration::from_millis(250));
    gate.open();
    let (outcome, buffer) = pending.finish();
    let error = outcome.unwrap_err();
    assert_eq!(
        (error.kind(), error.done()),
        (ErrorKind::TimedOut, gate.came() as u64 * 4096)
    );
    assert_same(
        &buffer[..gate.came() * 4096],
        &pattern(0, 0, gate.came() * 4096),
    );
}
