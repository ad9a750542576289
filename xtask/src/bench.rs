//! The benches: `kvik bench` from a release build.

use crate::process::{self, Done, cargo};

pub(crate) fn run(arguments: &[String]) -> Done {
    let mut command = cargo([
        "run",
        "--release",
        "--locked",
        "--package=kvik-cli",
        "--bin=kvik",
        "--",
        "bench",
    ]);
    process::run(command.args(arguments))
}
