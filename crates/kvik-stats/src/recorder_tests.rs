//! What once could break: sums that disagree with each other, busy time beyond the wall, operations of before the start counted.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use super::Recorder;
use crate::listener::tests::alone;
use crate::operation::{Backend, Direction, Memory, Start};
use crate::totals::Totals;
use crate::{Span, begin};

fn start(backend: Backend, direction: Direction, size: u64) -> Span {
    begin(Start {
        backend,
        direction,
        memory: Memory::Host,
        source: &Arc::from("s"),
        offset: 0,
        size,
    })
}

#[track_caller]
fn check_sums(totals: &Totals) {
    assert_eq!(totals.operations, totals.reads + totals.writes);
    let sum = |of: fn(&crate::BackendTotals) -> u64| {
        totals.by_backend().map(|(_, share)| of(share)).sum::<u64>()
    };
    assert_eq!(totals.operations, sum(|share| share.operations));
    assert_eq!(totals.errors, sum(|share| share.errors));
    assert_eq!(totals.duration_ns, sum(|share| share.duration_ns));
    assert_eq!(
        totals.bytes_read + totals.bytes_written,
        sum(|share| share.bytes)
    );
    assert!(totals.bytes_transferred() <= totals.bytes_requested);
    assert!(totals.errors <= totals.operations);
    assert!(totals.busy_ns <= totals.wall_ns);
}

#[test]
fn operations_in_flight_at_the_start_are_ignored_and_those_at_a_reading_count_only_as_busy() {
    let _turn = alone();
    let _ear = Recorder::start();
    let before = start(Backend::Posix, Direction::Read, 10);
    let recorder = Recorder::start();
    before.finish(10, true);
    assert_eq!(recorder.totals().operations, 0);
    assert_eq!(recorder.totals().busy_ns, 0);
    let during = start(Backend::Posix, Direction::Read, 10);
    std::thread::sleep(Duration::from_millis(2));
    let totals = recorder.totals();
    assert_eq!((totals.operations, totals.bytes_requested), (0, 0));
    assert!(totals.busy_ns >= 2_000_000, "{} ns", totals.busy_ns);
    during.finish(10, true);
    assert_eq!(recorder.totals().bytes_read, 10);
}

#[test]
fn idle_time_is_not_busy() {
    let _turn = alone();
    let recorder = Recorder::start();
    start(Backend::Posix, Direction::Write, 1).finish(1, true);
    std::thread::sleep(Duration::from_millis(5));
    start(Backend::Posix, Direction::Write, 1).finish(1, true);
    let totals = recorder.stop();
    assert!(totals.wall_ns >= 5_000_000);
    assert!(totals.busy_ns + 5_000_000 <= totals.wall_ns, "{totals:?}");
}

#[test]
fn recorders_are_independent_of_each_other() {
    let _turn = alone();
    let first = Recorder::start();
    start(Backend::Mmap, Direction::Read, 4).finish(4, true);
    let second = Recorder::start();
    start(Backend::Mmap, Direction::Read, 4).finish(4, true);
    assert_eq!(first.stop().reads, 2);
    start(Backend::Mmap, Direction::Read, 4).finish(4, true);
    assert_eq!(second.stop().reads, 2);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test of several threads")]
fn threads_at_work_are_summed_without_loss_and_every_reading_agrees_with_itself() {
    let _turn = alone();
    let recorder = Recorder::start();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            scope.spawn(move || {
                for round in 0..2_000 {
                    let backend = Backend::ALL[(thread + round) as usize % Backend::ALL.len()];
                    let direction = if round % 2 == 0 {
                        Direction::Read
                    } else {
                        Direction::Write
                    };
                    start(backend, direction, 100).finish(90, round % 10 != 9);
                }
            });
        }
        let mut last = Totals::default();
        for _ in 0..300 {
            let totals = recorder.totals();
            check_sums(&totals);
            assert!(totals.busy_ns >= last.busy_ns && totals.operations >= last.operations);
            last = totals;
        }
    });
    let totals = recorder.stop();
    check_sums(&totals);
    assert_eq!(
        (totals.operations, totals.reads, totals.writes),
        (8_000, 4_000, 4_000)
    );
    assert_eq!((totals.bytes_requested, totals.errors), (800_000, 800));
    assert_eq!(
        (totals.bytes_read, totals.bytes_written),
        (4_000 * 90, 3_200 * 90)
    );
    assert_eq!(totals.backend(Backend::Gds).operations, 1_600);
}

/// One step of an interleaving: start an operation, or end the one at this position among those in flight.
#[derive(Clone, Debug)]
enum Step {
    Start(usize, bool, u64),
    Finish(usize, bool),
    Drop(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..Backend::ALL.len(), any::<bool>(), 0u64..1 << 40).prop_map(|(b, read, size)| Step::Start(b, read, size)),
        2 => (any::<prop::sample::Index>(), any::<bool>()).prop_map(|(i, ok)| Step::Finish(i.index(64), ok)),
        1 => any::<prop::sample::Index>().prop_map(|i| Step::Drop(i.index(64))),
    ];
    prop::collection::vec(step, 0..60)
}

proptest! {
    #[test]
    fn any_interleaving_sums_to_what_was_done(steps in steps()) {
        let _turn = alone();
        let recorder = Recorder::start();
        let mut in_flight: Vec<(Span, bool, u64)> = Vec::new();
        let (mut reads, mut writes, mut requested, mut read, mut written, mut errors) = (0, 0, 0, 0, 0, 0);
        let mut busy = 0;
        for step in steps {
            let ended = match step {
                Step::Start(backend, is_read, size) => {
                    let direction = if is_read { Direction::Read } else { Direction::Write };
                    in_flight.push((start(Backend::ALL[backend], direction, size), is_read, size));
                    None
                }
                Step::Finish(..) | Step::Drop(..) if in_flight.is_empty() => None,
                Step::Finish(position, ok) => Some((position, Some(ok))),
                Step::Drop(position) => Some((position, None)),
            };
            if let Some((position, how)) = ended {
                let (span, is_read, size) = in_flight.swap_remove(position % in_flight.len());
                match how {
                    Some(ok) => span.finish(size, ok),
                    None => drop(span),
                }
                let moved = if how == Some(true) { size } else { 0 };
                errors += u64::from(how != Some(true));
                requested += size;
                if is_read { reads += 1; read += moved } else { writes += 1; written += moved }
            }
            let totals = recorder.totals();
            check_sums(&totals);
            prop_assert!(totals.busy_ns >= busy);
            busy = totals.busy_ns;
        }
        let totals = recorder.totals();
        prop_assert_eq!((totals.reads, totals.writes, totals.errors), (reads, writes, errors));
        prop_assert_eq!((totals.bytes_requested, totals.bytes_read, totals.bytes_written), (requested, read, written));
    }
}
