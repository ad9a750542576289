//! The corridor under an engine that misbehaves on cue: counts, errors, panics, growth, cancellation, fairness.
#![cfg(not(loom))]

mod support;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::{Duration, Instant};

use kvik_core::{ErrorKind, Target};
use support::{Scripted, Step, call, pattern};

const TASK: usize = 4096;

fn read(
    call: &kvik_core::corridor::Call,
    len: usize,
    offset: u64,
) -> (kvik_core::Result<usize>, Vec<u8>) {
    let mut bytes = vec![0xEE; len];
    let outcome = call.read(&mut Target::from(&mut bytes), offset);
    (outcome, bytes)
}

#[test]
fn tasks_that_complete_late_and_in_any_order_land_where_they_belong() {
    for threads in [1, 2, 7] {
        let mut engine = Scripted::new(100 * TASK, |_| Step::Move);
        engine.depth = 5;
        let call = call(engine, threads, TASK as u64);
        let (outcome, bytes) = read(&call, 99 * TASK, 123);
        assert_eq!(outcome.unwrap(), 99 * TASK);
        assert_eq!(bytes, pattern(100 * TASK)[123..][..99 * TASK]);
    }
}

#[test]
fn the_count_is_the_unbroken_part_and_what_lies_beyond_is_untouched() {
    let call = call(
        Scripted::new(10 * TASK + 100, |_| Step::Move),
        4,
        TASK as u64,
    );
    let (outcome, bytes) = read(&call, 20 * TASK, 0);
    assert_eq!(outcome.unwrap(), 10 * TASK + 100);
    assert_eq!(bytes[..10 * TASK + 100], pattern(10 * TASK + 100));
    assert!(bytes[10 * TASK + 100..].iter().all(|byte| *byte == 0xEE));
    assert_eq!(read(&call, 10, 20 * TASK as u64).0.unwrap(), 0);
}

#[test]
fn the_first_error_wins_and_says_how_far_the_unbroken_part_reaches() {
    let script = |task: &kvik_core::corridor::Task| match task.index {
        3 => Step::FailAfter(17),
        _ => Step::Move,
    };
    for threads in [1, 4] {
        let call = call(Scripted::new(100 * TASK, script), threads, TASK as u64);
        let (outcome, bytes) = read(&call, 100 * TASK, 0);
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert_eq!(error.done(), 3 * TASK as u64 + 17);
        assert_eq!(bytes[..3 * TASK + 17], pattern(100 * TASK)[..3 * TASK + 17]);
        assert_eq!(
            error.to_string(),
            "read scripted 0..409600 stopped after 12305 bytes: the device gave up"
        );
    }
}

#[test]
fn tasks_behind_an_error_are_not_started() {
    let started = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&started);
    let engine = Scripted::new(1000 * TASK, move |task| {
        seen.fetch_add(1, Ordering::Relaxed);
        if task.index == 5 {
            Step::FailAfter(0)
        } else {
            Step::Move
        }
    });
    read(&call(engine, 1, TASK as u64), 1000 * TASK, 0)
        .0
        .unwrap_err();
    assert_eq!(started.load(Ordering::Relaxed), 6);
}

#[test]
fn a_panic_in_a_worker_is_an_internal_error_and_the_pool_lives_on() {
    let engine = Scripted::new(100 * TASK, |task| {
        if task.index == 50 {
            Step::Panic
        } else {
            Step::Move
        }
    });
    let call = call(engine, 3, TASK as u64);
    let error = read(&call, 100 * TASK, 0).0.unwrap_err();
    assert_eq!((error.kind(), error.done()), (ErrorKind::Internal, 0));
    assert!(
        error
            .to_string()
            .contains("a worker panicked: task 50 was told to"),
        "{error}"
    );
    let (outcome, bytes) = read(&call, 10 * TASK, 0);
    assert_eq!(outcome.unwrap(), 10 * TASK);
    assert_eq!(bytes, pattern(10 * TASK));
}

#[test]
fn a_file_that_grows_during_the_read_is_read_without_a_gap() {
    // Task 2 meets the end; task 3, a moment later, finds the file grown. Asked again, task 2's bytes are there.
    let met_the_end = AtomicBool::new(false);
    let both = Barrier::new(2);
    let engine = Scripted::new(4 * TASK, move |task| match task.index {
        2 => {
            both.wait();
            met_the_end.store(true, Ordering::Relaxed);
            Step::EndAfter(10)
        }
        3 => {
            both.wait();
            Step::Move
        }
        _ => Step::Move,
    });
    let (outcome, bytes) = read(&call(engine, 2, TASK as u64), 4 * TASK, 0);
    assert_eq!(outcome.unwrap(), 4 * TASK);
    assert_eq!(bytes, pattern(4 * TASK));
}

