//! A listener that keeps sums.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::busy::Busy;
use crate::listener::{Listener, Listening, listen};
use crate::operation::{Backend, Direction, Operation, Outcome};
use crate::sharded::Sharded;
use crate::totals::{BackendTotals, Totals};

/// Sums up the logical operations of the whole process from [`start`](Recorder::start) until it is stopped or dropped.
///
/// Any number may run; they know nothing of each other. Operations in flight at the start are not counted; those still in flight at
/// a reading are not counted yet, but their time is part of the busy time.
///
/// # Example: one phase of a program
///
/// ```
/// let recorder = kvik_stats::Recorder::start();
/// // ... a phase that reads and writes ...
/// let totals = recorder.stop();
/// assert_eq!(totals.operations, totals.reads + totals.writes);
/// ```
#[derive(Debug)]
#[must_use = "a recorder that is dropped records nothing"]
pub struct Recorder {
    sums: Arc<Sums>,
    listening: Listening,
}

impl Recorder {
    /// Starts recording.
    pub fn start() -> Recorder {
        // The clock starts before the first operation can be heard, so every span lies within the wall time.
        let sums = Arc::new(Sums {
            origin: Instant::now(),
            busy: Busy::default(),
            cells: Sharded::default(),
        });
        let listening = listen(Arc::clone(&sums) as Arc<dyn Listener>);
        Recorder { sums, listening }
    }

    /// The sums so far.
    pub fn totals(&self) -> Totals {
        self.sums.totals()
    }

    /// Stops recording and returns the sums. Operations still in flight stay uncounted.
    pub fn stop(self) -> Totals {
        let totals = self.sums.totals();
        drop(self.listening);
        totals
    }
}

#[derive(Debug)]
struct Sums {
    origin: Instant,
    busy: Busy,
    cells: Sharded<Cells>,
}

/// One cell per backend and direction. Everything else is summed from these when asked, so the sums agree in every reading.
type Cells = [[Cell; 2]; Backend::COUNT];

#[derive(Debug, Default)]
struct Cell {
    operations: AtomicU64,
    requested: AtomicU64,
    duration: AtomicU64,
    moved: AtomicU64,
    errors: AtomicU64,
}

impl Sums {
    /// Nanoseconds from the recorder's start to `instant`.
    fn at(&self, instant: Instant) -> u64 {
        nanoseconds(instant.saturating_duration_since(self.origin))
    }

    fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for cells in self.cells.iter() {
            for (&backend, [read, written]) in Backend::ALL.iter().zip(cells) {
                read.add_to(&mut totals, backend, Direction::Read);
                written.add_to(&mut totals, backend, Direction::Write);
            }
        }
        totals.busy_ns = self.busy.reading(|| self.at(Instant::now()));
        // Last, so that no busy time is newer than the wall time it is held against.
        totals.wall_ns = self.at(Instant::now());
        totals
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
        self.busy.close(self.at(outcome.end));
    }
}

impl Cell {
    /// Adds in this order, and [`add_to`](Cell::add_to) reads in the opposite one, so that a reading in the middle may lack the tail of
    /// an operation but never shows more errors than operations or more bytes moved than requested.
    fn count(&self, operation: &Operation, outcome: &Outcome) {
        self.operations.fetch_add(1, Ordering::Release);
        self.requested.fetch_add(operation.size, Ordering::Release);
        self.duration
            .fetch_add(nanoseconds(outcome.duration(operation)), Ordering::Release);
        self.moved.fetch_add(outcome.bytes, Ordering::Release);
        if !outcome.ok {
            self.errors.fetch_add(1, Ordering::Release);
        }
    }

    fn add_to(&self, totals: &mut Totals, backend: Backend, direction: Direction) {
        let errors = self.errors.load(Ordering::Acquire);
        let moved = self.moved.load(Ordering::Acquire);
        let duration_ns = self.duration.load(Ordering::Acquire);
        let requested = self.requested.load(Ordering::Acquire);
        let operations = self.operations.load(Ordering::Acquire);
        totals.add(
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
#[path = "recorder_tests.rs"]
mod tests;
