//! `kvik bench`: this machine against its own limit. The measuring is kvik-bench's; here are flags and the screen.

mod gpu;
mod remote;

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use kvik::config::{ByteSize, Config, Key, Origin};
use kvik_bench::{Options, Progress};
use serde::Serialize;
use serde_json::Value;

use crate::Exit;
use crate::failure::{self, Failure, Result};
use crate::log::Used;
use crate::output::{Output, Report};
use crate::progress::Steps;
use crate::stop::{Patience, Stop, stopped};
use crate::units;

/// Measure kvik on this machine, beside the plain loops that are its limit
///
/// About a minute: large reads hot and cold, writes, small random reads. Every figure stands beside
/// the fastest plain loop written for that one job, run in turn; the ratio says how near kvik comes
/// to it. All bytes are compared. The files are kvik's own and are removed at the end.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, args_conflicts_with_subcommands = true, after_long_help = AFTER)]
pub(crate) struct Flags {
    #[command(subcommand)]
    suite: Option<Suite>,
    #[command(flatten)]
    options: OptionFlags,
}

#[derive(Debug, Subcommand)]
enum Suite {
    File(FileFlags),
    Mmap(MmapFlags),
    Gpu(gpu::Flags),
    Remote(remote::Flags),
}

/// Sweep threads, task sizes, engines and alignments over reads of one file
///
/// Hot and cold, by several numbers of threads and task sizes, by each engine into memory at several
/// places within a page, and small reads of several sizes, each beside its limit. `--threads` and
/// `--task-size` fix those two. A file that is named is only read.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, after_long_help = AFTER)]
struct FileFlags {
    /// The file to read; without it kvik makes one and removes it
    path: Option<PathBuf>,
    #[command(flatten)]
    options: OptionFlags,
}

/// Measure large reads of a cached file out of maps
///
/// By one thread and by two, or by `--threads`; into memory at a page boundary and 16 bytes past one;
/// out of a map that stays, and out of one that is made for the read. The limit is a plain loop that
/// maps the file and copies by streaming stores, with as many threads. A file that is named is only
/// read, and its limit are loops that read it.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, after_long_help = AFTER)]
struct MmapFlags {
    /// The file to read; without it kvik makes one and removes it
    path: Option<PathBuf>,
    #[command(flatten)]
    options: OptionFlags,
}

#[derive(Debug, Args)]
struct OptionFlags {
    /// Make the files in this folder, to measure the storage under it
    ///
    /// Without it the folder for temporary files, unless that is kept in memory, then the
    /// working directory.
    #[arg(verbatim_doc_comment, long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Length of the data, at most; less is used on small machines, and the report says so
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    size: ByteSize,
    /// How often each contender of a case runs
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Seconds that all cases together may take, about
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    budget: Option<Duration>,
    /// Run only cases whose name contains this; may be given again
    #[arg(long = "case", value_name = "NAME")]
    cases: Vec<String>,
}

const AFTER: &str = "\
Output:
  A table, or with --json one object: {\"machine\", \"cases\": [{\"name\", \"value\", \"unit\",
  \"cpu_s_per_gb\", \"limit\", \"ratio\", ...}], \"not_run\", \"notes\"}. GB is 1e9 bytes, value and
  limit are medians of the same rounds.

Exit codes:
  0 measured, 2 no such case, what is named is no file or no directory, 3 it does not exist, 6 no
  room for the data, 130 Ctrl-C (the files are removed; a second one after a second ends kvik at
  once and names what is left); `kvik --help` has the whole table.

Examples:
  kvik bench
  kvik bench --dir /mnt/fast --case cold
  kvik bench file /mnt/fast/data.bin --threads 8
  kvik bench mmap --threads 4
  kvik bench gpu --case read-hot
  kvik bench remote https://example.org/weights.bin
  kvik bench --json --quiet | jq -r '.cases[] | [.name, .value, .ratio] | @tsv'";

pub(crate) fn run(flags: &Flags, output: &Output, stop: &Stop) -> Result<Report> {
    stop.listen("bench", Patience::WaitsForAnotherSignal)?;
    let steps = Steps::new(output);
    let mut tell = |progress: Progress<'_>| {
        if let Progress::Data { path, bytes: 0, .. } = progress {
            left_behind(stop, path.parent().unwrap_or(path));
        }
        show(&steps, &progress);
    };
    let measured = match &flags.suite {
        None => {
            let options = options(&flags.options, None)?;
            measured(kvik_bench::default_suite(&options, &mut tell, stop.flag()))
        }
        Some(Suite::File(file)) => {
            let options = options(&file.options, file.path.clone())?;
            measured(kvik_bench::file_suite(&options, &mut tell, stop.flag()))
        }
        Some(Suite::Mmap(mmap)) => {
            let options = options(&mmap.options, mmap.path.clone())?;
            measured(kvik_bench::map_suite(&options, &mut tell, stop.flag()))
        }
        Some(Suite::Gpu(gpu)) => {
            let peers = gpu.peers();
            let peers = peers.as_ref();
            let options = gpu.options()?;
            measured(kvik_bench::gpu_suite(
                &options,
                peers,
                &mut tell,
                stop.flag(),
            ))
        }
        Some(Suite::Remote(remote)) => measured(remote::run(remote, &mut tell, stop)),
    };
    drop(steps);
    let (json, text) = match (measured, stop.requested()) {
        (Ok(report), _) => report,
        (Err(_), Some(exit)) => {
            let failure = stopped("bench", exit);
            return Err(match &flags.suite {
                // A file that was named, and only read.
                Some(
                    Suite::File(FileFlags { path: Some(_), .. })
                    | Suite::Mmap(MmapFlags { path: Some(_), .. }),
                ) => failure,
                Some(Suite::Remote(remote)) if remote.names_an_object() => failure,
                _ => failure.hint("its files are removed"),
            });
        }
        (Err(failure), None) => return Err(named(failure)),
    };
    if let Some(Suite::Gpu(gpu)) = &flags.suite {
        gpu.save(&json)?;
    }
    Ok(Report::new(json).text(text))
}

