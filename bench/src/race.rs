//! Contenders in turn: a warm lap that finds how much fits into the time, then rounds in which everybody runs once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::figures::Turn;
use crate::trouble::{Outcome, Trouble};

/// One case: what its contenders are (the first is ours), and what happens around and within a turn.
///
/// An amount is what a turn moves: bytes, or operations where the case counts those.
pub(crate) trait Scene {
    fn contenders(&self) -> Vec<String>;
    fn amounts(&self) -> Amounts;
    /// Before a turn, not timed. The salt is new for every turn.
    fn prepare(&mut self, amount: u64, salt: u64) -> Outcome<()>;
    /// The timed part.
    fn turn(&mut self, who: usize, amount: u64) -> Outcome<Moved>;
    /// After a turn, not timed: did the bytes come?
    fn check(&mut self, who: usize, amount: u64, salt: u64) -> Outcome<()>;
    /// After all rounds: an extra, untimed turn whose every byte is compared.
    fn prove(&mut self, amount: u64) -> Outcome<()>;
}

/// How much a turn may move.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amounts {
    /// Where the warm lap starts; no turn moves less.
    pub(crate) least: u64,
    pub(crate) most: u64,
    /// Amounts other than `most` are multiples of this.
    pub(crate) step: u64,
}

impl Amounts {
    /// What fits into `budget` if `rounds` laps of `least` would take `rounds * lap`.
    fn fitting(self, lap: Duration, rounds: usize, budget: Duration) -> u64 {
        let times = budget.as_secs_f64() / (lap.as_secs_f64().max(1e-9) * rounds.max(1) as f64);
        let wanted = (self.least as f64 * times) as u64;
        if wanted >= self.most {
            return self.most;
        }
        (wanted / self.step.max(1) * self.step.max(1)).clamp(self.least.min(self.most), self.most)
    }
}

/// What a turn moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    pub(crate) bytes: u64,
    pub(crate) operations: u64,
}

/// Runs the scene, for about `budget` at most, however slow the machine; the turns of every contender, in the order of
/// [`Scene::contenders`].
pub(crate) fn run(
    scene: &mut dyn Scene,
    rounds: usize,
    budget: Duration,
    stop: &AtomicBool,
    each_round: &mut dyn FnMut(usize),
) -> Outcome<Vec<Vec<Turn>>> {
    let contenders = scene.contenders().len();
    let amounts = scene.amounts();
    let mut salt = 0;
    let mut lap = |scene: &mut dyn Scene, first: usize, amount: u64| {
        let mut turns = vec![None; contenders];
        for place in 0..contenders {
            // Everybody starts a round once in a while, so that nobody always runs after the same neighbour.
            let who = (first + place) % contenders;
            go_on(stop)?;
            salt += 1;
            scene.prepare(amount, salt)?;
            turns[who] = Some(timed(|| scene.turn(who, amount))?);
            scene.check(who, amount, salt)?;
        }
        Ok::<_, Trouble>(turns)
    };

    // The first lap starts threads and fills caches, so that a second one, where there is time for it, says better how long a
    // lap takes.
    let least = amounts.least.min(amounts.most);
    let began = Instant::now();
    lap(scene, 0, least)?;
    let mut took = began.elapsed();
    if took < budget / 4 {
        let again = Instant::now();
        lap(scene, 0, least)?;
        took = took.min(again.elapsed());
    }
    let left = budget.saturating_sub(began.elapsed());
    let amount = amounts.fitting(took, rounds, left);

    let mut turns = vec![Vec::with_capacity(rounds); contenders];
    for round in 0..rounds {
        each_round(round);
        for (all, turn) in turns
            .iter_mut()
            .zip(lap(scene, round % contenders, amount)?)
        {
            all.extend(turn);
        }
    }
    go_on(stop)?;
    scene.prove(amount)?;
    Ok(turns)
}

/// An error once the caller wants an end.
pub(crate) fn go_on(stop: &AtomicBool) -> Outcome<()> {
    if stop.load(Ordering::Relaxed) {
        Err(Trouble::Stopped)
    } else {
        Ok(())
    }
}

/// Wall clock and CPU seconds around `work`.
pub(crate) fn timed(work: impl FnOnce() -> Outcome<Moved>) -> Outcome<Turn> {
    let cpu = cpu_seconds();
    let began = Instant::now();
    let moved = work()?;
    let seconds = began.elapsed().as_secs_f64();
    Ok(Turn {
        seconds,
        cpu_seconds: (cpu_seconds() - cpu).max(0.0),
        bytes: moved.bytes,
        operations: moved.operations,
    })
}

