//! What the figures of a run are worth (pure).

use crate::report::Case;

/// What the figures are worth, where that needs to be said: what others took of the machine moves rates, and where it moved
/// ratios, too, nothing is known.
pub(crate) fn worth(cases: &[Case], others: Option<f64>) -> Option<String> {
    let others = others
        .filter(|&share| share > BUSY)
        .map(|share| format!("others used {:.0} % of this machine's CPUs", share * 100.0));
    let wide = |case: &&Case| case.spread.1 - case.spread.0 > WIDE * case.ratio;
    let wide: Vec<&str> = cases
        .iter()
        .filter(wide)
        .map(|case| case.name.as_str())
        .collect();
    match (wide.is_empty(), others) {
        (true, None) => None,
        (true, Some(others)) => Some(format!(
            "{others} meanwhile: trust the ratios, not the rates"
        )),
        (false, others) => Some(format!(
            "{}the ratios of {} lie far apart: too much else moved to tell, run it again",
            others.map_or_else(String::new, |others| format!("{others} meanwhile, and ")),
            wide.join(", ")
        )),
    }
}

// What an idle machine and the kernel's own writing to the disk stay below.
const BUSY: f64 = 0.1;
/// From the least to the greatest ratio of a case, as a share of the median: beyond it the median says nothing about the
/// tenth that we aim at.
const WIDE: f64 = 0.25;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::{Contender, Role};
    use crate::figures::{Turn, Unit};

    /// A case whose ratios are these.
    fn case(name: &str, ratios: &[f64]) -> Case {
        let turn = |seconds| Turn {
            seconds,
            cpu_seconds: 0.5,
            bytes: 1_000_000_000,
            operations: 1,
        };
        let ours = ratios.iter().map(|ratio| turn(1.0 / ratio)).collect();
        let turns = [ours, vec![turn(1.0); ratios.len()]];
        let contenders = [Contender::ours(), Contender::new(Role::Loop, "loop")];
        Case::new(name, "", Unit::Gigabytes, &contenders, &turns).expect("finite")
    }

    #[test]
    fn ratios_are_to_be_trusted_only_where_they_lie_close_together() {
        let close = [case("hot", &[0.95, 1.0, 1.05]), case("cold", &[0.9, 1.0])];
        assert_eq!(worth(&close, None), None);
        assert_eq!(worth(&close, Some(0.05)), None);
        assert_eq!(
            worth(&close, Some(0.4)).as_deref(),
            Some(
                "others used 40 % of this machine's CPUs meanwhile: trust the ratios, not the rates"
            )
        );
        let [hot, cold] = close;
        let apart = [hot, case("write", &[0.6, 1.0, 1.3]), cold];
        assert_eq!(
            worth(&apart, None).as_deref(),
            Some("the ratios of write lie far apart: too much else moved to tell, run it again")
        );
        assert_eq!(
            worth(&apart, Some(0.4)).as_deref(),
            Some(
                "others used 40 % of this machine's CPUs meanwhile, and the ratios of write lie far apart: too much else \
                 moved to tell, run it again"
            )
        );
    }
}