#[test]
fn a_deadline_stops_the_start_of_tasks_and_is_an_error() {
    let engine = Scripted::new(100 * TASK, |_| {
        std::thread::sleep(Duration::from_millis(20));
        Step::Move
    });
    let mut call = call(engine, 1, TASK as u64);
    call.deadline = Instant::now().checked_add(Duration::from_millis(50));
    let (outcome, bytes) = read(&call, 100 * TASK, 0);
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let done = error.done() as usize;
    assert!(done.is_multiple_of(TASK) && done < 100 * TASK, "{error}");
    assert_eq!(bytes[..done], pattern(100 * TASK)[..done]);
    assert!(bytes[done..].iter().all(|byte| *byte == 0xEE));
}

#[test]
fn cancelling_ends_a_transfer_that_nobody_has_started() {
    let (release, gate) = mpsc::channel::<()>();
    let gate = std::sync::Mutex::new(gate);
    let engine = Scripted::new(100 * TASK, move |_| {
        let _ = gate.lock().unwrap().recv();
        Step::Move
    });
    let call = call(engine, 1, TASK as u64);
    let busy = call.submit_read(vec![0; TASK], 0);
    let queued = call.submit_read(vec![0xEE; 3 * TASK], 0);
    queued.cancel();
    let error = queued.wait().unwrap_err();
    assert_eq!((error.kind(), error.done()), (ErrorKind::Cancelled, 0));
    assert_eq!(queued.wait().unwrap_err().to_string(), error.to_string());
    assert!(queued.into_buf().iter().all(|byte| *byte == 0xEE));
    release.send(()).unwrap();
    assert_eq!(busy.wait().unwrap(), TASK);
    assert_eq!(busy.into_buf(), pattern(TASK));
}

#[test]
fn cancelling_a_finished_transfer_changes_nothing() {
    let call = call(Scripted::new(4 * TASK, |_| Step::Move), 2, TASK as u64);
    let pending = call.submit_read(vec![0; 4 * TASK], 0);
    assert_eq!(pending.wait().unwrap(), 4 * TASK);
    pending.cancel();
    assert_eq!(pending.wait().unwrap(), 4 * TASK);
    assert_eq!(
        pending.wait_timeout(Duration::ZERO).unwrap().unwrap(),
        4 * TASK
    );
    assert!(pending.is_done());
}

#[test]
fn waiting_on_a_worker_of_the_same_pool_does_not_deadlock() {
    // The only worker of the pool waits for a transfer that is queued behind it.
    let inner = Arc::new(call(
        Scripted::new(2 * TASK, |_| Step::Move),
        1,
        TASK as u64,
    ));
    let pool = inner.pool.clone();
    let nested = Arc::clone(&inner);
    let mut outer = call(
        Scripted::new(TASK, move |_| {
            let pending = nested.submit_read(vec![0; 2 * TASK], 0);
            assert_eq!(pending.wait().unwrap(), 2 * TASK);
            assert_eq!(pending.into_buf(), pattern(2 * TASK));
            Step::Move
        }),
        1,
        TASK as u64,
    );
    outer.pool = pool;
    assert_eq!(outer.submit_read(vec![0; TASK], 0).wait().unwrap(), TASK);
}

#[test]
fn submitted_transfers_of_one_task_run_side_by_side() {
    // Each of the three tasks waits for the other two: one worker, or two, would wait for ever.
    let all = Barrier::new(3);
    let engine = Scripted::new(3 * TASK, move |_| {
        all.wait();
        Step::Move
    });
    let call = call(engine, 3, TASK as u64);
    let pending: Vec<_> = (0..3)
        .map(|i| call.submit_read(vec![0; TASK], i * TASK as u64))
        .collect();
    for (i, pending) in pending.into_iter().enumerate() {
        let (outcome, bytes) = pending.finish();
        assert_eq!(outcome.unwrap(), TASK);
        assert_eq!(bytes, pattern(3 * TASK)[i * TASK..][..TASK]);
    }
}

