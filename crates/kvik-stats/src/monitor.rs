//! A listener that keeps sums, and hands out summaries of them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use arc_swap::ArcSwap;

use crate::anchor::Clock;
use crate::busy::Busy;
use crate::distributions::{OfOperations, OfTasks};
use crate::listener::{InListener, Listener, Listening, Wanted, try_listen};
use crate::monitor_options::{AtEnd, Keep, MonitorOptions};
use crate::names;
use crate::operation::{Backend, Direction, Operation, Outcome};
use crate::sharded::Sharded;
use crate::summary::{BackendTotals, Counts, NotEarlier, Summary};
use crate::task::Task;

/// Sums up the logical operations of the whole process from [`start`](SummaryMonitor::start) until it is stopped or dropped.
///
/// Any number may run; they know nothing of each other. Operations in flight at the start are not counted; those still in flight at
/// a reading are not counted yet, but their time is part of the busy time. It cannot tell whose calls it counts.
///
/// # Example: one phase of a program
///
/// ```
/// let monitor = kvik_stats::SummaryMonitor::start();
/// // ... a phase that reads and writes ...
/// let summary = monitor.stop();
/// assert_eq!(summary.operations, summary.reads + summary.writes);
/// ```
#[derive(Debug)]
#[must_use = "a monitor that is dropped counts nothing"]
pub struct SummaryMonitor {
    clock: Clock,
    state: ArcSwap<State>,
    at_end: AtTheDrop,
}

/// A span of counting. A reading takes the state as it is; nobody waits for anybody.
#[derive(Debug)]
enum State {
    Counting {
        sums: Arc<Sums>,
        listening: Listening,
    },
    Stopped(Box<Summary>),
}

impl SummaryMonitor {
    /// Starts counting. [`MonitorOptions`] are for more than sums.
    ///
    /// # Panics
    /// Inside a call of a [`Listener`]; [`try_start`](SummaryMonitor::try_start) is the twin that does not.
    pub fn start() -> SummaryMonitor {
        MonitorOptions::new().start()
    }

    /// Starts counting.
    ///
    /// # Errors
    /// Inside a call of a [`Listener`].
    pub fn try_start() -> Result<SummaryMonitor, InListener> {
        MonitorOptions::new().try_start()
    }

    pub(crate) fn with(options: MonitorOptions) -> Result<SummaryMonitor, InListener> {
        let MonitorOptions { keep, at_end } = options;
        let clock = Clock::start();
        Ok(SummaryMonitor {
            clock,
            state: ArcSwap::from_pointee(State::counting(clock, keep)?),
            at_end: AtTheDrop(at_end),
        })
    }

    /// The sums since the start or the last [`reset`](SummaryMonitor::reset). Reading changes nothing.
    pub fn get(&self) -> Summary {
        self.state.load().summary()
    }

    /// What happened since `previous`: short for [`get`](SummaryMonitor::get) and [`Summary::since`].
    ///
    /// # Errors
    /// [`NotEarlier`] as for [`Summary::since`].
    pub fn since(&self, previous: &Summary) -> Result<Summary, NotEarlier> {
        self.get().since(previous)
    }

    /// Begins again with nothing, as if the monitor had just been started: operations in flight are not counted. One that was
    /// stopped stays stopped, and is empty from then on.
    ///
    /// # Errors
    /// Inside a call of a [`Listener`].
    pub fn reset(&self) -> Result<(), InListener> {
        InListener::check()?;
        let before = self.state.load_full();
        let next = match &*before {
            State::Counting { sums, .. } => State::counting(self.clock, sums.keep)?,
            State::Stopped(_) => State::Stopped(Box::new(Summary::nothing(&self.clock))),
        };
        // Against a stop at the same time: what is stopped does not count again. Who loses has had its turn before the other.
        self.state.compare_and_swap(&before, Arc::new(next));
        Ok(())
    }

    /// Stops counting, for good, and returns the final totals, which later readings return as well. Operations still in flight
    /// stay uncounted. Stopping again changes nothing.
    pub fn stop(&self) -> Summary {
        loop {
            let before = self.state.load_full();
            let State::Counting { listening, .. } = &*before else {
                return before.summary();
            };
            listening.end();
            // Nothing is added any more.
            let stopped = Arc::new(State::Stopped(Box::new(before.summary())));
            self.state.compare_and_swap(&before, stopped);
        }
    }
}

impl Drop for SummaryMonitor {
    fn drop(&mut self) {
        let Some(end) = self.at_end.0.take() else {
            return;
        };
        let summary = self.stop();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| end(&summary))) {
            names::LISTENER_PANICS.increment();
            // As for a listener's: its own destructor may panic again.
            std::mem::forget(payload);
        }
    }
}

struct AtTheDrop(Option<AtEnd>);

impl std::fmt::Debug for AtTheDrop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match &self.0 {
            Some(_) => "a function",
            None => "nothing",
        })
    }
}

impl State {
    fn counting(clock: Clock, keep: Keep) -> Result<State, InListener> {
        // The clock starts before the first operation can be heard, so every span lies within the wall time.
        let sums = Arc::new(Sums {
            clock,
            start: Instant::now(),
            counters: Counts::now(),
            busy: Busy::default(),
            cells: Sharded::default(),
            operations: keep.distributions.then(Box::default),
            tasks: keep.tasks.then(Box::default),
            keep,
        });
        let wanted = match keep.tasks {
            true => Wanted::Tasks,
            false => Wanted::Operations,
        };
        let listener = Arc::clone(&sums) as Arc<dyn Listener>;
        let listening = try_listen(listener, wanted)?;
        Ok(State::Counting { sums, listening })
    }