/// User and system seconds of all threads of this process so far.
pub(crate) fn cpu_seconds() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a whole `rusage`; the call cannot fail for RUSAGE_SELF.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    // SAFETY: zeroed first, filled by the kernel since; all its fields are integers.
    let usage = unsafe { usage.assume_init() };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes down what is called.
    #[derive(Default)]
    struct Diary {
        turns: Vec<(usize, u64)>,
        proofs: Vec<u64>,
        stop_after: Option<(usize, &'static AtomicBool)>,
        sleep: Duration,
    }

    impl Scene for Diary {
        fn contenders(&self) -> Vec<String> {
            ["ours", "one", "two"].map(String::from).to_vec()
        }
        fn amounts(&self) -> Amounts {
            Amounts {
                least: 10,
                most: 1000,
                step: 7,
            }
        }
        fn prepare(&mut self, _: u64, _: u64) -> Outcome<()> {
            Ok(())
        }
        fn turn(&mut self, who: usize, amount: u64) -> Outcome<Moved> {
            self.turns.push((who, amount));
            if let Some((after, flag)) = self.stop_after
                && self.turns.len() == after
            {
                flag.store(true, Ordering::Relaxed);
            }
            std::thread::sleep(self.sleep);
            Ok(Moved {
                bytes: amount,
                operations: 1,
            })
        }
        fn check(&mut self, _: usize, _: u64, _: u64) -> Outcome<()> {
            Ok(())
        }
        fn prove(&mut self, amount: u64) -> Outcome<()> {
            self.proofs.push(amount);
            Ok(())
        }
    }

    #[test]
    fn everybody_runs_once_a_round_and_starts_in_turn() {
        let mut diary = Diary::default();
        let turns = run(
            &mut diary,
            4,
            Duration::from_secs(10),
            &AtomicBool::new(false),
            &mut |_| {},
        )
        .expect("ran");
        assert!(turns.iter().all(|turns| turns.len() == 4));
        let order: Vec<usize> = diary.turns[6..].iter().map(|turn| turn.0).collect();
        assert_eq!(order, [0, 1, 2, 1, 2, 0, 2, 0, 1, 0, 1, 2]);
        assert_eq!(diary.proofs, [1000]);
    }

    #[test]
    fn a_slow_machine_moves_less_but_runs_every_round() {
        let mut diary = Diary {
            sleep: Duration::from_millis(5),
            ..Diary::default()
        };
        let turns = run(
            &mut diary,
            3,
            Duration::from_millis(1),
            &AtomicBool::new(false),
            &mut |_| {},
        )
        .expect("ran");
        assert!(diary.turns.iter().all(|turn| turn.1 == 10));
        assert!(turns.iter().all(|turns| turns.len() == 3));
    }

    #[test]
    fn a_warm_lap_that_leaves_no_time_for_a_second_one_still_says_how_slow_it_is() {
        let mut diary = Diary {
            sleep: Duration::from_millis(10),
            ..Diary::default()
        };
        // One lap is 30 ms, which is more than a quarter of this, and 70 ms are left for three rounds.
        let budget = Duration::from_millis(100);
        run(&mut diary, 3, budget, &AtomicBool::new(false), &mut |_| {}).expect("ran");
        assert_eq!(diary.turns.len(), 4 * 3);
        assert!(
            diary.turns.iter().all(|turn| turn.1 == 10),
            "{:?}",
            diary.turns
        );
    }

    #[test]
    fn amounts_are_whole_steps_between_the_least_and_the_most() {
        let amounts = Amounts {
            least: 64,
            most: 1000,
            step: 64,
        };
        let second = Duration::from_secs(1);
        assert_eq!(amounts.fitting(second, 5, 20 * second), 256);
        assert_eq!(amounts.fitting(second, 5, 21 * second), 256);
        assert_eq!(amounts.fitting(second, 5, second), 64);
        assert_eq!(amounts.fitting(second, 5, 1000 * second), 1000);
        assert_eq!(amounts.fitting(Duration::ZERO, 5, second), 1000);
    }

    #[test]
    fn the_stop_flag_ends_the_run_before_the_next_turn() {
        static STOP: AtomicBool = AtomicBool::new(false);
        let mut diary = Diary {
            stop_after: Some((8, &STOP)),
            ..Diary::default()
        };
        let outcome = run(&mut diary, 9, Duration::from_secs(1), &STOP, &mut |_| {});
        assert!(matches!(outcome, Err(Trouble::Stopped)));
        assert_eq!(diary.turns.len(), 8);
        assert!(diary.proofs.is_empty());
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test of another thread's time")]
    fn cpu_time_is_counted_for_all_threads() {
        let spin = || {
            let until = Instant::now() + Duration::from_millis(60);
            while Instant::now() < until {
                std::hint::spin_loop();
            }
        };
        let turn = timed(|| {
            std::thread::scope(|scope| {
                scope.spawn(spin);
            });
            Ok(Moved {
                bytes: 1,
                operations: 1,
            })
        })
        .expect("timed");
        assert!(turn.seconds >= 0.06);
        assert!(
            turn.cpu_seconds > 0.0,
            "the other thread's time is not counted"
        );
    }
}
