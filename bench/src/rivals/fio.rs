//! fio as a second limit: what a program finds that was written to find the limit of disks.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::contender::{Contender, Role};
use crate::loops::{by_threads, size_name};
use crate::race::{Elsewhere, Moved};
use crate::rivals::Job;
use crate::scenes::Rival;
use crate::trouble::{Doing, Outcome, Trouble};

/// How fio reads or writes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FioWay {
    /// `psync` or `io_uring`.
    pub(crate) engine: &'static str,
    pub(crate) block: u64,
    /// Requests in flight of each job.
    pub(crate) depth: usize,
    /// Threads.
    pub(crate) jobs: usize,
    pub(crate) direct: bool,
    /// With buffers and files registered in the ring.
    pub(crate) fixed: bool,
}

impl FioWay {
    /// Calls that return when they are done.
    pub(crate) const fn psync(block: u64, jobs: usize, direct: bool) -> Self {
        Self {
            engine: "psync",
            block,
            depth: 1,
            jobs,
            direct,
            fixed: false,
        }
    }

    /// One thread with so many direct requests in flight.
    pub(crate) const fn uring(block: u64, depth: usize) -> Self {
        Self {
            engine: "io_uring",
            block,
            depth,
            jobs: 1,
            direct: true,
            fixed: false,
        }
    }

    fn name(&self) -> String {
        let direct = if self.direct { ", direct" } else { "" };
        let depth = match self.depth {
            1 => String::new(),
            depth => format!(", depth {depth}"),
        };
        let fixed = if self.fixed { ", registered" } else { "" };
        let (block, threads) = (size_name(self.block), by_threads(self.jobs));
        format!(
            "fio {} {block}{depth}{fixed}{direct}, {threads}",
            self.engine
        )
    }

    /// The arguments for `amount` bytes, or that many reads where places are random.
    fn arguments(&self, job: &FioJob, path: &Path, amount: u64) -> Vec<String> {
        let mut arguments: Vec<String> = [
            "--name=kvik",
            "--output-format=json",
            "--thread",
            "--group_reporting",
            // Who takes part before decides what is in the page cache; and no other seed than the clock, so that turns differ.
            "--invalidate=0",
            "--randrepeat=0",
            "--fallocate=none",
        ]
        .map(str::to_owned)
        .to_vec();
        let mut say = |name: &str, value: String| arguments.push(format!("--{name}={value}"));
        say("filename", path.display().to_string());
        say("ioengine", self.engine.to_owned());
        say("bs", self.block.to_string());
        say("iodepth", self.depth.to_string());
        say("numjobs", self.jobs.to_string());
        say("direct", u8::from(self.direct).to_string());
        match job {
            FioJob::Random { len } => {
                say("rw", "randread".to_owned());
                say("size", (len / self.block * self.block).to_string());
                say("io_size", (amount * self.block).to_string());
                say("norandommap", "1".to_owned());
            }
            FioJob::Read | FioJob::Write { .. } => {
                let write = matches!(job, FioJob::Write { .. });
                say("rw", if write { "write" } else { "read" }.to_owned());
                // Contiguous parts, one for each thread, in whole blocks.
                let part = amount
                    .div_ceil(self.jobs as u64)
                    .next_multiple_of(self.block);
                say("size", part.min(amount.max(self.block)).to_string());
                say("offset_increment", part.to_string());
            }
        }
        match job {
            FioJob::Write { sync } => {
                say("overwrite", "1".to_owned());
                say("end_fsync", u8::from(*sync).to_string());
            }
            _ => arguments.push("--readonly".to_owned()),
        }
        if self.fixed {
            arguments.extend(["--fixedbufs", "--registerfiles"].map(str::to_owned));
        }
        arguments
    }
}

/// What fio does with the file.
#[derive(Clone, Debug, PartialEq)]
enum FioJob {
    /// Its first bytes, in order.
    Read,
    Write {
        sync: bool,
    },
    /// Blocks at random places of its first `len` bytes.
    Random {
        len: u64,
    },
}

