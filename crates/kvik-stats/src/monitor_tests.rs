//! What once could break: sums that disagree with each other, busy time beyond the wall, operations of before the start counted.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;

use super::SummaryMonitor;
use crate::MonitorOptions;
use crate::listener::tests::alone;
use crate::listener::{Listener, listen};
use crate::names::{IO_SHORT, LISTENER_PANICS};
use crate::operation::{Backend, Direction, Memory, Operation, Outcome, Start};
use crate::summary::Summary;
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
fn check_sums(summary: &Summary) {
    assert_eq!(summary.operations, summary.reads + summary.writes);
    let sum = |of: fn(&crate::BackendTotals) -> u64| {
        summary
            .by_backend()
            .map(|(_, share)| of(share))
            .sum::<u64>()
    };
    assert_eq!(summary.operations, sum(|share| share.operations));
    assert_eq!(summary.errors, sum(|share| share.errors));
    assert_eq!(summary.duration_ns, sum(|share| share.duration_ns));
    assert_eq!(
        summary.bytes_read + summary.bytes_written,
        sum(|share| share.bytes)
    );
    assert!(summary.bytes_transferred() <= summary.bytes_requested);
    assert!(summary.errors <= summary.operations);
    assert!(summary.busy_ns <= summary.wall_ns());
}

#[test]
fn operations_in_flight_at_the_start_are_ignored_and_those_at_a_reading_count_only_as_busy() {
    let _turn = alone();
    let _ear = SummaryMonitor::start();
    let before = start(Backend::Posix, Direction::Read, 10);
    let monitor = SummaryMonitor::start();
    before.finish(10, true);
    assert_eq!(monitor.get().operations, 0);
    assert_eq!(monitor.get().busy_ns, 0);
    let during = start(Backend::Posix, Direction::Read, 10);
    std::thread::sleep(Duration::from_millis(2));
    let summary = monitor.get();
    assert_eq!((summary.operations, summary.bytes_requested), (0, 0));
    assert!(summary.busy_ns >= 2_000_000, "{} ns", summary.busy_ns);
    during.finish(10, true);
    assert_eq!(monitor.get().bytes_read, 10);
}

#[test]
fn idle_time_is_not_busy() {
    let _turn = alone();
    let monitor = SummaryMonitor::start();
    start(Backend::Posix, Direction::Write, 1).finish(1, true);
    std::thread::sleep(Duration::from_millis(5));
    start(Backend::Posix, Direction::Write, 1).finish(1, true);
    let summary = monitor.stop();
    assert!(summary.wall_ns() >= 5_000_000);
    assert!(
        summary.busy_ns + 5_000_000 <= summary.wall_ns(),
        "{summary:?}"
    );
}

#[test]
fn monitors_are_independent_of_each_other() {
    let _turn = alone();
    let first = SummaryMonitor::start();
    start(Backend::Mmap, Direction::Read, 4).finish(4, true);
    let second = SummaryMonitor::start();
    start(Backend::Mmap, Direction::Read, 4).finish(4, true);
    assert_eq!(first.stop().reads, 2);
    start(Backend::Mmap, Direction::Read, 4).finish(4, true);
    assert_eq!(second.stop().reads, 2);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test of several threads")]
fn threads_at_work_are_summed_without_loss_and_every_reading_agrees_with_itself() {
    let _turn = alone();
    let monitor = SummaryMonitor::start();
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
        let mut last = Summary::default();
        for _ in 0..300 {
            let summary = monitor.get();
            check_sums(&summary);
            assert!(summary.busy_ns >= last.busy_ns && summary.operations >= last.operations);
            last = summary;
        }
    });
    let summary = monitor.stop();
    check_sums(&summary);
    assert_eq!(
        (summary.operations, summary.reads, summary.writes),
        (8_000, 4_000, 4_000)
    );
    assert_eq!((summary.bytes_requested, summary.errors), (800_000, 800));
    assert_eq!(
        (summary.bytes_read, summary.bytes_written),
        (4_000 * 90, 3_200 * 90)
    );
    assert_eq!(summary.backend(Backend::Gds).operations, 1_600);
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
        let monitor = SummaryMonitor::start();
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
            let summary = monitor.get();
            check_sums(&summary);
            prop_assert!(summary.busy_ns >= busy);
            busy = summary.busy_ns;
        }
        let summary = monitor.get();
        prop_assert_eq!((summary.reads, summary.writes, summary.errors), (reads, writes, errors));
        prop_assert_eq!((summary.bytes_requested, summary.bytes_read, summary.bytes_written), (requested, read, written));
    }
}

