//! At which size a hot read is worth a second thread: the measurement behind the setting `inline_size`, up to which kvik
//! keeps a read on the caller's thread.

use std::os::unix::fs::FileExt;

use serde::Serialize;

use crate::figures::{Turn, median};
use crate::loops::size_name;
use crate::memory::Pages;
use crate::ours::{Ours, Wish};
use crate::pattern;
use crate::race::{Moved, go_on, timed};
use crate::session::Session;
use crate::trouble::{Doing, Outcome};

/// The name by which it is asked for.
pub(crate) const NAME: &str = "thresholds";

/// Hot reads of one size at random places: microseconds for one read, medians over the rounds.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Threshold {
    /// Bytes of one read.
    pub size: u64,
    /// A plain `pread` by the caller's thread.
    pub pread_us: f64,
    /// CPU microseconds of that.
    pub pread_cpu_us: f64,
    /// kvik on the caller's thread.
    pub inline_us: f64,
    /// CPU microseconds of that.
    pub inline_cpu_us: f64,
    /// kvik with its pool: one task for each thread that the run has, whatever the setting says.
    pub pool_us: f64,
    /// CPU microseconds of that, of all threads.
    pub pool_cpu_us: f64,
}

impl Threshold {
    pub(crate) const HEADER: [&'static str; 8] = [
        "read of",
        "pread us",
        "CPU us",
        "inline us",
        "CPU us",
        "pool us",
        "CPU us",
        "inline / pool",
    ];

    pub(crate) fn cells(&self) -> [String; 8] {
        let figures = [
            self.pread_us,
            self.pread_cpu_us,
            self.inline_us,
            self.inline_cpu_us,
            self.pool_us,
            self.pool_cpu_us,
            self.inline_us / self.pool_us.max(1e-9),
        ];
        let [a, b, c, d, e, f, g] = figures.map(|figure| format!("{figure:.2}"));
        [size_name(self.size), a, b, c, d, e, f, g]
    }
}

/// One row for each power of two from 4 KiB to 16 MiB, as far as the data goes.
pub(crate) fn measure(session: &Session<'_>) -> Outcome<Vec<Threshold>> {
    session.data.warm(session.stop)?;
    let largest = (session.data.len / 2).min(16 << 20);
    let sizes = (12..)
        .map(|shift| 1_u64 << shift)
        .take_while(|&size| size <= largest);
    sizes.map(|size| row(session, size)).collect()
}

fn row(session: &Session<'_>, size: u64) -> Outcome<Threshold> {
    let (data, threads) = (&session.data, session.threads);
    let task = size.div_ceil(threads as u64).next_multiple_of(4096);
    let inline = Ours::open_with_inline_size(&data.path, &Wish::default(), size)?;
    let several = Wish {
        threads: Some(threads),
        task_size: Some(task),
        ..Wish::default()
    };
    let pool = Ours::open_with_inline_size(&data.path, &several, 0)?;
    let mut target = Pages::new(size as usize).doing("get memory to read", &data.path)?;
    let target = target.view_mut(0, size as usize);
    // About 40 ms a turn at 4 GB/s and 2 us for a call.
    let count = (40_000.0 / (2.0 + size as f64 / 4000.0)).max(8.0) as u64;
    let moved = Moved::here(count * size, count);
    let mut turns: [Vec<Turn>; 3] = Default::default();
    for round in 0..=session.options.rounds as u64 {
        go_on(session.stop)?;
        let places = data.len / size;
        // Everybody reads at places of its own: those of the one before would still lie in the last-level cache.
        let offsets = |who: u64| {
            let numbers = round * count..(round + 1) * count;
            numbers.map(move |number| pattern::word(size + who, number) % places * size)
        };
        let lap = [
            timed(|| {
                for at in offsets(0) {
                    data.file
                        .read_exact_at(target, at)
                        .doing("read", &data.path)?;
                }
                Ok(moved)
            })?,
            timed(|| {
                offsets(1)
                    .try_for_each(|at| inline.read(target, at))
                    .map(|()| moved)
            })?,
            timed(|| {
                offsets(2)
                    .try_for_each(|at| pool.read(target, at))
                    .map(|()| moved)
            })?,
        ];
        // The first round warms up.
        if round > 0 {
            turns
                .iter_mut()
                .zip(lap)
                .for_each(|(all, turn)| all.push(turn));
        }
    }
    let median_us = |turns: &[Turn], seconds: fn(&Turn) -> f64| {
        let all: Vec<_> = turns
            .iter()
            .map(|turn| seconds(turn) * 1e6 / turn.operations as f64)
            .collect();
        median(&all).unwrap_or(0.0)
    };
    let [pread, inline, pool] = &turns;
    Ok(Threshold {
        size,
        pread_us: median_us(pread, |turn| turn.seconds),
        pread_cpu_us: median_us(pread, |turn| turn.cpu_seconds),
        inline_us: median_us(inline, |turn| turn.seconds),
        inline_cpu_us: median_us(inline, |turn| turn.cpu_seconds),
        pool_us: median_us(pool, |turn| turn.seconds),
        pool_cpu_us: median_us(pool, |turn| turn.cpu_seconds),
    })
}
