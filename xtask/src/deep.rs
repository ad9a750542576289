//! Checks that explore more than a run of the tests can: the loom models, and random inputs for parsers.

use crate::process::{self, Done, cargo};
use crate::test::{counted, libtest};
use crate::workspace::Graph;

pub(crate) fn loom(filter: Option<&str>) -> Done {
    let remark = models(filter)?;
    println!("{remark}");
    Ok(())
}

/// Every interleaving of the small models in kvik-core/tests/loom.rs and kvik-stats/src/models.rs, up to the bound.
pub(crate) fn models(filter: Option<&str>) -> Done<String> {
    // `--cfg loom` reaches every crate of the build, so it has a folder of its own and leaves the ordinary build warm.
    let folder = Graph::load()?.target_directory.join("loom");
    // Those of kvik-stats are about what is not public, and stand among tests that are no models.
    let within = format!("models::{}", filter.unwrap_or_default());
    let mut outputs = String::new();
    for (package, target, filter) in [
        ("--package=kvik-core", "--test=loom", filter),
        ("--package=kvik-stats", "--lib", Some(&*within)),
    ] {
        let mut command = cargo(["test", package, target, "--release", "--locked", "--"]);
        command
            .args(filter)
            .env("RUSTFLAGS", "--cfg loom")
            .env("CARGO_TARGET_DIR", &folder);
        // Seconds for all models together, and a hundred times the interleavings that two preemptions give. Without a bound
        // a single model passes a million.
        command.env("LOOM_MAX_PREEMPTIONS", "5");
        outputs.push_str(&process::run_and_keep(&mut command)?);
    }
    counted("loom", libtest(&outputs))
}

/// Random inputs for one target, or for each in turn, for so many seconds each. What one finds is kept in `fuzz/artifacts`
/// of the target folder, and what it learnt in `fuzz/corpus`.
pub(crate) fn fuzz(target: Option<&str>, seconds: u64) -> Done {
    let root = Graph::load()?.target_directory.join("fuzz");
    for name in FUZZED {
        if target.is_some_and(|wanted| wanted != name) {
            continue;
        }
        let corpus = root.join("corpus").join(name);
        let found = root.join("artifacts").join(name);
        for folder in [&corpus, &found] {
            let made = std::fs::create_dir_all(folder);
            made.map_err(|why| format!("{}: {why}", folder.display()))?;
        }
        let mut command = cargo([
            "run",
            "--release",
            "--manifest-path=fuzz/Cargo.toml",
            "--locked",
            // A build for a named target leaves build scripts without the flags.
            TARGET,
            "--bin",
            name,
            "--",
        ]);
        command
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-artifact_prefix={}/", found.display()))
            .arg(&corpus)
            .env("RUSTFLAGS", COVERAGE.join(" "))
            .env("CARGO_TARGET_DIR", &root);
        process::run(&mut command)?;
    }
    Ok(())
}

/// What can be asked for; each is a file of fuzz/fuzz_targets.
pub(crate) const FUZZED: [&str; 3] = ["location", "cause", "request"];
const TARGET: &str = "--target=x86_64-unknown-linux-gnu";
// What libFuzzer learns from. Its sanitizers need a nightly compiler; checks of overflows do not.
const COVERAGE: [&str; 8] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
    "--cfg=fuzzing",
];