#[test]
fn what_was_stopped_stays_as_it_is_and_a_reset_leaves_it_empty() {
    let _turn = alone();
    let monitor = SummaryMonitor::start();
    start(Backend::Posix, Direction::Read, 8).finish(8, true);
    let in_flight = start(Backend::Posix, Direction::Read, 8);
    let stopped = monitor.stop();
    assert_eq!((stopped.operations, stopped.bytes_read), (1, 8));
    in_flight.finish(8, true);
    start(Backend::Posix, Direction::Read, 8).finish(8, true);
    assert_eq!(monitor.get(), stopped, "the end is frozen, too");
    assert_eq!(monitor.stop(), stopped, "stopping again changes nothing");
    monitor.reset().unwrap();
    let empty = monitor.get();
    assert_eq!(
        (empty.operations, empty.wall_ns(), empty.busy_ns),
        (0, 0, 0)
    );
    assert!(empty.start_unix_ns() >= stopped.end_unix_ns());
    start(Backend::Posix, Direction::Read, 8).finish(8, true);
    assert_eq!(monitor.get(), empty, "and it does not count again");
}

#[test]
fn a_reset_begins_anew_and_leaves_other_monitors_alone() {
    let _turn = alone();
    let (monitor, other) = (SummaryMonitor::start(), SummaryMonitor::start());
    start(Backend::Gds, Direction::Write, 8).finish(8, true);
    let before = monitor.get();
    let in_flight = start(Backend::Gds, Direction::Write, 8);
    monitor.reset().unwrap();
    in_flight.finish(8, true);
    let after = monitor.get();
    assert_eq!((after.operations, after.busy_ns), (0, 0));
    assert!(after.start_unix_ns() >= before.end_unix_ns());
    assert_eq!(after.since(&before), Err(crate::NotEarlier), "another span");
    assert_eq!(other.get().writes, 2);
    start(Backend::Gds, Direction::Write, 8).finish(8, true);
    let phase = monitor.since(&after).unwrap();
    assert_eq!((phase.writes, phase.bytes_written), (1, 8));
}

#[test]
fn counters_are_those_of_the_span() {
    let _turn = alone();
    IO_SHORT.add(3);
    let monitor = SummaryMonitor::start();
    IO_SHORT.add(4);
    let first = monitor.get();
    assert_eq!(first.counter(&IO_SHORT), 4);
    IO_SHORT.add(5);
    let stopped = monitor.stop();
    IO_SHORT.add(6);
    assert_eq!(stopped.since(&first).unwrap().counter(&IO_SHORT), 5);
    assert_eq!(monitor.get().counter(&IO_SHORT), 9);
}

#[test]
fn whoever_asked_gets_the_final_totals_at_the_drop_and_may_panic() {
    let _turn = alone();
    let told = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&told);
    let monitor = MonitorOptions::new()
        .at_end(move |summary| own.lock().unwrap().push(summary.reads))
        .start();
    start(Backend::Posix, Direction::Read, 8).finish(8, true);
    monitor.stop();
    assert!(told.lock().unwrap().is_empty(), "not at the stop");
    drop(monitor);
    assert_eq!(*told.lock().unwrap(), [1]);
    let before = LISTENER_PANICS.get();
    drop(
        MonitorOptions::new()
            .at_end(|_| panic!("on purpose"))
            .start(),
    );
    assert_eq!(LISTENER_PANICS.get(), before + 1);
}

