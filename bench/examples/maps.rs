//! kvik's maps and KvikIO's in turn on one machine. Started by `cargo xtask bench mmap --against-kvikio`, which installs KvikIO;
//! by hand, name it.
#![forbid(unsafe_code)]

mod common;

use std::process::ExitCode;

use clap::Parser;
use common::Common;
use kvik_bench::{Options, compare_maps_suite};

/// Measure reads out of maps beside KvikIO on this machine
#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    common: Common,
    /// Threads of everybody, instead of one and two
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    let options = Options {
        threads: flags.threads,
        ..flags.common.options()
    };
    let peers = flags.common.peers();
    flags.common.measure("maps", |tell, stop| {
        compare_maps_suite(&options, &peers, tell, stop)
    })
}
