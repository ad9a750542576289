//! The `kvik` command as a library.
//!
//! [`run`] takes the arguments of a command line and does what they say. Each subcommand is one file in `cmd`, turns its
//! arguments into a report (a value) and prints nothing itself but progress; the report is printed in one place:
//!
//! ```text
//! args -> flags -> settings -> cmd/{copy,cat,stat,...} -> report or failure -> output -> exit code
//! ```
//!
//! # Example: what a command line would do
//!
//! ```
//! let code = kvik_cli::run(["kvik", "stat", "--quiet", "/proc/self/exe"]);
//! assert_eq!(code, std::process::ExitCode::SUCCESS);
//! ```
//!
//! # Not here
//!
//! Moving bytes (`kvik`), measuring (`kvik-bench`), the table of settings (`kvik-config`).
#![forbid(unsafe_code)]

mod cmd;
mod exit;
mod failure;
mod flags;
mod log;
mod output;
mod progress;
mod serve;
mod settings;
mod span;
mod stop;
mod style;
mod units;
mod url;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub use exit::Exit;

use flags::{Command, Flags, Parsed};
use output::Output;

/// Does what a command line says and returns the exit code of the process, one of [`Exit::ALL`].
///
/// The first argument is the name of the program. Results go to standard output, progress, notes and errors to standard
/// error. Settings given on the command line (`--set`, `--threads`, `--task-size`) hold for this process from then on, and
/// so does this: SIGXFSZ is ignored, which makes a limit on file sizes an error like a full disk. While a copy, a benchmark or
/// a server runs, SIGINT and SIGTERM ask it to stop; if it does not, they end the process.
#[must_use]
pub fn run<I, T>(args: I) -> ExitCode
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    // Without it a file that grows past `ulimit -f` ends the process. Where it cannot be had, all else is as before.
    let heard = Arc::new(AtomicBool::new(false));
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, heard);
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    let exit = match flags::parse(&args) {
        Parsed::Run(flags) => execute(*flags),
        Parsed::Told(exit) => exit,
    };
    ExitCode::from(exit.code())
}

fn execute(flags: Flags) -> Exit {
    let output = Output::new(&flags.global)
        .aside(matches!(flags.command, Command::Cat(_) | Command::Serve(_)));
    let stop = stop::Stop::new(&output);
    let recording = flags.global.stats.map(|_| {
        let options = kvik::stats::MonitorOptions::new();
        options.distributions(true).tasks(true).start()
    });
    let result = settings::apply(&flags.global)
        .and_then(|()| log::start(&cmd::used(&flags.command), &output))
        .and_then(|()| cmd::run(flags.command, &output, &stop));
    stop.tell();
    let totals = recording.map(|monitor| monitor.stop());
    match result {
        Ok(report) => output.report(report, totals.as_ref()),
        Err(failure) => output.failure(&failure.mindful_of_urls(), totals.as_ref()),
    }
}

// The README's example and table are part of what is tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
