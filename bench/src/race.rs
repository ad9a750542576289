//! Contenders in turn: a warm lap that finds how much fits into the time, then rounds in which everybody runs once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::contender::Contender;
use crate::figures::Turn;
use crate::trouble::{Outcome, Trouble};

/// One case: what its contenders are (the first is ours), and what happens around and within a turn.
///
/// An amount is what a turn moves: bytes, or operations where the case counts those.
pub(crate) trait Scene {
    fn contenders(&self) -> Vec<Contender>;
    fn amounts(&self) -> Amounts;
    /// Before a turn of `who`, not timed. The salt is new for every turn.
    fn prepare(&mut self, who: usize, amount: u64, salt: u64) -> Outcome<()>;
    /// The timed part.
    fn turn(&mut self, who: usize, amount: u64) -> Outcome<Moved>;
    /// After a turn, not timed: did the bytes come?
    fn check(&mut self, who: usize, amount: u64, salt: u64) -> Outcome<()>;
    /// After all rounds: an extra, untimed turn whose every byte is compared.
    fn prove(&mut self, amount: u64) -> Outcome<()>;
    /// At the end: what else was seen that a reader may want to know, in sentences.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }
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
    /// What fits into `budget` if `rounds` laps of `amount` would take `rounds * lap`.
    fn fitting(self, amount: u64, lap: Duration, rounds: usize, budget: Duration) -> u64 {
        let times = budget.as_secs_f64() / (lap.as_secs_f64().max(1e-9) * rounds.max(1) as f64);
        let wanted = (amount as f64 * times) as u64;
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
    /// What a contender in another process measured around its own work; the wire to it is no part of the turn.
    pub(crate) elsewhere: Option<Elsewhere>,
}

/// Wall clock and CPU seconds of another process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Elsewhere {
    pub(crate) seconds: f64,
    pub(crate) cpu_seconds: f64,
}

impl Moved {
    /// Here, by this process.
    pub(crate) fn here(bytes: u64, operations: u64) -> Self {
        Self {
            bytes,
            operations,
            elsewhere: None,
        }
    }
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
            scene.prepare(who, amount, salt)?;
            turns[who] = Some(timed(|| scene.turn(who, amount))?);
            scene.check(who, amount, salt)?;
        }
        Ok::<_, Trouble>(turns)
    };

    // Laps that grow until one is long enough to say how long a lap takes: the first of them starts threads and fills
    // caches, and what does not grow with the amount, such as another program's start, must not be taken for what does.
    let began = Instant::now();
    let mut amount = amounts.least.min(amounts.most);
    let took = loop {
        let again = Instant::now();
        lap(scene, 0, amount)?;
        let took = again.elapsed();
        let long = budget / (3 * rounds.max(1) as u32);
        if amount == amounts.most || took > long || began.elapsed() > budget / 4 {
            break took;
        }
        amount = (amount * 4).min(amounts.most);
    };
    let left = budget.saturating_sub(began.elapsed());
    let amount = amounts.fitting(amount, took, rounds, left);

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
    let measured = Elsewhere {
        seconds: began.elapsed().as_secs_f64(),
        cpu_seconds: (cpu_seconds() - cpu).max(0.0),
    };
    let Elsewhere {
        seconds,
        cpu_seconds,
    } = moved.elsewhere.unwrap_or(measured);
    Ok(Turn {
        seconds,
        cpu_seconds,
        bytes: moved.bytes,
        operations: moved.operations,
    })
}

/// User and system seconds of all threads of this process so far.
pub(crate) fn cpu_seconds() -> f64 {
    cpu_seconds_of(libc::RUSAGE_SELF)
}

/// User and system seconds of the processes that this one started and that have ended.
pub(crate) fn cpu_seconds_of_ended_children() -> f64 {
    cpu_seconds_of(libc::RUSAGE_CHILDREN)
}

fn cpu_seconds_of(whose: libc::c_int) -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a whole `rusage`; the call cannot fail for the two constants it is given.
    unsafe { libc::getrusage(whose, usage.as_mut_ptr()) };
    // SAFETY: zeroed first, filled by the kernel since; all its fields are integers.
    let usage = unsafe { usage.assume_init() };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

#[cfg(test)]
#[path = "race_tests.rs"]
mod tests;
