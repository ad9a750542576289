//! kvik, plain clients, KvikIO and obstore in turn, all of them reading from one nginx on this machine. Started by
//! `cargo xtask bench remote --against-kvikio --against-obstore`, which installs the others; by hand, name them.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Parser;
use kvik_bench::{Options, Peers, Progress, Report, remote_suite};
use signal_hook::consts::SIGINT;

/// Measure remote reads of kvik beside those of others on this machine
#[derive(Parser)]
struct Flags {
    /// The web server that everybody reads from
    #[arg(long, value_name = "PROGRAM", default_value = "nginx")]
    nginx: PathBuf,
    /// A Python that can import kvikio and numpy
    #[arg(long, value_name = "PROGRAM")]
    python: Option<PathBuf>,
    /// A folder with the libcuda.so.1 for KvikIO, where the machine has none
    #[arg(long, value_name = "FOLDER")]
    libraries: Option<PathBuf>,
    /// A Python that can import obstore and numpy
    #[arg(long, value_name = "PROGRAM")]
    obstore: Option<PathBuf>,
    /// The URL of a file that may be made in a cluster of HDFS and is removed, with its user:
    /// http://HOST:PORT/webhdfs/v1/PATH?user.name=USER
    #[arg(long, value_name = "URL")]
    webhdfs: Option<String>,
    /// Make the files in this folder
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Length of the object in MiB
    #[arg(long, value_name = "MIB", default_value_t = 1024)]
    size: u64,
    /// How often each contender of a case runs
    #[arg(long, value_name = "N", default_value_t = 7)]
    rounds: usize,
    /// Seconds for all cases but the large reads, about
    #[arg(long, value_name = "SECONDS", default_value_t = 240)]
    budget: u64,
    /// Run only cases whose name contains this; may be given again
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,
    /// Print one JSON object instead of the tables
    #[arg(long)]
    json: bool,
    /// Write the JSON object to this file as well
    #[arg(long, value_name = "FILE")]
    json_file: Option<PathBuf>,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    match measure(&flags) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("remote: {why}");
            ExitCode::FAILURE
        }
    }
}

fn measure(flags: &Flags) -> Result<String, Box<dyn std::error::Error>> {
    let options = Options {
        dir: flags.dir.clone(),
        size: flags.size << 20,
        rounds: flags.rounds,
        cases: flags.cases.clone(),
        budget: Duration::from_secs(flags.budget),
        ..Options::default()
    };
    let peers = Peers {
        python: flags.python.clone(),
        libraries: flags.libraries.clone(),
        obstore: flags.obstore.clone(),
        nginx: Some(flags.nginx.clone()),
        webhdfs: flags.webhdfs.clone(),
        ..Peers::default()
    };
    // So that Ctrl-C removes the files, too.
    let stop = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGINT, Arc::clone(&stop))?;
    let report: Report = remote_suite(&options, &peers, &mut tell, &stop)?;
    let json = serde_json::to_string_pretty(&report)? + "\n";
    if let Some(file) = &flags.json_file {
        std::fs::write(file, &json)?;
    }
    Ok(if flags.json { json } else { report.to_string() })
}

fn tell(progress: Progress<'_>) {
    match progress {
        Progress::Begun {
            name,
            number,
            total,
            ..
        } => eprintln!("[{number}/{total}] {name}"),
        Progress::Done { case, .. } => eprintln!("  {case}"),
        Progress::NotRun { name, reason, .. } => eprintln!("  not run: {name}: {reason}"),
        _ => {}
    }
}
