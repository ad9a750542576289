//! What is wanted of a case, and whether it came true (pure). It is printed and fails nothing: no benchmark is a test.

use serde::Serialize;

use crate::contender::Role;
use crate::report::Case;

/// A wish about a case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wanted {
    /// Our rate is at least so much of the limit's.
    OfTheLimit(f64),
    /// Our rate is at least so many times that of the fastest loop with these words in its name.
    OfTheLoop(&'static str, f64),
    /// Our rate is at least so many times that of the fastest of them.
    OfTheBest(Role, f64),
    /// Our rate is at least so much of that of the slowest of them.
    OfTheSlowest(Role, f64),
    /// Our rate is below the fastest of theirs by no more than the spread: in one round at least we were even.
    EvenWith(Role),
    /// Our CPU seconds are at most so many times the limit's.
    CpuOfTheLimit(f64),
    /// Our CPU seconds are at most so many times those of the fastest of them.
    CpuOfTheBest(Role, f64),
}

/// A wish and what came of it.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Aim {
    /// The wish in words, such as `at least 0.9 of the limit`.
    pub what: String,
    /// The ratio that was measured.
    pub got: f64,
    /// The least and the greatest ratio of all rounds, where it is a ratio of rates.
    pub spread: Option<(f64, f64)>,
    /// Whether the ratio is as wished.
    pub reached: bool,
}

impl Wanted {
    /// `None` where whom it is about did not take part.
    pub(super) fn judge(&self, case: &Case) -> Option<Aim> {
        let at_least = |what: String, got, spread, least| Aim {
            what,
            got,
            spread: Some(spread),
            reached: got >= least,
        };
        Some(match *self {
            Self::OfTheLimit(least) => {
                let what = format!("at least {least} of the limit");
                at_least(what, case.ratio, case.spread, least)
            }
            Self::OfTheLoop(words, least) => {
                let named = case.loops.iter().filter(|each| each.name.contains(words));
                let best = named.max_by(|a, b| a.value.total_cmp(&b.value))?;
                let what = format!("at least {least} of {}", best.name);
                at_least(what, best.ratio, best.spread, least)
            }
            Self::OfTheBest(role, least) => {
                let best = case.best(role)?;
                let what = format!("at least {least} of {}", best.name);
                at_least(what, best.ratio, best.spread, least)
            }
            Self::OfTheSlowest(role, least) => {
                let slowest = case.slowest(role)?;
                let what = format!("at least {least} of {}", slowest.name);
                at_least(what, slowest.ratio, slowest.spread, least)
            }
            Self::EvenWith(role) => {
                let best = case.best(role)?;
                let what = format!("no less than {}, but for the spread", best.name);
                Aim {
                    reached: best.spread.1 >= 1.0,
                    ..at_least(what, best.ratio, best.spread, 1.0)
                }
            }
            Self::CpuOfTheLimit(most) => Aim {
                what: format!("at most {most} of the limit's CPU seconds"),
                got: case.cpu_ratio,
                spread: None,
                reached: case.cpu_ratio <= most,
            },
            Self::CpuOfTheBest(role, most) => {
                let best = case.best(role)?;
                Aim {
                    what: format!("at most {most} of the CPU seconds of {}", best.name),
                    got: best.cpu_ratio,
                    spread: None,
                    reached: best.cpu_ratio <= most,
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::case::tests::case;

    #[track_caller]
    fn check(wanted: Wanted, got: f64, reached: bool) {
        let case = case(&[
            (Role::Loop, "fresh pages", 4.0),
            (Role::Loop, "huge pages", 0.8),
            (Role::Kvikio, "KvikIO, 1 thread", 2.0),
            (Role::Kvikio, "KvikIO, 2 threads", 1.25),
        ])
        .expect("finite");
        let aims = case.with_aims(&[wanted]).aims;
        assert_eq!((aims[0].got, aims[0].reached), (got, reached), "{aims:?}");
    }

    #[test]
    fn wishes_are_judged_by_the_one_that_they_are_about() {
        check(Wanted::OfTheLimit(0.75), 0.8, true);
        check(Wanted::OfTheLimit(0.9), 0.8, false);
        check(Wanted::OfTheLoop("fresh", 2.0), 4.0, true);
        check(Wanted::OfTheBest(Role::Kvikio, 2.0), 1.25, false);
        check(Wanted::OfTheSlowest(Role::Kvikio, 1.5), 2.0, true);
        check(Wanted::EvenWith(Role::Kvikio), 1.25, true);
        check(Wanted::CpuOfTheLimit(1.1), 1.0, true);
        check(Wanted::CpuOfTheBest(Role::Kvikio, 0.8), 1.0, false);
    }

    #[test]
    fn even_means_that_a_round_was_even() {
        let slower = case(&[(Role::Loop, "loop", 1.0), (Role::Fio, "fio", 0.8)]).expect("finite");
        let mut nearly = slower.clone();
        nearly.rivals[0].spread.1 = 1.01;
        let wanted = [Wanted::EvenWith(Role::Fio)];
        assert!(!slower.with_aims(&wanted).aims[0].reached);
        assert!(nearly.with_aims(&wanted).aims[0].reached);
    }

    #[test]
    fn a_wish_about_somebody_who_did_not_come_says_nothing() {
        let case = case(&[(Role::Loop, "loop", 1.0)]).expect("finite");
        let wanted = [
            Wanted::OfTheBest(Role::Fio, 0.9),
            Wanted::CpuOfTheBest(Role::Fio, 0.9),
            Wanted::OfTheLoop("fresh", 2.0),
            Wanted::OfTheLimit(0.9),
        ];
        assert_eq!(case.with_aims(&wanted).aims.len(), 1);
    }
}
