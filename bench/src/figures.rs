//! What a turn measured, and how turns become a figure, a limit, a ratio and a spread (pure).

use std::fmt;

/// What a case counts a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// 1e9 bytes a second.
    Gigabytes,
    /// Calls a second.
    Operations,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gigabytes => "GB/s",
            Self::Operations => "ops/s",
        })
    }
}

/// One contender's go in one round: wall clock and CPU seconds of the whole process, and what was moved meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
    pub(crate) bytes: u64,
    pub(crate) operations: u64,
}

impl Turn {
    pub(crate) fn rate(&self, unit: Unit) -> f64 {
        // A clock that did not move would make the rate infinite, which neither JSON nor a reader can use.
        let seconds = self.seconds.max(1e-9);
        match unit {
            Unit::Gigabytes => self.bytes as f64 / 1e9 / seconds,
            Unit::Operations => self.operations as f64 / seconds,
        }
    }

    fn cpu_s_per_gb(&self) -> f64 {
        self.cpu_seconds / (self.bytes.max(1) as f64 / 1e9)
    }
}

/// How one contender stands beside another after all rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Standing {
    /// The other's median rate.
    pub(crate) value: f64,
    /// The other's median CPU seconds for 1e9 bytes.
    pub(crate) cpu_s_per_gb: f64,
    /// The first one's rate by the other's, taken in each round; the median.
    pub(crate) ratio: f64,
    /// The least and the greatest of those ratios.
    pub(crate) spread: (f64, f64),
    /// The first one's CPU seconds by the other's, taken likewise.
    pub(crate) cpu_ratio: f64,
}

/// Where `ours` stands beside `theirs`.
///
/// Ratios are taken round by round and their median is the figure, because on a shared machine only what ran in the same
/// round is comparable. `None` without rounds.
pub(crate) fn stand(ours: &[Turn], theirs: &[Turn], unit: Unit) -> Option<Standing> {
    let (value, cpu_s_per_gb) = medians(theirs, unit)?;
    let by_round = |what: &dyn Fn(&Turn) -> f64| -> Vec<f64> {
        let pairs = ours.iter().zip(theirs);
        pairs
            .map(|(ours, theirs)| what(ours) / what(theirs))
            .collect()
    };
    let ratios = by_round(&|turn| turn.rate(unit));
    // A turn too short for the clock of CPU time used none, by which nothing can be divided.
    let cpu_ratios = by_round(&|turn| turn.cpu_s_per_gb().max(1e-6));
    Some(Standing {
        value,
        cpu_s_per_gb,
        ratio: median(&ratios)?,
        spread: spread(&ratios)?,
        cpu_ratio: median(&cpu_ratios)?,
    })
}

/// The one with the best median rate: the limit, where these are the loops. `None` of nobody.
pub(crate) fn best(standings: &[Standing]) -> Option<usize> {
    let rated = standings.iter().enumerate();
    let best = rated.max_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    Some(best.0)
}

/// The median rate and the median CPU seconds per 1e9 bytes of one contender; `None` without rounds.
pub(crate) fn medians(turns: &[Turn], unit: Unit) -> Option<(f64, f64)> {
    let rates: Vec<_> = turns.iter().map(|turn| turn.rate(unit)).collect();
    let cpu: Vec<_> = turns.iter().map(Turn::cpu_s_per_gb).collect();
    Some((median(&rates)?, median(&cpu)?))
}

/// The middle value, or the mean of the two middle ones; `None` of nothing.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// The least and the greatest value; `None` of nothing.
pub(crate) fn spread(values: &[f64]) -> Option<(f64, f64)> {
    let first = *values.first()?;
    Some(values.iter().fold((first, first), |(low, high), &value| {
        (low.min(value), high.max(value))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(seconds: f64, cpu_seconds: f64) -> Turn {
        Turn {
            seconds,
            cpu_seconds,
            bytes: 2_000_000_000,
            operations: 1000,
        }
    }

    #[test]
    fn the_median_of_odd_even_and_no_values() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn one_wild_round_does_not_move_the_median() {
        assert_eq!(median(&[1.0, 1.1, 0.9, 1.0, 900.0]), Some(1.0));
    }

    #[test]
    fn the_spread_is_the_least_and_the_greatest() {
        assert_eq!(spread(&[2.0, 0.5, 1.0]), Some((0.5, 2.0)));
        assert_eq!(spread(&[1.5]), Some((1.5, 1.5)));
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn the_limit_is_the_loop_with_the_best_median_and_ratios_are_taken_round_by_round() {
        let ours = [turn(1.0, 1.0), turn(2.0, 1.0), turn(4.0, 3.0)]; // 2, 1, 0.5 GB/s
        let slow = [turn(0.1, 0.1), turn(4.0, 1.0), turn(4.0, 1.0)]; // one lucky round, median 0.5
        let fast = [turn(0.5, 1.0), turn(1.0, 2.0), turn(1.0, 2.0)]; // 4, 2, 2
        let standings = [slow, fast].map(|theirs| {
            stand(&ours, &theirs, Unit::Gigabytes).expect("three rounds of two contenders")
        });
        assert_eq!(best(&standings), Some(1));
        assert_eq!(
            standings[1],
            Standing {
                value: 2.0,
                cpu_s_per_gb: 1.0,
                ratio: 0.5,
                spread: (0.25, 0.5),
                cpu_ratio: 1.0,
            }
        );
        assert_eq!(medians(&ours, Unit::Gigabytes), Some((1.0, 0.5)));
    }

    #[test]
    fn operations_are_counted_in_operations_and_cpu_still_in_gigabytes() {
        let (ours, theirs) = ([turn(0.5, 1.0)], [turn(0.25, 0.5)]);
        let standing = stand(&ours, &theirs, Unit::Operations).expect("one round");
        assert_eq!((standing.value, standing.ratio), (4000.0, 0.5));
        assert_eq!((standing.cpu_s_per_gb, standing.cpu_ratio), (0.25, 2.0));
        assert_eq!(medians(&ours, Unit::Operations), Some((2000.0, 0.5)));
    }

    #[test]
    fn no_rounds_or_nobody_is_no_standing() {
        assert_eq!(stand(&[], &[], Unit::Gigabytes), None);
        assert_eq!(stand(&[turn(1.0, 1.0)], &[], Unit::Gigabytes), None);
        assert_eq!(best(&[]), None);
    }

    #[test]
    fn a_clock_that_did_not_move_still_gives_finite_figures() {
        let still = [turn(0.0, 0.0)];
        let standing = stand(&still, &still, Unit::Gigabytes).expect("one round");
        assert!(standing.value.is_finite() && standing.ratio.is_finite());
        assert_eq!(standing.cpu_ratio, 1.0);
    }
}