#[test]
fn a_pool_grows_from_inside_one_of_its_own_tasks() {
    let mut outer = call(Scripted::new(0, |_| Step::Move), 1, TASK as u64);
    let pool = outer.pool.clone();
    outer.engine = Arc::new(Scripted::new(TASK, move |_| {
        pool.grow(6).unwrap();
        Step::Move
    }));
    assert_eq!(outer.submit_read(vec![0; TASK], 0).wait().unwrap(), TASK);
    assert_eq!(outer.pool.threads(), 6);
}

#[test]
fn a_small_transfer_does_not_wait_for_a_huge_one() {
    // One worker; the huge transfer has 1000 tasks. The small one is served after the task that is running.
    let started = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&started);
    let (first_runs, wait_for_first) = mpsc::channel();
    let huge = Scripted::new(1000 * TASK, move |task| {
        seen.fetch_add(1, Ordering::SeqCst);
        if task.index == 0 {
            first_runs.send(()).unwrap();
        }
        std::thread::sleep(Duration::from_millis(1));
        Step::Move
    });
    let huge = call(huge, 1, TASK as u64);
    let at_small = Arc::clone(&started);
    let before = Arc::new(AtomicUsize::new(usize::MAX));
    let note = Arc::clone(&before);
    let mut small = call(Scripted::new(0, |_| Step::Move), 1, TASK as u64);
    small.engine = Arc::new(Scripted::new(TASK, move |_| {
        note.store(at_small.load(Ordering::SeqCst), Ordering::SeqCst);
        Step::Move
    }));
    small.pool = huge.pool.clone();

    let long = huge.submit_read(vec![0; 1000 * TASK], 0);
    wait_for_first.recv().unwrap();
    let short = small.submit_read(vec![0; TASK], 0);
    // Not `wait`: that would let this thread do the work.
    while !short.is_done() {
        std::thread::yield_now();
    }
    assert!(
        before.load(Ordering::SeqCst) < 1000,
        "the small transfer ran after the huge one"
    );
    drop(long);
}

#[test]
fn a_pending_transfer_can_be_awaited_and_polled_again() {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Wake, Waker};

    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let call = call(Scripted::new(8 * TASK, |_| Step::Move), 2, TASK as u64);
    let mut pending = pin!(call.submit_read(vec![0; 8 * TASK], 0));
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match pending.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => break assert_eq!(outcome.unwrap(), 8 * TASK),
            Poll::Pending => std::thread::park(),
        }
    }
    assert!(
        matches!(pending.as_mut().poll(&mut context), Poll::Ready(Ok(count)) if count == 8 * TASK)
    );
}

#[test]
fn dropping_a_pending_transfer_waits_for_the_task_in_flight() {
    let in_flight = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&in_flight);
    let (begun, wait_for_begin) = mpsc::channel();
    let engine = Scripted::new(100 * TASK, move |_| {
        flag.store(true, Ordering::SeqCst);
        let _ = begun.send(());
        std::thread::sleep(Duration::from_millis(30));
        flag.store(false, Ordering::SeqCst);
        Step::Move
    });
    let call = call(engine, 2, TASK as u64);
    let pending = call.submit_read(vec![0; 100 * TASK], 0);
    wait_for_begin.recv().unwrap();
    drop(pending);
    assert!(!in_flight.load(Ordering::SeqCst));
}

#[test]
fn zero_threads_and_zero_task_sizes_are_refused_by_name() {
    let engine = || Scripted::new(TASK, |_| Step::Move);
    let error = read(&call(engine(), 0, TASK as u64), TASK, 0)
        .0
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "read scripted: the number of threads must be positive"
    );
    let pending = call(engine(), 1, 0).submit_read(vec![1, 2, 3], 0);
    assert_eq!(
        pending.wait().unwrap_err().to_string(),
        "read scripted: the task size must be positive"
    );
    assert_eq!(pending.into_buf(), [1, 2, 3]);
}

#[test]
fn an_empty_read_is_nothing_and_succeeds_anywhere() {
    let call = call(Scripted::new(TASK, |_| Step::Panic), 2, TASK as u64);
    assert_eq!(read(&call, 0, 0).0.unwrap(), 0);
    assert_eq!(read(&call, 0, 1 << 40).0.unwrap(), 0);
    assert_eq!(call.submit_read(Vec::new(), 5).wait().unwrap(), 0);
}

