//! Models of pool, transfer and pending under every interleaving that loom finds within its bounds.
//!
//! Run by `cargo xtask loom`; without `--cfg loom` this file is empty.
#![cfg(loom)]

mod support;

use std::sync::Arc;

use kvik_core::{ErrorKind, ReadPiece, Target};
use support::{Scripted, Step, call, pattern};

const TASK: usize = 2;

fn two_tasks() -> Scripted {
    Scripted::new(2 * TASK, |_| Step::Move)
}

#[test]
fn a_blocking_read_and_its_helper_move_each_task_once() {
    loom::model(|| {
        let call = call(two_tasks(), 2, TASK as u64);
        let mut bytes = [0; 2 * TASK];
        assert_eq!(
            call.read(&mut Target::from(&mut bytes), 0).unwrap(),
            2 * TASK
        );
        assert_eq!(bytes[..], pattern(2 * TASK));
    });
}

#[test]
fn a_submitted_read_is_complete_when_wait_returns() {
    loom::model(|| {
        let call = call(two_tasks(), 1, TASK as u64);
        let (outcome, bytes) = call.submit_read(vec![0; 2 * TASK], 0).finish();
        assert_eq!(outcome.unwrap(), 2 * TASK);
        assert_eq!(bytes, pattern(2 * TASK));
    });
}

#[test]
fn cancelling_races_with_the_worker_and_the_outcome_tells_which_won() {
    loom::model(|| {
        let call = call(two_tasks(), 1, TASK as u64);
        let pending = call.submit_read(vec![0xEE; 2 * TASK], 0);
        pending.cancel();
        let (outcome, bytes) = pending.finish();
        let done = match outcome {
            Ok(count) => count,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Cancelled);
                error.done() as usize
            }
        };
        assert_eq!(bytes[..done], pattern(2 * TASK)[..done]);
        assert!(bytes[done..].iter().all(|byte| *byte == 0xEE));
    });
}

#[test]
fn dropping_a_pending_read_races_with_its_worker() {
    loom::model(|| {
        let call = call(two_tasks(), 1, TASK as u64);
        drop(call.submit_read(vec![0; 2 * TASK], 0));
    });
}

#[test]
fn an_error_of_one_worker_is_the_outcome_whoever_settles() {
    loom::model(|| {
        let engine = Scripted::new(2 * TASK, |task| {
            if task.index == 1 {
                Step::FailAfter(1)
            } else {
                Step::Move
            }
        });
        let call = call(engine, 2, TASK as u64);
        let mut bytes = [0; 2 * TASK];
        let error = call.read(&mut Target::from(&mut bytes), 0).unwrap_err();
        assert_eq!(
            (error.kind(), error.done()),
            (ErrorKind::Io, TASK as u64 + 1)
        );
    });
}

#[test]
fn a_waker_that_is_registered_while_the_worker_settles_is_not_lost() {
    loom::model(|| {
        let call = call(two_tasks(), 1, TASK as u64);
        let pending = call.submit_read(vec![0; 2 * TASK], 0);
        assert_eq!(loom::future::block_on(pending).unwrap(), 2 * TASK);
    });
}

#[test]
fn two_transfers_share_one_worker() {
    loom::model(|| {
        let first = call(two_tasks(), 1, TASK as u64);
        let mut second = call(two_tasks(), 1, TASK as u64);
        second.pool = first.pool.clone();
        second.engine = Arc::clone(&first.engine);
        let one = first.submit_read(vec![0; TASK], 0);
        let two = second.submit_read(vec![0; TASK], TASK as u64);
        assert_eq!(two.wait().unwrap(), TASK);
        assert_eq!(one.wait().unwrap(), TASK);
    });
}

#[test]
fn two_threads_move_the_pieces_of_a_call_once_each() {
    loom::model(|| {
        let call = call(two_tasks(), 2, TASK as u64);
        let (mut one, mut two) = ([0; TASK], [0; TASK]);
        let mut pieces = [
            ReadPiece::new(TASK as u64, &mut one),
            ReadPiece::new(0, &mut two),
        ];
        assert_eq!(call.read_ranges(&mut pieces, 0).unwrap(), [TASK, TASK]);
        assert_eq!([two, one].concat(), pattern(2 * TASK));
    });
}

#[test]
fn an_error_of_one_piece_stops_the_batch_of_the_other_thread_or_comes_too_late_for_it() {
    loom::model(|| {
        let engine = Scripted::new(4 * TASK, |task| match task.range.start {
            0 => Step::FailAfter(1),
            _ => Step::Move,
        });
        // Two batches, the second of two tasks.
        let call = call(engine, 2, 9000);
        let mut memory = vec![0; 9000 + 2];
        let (long, rest) = memory.split_at_mut(9000);
        let (one, two) = rest.split_at_mut(1);
        let mut pieces = [
            ReadPiece::new(0, long),
            ReadPiece::new(20_000, one),
            ReadPiece::new(20_001, two),
        ];
        let error = call.read_ranges(&mut pieces, 0).unwrap_err();
        assert_eq!((error.kind(), error.done()), (ErrorKind::Io, 1));
    });
}
