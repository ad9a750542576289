//! What a monitor has counted, as plain data.

use std::fmt;

use crate::anchor::Anchor;
use crate::counter::Counter;
use crate::distributions::Distributions;
use crate::names::COUNTERS;
use crate::operation::{Backend, Direction};

/// Sums over the operations that finished while a [`SummaryMonitor`](crate::SummaryMonitor) was on, and what counters grew by in
/// that time.
///
/// In every reading `operations` is `reads + writes` and the sum over the backends, and `busy_ns <= wall_ns`. `Display` is
/// [`report(false)`](Summary::report), [`to_json`](Summary::to_json) one object, [`to_bytes`](Summary::to_bytes) all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// From when to when, in nanoseconds of a steady clock that means nothing by itself.
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// What makes times of the world of them.
    pub(crate) anchor: Anchor,
    /// Operations that finished, failures included.
    pub operations: u64,
    /// Reads among them.
    pub reads: u64,
    /// Writes among them.
    pub writes: u64,
    /// Bytes asked for.
    pub bytes_requested: u64,
    /// Bytes moved by reads that succeeded.
    pub bytes_read: u64,
    /// Bytes moved by writes that succeeded.
    pub bytes_written: u64,
    /// Operations that failed or were given up.
    pub errors: u64,
    /// Nanoseconds during which at least one operation was in flight (the union of their spans, not the sum).
    pub busy_ns: u64,
    /// Sum of the durations of the operations, in nanoseconds; more than `busy_ns` where they overlapped.
    pub duration_ns: u64,
    pub(crate) by_backend: [BackendTotals; Backend::COUNT],
    pub(crate) counters: Counts,
    pub(crate) distributions: Distributions,
}

/// The share of one backend in a [`Summary`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackendTotals {
    /// Operations that finished, failures included.
    pub operations: u64,
    /// Bytes moved, in either direction.
    pub bytes: u64,
    /// Sum of durations, in nanoseconds.
    pub duration_ns: u64,
    /// Operations that failed or were given up.
    pub errors: u64,
}

impl Summary {
    /// When counting started, in nanoseconds since 1970. Measured on a steady clock from when the span began, so that a clock that
    /// is set meanwhile disturbs no duration.
    pub fn start_unix_ns(&self) -> i64 {
        self.anchor.unix(self.start)
    }

    /// When the summary was read, in nanoseconds since 1970.
    pub fn end_unix_ns(&self) -> i64 {
        self.anchor.unix(self.end)
    }

    /// Nanoseconds from start to end.
    pub fn wall_ns(&self) -> u64 {
        u64::try_from(self.end.saturating_sub(self.start)).unwrap_or(0)
    }

    /// Bytes moved, in either direction.
    pub fn bytes_transferred(&self) -> u64 {
        self.bytes_read.wrapping_add(self.bytes_written)
    }

    /// Bytes per second of busy time; 0 if there was none.
    pub fn busy_bytes_per_sec(&self) -> f64 {
        per_second(self.bytes_transferred(), self.busy_ns)
    }

    /// Which part of the time was busy, from 0 to 1; 0 if no time passed.
    pub fn busy_fraction(&self) -> f64 {
        match self.wall_ns() {
            0 => 0.0,
            wall => self.busy_ns as f64 / wall as f64,
        }
    }

    /// How long an operation took in the mean, in whole nanoseconds; 0 if there was none.
    pub fn mean_duration_ns(&self) -> u64 {
        self.duration_ns.checked_div(self.operations).unwrap_or(0)
    }

    /// The share of `backend`.
    pub fn backend(&self, backend: Backend) -> &BackendTotals {
        &self.by_backend[backend.index()]
    }

    /// Every backend with its share, used or not, in the order of [`Backend::ALL`].
    pub fn by_backend(&self) -> impl Iterator<Item = (Backend, &BackendTotals)> {
        Backend::ALL.iter().copied().zip(&self.by_backend)
    }

    /// By how much a counter of [`names`](crate::names) grew in the span. Counters belong to the process and not to one operation:
    /// by which way bytes went, requests, connections, retries, fallbacks.
    pub fn counter(&self, counter: &Counter) -> u64 {
        let is_it = |known: &&Counter| std::ptr::eq(*known, counter);
        let place = COUNTERS.iter().position(is_it);
        place.map_or(0, |place| self.counters.at(place))
    }

