//! kvik, KvikIO and fio in turn on one machine. Started by `cargo xtask bench file --against-kvikio`, which installs the
//! others; by hand, name them.
#![forbid(unsafe_code)]

mod common;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use common::Common;
use kvik_bench::{Options, Peers, compare_suite};

/// Measure kvik beside KvikIO and fio on this machine
#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    common: Common,
    /// The disk tester fio
    #[arg(long, value_name = "PROGRAM")]
    fio: Option<PathBuf>,
    /// Threads of kvik and of the loops, at most
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    let options = Options {
        threads: flags.threads,
        ..flags.common.options()
    };
    let peers = Peers {
        fio: flags.fio,
        ..flags.common.peers()
    };
    flags.common.measure("compare", |tell, stop| {
        compare_suite(&options, &peers, tell, stop)
    })
}
