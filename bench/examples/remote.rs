//! kvik, plain clients, KvikIO and obstore in turn, all of them reading from one nginx on this machine. Started by
//! `cargo xtask bench remote --against-kvikio --against-obstore`, which installs the others; by hand, name them.
#![forbid(unsafe_code)]

mod common;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use common::Common;
use kvik_bench::{Peers, remote_suite};

/// Measure remote reads of kvik beside those of others on this machine
#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    common: Common,
    /// The web server that everybody reads from
    #[arg(long, value_name = "PROGRAM", default_value = "nginx")]
    nginx: PathBuf,
    /// A Python that can import obstore and numpy
    #[arg(long, value_name = "PROGRAM")]
    obstore: Option<PathBuf>,
    /// The URL of a file that is not there and may be made in a cluster of HDFS, and is removed, with its user:
    /// http://HOST:PORT/webhdfs/v1/PATH?user.name=USER
    #[arg(long, value_name = "URL")]
    webhdfs: Option<String>,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    let options = flags.common.options();
    let peers = Peers {
        obstore: flags.obstore,
        nginx: Some(flags.nginx),
        webhdfs: flags.webhdfs,
        ..flags.common.peers()
    };
    flags.common.measure("remote", |tell, stop| {
        remote_suite(&options, &peers, tell, stop)
    })
}