    /// Every counter with its growth, in the order of [`COUNTERS`].
    pub fn counters(&self) -> impl Iterator<Item = (&'static Counter, u64)> {
        let grown =
            |(place, counter): (usize, &&'static Counter)| (*counter, self.counters.at(place));
        COUNTERS.iter().enumerate().map(grown)
    }

    /// What happened since `previous`, an earlier reading of the same monitor. Its own interval begins where that one ended.
    ///
    /// # Errors
    /// [`NotEarlier`] if `previous` is a later reading, one of another monitor or of before a reset, or itself an interval.
    ///
    /// # Example: one phase of a program
    /// ```
    /// let monitor = kvik_stats::SummaryMonitor::start();
    /// let before = monitor.get();
    /// // ... a phase that reads and writes ...
    /// let phase = monitor.get().since(&before)?;
    /// assert_eq!(phase.start_unix_ns(), before.end_unix_ns());
    /// # Ok::<(), kvik_stats::NotEarlier>(())
    /// ```
    pub fn since(&self, previous: &Summary) -> Result<Summary, NotEarlier> {
        let same_span = self.start == previous.start && self.anchor == previous.anchor;
        if !same_span || previous.end > self.end {
            return Err(NotEarlier);
        }
        let less = |now: u64, before: u64| now.checked_sub(before).ok_or(NotEarlier);
        let mut by_backend = [BackendTotals::default(); Backend::COUNT];
        let shares = self.by_backend.iter().zip(&previous.by_backend);
        for (share, (now, before)) in by_backend.iter_mut().zip(shares) {
            *share = BackendTotals {
                operations: less(now.operations, before.operations)?,
                bytes: less(now.bytes, before.bytes)?,
                duration_ns: less(now.duration_ns, before.duration_ns)?,
                errors: less(now.errors, before.errors)?,
            };
        }
        Ok(Summary {
            start: previous.end,
            end: self.end,
            anchor: self.anchor,
            operations: less(self.operations, previous.operations)?,
            reads: less(self.reads, previous.reads)?,
            writes: less(self.writes, previous.writes)?,
            bytes_requested: less(self.bytes_requested, previous.bytes_requested)?,
            bytes_read: less(self.bytes_read, previous.bytes_read)?,
            bytes_written: less(self.bytes_written, previous.bytes_written)?,
            errors: less(self.errors, previous.errors)?,
            busy_ns: less(self.busy_ns, previous.busy_ns)?.min(self.end.abs_diff(previous.end)),
            duration_ns: less(self.duration_ns, previous.duration_ns)?,
            by_backend,
            counters: self.counters.less(&previous.counters).ok_or(NotEarlier)?,
            distributions: self
                .distributions
                .less(&previous.distributions)
                .ok_or(NotEarlier)?,
        })
    }

    /// Adds what one backend did in one direction. Sums wrap after 2^64, as the counters below them do.
    pub(crate) fn add(
        &mut self,
        backend: Backend,
        direction: Direction,
        requested: u64,
        share: BackendTotals,
    ) {
        let (operations, bytes) = match direction {
            Direction::Read => (&mut self.reads, &mut self.bytes_read),
            Direction::Write => (&mut self.writes, &mut self.bytes_written),
        };
        *operations = operations.wrapping_add(share.operations);
        *bytes = bytes.wrapping_add(share.bytes);
        self.operations = self.operations.wrapping_add(share.operations);
        self.bytes_requested = self.bytes_requested.wrapping_add(requested);
        self.duration_ns = self.duration_ns.wrapping_add(share.duration_ns);
        self.errors = self.errors.wrapping_add(share.errors);
        let sum = &mut self.by_backend[backend.index()];
        sum.operations = sum.operations.wrapping_add(share.operations);
        sum.bytes = sum.bytes.wrapping_add(share.bytes);
        sum.duration_ns = sum.duration_ns.wrapping_add(share.duration_ns);
        sum.errors = sum.errors.wrapping_add(share.errors);
    }
}

/// Bytes in nanoseconds as bytes per second; 0 where no time passed.
pub(crate) fn per_second(bytes: u64, ns: u64) -> f64 {
    match ns {
        0 => 0.0,
        ns => bytes as f64 / (ns as f64 / 1e9),
    }
}

/// The values of [`COUNTERS`], or by how much they grew. Empty where nothing was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts(pub(crate) Vec<u64>);

impl Counts {
    /// The values now.
    pub(crate) fn now() -> Counts {
        Counts(COUNTERS.iter().map(|counter| counter.get()).collect())
    }

    /// How much more these are than `before`; `None` if one of them is less.
    pub(crate) fn less(&self, before: &Counts) -> Option<Counts> {
        let less = |place| self.at(place).checked_sub(before.at(place));
        (0..COUNTERS.len())
            .map(less)
            .collect::<Option<_>>()
            .map(Counts)
    }

    pub(crate) fn at(&self, place: usize) -> u64 {
        self.0.get(place).copied().unwrap_or(0)
    }
}

/// Why [`Summary::since`] has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotEarlier;

impl fmt::Display for NotEarlier {
    /// In KvikIO's words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("`previous` must be an earlier reading of the same span, from `get()` rather than from `since()`")
    }
}

impl std::error::Error for NotEarlier {}

#[cfg(test)]
#[path = "summary_tests.rs"]
pub(crate) mod tests;
