//! The figures of a run: as plain data, as JSON, and as a table.

use std::fmt;

use serde::Serialize;

use crate::figures::{self, Turn, Unit};
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
    /// All loops of the case; the limit is one of them.
    pub loops: Vec<LoopFigures>,
}

/// One of the plain loops that a case was measured beside.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct LoopFigures {
    /// What it does, as in [`Case::limit_name`].
    pub name: String,
    /// Its median rate, in the unit of the case.
    pub value: f64,
    /// Its median of CPU seconds for 1e9 bytes.
    pub cpu_s_per_gb: f64,
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
    /// The figures of `turns[contender][round]`. `None` if there are none, or if one is not finite, which no reader of JSON
    /// could use.
    pub(crate) fn new(
        name: &str,
        title: &str,
        unit: Unit,
        contenders: &[String],
        turns: &[Vec<Turn>],
    ) -> Option<Self> {
        let standing = figures::stand(turns, unit)?;
        let loops = contenders.iter().zip(turns).skip(1);
        let loops: Vec<_> = loops
            .map(|(name, turns)| {
                let (value, cpu_s_per_gb) = figures::medians(turns, unit)?;
                let name = name.clone();
                Some(LoopFigures {
                    name,
                    value,
                    cpu_s_per_gb,
                })
            })
            .collect::<Option<_>>()?;
        let case = Self {
            name: name.to_owned(),
            title: title.to_owned(),
            value: standing.value,
            unit: unit.to_string(),
            cpu_s_per_gb: standing.cpu_s_per_gb,
            limit: standing.limit,
            limit_cpu_s_per_gb: standing.limit_cpu_s_per_gb,
            ratio: standing.ratio,
            spread: standing.spread,
            rounds: turns.first()?.len(),
            limit_name: contenders.get(standing.limit_index)?.clone(),
            bytes_per_turn: turns.first()?.first()?.bytes,
            loops,
        };
        case.is_finite().then_some(case)
    }

    fn is_finite(&self) -> bool {
        let own = [self.value, self.cpu_s_per_gb, self.ratio];
        let spread = [self.spread.0, self.spread.1];
        let loops = self
            .loops
            .iter()
            .flat_map(|each| [each.value, each.cpu_s_per_gb]);
        own.into_iter()
            .chain(spread)
            .chain(loops)
            .all(f64::is_finite)
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
            writeln!(
                f,
                "ratio: the rate of kvik by that of the limit in each round, and of these the median"
            )?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(seconds: f64) -> Vec<Turn> {
        let turn = Turn {
            seconds,
            cpu_seconds: 0.5,
            bytes: 1_000_000_000,
            operations: 1,
        };
        vec![turn; 3]
    }

    #[test]
    fn a_case_names_its_limit_and_lists_every_loop() {
        let contenders = ["kvik", "slow", "fast"].map(String::from);
        let all = [turns(1.0), turns(2.0), turns(0.5)];
        let case = Case::new("hot", "a title", Unit::Gigabytes, &contenders, &all).expect("finite");
        assert_eq!(
            (case.limit_name.as_str(), case.ratio, case.rounds),
            ("fast", 0.5, 3)
        );
        let loops: Vec<_> = case
            .loops
            .iter()
            .map(|each| (each.name.as_str(), each.value))
            .collect();
        assert_eq!(loops, [("slow", 0.5), ("fast", 2.0)]);
        let line = "hot: 1.00 GB/s, 0.50 of the limit (0.50-0.50), 0.50 CPU s/GB";
        assert_eq!(case.to_string(), line);
    }

    #[test]
    fn figures_that_are_not_finite_make_no_case() {
        let contenders = ["kvik", "loop"].map(String::from);
        let all = [turns(f64::INFINITY), turns(f64::INFINITY)];
        assert!(Case::new("hot", "", Unit::Gigabytes, &contenders, &all).is_none());
        assert!(Case::new("hot", "", Unit::Gigabytes, &contenders, &[vec![], vec![]]).is_none());
    }
}
