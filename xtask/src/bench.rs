//! The benches: `kvik bench` from a release build, or the comparison with KvikIO.

use crate::against;
use crate::process::{self, Done, cargo};

pub(crate) fn run(arguments: &[String]) -> Done {
    if arguments.iter().any(|word| word == against::FLAG) {
        return against::run(arguments);
    }
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
