//! A list of stages run in order, each timed, with a table at the end; the first failure ends the list.

use std::time::{Duration, Instant};

use crate::process::Done;

/// A named step; what it returns beside success is a remark for the table.
pub(crate) struct Stage {
    name: &'static str,
    step: fn() -> Done<String>,
}

impl Stage {
    pub(crate) const fn new(name: &'static str, step: fn() -> Done<String>) -> Self {
        Self { name, step }
    }
}

/// Runs the stages and prints the table, also when one of them fails.
pub(crate) fn run(title: &str, stages: &[Stage]) -> Done {
    let mut rows = Vec::new();
    let start = Instant::now();
    let mut outcome = Ok(());
    for stage in stages {
        println!("\n== {title}: {} ==", stage.name);
        let start = Instant::now();
        match (stage.step)() {
            Ok(remark) => rows.push(row(stage.name, "passed", start.elapsed(), &remark)),
            Err(why) => {
                rows.push(row(stage.name, "FAILED", start.elapsed(), ""));
                outcome = Err(format!("{title} stopped at `{}`: {why}", stage.name));
                break;
            }
        }
    }
    for stage in &stages[rows.len()..] {
        rows.push(row(stage.name, "not run", Duration::ZERO, ""));
    }
    println!("\n== {title}: summary ==");
    rows.iter().for_each(|row| println!("{row}"));
    let verdict = if outcome.is_ok() { "passed" } else { "FAILED" };
    println!("{}", row("all", verdict, start.elapsed(), ""));
    outcome
}

fn row(name: &str, verdict: &str, time: Duration, remark: &str) -> String {
    let text = format!(
        "{name:<10} {verdict:<8} {:>7.1} s  {remark}",
        time.as_secs_f64()
    );
    text.trim_end().to_owned()
}
