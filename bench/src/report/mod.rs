//! The figures of a run: as plain data, as JSON, and as a table.

mod aim;
mod case;

pub use aim::Aim;
pub(crate) use aim::Wanted;
pub use case::{Beside, Case};

use std::fmt;

use serde::Serialize;

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

/// A case without figures.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct NotRun {
    /// The name that it would have as a [`Case`].
    pub name: String,
    /// Why it could not be run.
    pub reason: String,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = &self.machine;
        let gib = |bytes: u64| bytes as f64 / (1_u64 << 30) as f64;
        writeln!(
            f,
            "kvik {} on {} x {}, {:.0} GiB memory, Linux {}, load {:.1} to {:.1}",
            machine.version,
            machine.cpus,
            machine.cpu,
            gib(machine.memory),
            machine.kernel,
            machine.load,
            machine.load_at_the_end
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
                table.row([
                    case.name.clone(),
                    case.rate(case.value),
                    format!("{:.2}", case.cpu_s_per_gb),
                    case.rate(case.limit),
                    format!("{:.2}", case.limit_cpu_s_per_gb),
                    format!("{:.2}", case.ratio),
                    spread(case.spread),
                    case.limit_name.clone(),
                ]);
            }
            write!(f, "\n{table}")?;
            writeln!(
                f,
                "ratio: the rate of kvik by that of the limit in each round, and of these the median"
            )?;
        }
        self.write_rivals(f)?;
        self.write_aims(f)?;
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

impl Report {
    /// Everybody who took part and is no loop, and how many times faster we were.
    fn write_rivals(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&[
            "case",
            "beside",
            "rate",
            "CPU s/GB",
            "kvik by it",
            "(min-max)",
            "CPU by its",
        ]);
        for case in &self.cases {
            for rival in &case.rivals {
                table.row([
                    case.name.clone(),
                    rival.name.clone(),
                    case.rate(rival.value),
                    format!("{:.2}", rival.cpu_s_per_gb),
                    format!("{:.2}", rival.ratio),
                    spread(rival.spread),
                    format!("{:.2}", rival.cpu_ratio),
                ]);
            }
        }
        write_unless_empty(&table, f)
    }

    fn write_aims(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(&["case", "got", "(min-max)", "reached", "wanted"]);
        for case in &self.cases {
            for aim in &case.aims {
                table.row([
                    case.name.clone(),
                    format!("{:.2}", aim.got),
                    aim.spread.map_or_else(String::new, spread),
                    if aim.reached { "yes" } else { "NO" }.to_owned(),
                    aim.what.clone(),
                ]);
            }
        }
        write_unless_empty(&table, f)
    }
}

fn write_unless_empty<const N: usize>(table: &Table<N>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if table.is_empty() {
        Ok(())
    } else {
        write!(f, "\n{table}")
    }
}

fn spread((low, high): (f64, f64)) -> String {
    format!("({low:.2}-{high:.2})")
}