/// A report as programs and as people read it.
fn measured<R: Serialize + Display, E: Into<Failure>>(
    report: Result<R, E>,
) -> Result<(Value, String)> {
    let report = report.map_err(Into::into)?;
    let json = serde_json::to_value(&report).map_err(|error| {
        let message = format!("bench: the report is no JSON: {error}");
        Failure::new(Exit::Failed, "Internal", message)
    })?;
    Ok((json, report.to_string()))
}

/// What a log must not go into: a file that is measured is only read, and one that is written holds a report.
pub(crate) fn used(flags: &Flags) -> Used {
    let file = match &flags.suite {
        Some(Suite::File(file)) => file.path.clone(),
        Some(Suite::Mmap(mmap)) => mmap.path.clone(),
        Some(Suite::Gpu(gpu)) => gpu.saved_to().cloned(),
        Some(Suite::Remote(_)) | None => None,
    };
    Used {
        paths: file.into_iter().collect(),
        ..Used::default()
    }
}

/// Where the files are that an impatient end leaves there.
fn left_behind(stop: &Stop, folder: &Path) {
    let folder = folder.to_owned();
    stop.last_words(move |exit| {
        stopped("bench", exit)
            .fact("left", folder.to_string_lossy())
            .hint(format!("its files are left in {}", failure::show(&folder)))
    });
}

/// What the benches call settings are the arguments of this command.
fn named(failure: Failure) -> Failure {
    let rest = failure.message().strip_prefix("settings: ");
    match rest.map(|rest| format!("bench: {rest}")) {
        Some(message) => failure.reworded(message),
        None => failure,
    }
}

/// Threads and task size are only fixed if the command line says so; a sweep should not stop at a setting.
fn options(flags: &OptionFlags, file: Option<PathBuf>) -> Result<Options> {
    let config = Config::current();
    let said = |key| config.origin(key) == Origin::Process;
    let default = Options::default();
    Ok(Options {
        dir: flags.dir.clone(),
        size: flags.size.bytes(),
        rounds: flags.rounds.unwrap_or(default.rounds),
        threads: said_threads()?,
        task_size: if said(Key::TaskSize) {
            Some(config.task_size()?.bytes())
        } else {
            None
        },
        file,
        cases: flags.cases.clone(),
        budget: flags.budget.unwrap_or(default.budget),
        ..default
    })
}

fn said_threads() -> Result<Option<usize>> {
    let config = Config::current();
    let said = config.origin(Key::NumThreads) == Origin::Process;
    Ok(said.then(|| config.num_threads()).transpose()?)
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "write a number of seconds, such as 10".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn show(steps: &Steps, progress: &Progress<'_>) {
    match progress {
        Progress::Data {
            path, bytes, total, ..
        } => {
            let text = format!(
                "making data in {}: {} of {}",
                path.display(),
                units::size(*bytes),
                units::size(*total)
            );
            steps.now(&text, *bytes == 0);
        }
        Progress::Begun {
            name,
            number,
            total,
            ..
        } => steps.now(&format!("[{number}/{total}] {name}"), true),
        Progress::Round {
            name,
            number,
            total,
            ..
        } => {
            steps.now(&format!("{name}: round {number} of {total}"), false);
        }
        Progress::Done { case, .. } => steps.keep(&case.to_string()),
        Progress::NotRun { name, reason, .. } => steps.keep(&format!("not run: {name}: {reason}")),
        _ => {}
    }
}
