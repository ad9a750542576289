//! The benches: `kvik bench` from a release build, or the comparisons with KvikIO and others.

use crate::against;
use crate::process::{self, Done, cargo};

pub(crate) fn run(arguments: &[String]) -> Done {
    if against::is_wanted(arguments) {
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
