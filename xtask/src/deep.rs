//! Checks that explore more than a run of the tests can: the loom models.

use crate::process::{self, Done, cargo};
use crate::test::{counted, libtest};
use crate::workspace::Graph;

pub(crate) fn loom(filter: Option<&str>) -> Done {
    let remark = models(filter)?;
    println!("{remark}");
    Ok(())
}

/// Every interleaving of the small models in kvik-core/tests/loom.rs, up to the bound.
pub(crate) fn models(filter: Option<&str>) -> Done<String> {
    // `--cfg loom` reaches every crate of the build, so it has a folder of its own and leaves the ordinary build warm.
    let folder = Graph::load()?.target_directory.join("loom");
    let mut command = cargo([
        "test",
        "--package=kvik-core",
        "--test=loom",
        "--release",
        "--locked",
        "--",
    ]);
    command
        .args(filter)
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", folder);
    // Seconds for all models together, and a hundred times the interleavings that two preemptions give. Without a bound
    // a single model passes a million.
    command.env("LOOM_MAX_PREEMPTIONS", "5");
    counted("loom", libtest(&process::run_and_keep(&mut command)?))
}
