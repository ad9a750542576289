//! Rounds, amounts, stops, and whose clock counts.

use super::*;
use crate::contender::Role;

/// Writes down what is called.
#[derive(Default)]
struct Diary {
    turns: Vec<(usize, u64)>,
    proofs: Vec<u64>,
    stop_after: Option<(usize, &'static AtomicBool)>,
    sleep: Duration,
}

impl Scene for Diary {
    fn contenders(&self) -> Vec<Contender> {
        let loops = ["one", "two"].map(|name| Contender::new(Role::Loop, name));
        std::iter::once(Contender::ours()).chain(loops).collect()
    }
    fn amounts(&self) -> Amounts {
        Amounts {
            least: 10,
            most: 1000,
            step: 7,
        }
    }
    fn prepare(&mut self, _: usize, _: u64, _: u64) -> Outcome<()> {
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
        Ok(Moved::here(amount, 1))
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
    let order: Vec<usize> = diary.turns[15..].iter().map(|turn| turn.0).collect();
    assert_eq!(order, [0, 1, 2, 1, 2, 0, 2, 0, 1, 0, 1, 2]);
    assert_eq!(diary.proofs, [1000]);
}

#[test]
fn laps_grow_until_one_says_how_long_a_lap_takes() {
    let mut diary = Diary::default();
    let second = Duration::from_secs(1);
    run(&mut diary, 1, second, &AtomicBool::new(false), &mut |_| {}).expect("ran");
    let laps: Vec<u64> = diary.turns.iter().step_by(3).map(|turn| turn.1).collect();
    assert_eq!(laps, [10, 40, 160, 640, 1000, 1000]);
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
    assert_eq!(amounts.fitting(64, second, 5, 20 * second), 256);
    assert_eq!(amounts.fitting(64, second, 5, 21 * second), 256);
    assert_eq!(amounts.fitting(64, second, 5, second), 64);
    assert_eq!(amounts.fitting(64, second, 5, 1000 * second), 1000);
    assert_eq!(amounts.fitting(64, Duration::ZERO, 5, second), 1000);
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
        Ok(Moved::here(1, 1))
    })
    .expect("timed");
    assert!(turn.seconds >= 0.06);
    assert!(
        turn.cpu_seconds > 0.0,
        "the other thread's time is not counted"
    );
}

#[test]
fn what_another_process_measured_counts_instead_of_the_wire() {
    let elsewhere = Some(Elsewhere {
        seconds: 100.0,
        cpu_seconds: 50.0,
    });
    let turn = timed(|| {
        Ok(Moved {
            elsewhere,
            ..Moved::here(1, 1)
        })
    })
    .expect("timed");
    assert_eq!((turn.seconds, turn.cpu_seconds), (100.0, 50.0));
}
