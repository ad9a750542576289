//! What a recorder counted, as plain data with two views: JSON and a table.

use std::fmt::{self, Write as _};

use crate::names::{self, Metric};
use crate::operation::{Backend, Direction};

/// Sums over the operations that finished while a [`Recorder`](crate::Recorder) was on.
///
/// In every reading `operations` is `reads + writes` and the sum over the backends, and `busy_ns <= wall_ns`. `Display` is a table;
/// [`to_json`](Totals::to_json) one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Nanoseconds the recorder had been on.
    pub wall_ns: u64,
    /// Nanoseconds during which at least one operation was in flight (the union of their spans, not the sum).
    pub busy_ns: u64,
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
    /// Sum of the durations of the operations, in nanoseconds; more than `busy_ns` where they overlapped.
    pub duration_ns: u64,
    by_backend: [BackendTotals; Backend::COUNT],
}

/// The share of one backend in [`Totals`].
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

impl Totals {
    /// The share of `backend`.
    pub fn backend(&self, backend: Backend) -> &BackendTotals {
        &self.by_backend[backend.index()]
    }

    /// Every backend with its share, used or not, in the order of [`Backend::ALL`].
    pub fn by_backend(&self) -> impl Iterator<Item = (Backend, &BackendTotals)> {
        Backend::ALL.iter().copied().zip(&self.by_backend)
    }

    /// Bytes moved, in either direction.
    pub fn bytes_transferred(&self) -> u64 {
        self.bytes_read.wrapping_add(self.bytes_written)
    }

    /// One JSON object on one line; KvikIO's keys in KvikIO's order, as far as the sums exist here.
    pub fn to_json(&self) -> String {
        let mut json = String::from("{");
        for (metric, value) in self.rows() {
            // Writing to a String cannot fail.
            let _ = write!(json, "\"{}\": {value}, ", metric.name);
        }
        let _ = write!(json, "\"{}\": {{", names::BY_BACKEND.name);
        for (position, (backend, share)) in self.by_backend().enumerate() {
            let comma = if position == 0 { "" } else { ", " };
            let _ = write!(json, "{comma}\"{}\": {{", backend.name());
            for (position, (metric, value)) in share.rows().into_iter().enumerate() {
                let comma = if position == 0 { "" } else { ", " };
                let _ = write!(json, "{comma}\"{}\": {value}", metric.name);
            }
            json.push('}');
        }
        json.push_str("}}");
        json
    }

    /// Every sum with its row of `names.rs`, in the order of [`names::TOTALS`].
    fn rows(&self) -> [(Metric, u64); 11] {
        [
            (names::WALL, self.wall_ns),
            (names::OPERATIONS, self.operations),
            (names::READS, self.reads),
            (names::WRITES, self.writes),
            (names::BYTES_REQUESTED, self.bytes_requested),
            (names::BYTES_TRANSFERRED, self.bytes_transferred()),
            (names::BYTES_READ, self.bytes_read),
            (names::BYTES_WRITTEN, self.bytes_written),
            (names::ERRORS, self.errors),
            (names::BUSY, self.busy_ns),
            (names::DURATION, self.duration_ns),
        ]
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

impl BackendTotals {
    fn rows(&self) -> [(Metric, u64); 4] {
        [
            (names::OPERATIONS, self.operations),
            (names::BYTES_TRANSFERRED, self.bytes),
            (names::DURATION, self.duration_ns),
            (names::ERRORS, self.errors),
        ]
    }
}

impl fmt::Display for Totals {
    /// A table of labels and values, and a line for each backend that was used. Sizes in powers of 1024, rates in powers of 1000.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moved = self.bytes_transferred();
        let (read, written) = (Size(self.bytes_read), Size(self.bytes_written));
        writeln!(f, "{:LABEL$}{}", "wall time", Time(self.wall_ns))?;
        writeln!(f, "{:LABEL$}{}", "busy time", Time(self.busy_ns))?;
        writeln!(
            f,
            "{:LABEL$}{}",
            "busy bandwidth",
            Rate(moved, self.busy_ns)
        )?;
        writeln!(
            f,
            "{:LABEL$}{} ({} read, {} write)",
            "operations", self.operations, self.reads, self.writes
        )?;
        writeln!(
            f,
            "{:LABEL$}{} of {} requested ({read} read, {written} written)",
            "bytes",
            Size(moved),
            Size(self.bytes_requested)
        )?;
        write!(f, "{:LABEL$}{}", "errors", self.errors)?;
        for (backend, share) in self.by_backend().filter(|(_, share)| share.operations > 0) {
            let label = format!("backend {backend}");
            let (bytes, time) = (Size(share.bytes), Time(share.duration_ns));
            write!(
                f,
                "\n{label:LABEL$}{bytes} in {} ops, {time}",
                share.operations
            )?;
            if share.errors > 0 {
                write!(f, ", {} failed", share.errors)?;
            }
        }
        Ok(())
    }
}

/// Width of the first column: the longest label is `backend REMOTE_HTTP`.
const LABEL: usize = 21;

/// Bytes in powers of 1024.
struct Size(u64);

/// Nanoseconds in the unit that fits.
struct Time(u64);

/// Bytes in nanoseconds as bytes per second, in powers of 1000; 0 where no time passed.
struct Rate(u64, u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(
            f,
            self.0 as f64,
            1024.0,
            &["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"],
        )
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per_second = if self.1 == 0 {
            0.0
        } else {
            self.0 as f64 * 1e9 / self.1 as f64
        };
        scaled(
            f,
            per_second,
            1000.0,
            &["B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"],
        )
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        match self.0 {
            0 => f.write_str("0 s"),
            1..60_000_000_000 => scaled(f, ns, 1000.0, &["ns", "us", "ms", "s"]),
            _ => {
                let seconds = self.0 / 1_000_000_000;
                let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
                if hours > 0 {
                    write!(f, "{hours} h ")?;
                }
                write!(f, "{minutes} min {} s", seconds % 60)
            }
        }
    }
}

/// `value` in the largest unit it reaches, with two decimals unless they are zero.
fn scaled(f: &mut fmt::Formatter<'_>, mut value: f64, step: f64, units: &[&str]) -> fmt::Result {
    let mut unit = units.first().copied().unwrap_or_default();
    for &next in units.iter().skip(1) {
        // Compared as printed, so that 1023.999 KiB is not shown as 1024 KiB.
        if (value * 100.0).round() / 100.0 < step {
            break;
        }
        value /= step;
        unit = next;
    }
    let text = format!("{value:.2}");
    write!(f, "{} {unit}", text.strip_suffix(".00").unwrap_or(&text))
}

#[cfg(test)]
#[path = "totals_tests.rs"]
mod tests;
