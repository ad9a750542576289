//! The figures of a run: as plain data, as JSON, and as a table.

use std::fmt;

use serde::Serialize;

use crate::figures::{Standing, Unit};
use crate::machine::Machine;
use crate::table::Table;
use crate::thresholds::Threshold;

/// All that a run found out.
///
/// Its JSON form has the members `machine`, `cases`, `not_run` and `notes`; other programs rely on the names of a [`Case`].
/// Every number in it is finite. Its `Display` form is a table for people, in which GB is 1e9 bytes.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Where it was measured.
    pub machine: Machine,
    /// The figures, in the order in which they were measured.
    pub cases: Vec<Case>,
    /// What was asked for and could not be run here, with the reason. Never a case of zero.
    pub not_run: Vec<NotRun>,
    /// At which sizes a read is faster on several threads; filled only when it was asked for by its name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<Threshold>,
    /// What a reader should know about this run: what was made smaller, and why.
    pub notes: Vec<String>,
}

/// One case: our figure beside the limit, both medians over the same rounds.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Case {
    /// A stable name without spaces, such as `host-read-hot`.
    pub name: String,
    /// What it is, in words.
    pub title: String,
    /// Our rate.
    pub value: f64,
    /// The unit of `value` and `limit`: `GB/s` (1e9 bytes a second) or `ops/s` (calls a second).
    pub unit: String,
    /// Our CPU seconds, of all threads, for 1e9 bytes.
    pub cpu_s_per_gb: f64,
    /// The rate of the fastest of the plain loops that were written for this case.
    pub limit: f64,
    /// The CPU seconds of that loop for 1e9 bytes.
    pub limit_cpu_s_per_gb: f64,
    /// Our rate by the limit's, taken in each round; this is the median. 1 is as fast as the limit, more is faster.
    pub ratio: f64,
    /// The least and the greatest of those ratios.
    pub spread: (f64, f64),
    /// How many rounds there were.
    pub rounds: usize,
    /// Which loop the limit is.
    pub limit_name: String,
    /// Bytes that each turn moved.
    pub bytes_per_turn: u64,
}

/// A case without figures.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct NotRun {
    /// The name that it would have as a [`Case`].
    pub name: String,
    /// Why it could not be run.
    pub reason: String,
}

impl Case {
    /// `None` if a figure is not finite, which no reader of JSON could use.
    pub(crate) fn new(
        (name, title): (&str, &str),
        unit: Unit,
        standing: &Standing,
        (contenders, rounds, bytes_per_turn): (&[String], usize, u64),
    ) -> Option<Self> {
        let Standing {
            value,
            cpu_s_per_gb,
            limit,
            limit_cpu_s_per_gb,
            ratio,
            spread,
            limit_index,
        } = *standing;
        let all = [
            value,
            cpu_s_per_gb,
            limit,
            limit_cpu_s_per_gb,
            ratio,
            spread.0,
            spread.1,
        ];
        if !all.iter().all(|figure| figure.is_finite()) {
            return None;
        }
        Some(Self {
            name: name.to_owned(),
            title: title.to_owned(),
            value,
            unit: unit.to_string(),
            cpu_s_per_gb,
            limit,
            limit_cpu_s_per_gb,
            ratio,
            spread,
            rounds,
            limit_name: contenders.get(limit_index)?.clone(),
            bytes_per_turn,
        })
    }

    /// A rate in the case's unit, as the table shows it.
    fn rate(&self, value: f64) -> String {
        match self.unit.as_str() {
            "GB/s" => format!("{value:.2} GB/s"),
            _ if value >= 10_000.0 => format!("{:.0}k ops/s", value / 1000.0),
            _ => format!("{value:.0} ops/s"),
        }
    }
}

impl fmt::Display for Case {
    /// One line: `host-read-hot: 5.31 GB/s, 0.95 of the limit (0.90-1.02), 0.21 CPU s/GB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = self.spread;
        write!(
            f,
            "{}: {}, {:.2} of the limit ({low:.2}-{high:.2}), {:.2} CPU s/GB",
            self.name,
            self.rate(self.value),
            self.ratio,
            self.cpu_s_per_gb
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = &self.machine;
        let gib = |bytes: u64| bytes as f64 / (1_u64 << 30) as f64;
        writeln!(
            f,
            "kvik {} on {} x {}, {:.0} GiB memory, Linux {}, load {:.1}",
            machine.version,
            machine.cpus,
            machine.cpu,
            gib(machine.memory),
            machine.kernel,
            machine.load
        )?;
        writeln!(
            f,
            "data: {:.2} GiB in {} ({}); kvik by {} threads; GB = 1e9 bytes; medians",
            gib(machine.data),
            machine.directory,
            machine.file_system,
            machine.threads
        )?;
        if !self.cases.is_empty() {
            let mut table = Table::new(&[
                "case",
                "kvik",
                "CPU s/GB",
                "limit",
                "CPU s/GB",
                "ratio",
                "(min-max)",
                "the limit is",
            ]);
            for case in &self.cases {
                let (low, high) = case.spread;
                table.row([
                    case.name.clone(),
                    case.rate(case.value),
                    format!("{:.2}", case.cpu_s_per_gb),
                    case.rate(case.limit),
                    format!("{:.2}", case.limit_cpu_s_per_gb),
                    format!("{:.2}", case.ratio),
                    format!("({low:.2}-{high:.2})"),
                    case.limit_name.clone(),
                ]);
            }
            write!(f, "\n{table}")?;
        }
        if !self.thresholds.is_empty() {
            let mut table = Table::new(&Threshold::HEADER);
            for threshold in &self.thresholds {
                table.row(threshold.cells());
            }
            write!(f, "\n{table}")?;
        }
        for NotRun { name, reason } in &self.not_run {
            write!(f, "\nnot run: {name}: {reason}")?;
        }
        for note in &self.notes {
            write!(f, "\nnote: {note}")?;
        }
        if self.not_run.len() + self.notes.len() > 0 {
            writeln!(f)
        } else {
            Ok(())
        }
    }
}
