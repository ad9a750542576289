//! `kvik bench remote`: one object, of a server that is named or of one that is started for it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clap::Args;
use kvik::RemoteHandle;
use kvik::config::ByteSize;
use kvik_bench::{Options, Progress, Reading, ReadingOptions};

use crate::Exit;
use crate::failure::{Failure, Result};
use crate::stop::Stop;
use crate::url::url_of;

/// Measure reads of a remote object: all of it with one call, and ranges of 4 KiB
///
/// Every figure is of kvik at its settings: the rate, how long a small range takes, what it costs in
/// CPU seconds of this process, requests, and how many of them had to be made again. Ranges are read
/// one after the other, then with 32 under way; the last 256 of each way and round are compared with
/// what came at once. Without a URL, `kvik serve` is started over a file of its own, in a process of
/// its own, and ended afterwards: that is the limit of this machine, and not of a network.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, after_long_help = AFTER)]
pub(super) struct Flags {
    /// The URL of the object; only read
    url: Option<String>,
    /// Make the file for the own server in this folder
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    dir: Option<std::path::PathBuf>,
    /// Bytes from the object's begin that are read, at most; less is used on small machines
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    size: ByteSize,
    /// How often everything is done; the figures are medians
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Seconds that small ranges are read in a round, each way
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = super::seconds)]
    time: Duration,
}

const AFTER: &str = "\
Output:
  A table, or with --json one object: {\"url\", \"kind\", \"len\", \"figures\": [{\"name\", \"value\",
  \"unit\", \"spread\", \"cpu_s_per_gb\", \"latency_us\", \"requests\", \"retries\"}], \"notes\"}. GB is 1e9
  bytes.

Exit codes:
  0 measured, 2 the object is too short to measure, 3 no such object, 4 it may not be read, 130
  Ctrl-C; `kvik --help` has the whole table.

Examples:
  kvik bench remote
  kvik bench remote https://example.org/weights.bin
  kvik bench remote s3://bucket/weights.bin --size 256MiB --json";

impl Flags {
    /// Whether an object of somebody else's was read, and no file was made.
    pub(super) fn names_an_object(&self) -> bool {
        self.url.is_some()
    }
}

pub(super) fn run(
    flags: &Flags,
    tell: &mut dyn FnMut(Progress<'_>),
    stop: &Stop,
) -> Result<Reading> {
    let how = ReadingOptions {
        size: flags.size.bytes(),
        rounds: flags.rounds,
        time: flags.time,
    };
    let read = |url: &str| -> Result<Reading> {
        let object = RemoteHandle::open(url)?;
        Ok(kvik_bench::remote_reading(&object, &how, stop.flag())?)
    };
    if let Some(url) = &flags.url {
        if url_of(Path::new(url)).is_none() {
            let why = "bench remote: the argument is no URL, such as https://example.org/data.bin";
            return Err(
                Failure::usage(why.to_owned()).hint("without one, kvik starts a server of its own")
            );
        }
        return read(url);
    }
    let options = Options {
        dir: flags.dir.clone(),
        size: how.size,
        ..Options::default()
    };
    kvik_bench::with_served_file(&options, tell, stop.flag(), |file| {
        let server = OwnServer::start(file)?;
        read(&server.url)
    })
}

/// `kvik serve` in a process of its own, so that what it costs is told apart from what reading costs.
struct OwnServer {
    child: Child,
    url: String,
}

impl OwnServer {
    fn start(file: &Path) -> Result<Self> {
        let failed = |why: String| {
            let message = format!("bench remote: the own server does not start: {why}");
            Failure::new(Exit::Failed, "Internal", message)
        };
        let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
        let mut child = Command::new(program)
            .args(["--quiet", "serve", "--port", "0", "--until-eof"])
            .arg(file)
            // Held by the child, and closed by the system where this process is killed.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let mut line = String::new();
        let said = child.stdout.take().map(BufReader::new);
        // Owned from here on, so that it ends whatever happens.
        let mut server = Self {
            child,
            url: String::new(),
        };
        let read = said.map(|mut said| said.read_line(&mut line)).transpose();
        read.map_err(|error| failed(error.to_string()))?;
        server.url = line.trim().to_owned();
        if server.url.is_empty() {
            return Err(failed("what it said is above".to_owned()));
        }
        Ok(server)
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        // It writes nothing, and nobody reads from it any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
