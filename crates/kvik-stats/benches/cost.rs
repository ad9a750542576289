//! What it costs an operation to be heard of: with nobody listening, with one monitor, and with one that keeps distributions, beside
//! two reads of the clock, which is the least that anybody pays who measures a duration.
//!
//! All are run in turn, round by round, and set against each other within a round: the machine may be busy. Run by
//! `cargo bench --package kvik-stats`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use kvik_stats::{Backend, Direction, Memory, MonitorOptions, Start, SummaryMonitor, begin};

const ROUNDS: usize = 41;
const OPERATIONS: u32 = 20_000;

fn main() {
    let source: Arc<str> = "/data/file.bin".into();
    let operation = || {
        let span = begin(Start {
            backend: Backend::Posix,
            direction: Direction::Read,
            memory: Memory::Host,
            source: black_box(&source),
            offset: black_box(0),
            size: black_box(4096),
        });
        span.finish(black_box(4096), true);
    };
    let clocks = || {
        let start = Instant::now();
        black_box(start.elapsed());
    };
    let mut rounds: Vec<[f64; 5]> = Vec::new();
    for _ in 0..ROUNDS {
        let nothing = nanoseconds(|| {
            black_box(&source);
        });
        let clocks = nanoseconds(clocks);
        let off = nanoseconds(operation);
        let monitor = SummaryMonitor::start();
        let on = nanoseconds(operation);
        drop(monitor);
        let monitor = MonitorOptions::new().distributions(true).start();
        let detailed = nanoseconds(operation);
        drop(monitor);
        rounds.push([nothing, clocks, off, on, detailed]);
    }
    println!("{:<28}{:>10}{:>20}", "", "ns", "of two clock reads");
    for (place, name) in [
        "nothing",
        "two clock reads",
        "nobody listens",
        "one monitor",
        "one with distributions",
    ]
    .into_iter()
    .enumerate()
    {
        let cost = median(rounds.iter().map(|round| round[place]));
        let ratio = median(rounds.iter().map(|round| round[place] / round[1]));
        println!("{name:<28}{cost:>10.1}{ratio:>20.2}");
    }
}

/// How long one call takes in the mean.
fn nanoseconds(call: impl Fn()) -> f64 {
    let start = Instant::now();
    for _ in 0..OPERATIONS {
        call();
    }
    start.elapsed().as_nanos() as f64 / f64::from(OPERATIONS)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
