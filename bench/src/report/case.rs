//! One case of a report: our figure, the limit, and everybody else who took part.

use std::fmt;

use serde::Serialize;

use crate::contender::{Contender, Role};
use crate::figures::{self, Standing, Turn, Unit};
use crate::report::{Aim, Wanted};

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
    /// Our CPU seconds by the limit's, taken likewise. 1 is as cheap as the limit, more is dearer.
    pub cpu_ratio: f64,
    /// How many rounds there were.
    pub rounds: usize,
    /// Which loop the limit is.
    pub limit_name: String,
    /// Bytes that each turn moved.
    pub bytes_per_turn: u64,
    /// All loops of the case; the limit is one of them.
    pub loops: Vec<Beside>,
    /// Whoever else took part: kvik held to one engine, and in a comparison other programs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rivals: Vec<Beside>,
    /// What we want of this case, and whether it came true; only in a comparison.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aims: Vec<Aim>,
}

/// Somebody who took part in a case beside us.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Beside {
    /// Who it is: `loop`, `part` (a part of the way alone), `kvik` (held to one engine or call), `kvikio`, `obstore` or
    /// `fio`.
    pub who: String,
    /// What it does, as in [`Case::limit_name`].
    pub name: String,
    /// Its median rate, in the unit of the case.
    pub value: f64,
    /// Its median of CPU seconds for 1e9 bytes.
    pub cpu_s_per_gb: f64,
    /// Our rate by its rate, taken in each round; the median.
    pub ratio: f64,
    /// The least and the greatest of those ratios.
    pub spread: (f64, f64),
    /// Our CPU seconds by its CPU seconds, taken in each round; the median.
    pub cpu_ratio: f64,
}

impl Case {
    /// The figures of `turns[contender][round]`. `None` if there are none, or if one is not finite, which no reader of JSON
    /// could use.
    pub(crate) fn new(
        name: &str,
        title: &str,
        unit: Unit,
        contenders: &[Contender],
        turns: &[Vec<Turn>],
    ) -> Option<Self> {
        let (ours, others) = turns.split_first()?;
        let (value, cpu_s_per_gb) = figures::medians(ours, unit)?;
        let standings = others
            .iter()
            .map(|theirs| figures::stand(ours, theirs, unit))
            .collect::<Option<Vec<_>>>()?;
        let all = || contenders.iter().skip(1).zip(standings.iter().copied());
        let (loops, rivals): (Vec<_>, Vec<_>) =
            all().partition(|(contender, _)| contender.role == Role::Loop);
        let rates: Vec<_> = loops.iter().map(|(_, standing)| *standing).collect();
        let (limit_is, limit) = &loops[figures::best(&rates)?];
        let beside = |all: &[(&Contender, Standing)]| {
            all.iter()
                .map(|(contender, standing)| Beside::new(contender, standing))
                .collect::<Vec<_>>()
        };
        let case = Self {
            name: name.to_owned(),
            title: title.to_owned(),
            value,
            unit: unit.to_string(),
            cpu_s_per_gb,
            limit: limit.value,
            limit_cpu_s_per_gb: limit.cpu_s_per_gb,
            ratio: limit.ratio,
            spread: limit.spread,
            cpu_ratio: limit.cpu_ratio,
            rounds: ours.len(),
            limit_name: limit_is.name.clone(),
            bytes_per_turn: ours.first()?.bytes,
            loops: beside(&loops),
            rivals: beside(&rivals),
            aims: Vec::new(),
        };
        case.is_finite().then_some(case)
    }

    /// Judged by what was wanted of it; a wish about somebody who did not take part says nothing.
    pub(crate) fn with_aims(mut self, wanted: &[Wanted]) -> Self {
        self.aims = wanted.iter().filter_map(|each| each.judge(&self)).collect();
        self
    }

    /// The fastest of those who took part as `role`.
    pub(crate) fn best(&self, role: Role) -> Option<&Beside> {
        let rated = |a: &&Beside, b: &&Beside| a.value.total_cmp(&b.value);
        self.all(role).max_by(rated)
    }