#[test]
fn a_file_handle_refuses_zero_threads_and_zero_task_sizes_whatever_the_length() {
    use kvik_config::ByteSize;
    use kvik_core::{FileHandle, ReadOptions};

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small");
    std::fs::write(&path, pattern(100)).unwrap();
    let file = FileHandle::options()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    for options in [
        ReadOptions::new().num_threads(0),
        ReadOptions::new().task_size(ByteSize::new(0)),
    ] {
        let mut bytes = [0; 10];
        assert_eq!(
            file.read_at_with(&mut bytes, 0, &options)
                .unwrap_err()
                .kind(),
            ErrorKind::Misuse
        );
        assert_eq!(
            file.write_at_with(&bytes, 0, &options).unwrap_err().kind(),
            ErrorKind::Misuse
        );
        assert_eq!(
            file.submit_read_with(vec![0; 10], 0, &options)
                .wait()
                .unwrap_err()
                .kind(),
            ErrorKind::Misuse
        );
    }
    assert_eq!(std::fs::read(&path).unwrap(), pattern(100));
}

#[test]
fn a_pool_starts_no_more_workers_than_there_is_work_for() {
    let call = call(Scripted::new(4 * TASK, |_| Step::Move), 1000, TASK as u64);
    assert_eq!(read(&call, 4 * TASK, 0).0.unwrap(), 4 * TASK);
    assert!(
        call.pool.threads() <= 3,
        "{} threads for 4 tasks",
        call.pool.threads()
    );
}

#[test]
fn thread_counts_beyond_all_reason_are_refused_by_name() {
    let call = call(Scripted::new(TASK, |_| Step::Move), usize::MAX, TASK as u64);
    let error = read(&call, TASK, 0).0.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(
        error
            .to_string()
            .contains("threads are more than the 1024 that a pool starts"),
        "{error}"
    );
    assert_eq!(call.pool.grow(1025).unwrap_err().kind(), ErrorKind::Misuse);
    assert_eq!(call.pool.threads(), 0);
}

#[test]
fn a_pool_with_a_nul_in_its_name_starts_threads() {
    let pool = kvik_core::ThreadPool::new("nul\0name");
    pool.grow(2).unwrap();
    assert_eq!(pool.threads(), 2);
}

/// An engine that breaks its contract in one way.
enum Breach {
    LosesTasks,
    HasNoRoom,
    SwapsTasks,
}

struct Broken(Breach);

struct BrokenLane<'w> {
    breach: &'w Breach,
    started: Vec<(kvik_core::corridor::Task, kvik_core::corridor::Window<'w>)>,
}

impl kvik_core::corridor::Engine for Broken {
    fn backend(&self) -> kvik_stats::Backend {
        kvik_stats::Backend::Posix
    }

    fn lane<'w>(&'w self) -> kvik_core::Result<Box<dyn kvik_core::corridor::Lane<'w> + 'w>> {
        Ok(Box::new(BrokenLane {
            breach: &self.0,
            started: Vec::new(),
        }))
    }
}

impl<'w> kvik_core::corridor::Lane<'w> for BrokenLane<'w> {
    fn room(&self) -> usize {
        usize::from(!matches!(self.breach, Breach::HasNoRoom)) * (2 - self.started.len())
    }

    fn in_flight(&self) -> usize {
        self.started.len()
    }

    fn start(&mut self, task: kvik_core::corridor::Task, window: kvik_core::corridor::Window<'w>) {
        self.started.push((task, window));
    }

    fn poll(&mut self, done: &mut Vec<kvik_core::corridor::Completion<'w>>) {
        if matches!(self.breach, Breach::LosesTasks) {
            self.started.clear();
        }
        if let [(first, _), (second, _)] = &mut self.started[..] {
            std::mem::swap(first, second);
        }
        done.extend(self.started.drain(..).map(|(task, mut window)| {
            let mut moved = 0;
            if let kvik_core::corridor::Window::Fill(window) = &mut window {
                moved = window.put(&[7; TASK]);
            }
            kvik_core::corridor::Completion {
                task,
                window,
                moved,
                error: None,
            }
        }));
    }
}

#[test]
fn an_engine_that_breaks_its_contract_is_an_internal_error() {
    for (breach, what) in [
        (Breach::LosesTasks, "the engine lost a task or made one up"),
        (Breach::HasNoRoom, "the engine lost a task or made one up"),
        (
            Breach::SwapsTasks,
            "the engine gave back another window than the task's",
        ),
    ] {
        let mut call = call(Scripted::new(0, |_| Step::Move), 1, TASK as u64);
        call.engine = Arc::new(Broken(breach));
        let error = read(&call, 4 * TASK, 0).0.unwrap_err();
        assert_eq!((error.kind(), error.done()), (ErrorKind::Internal, 0));
        assert!(error.to_string().contains(what), "{error}");
    }
}
