//! Test groups. A group that was asked for runs, and says how many tests it ran; one that ran none has failed.

use std::time::Instant;

use crate::flags::Group;
use crate::process::{self, Done, cargo};
use crate::servers::{self, Up};
use crate::setup;

pub(crate) fn run(group: Group) -> Done {
    let remark = match group {
        Group::Host => host(),
        Group::Servers => servers(),
        Group::Stress => stress(),
    }?;
    println!("{remark}");
    Ok(())
}

/// The tests of every crate, then the examples in the documentation, which nextest cannot run.
///
/// One set of features serves: the command asks for kvik's `serde` and kvik-tests for its `cudarc`, so in a build of the
/// whole workspace the crates below are tested with theirs. `cargo xtask features` tests each crate alone.
pub(crate) fn host() -> Done<String> {
    setup::nextest()?;
    let root = setup::is_root()?;
    let mut tests = cargo(["nextest", "run", "--workspace", "--locked"]);
    if !root {
        // These mount file systems and would fail, saying so. Whoever is not root did not ask for them.
        tests.args(["-E", "not test(file_systems)"]);
    }
    let tests = process::run_and_keep(&mut tests)?;
    let examples = process::run_and_keep(&mut cargo(["test", "--doc", "--workspace", "--locked"]))?;
    let left_out = if root {
        ""
    } else {
        "; the tests that mount file systems need root and were left out"
    };
    Ok(format!(
        "{}, {}{left_out}",
        counted("host", nextest(&tests))?,
        counted("examples", libtest(&examples))?
    ))
}

/// The tests against real servers, started for them. Those that were up before stay.
pub(crate) fn servers() -> Done<String> {
    setup::nextest()?;
    let begin = Instant::now();
    let up = servers::up()?;
    let ready = begin.elapsed().as_secs_f64();
    // With the whole workspace, so that its crates are those that the host's tests were built with.
    let tests = process::run_and_keep(&mut cargo([
        "nextest",
        "run",
        "--workspace",
        "--features=kvik-tests/servers",
        "--test=servers",
        "--locked",
    ]));
    let ended = match up {
        Up::Started => servers::down(),
        Up::Before => Ok(()),
    };
    let remark = counted("servers", nextest(&tests?))?;
    ended.map(|()| format!("{remark}, on servers that were up after {ready:.1} s"))
}

pub(crate) fn stress() -> Done<String> {
    setup::nextest()?;
    let tests = process::run_and_keep(&mut cargo([
        "nextest",
        "run",
        "--profile=stress",
        "--release",
        "--package=kvik-tests",
        "--features=stress",
        "--test=stress",
        "--locked",
    ]))?;
    counted("stress", nextest(&tests))
}

/// A sentence for the group, or the failure that an empty group is.
pub(crate) fn counted(group: &str, count: u64) -> Done<String> {
    match count {
        0 => Err(format!(
            "group `{group}` ran no test; a group that was asked for and runs nothing has failed"
        )),
        count => Ok(format!("{group}: {count} run")),
    }
}

/// Reads `Summary [   0.041s] 12 tests run: 12 passed, 0 skipped`.
fn nextest(text: &str) -> u64 {
    let summary = text
        .lines()
        .rev()
        .find_map(|line| line.trim_start().strip_prefix("Summary ["));
    let words = summary
        .and_then(|line| line.split_once(']'))
        .map_or("", |(_, words)| words);
    words
        .split_whitespace()
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

/// Adds up `test result: ok. 7 passed; 0 failed; ...`, of which there is one per test binary.
pub(crate) fn libtest(text: &str) -> u64 {
    text.lines()
        .filter_map(|line| line.strip_prefix("test result: ok. "))
        .filter_map(|line| line.split_once(" passed"))
        .filter_map(|(number, _)| number.parse::<u64>().ok())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_of_nextest_is_counted() {
        assert_eq!(
            nextest("  PASS a\n     Summary [   0.041s] 12 tests run: 12 passed, 3 skipped\n"),
            12
        );
        assert_eq!(
            nextest("     Summary [   0.041s] 1 test run: 1 passed, 0 skipped\n"),
            1
        );
        assert_eq!(nextest("error: no tests to run\n"), 0);
    }

    #[test]
    fn the_closing_lines_of_every_test_binary_are_added() {
        let text = "test result: ok. 3 passed; 0 failed; 0 ignored\nx\ntest result: ok. 4 passed; 0 failed\n";
        assert_eq!(libtest(text), 7);
    }

    #[test]
    fn a_group_without_a_test_is_a_failure() {
        assert!(counted("host", 0).unwrap_err().contains("ran no test"));
        assert_eq!(counted("host", 2).as_deref(), Ok("host: 2 run"));
    }
}
