//! A summary for people: KvikIO's rows, byte for byte.

use std::fmt::{self, Write as _};

use crate::distribution::Distribution;
use crate::names;
use crate::operation::{Backend, Direction};
use crate::summary::{Summary, per_second};
use crate::units::{Rate, Size, Time};

impl Summary {
    /// A table of two columns, a row per line. Backends that were not used are left out, and so are the rows of HTTP where nothing
    /// of it happened, unless `all_rows` are asked for. Where the monitor keeps distributions, rows of quantiles follow.
    pub fn report(&self, all_rows: bool) -> String {
        let mut text = self.titled("kvik I/O summary", all_rows);
        // As in `titled`.
        let _ = self.quantiles(&mut text);
        text
    }

    /// KvikIO's rows under its title, for whoever parses that.
    pub fn to_kvikio_report(&self, all_rows: bool) -> String {
        self.titled("KvikIO I/O summary", all_rows)
    }

    fn titled(&self, title: &str, all_rows: bool) -> String {
        let mut text = format!("{title}\n");
        // Writing to a String cannot fail.
        let _ = self.rows(&mut text, all_rows);
        text
    }

    fn rows(&self, text: &mut String, all_rows: bool) -> fmt::Result {
        let mut row =
            |label: &str, value: fmt::Arguments<'_>| writeln!(text, "  {label:LABEL$}{value}");
        let count = |counter| self.counter(counter);
        let time = |counter| Time(self.counter(counter));
        row("wall time", format_args!("{}", Time(self.wall_ns())))?;
        let percent = self.busy_fraction() * 100.0;
        let busy = Time(self.busy_ns);
        row(
            "busy time",
            format_args!("{busy} ({percent:.2} % of the wall time)"),
        )?;
        let rate = Rate(self.busy_bytes_per_sec());
        row("busy bandwidth", format_args!("{rate}"))?;
        let (operations, reads, writes) = (self.operations, self.reads, self.writes);
        let counts = format_args!("{operations} ({reads} read, {writes} write)");
        row("operations", counts)?;
        row(
            "mean duration",
            format_args!("{}", Time(self.mean_duration_ns())),
        )?;
        let (moved, asked) = (Size(self.bytes_transferred()), Size(self.bytes_requested));
        let (read, written) = (Size(self.bytes_read), Size(self.bytes_written));
        let bytes = format_args!("{moved} of {asked} requested ({read} read, {written} written)");
        row("bytes", bytes)?;
        row("errors", format_args!("{}", self.errors))?;
        for (backend, share) in self.by_backend() {
            let label = format!("backend {backend}");
            if share.operations == 0 {
                if all_rows {
                    row(&label, format_args!("unused"))?;
                }
                continue;
            }
            let (bytes, time) = (Size(share.bytes), Time(share.duration_ns));
            let rate = Rate(per_second(share.bytes, share.duration_ns));
            let failed = match share.errors {
                0 => String::new(),
                failed => format!(", {failed} failed"),
            };
            let operations = share.operations;
            let value = format_args!("{bytes} in {operations} ops, {time}, {rate}{failed}");
            row(&label, value)?;
        }
        if !all_rows && names::KVIKIO.iter().all(|counter| count(counter) == 0) {
            return Ok(());
        }
        let (probes, probing) = (
            count(&names::REMOTE_SIZE_PROBES),
            time(&names::REMOTE_SIZE_PROBING),
        );
        row(
            "http size probes",
            format_args!("{probes} probes, {probing}"),
        )?;
        let (dns, tcp) = (time(&names::HTTP_DNS), time(&names::HTTP_TCP));
        let (connections, tls) = (count(&names::HTTP_CONNECTIONS), time(&names::HTTP_TLS));
        let made = format_args!("{connections} connections, {dns} dns, {tcp} tcp, {tls} tls");
        row("http handshake", made)?;
        let (retries, backoff) = (
            count(&names::HTTP_RETRIES),
            time(&names::HTTP_RETRY_BACKOFF),
        );
        row(
            "http retries",
            format_args!("{retries} retries, {backoff} backoff"),
        )
    }

    fn quantiles(&self, text: &mut String) -> fmt::Result {
        for &backend in Backend::ALL {
            for direction in [Direction::Read, Direction::Write] {
                let found = self.durations(backend, direction);
                if let Some(found) = found.filter(|found| found.count() > 0) {
                    let label = format!("{backend} {}", direction.name());
                    writeln!(text, "  {label:LABEL$}{}", Quantiles(found))?;
                }
            }
        }
        for (label, found) in [
            ("tasks waited", self.task_waits()),
            ("tasks took", self.task_services()),
        ] {
            if let Some(found) = found.filter(|found| found.count() > 0) {
                writeln!(text, "  {label:LABEL$}{}", Quantiles(found))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Summary {
    /// [`report(false)`](Summary::report).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.report(false))
    }
}

/// Durations: half of them, nine of ten, all but one in a hundred, and the longest.
struct Quantiles<'a>(&'a Distribution);

impl fmt::Display for Quantiles<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (share, label) in [(0.5, "p50"), (0.9, "p90"), (0.99, "p99")] {
            write!(f, "{label} {}, ", Time(self.0.quantile(share).unwrap_or(0)))?;
        }
        write!(f, "longest {}", Time(self.0.largest()))
    }
}

/// Width of the first column: the longest label is `backend REMOTE_HTTP`.
const LABEL: usize = 21;