pub(crate) struct Fio {
    program: PathBuf,
    way: FioWay,
    job: FioJob,
    path: PathBuf,
}

impl Fio {
    pub(super) fn new(program: &Path, way: FioWay, job: &Job, path: &Path) -> Self {
        let job = match job {
            Job::Read { .. }
            | Job::Map { .. }
            | Job::Fresh
            | Job::DeviceRead
            | Job::DeviceStream => FioJob::Read,
            Job::Write { sync } => FioJob::Write { sync: *sync },
            Job::DeviceWrite => FioJob::Write { sync: false },
            Job::Small { len, .. }
            | Job::List { len, .. }
            | Job::DeviceList { len, .. }
            | Job::DeviceSmall { len, .. } => FioJob::Random { len: *len },
        };
        Self {
            program: program.to_owned(),
            way,
            job,
            path: path.to_owned(),
        }
    }
}

impl Rival for Fio {
    fn contender(&self) -> Contender {
        Contender::new(Role::Fio, self.way.name())
    }

    fn prepare(&mut self, _: u64, _: u64) -> Outcome<()> {
        Ok(())
    }

    fn turn(&mut self, amount: u64) -> Outcome<Moved> {
        let output = Command::new(&self.program)
            .args(self.way.arguments(&self.job, &self.path, amount))
            .stdin(Stdio::null())
            .output()
            .doing("run", &self.program)?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            let last = errors
                .lines()
                .chain(text.lines())
                .find(|line| !line.is_empty());
            let why = last.unwrap_or("it says nothing").to_owned();
            return Err(Trouble::Unfit(format!("fio: {}, {why}", output.status)));
        }
        read(&text)
    }

    /// fio reads into buffers of its own and says nothing about what was in them.
    fn check(&mut self, _: u64, _: u64) -> Outcome<Option<u64>> {
        Ok(None)
    }

    fn prove(&mut self, _: u64) -> Outcome<Option<u64>> {
        Ok(None)
    }
}

pub(super) fn version(program: &Path) -> Outcome<String> {
    let output = Command::new(program)
        .arg("--version")
        .output()
        .doing("run", program)?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(format!("second limit: {version}, which compares no bytes"))
}

/// Bytes, operations and times of all jobs, out of what fio prints.
fn read(text: &str) -> Outcome<Moved> {
    let unfit = || Trouble::Unfit("fio printed no figures".to_owned());
    // Warnings come before the object.
    let json = text
        .find('{')
        .map(|begin| &text[begin..])
        .ok_or_else(unfit)?;
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<Value>();
    let value = values.next().and_then(Result::ok).ok_or_else(unfit)?;
    let jobs = value["jobs"].as_array().ok_or_else(unfit)?;
    let (mut bytes, mut operations) = (0, 0);
    let (mut seconds, mut cpu_seconds) = (0.0_f64, 0.0);
    for job in jobs {
        for way in ["read", "write"] {
            bytes += job[way]["io_bytes"].as_u64().unwrap_or(0);
            operations += job[way]["total_ios"].as_u64().unwrap_or(0);
            seconds = seconds.max(job[way]["runtime"].as_f64().unwrap_or(0.0) / 1e3);
        }
        // Shares of the time that all threads of the job ran for.
        let percent = |name: &str| job[name].as_f64().unwrap_or(0.0);
        let ran = job["job_runtime"].as_f64().unwrap_or(0.0) / 1e3;
        cpu_seconds += (percent("usr_cpu") + percent("sys_cpu")) / 100.0 * ran;
    }
    if bytes == 0 || operations == 0 {
        return Err(unfit());
    }
    Ok(Moved {
        bytes,
        operations,
        elsewhere: Some(Elsewhere {
            // fio counts whole milliseconds.
            seconds: seconds.max(1e-3),
            cpu_seconds,
        }),
    })
}

#[cfg(test)]
#[path = "fio_tests.rs"]
mod tests;
