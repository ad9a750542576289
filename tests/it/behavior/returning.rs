//! What holds when a call returns, with an error above all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kvik::{Error, ErrorKind, FileHandle, Op, Place, Target};
use kvik_tests::engine::{Gate, Scripted, Step};
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, pattern};

/// "The first error wins; tasks that have not started never start."
#[test]
fn the_first_error_wins_and_no_further_task_starts() {
    for threads in [1, 2, 4] {
        let started = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&started);
        let call = Scripted::new(move |task| {
            count.fetch_add(1, Ordering::SeqCst);
            if task.index == 10 {
                Step::Fail
            } else {
                Step::Move
            }
        })
        .call(threads, 16);
        let mut target = vec![UNTOUCHED; 16_000];
        let error = call.read(&mut Target::from(&mut target), 0).unwrap_err();
        assert_eq!((error.kind(), error.done()), (ErrorKind::Io, 160));
        assert!(
            error.to_string().ends_with("task 10 was told to fail"),
            "{error}"
        );
        assert_same(&target[..160], &pattern(0, 0, 160));
        if threads == 1 {
            assert_eq!(started.load(Ordering::SeqCst), 11);
            assert_all(&target[160..], UNTOUCHED);
        }
    }
    // Tasks 0 and 1 are under way together, and both fail: task 1 first.
    let gates = [Gate::new(), Gate::new()];
    let wait = gates.clone();
    let call = Scripted::new(move |task| {
        wait[task.index].pass();
        Step::Fail
    })
    .call(2, 16);
    let pending = call.submit_read(vec![UNTOUCHED; 1600], 0);
    gates.iter().for_each(|gate| gate.wait_for(1));
    gates[1].open();
    // Task 1 has failed when its worker has nothing more to do; task 0 holds the transfer up until it has stopped too.
    assert!(pending.wait_timeout(Duration::from_millis(50)).is_none());
    gates[0].open();
    let error = pending.wait().unwrap_err();
    assert_eq!(error.done(), 0);
    assert!(error.to_string().contains("was told to fail"), "{error}");
    assert_eq!(gates.each_ref().map(|gate| gate.came()), [1, 1]);
}

/// "An error names operation, path, range and the bytes done, and its cause is the `source()`."
#[test]
fn an_error_names_what_where_how_far_and_why_and_keeps_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let error = FileHandle::open(&missing).unwrap_err();
    assert_eq!(
        (error.op(), error.range(), error.done()),
        (Op::Open, None, 0)
    );
    assert_eq!(error.place(), Some(&Place::from(missing.as_path())));
    assert_eq!(
        error.to_string(),
        format!(
            "open {}: No such file or directory (ENOENT)",
            missing.display()
        )
    );
    let cause = std::error::Error::source(&error)
        .and_then(|cause| cause.downcast_ref::<std::io::Error>())
        .unwrap();
    assert_eq!(cause.kind(), std::io::ErrorKind::NotFound);
    let clone: Error = error.clone();
    assert_eq!(clone.to_string(), error.to_string());

    let full = FileHandle::options().write(true).open("/dev/full").unwrap();
    let error = full.write_at(&vec![0; 1 << 20], 4096).unwrap_err();
    assert_eq!(
        (error.op(), error.range(), error.os_error()),
        (Op::Write, Some(4096..4096 + (1 << 20)), Some(libc::ENOSPC))
    );
    let text = "write /dev/full 4096..1052672: No space left on device (ENOSPC); free space or raise the quota, then run it again";
    assert_eq!(error.to_string(), text);
}

/// "A panic in a worker becomes an `Internal` error of that transfer, and the pool lives on."
#[test]
fn a_panic_in_a_worker_is_an_internal_error_and_the_pool_lives_on() {
    let mut call = Scripted::new(|task| {
        if task.index == 3 {
            Step::Panic
        } else {
            Step::Move
        }
    })
    .call(2, 4096);
    let pending = call.submit_read(vec![0; 40_960], 0);
    let error = pending.wait().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(
        error
            .to_string()
            .contains("a worker panicked: task 3 was told to panic; please report"),
        "{error}"
    );
    assert_eq!(pending.into_buf().len(), 40_960);
    call.engine = Arc::new(Scripted::new(|_| Step::Move));
    let pending = call.submit_read(vec![0; 40_960], 7);
    assert_eq!(pending.wait().unwrap(), 40_960);
    assert_same(&pending.into_buf(), &pattern(0, 7, 40_960));
}