    fn summary(&self) -> Summary {
        match self {
            State::Counting { sums, .. } => sums.summary(),
            State::Stopped(summary) => Summary::clone(summary),
        }
    }
}

impl Summary {
    /// Of a span that begins and ends now.
    fn nothing(clock: &Clock) -> Summary {
        let now = clock.at(Instant::now());
        Summary {
            start: now,
            end: now,
            anchor: clock.anchor,
            ..Summary::default()
        }
    }
}

#[derive(Debug)]
struct Sums {
    clock: Clock,
    /// When the span began: all that is summed is counted from there.
    start: Instant,
    /// What the counters were at the start.
    counters: Counts,
    busy: Busy,
    cells: Sharded<Cells>,
    operations: Option<Box<Sharded<OfOperations>>>,
    tasks: Option<Box<Sharded<OfTasks>>>,
    /// To begin anew by.
    keep: Keep,
}

/// One cell per backend and direction. Everything else is summed from these when asked, so the sums agree in every reading.
type Cells = [[Cell; 2]; Backend::COUNT];

#[derive(Debug, Default)]
struct Cell {
    operations: AtomicU64,
    /// Bytes that were asked for and not moved: mostly none, which costs nothing to add.
    missing: AtomicU64,
    duration: AtomicU64,
    moved: AtomicU64,
    errors: AtomicU64,
}

impl Sums {
    /// Nanoseconds from the start of the span to `instant`.
    fn at(&self, instant: Instant) -> u64 {
        nanoseconds(instant.saturating_duration_since(self.start))
    }

    fn summary(&self) -> Summary {
        let mut summary = Summary {
            start: self.clock.at(self.start),
            anchor: self.clock.anchor,
            ..Summary::default()
        };
        for cells in self.cells.iter() {
            for (&backend, [read, written]) in Backend::ALL.iter().zip(cells) {
                read.add_to(&mut summary, backend, Direction::Read);
                written.add_to(&mut summary, backend, Direction::Write);
            }
        }
        for share in self.operations.iter().flat_map(|shares| shares.iter()) {
            share.add_to(&mut summary.distributions);
        }
        for share in self.tasks.iter().flat_map(|shares| shares.iter()) {
            share.add_to(&mut summary.distributions);
        }
        // Counters only grow, until they wrap after centuries: then there is no answer.
        summary.counters = Counts::now().less(&self.counters).unwrap_or_default();
        summary.busy_ns = self.busy.reading(|| self.at(Instant::now()));
        // Last, so that no busy time is newer than the wall time it is held against.
        summary.end = self.clock.at(Instant::now());
        summary
    }
}

impl Listener for Sums {
    fn started(&self, operation: &Operation) {
        self.busy.open(self.at(operation.start));
    }

    fn finished(&self, operation: &Operation, outcome: &Outcome) {
        let direction = match operation.direction {
            Direction::Read => 0,
            Direction::Write => 1,
        };
        let cell = &self.cells.mine()[operation.backend.index()][direction];
        // Counted before the stretch closes: who reads "idle" also reads the operation.
        cell.count(operation, outcome);
        if let Some(shares) = &self.operations {
            let duration = nanoseconds(outcome.duration(operation));
            let (backend, direction) = (operation.backend, operation.direction);
            shares
                .mine()
                .record(backend, direction, duration, operation.size);
        }
        self.busy.close(self.at(outcome.end));
    }

    fn task_finished(&self, task: &Task, outcome: &Outcome) {
        if let Some(shares) = &self.tasks {
            let service = nanoseconds(outcome.since(task.start));
            shares.mine().record(nanoseconds(task.waited()), service);
        }
    }
}

impl Cell {
    /// Adds in this order, and [`add_to`](Cell::add_to) reads in the opposite one, so that a reading in the middle may lack the tail of
    /// an operation but never shows more errors than operations or more bytes moved than requested.
    fn count(&self, operation: &Operation, outcome: &Outcome) {
        self.operations.fetch_add(1, Ordering::Release);
        self.duration
            .fetch_add(nanoseconds(outcome.duration(operation)), Ordering::Release);
        // More than was asked for is nobody's promise, and wraps back to it in the sum.
        let missing = operation.size.wrapping_sub(outcome.bytes);
        if missing > 0 {
            self.missing.fetch_add(missing, Ordering::Release);
        }
        self.moved.fetch_add(outcome.bytes, Ordering::Release);
        if !outcome.ok {
            self.errors.fetch_add(1, Ordering::Release);
        }
    }

    fn add_to(&self, summary: &mut Summary, backend: Backend, direction: Direction) {
        let errors = self.errors.load(Ordering::Acquire);
        let moved = self.moved.load(Ordering::Acquire);
        let missing = self.missing.load(Ordering::Acquire);
        let duration_ns = self.duration.load(Ordering::Acquire);
        let operations = self.operations.load(Ordering::Acquire);
        let requested = moved.wrapping_add(missing);
        summary.add(
            backend,
            direction,
            requested,
            BackendTotals {
                operations,
                bytes: moved,
                duration_ns,
                errors,
            },
        );
    }
}

fn nanoseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "monitor_tests.rs"]
mod tests;