    /// The slowest of those who took part as `role`.
    pub(crate) fn slowest(&self, role: Role) -> Option<&Beside> {
        let rated = |a: &&Beside, b: &&Beside| a.value.total_cmp(&b.value);
        self.all(role).min_by(rated)
    }

    fn all(&self, role: Role) -> impl Iterator<Item = &Beside> {
        let who = role.to_string();
        let all = self.loops.iter().chain(&self.rivals);
        all.filter(move |each| each.who == who)
    }

    fn is_finite(&self) -> bool {
        let own = [self.value, self.cpu_s_per_gb, self.cpu_ratio];
        let others = self.loops.iter().chain(&self.rivals).flat_map(|each| {
            [
                each.value,
                each.cpu_s_per_gb,
                each.ratio,
                each.spread.0,
                each.spread.1,
                each.cpu_ratio,
            ]
        });
        own.into_iter().chain(others).all(f64::is_finite)
    }

    /// A rate in the case's unit, as the table shows it.
    pub(super) fn rate(&self, value: f64) -> String {
        match self.unit.as_str() {
            "GB/s" => format!("{value:.2} GB/s"),
            _ if value >= 10_000.0 => format!("{:.0}k ops/s", value / 1000.0),
            _ => format!("{value:.0} ops/s"),
        }
    }
}

impl Beside {
    fn new(contender: &Contender, standing: &Standing) -> Self {
        Self {
            who: contender.role.to_string(),
            name: contender.name.clone(),
            value: standing.value,
            cpu_s_per_gb: standing.cpu_s_per_gb,
            ratio: standing.ratio,
            spread: standing.spread,
            cpu_ratio: standing.cpu_ratio,
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

#[cfg(test)]
pub(super) mod tests {
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

    /// Ours takes a second for a gigabyte, the others what is said.
    pub(crate) fn case(others: &[(Role, &str, f64)]) -> Option<Case> {
        let named = others
            .iter()
            .map(|(role, name, _)| Contender::new(*role, *name));
        let contenders: Vec<_> = std::iter::once(Contender::ours()).chain(named).collect();
        let seconds = std::iter::once(1.0).chain(others.iter().map(|other| other.2));
        let all: Vec<_> = seconds.map(turns).collect();
        Case::new("hot", "a title", Unit::Gigabytes, &contenders, &all)
    }

    #[test]
    fn a_case_names_its_limit_and_lists_every_loop() {
        let case = case(&[(Role::Loop, "slow", 2.0), (Role::Loop, "fast", 0.5)]).expect("finite");
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
    fn only_a_loop_is_the_limit_however_fast_the_others_are() {
        let case = case(&[
            (Role::Kvikio, "kvikio", 0.1),
            (Role::Loop, "loop", 2.0),
            (Role::Fio, "fio 4M", 0.25),
            (Role::Fio, "fio 128k", 0.2),
        ])
        .expect("finite");
        assert_eq!((case.limit_name.as_str(), case.ratio), ("loop", 2.0));
        assert_eq!((case.loops.len(), case.rivals.len()), (1, 3));
        let fio = case.best(Role::Fio).expect("two of them");
        assert_eq!((fio.name.as_str(), fio.ratio), ("fio 128k", 0.2));
        assert!(case.best(Role::Engine).is_none());
    }

    #[test]
    fn figures_that_are_not_finite_and_cases_without_a_loop_make_no_case() {
        assert!(case(&[(Role::Loop, "loop", f64::INFINITY)]).is_none());
        assert!(case(&[(Role::Fio, "fio", 1.0)]).is_none());
        assert!(case(&[]).is_none());
        let contenders = [Contender::ours(), Contender::new(Role::Loop, "loop")];
        let empty = [vec![], vec![]];
        assert!(Case::new("hot", "", Unit::Gigabytes, &contenders, &empty).is_none());
    }
}
