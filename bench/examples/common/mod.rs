//! What comparisons have in common: how much is measured and where, and how the report is given out.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kvik_bench::{Options, Peers, Progress, Report};
use signal_hook::consts::SIGINT;

#[derive(clap::Args)]
pub(crate) struct Common {
    /// A Python that can import kvikio and numpy
    #[arg(long, value_name = "PROGRAM")]
    python: Option<PathBuf>,
    /// A folder with the libcuda.so.1 for KvikIO, where the machine has none
    #[arg(long, value_name = "FOLDER")]
    libraries: Option<PathBuf>,
    /// Make the files in this folder; where files are measured, the storage under it is
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Length of the data in MiB
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

impl Common {
    pub(crate) fn options(&self) -> Options {
        Options {
            dir: self.dir.clone(),
            size: self.size << 20,
            rounds: self.rounds,
            cases: self.cases.clone(),
            budget: Duration::from_secs(self.budget),
            ..Options::default()
        }
    }

    pub(crate) fn peers(&self) -> Peers {
        Peers {
            python: self.python.clone(),
            libraries: self.libraries.clone(),
            ..Peers::default()
        }
    }

    /// Runs the suite of the example `name`, and prints what was asked for.
    pub(crate) fn measure(
        &self,
        name: &str,
        suite: impl FnOnce(&mut dyn FnMut(Progress<'_>), &AtomicBool) -> kvik::Result<Report>,
    ) -> ExitCode {
        match self.text_of(suite) {
            Ok(text) => {
                print!("{text}");
                ExitCode::SUCCESS
            }
            Err(why) => {
                eprintln!("{name}: {why}");
                ExitCode::FAILURE
            }
        }
    }

    fn text_of(
        &self,
        suite: impl FnOnce(&mut dyn FnMut(Progress<'_>), &AtomicBool) -> kvik::Result<Report>,
    ) -> Result<String, Box<dyn Error>> {
        // So that Ctrl-C removes the files, too.
        let stop = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(SIGINT, Arc::clone(&stop))?;
        let report = suite(&mut tell, &stop)?;
        let json = serde_json::to_string_pretty(&report)? + "\n";
        if let Some(file) = &self.json_file {
            std::fs::write(file, &json)?;
        }
        Ok(if self.json { json } else { report.to_string() })
    }
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