/// Reads a monitor in its own calls, and asks what it must not.
struct Reader(SummaryMonitor, Mutex<Vec<u64>>);

impl Listener for Reader {
    fn started(&self, _: &Operation) {
        self.1.lock().unwrap().push(self.0.get().operations);
        assert!(SummaryMonitor::try_start().is_err());
        assert!(self.0.reset().is_err());
    }

    fn finished(&self, _: &Operation, _: &Outcome) {}
}

#[test]
fn a_monitor_can_be_read_inside_a_call_of_a_listener_and_not_started_or_reset() {
    let _turn = alone();
    let before = LISTENER_PANICS.get();
    let reader = Arc::new(Reader(SummaryMonitor::start(), Mutex::default()));
    let _listening = listen(reader.clone());
    start(Backend::Posix, Direction::Read, 8).finish(8, true);
    start(Backend::Posix, Direction::Read, 8).finish(8, true);
    assert_eq!(*reader.1.lock().unwrap(), [0, 1]);
    assert_eq!(LISTENER_PANICS.get(), before);
}

#[test]
fn distributions_are_kept_by_backend_and_direction_for_those_who_ask() {
    let _turn = alone();
    let plain = SummaryMonitor::start();
    let monitor = MonitorOptions::new().distributions(true).start();
    for size in [100, 4096, 4096] {
        start(Backend::Posix, Direction::Read, size).finish(size, true);
    }
    let first = monitor.get();
    start(Backend::Gds, Direction::Write, 8).finish(8, true);
    let summary = monitor.get();
    let sizes = summary.sizes(Backend::Posix, Direction::Read).unwrap();
    assert_eq!(
        (sizes.count(), sizes.sum(), sizes.largest()),
        (3, 8292, 4096)
    );
    let all: Vec<_> = sizes.buckets().collect();
    assert_eq!(all, [(Some(104), 1), (Some(4096), 2)]);
    let durations = summary.durations(Backend::Posix, Direction::Read).unwrap();
    assert_eq!(durations.sum(), summary.backend(Backend::Posix).duration_ns);
    let json = summary.to_full_json();
    let text = r#""size/POSIX/READ": {"count": 3, "sum": 8292, "p50": 3968, "#;
    assert!(json.contains(text), "{json}");
    let rows = summary.report(false);
    assert!(rows.contains("\n  POSIX READ           p50 "), "{rows}");
    assert!(!summary.to_kvikio_report(true).contains("p50"));
    let phase = summary.since(&first).unwrap();
    assert_eq!(
        phase.sizes(Backend::Gds, Direction::Write).unwrap().count(),
        1
    );
    assert_eq!(
        phase
            .sizes(Backend::Posix, Direction::Read)
            .unwrap()
            .count(),
        0
    );
    assert!(summary.task_waits().is_none());
    assert!(plain.get().sizes(Backend::Posix, Direction::Read).is_none());
    assert_eq!(Summary::from_bytes(&summary.to_bytes()).unwrap(), summary);
    monitor.reset().unwrap();
    let empty = monitor.get();
    assert_eq!(
        empty.sizes(Backend::Gds, Direction::Write).unwrap().count(),
        0
    );
}

#[test]
fn waits_and_services_of_tasks_are_kept_for_those_who_ask() {
    let _turn = alone();
    let monitor = MonitorOptions::new().tasks(true).start();
    let operation = start(Backend::Posix, Direction::Read, 8);
    let tasks = operation.tasks().unwrap();
    tasks.begin("posix", 0, 8).finish("posix", 8, true);
    operation.finish(8, true);
    let summary = monitor.get();
    let (waits, services) = (
        summary.task_waits().unwrap(),
        summary.task_services().unwrap(),
    );
    assert_eq!((waits.count(), services.count()), (1, 1));
    assert!(waits.sum() + services.sum() <= summary.duration_ns);
    assert_eq!(Summary::from_bytes(&summary.to_bytes()).unwrap(), summary);
}
