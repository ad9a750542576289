//! The program: it reads its arguments, says what it does, and samples at steady intervals until somebody ends it.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::manifest::{EXECUTABLE, NAME};
use crate::options::{Options, Request};
use crate::plugin::Plugin;

/// Does what a command line says, of which the first argument is the name of the program, and returns its exit code: 0 after
/// help and after SIGTERM or SIGINT, 1 if there is nothing to sample or the tool does not take it, 2 if the command line is
/// not understood.
#[must_use]
pub fn run<I, T>(args: I) -> ExitCode
where
    I: IntoIterator<Item = T>,
    T: Into<OsString>,
{
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    let program = args
        .first()
        .map_or(EXECUTABLE.into(), |name| name.to_string_lossy());
    match Request::parse(args.iter().cloned()) {
        Ok(Request::Help) => {
            // A reader that has gone away has read enough.
            let _ = io::stdout().write_all(usage(&program).as_bytes());
            ExitCode::SUCCESS
        }
        Ok(Request::Run(options)) => match sample(&options) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                say(&error.to_string());
                ExitCode::from(FAILED)
            }
        },
        Err(wrong) => {
            say(&wrong.to_string());
            let _ = io::stderr().write_all(usage(&program).as_bytes());
            ExitCode::from(USAGE)
        }
    }
}

/// How `program` is used.
#[must_use]
pub fn usage(program: &str) -> String {
    format!("usage: {program} [options]\n{OPTIONS}\n{NOTE}")
}

fn sample(options: &Options) -> Result<(), Box<dyn std::error::Error>> {
    let ended = signals()?;
    let tool = tool();
    let begun = Instant::now();
    let mut plugin = Plugin::start(
        options,
        Path::new(INTERFACES),
        tool.as_deref(),
        begun.elapsed(),
    )?;
    say(&format!(
        "sampling {} interface(s) every {} us",
        plugin.interfaces().len(),
        options.interval.as_micros()
    ));
    if tool.is_none() {
        say(
            "nothing is recorded: NVTX_INJECTION64_PATH names no tool; nsys sets it when it starts the plugin",
        );
    }
    while !wait(&ended, begun, due(begun.elapsed(), options.interval))? {
        plugin.sample(begun.elapsed());
    }
    Ok(())
}

/// When to sample next: at the first multiple of the interval that is to come. So none is late because the one before was, and
/// those that were missed, as by a machine that was asleep, are not made up for.
fn due(elapsed: Duration, interval: Duration) -> Duration {
    let past = elapsed.as_nanos() / interval.as_nanos();
    let next = (past + 1).saturating_mul(interval.as_nanos());
    Duration::from_nanos_u128(next)
}

/// Waits until `due`; whether it was told to end.
fn wait(ended: &UnixStream, begun: Instant, due: Duration) -> io::Result<bool> {
    loop {
        let left = due.saturating_sub(begun.elapsed());
        let mut watched = [PollFd::new(ended.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut watched, Some(TimeSpec::from_duration(left)), None) {
            Ok(0) if begun.elapsed() >= due => return Ok(false),
            // The clock of the wait and ours need not agree to the nanosecond; a signal is seen on the next turn.
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => return Ok(true),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Becomes readable when SIGTERM or SIGINT has come.
fn signals() -> io::Result<UnixStream> {
    let (ended, told) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT] {
        signal_hook::low_level::pipe::register(signal, told.try_clone()?)?;
    }
    Ok(ended)
}

/// The library of the tool. A path that can be none is how NVTX is told that there is no tool.
#[expect(
    clippy::disallowed_methods,
    reason = "NVTX has it that tools are named so; it is no setting of kvik's, and this crate knows no other one"
)]
fn tool() -> Option<PathBuf> {
    let path = std::env::var_os("NVTX_INJECTION64_PATH")?;
    (!path.is_empty() && path != "./.").then(|| path.into())
}

fn say(text: &str) {
    // Nobody is left to tell if this fails.
    let _ = writeln!(io::stderr(), "{NAME}: {text}");
}

const INTERFACES: &str = "/sys/class/net";
const FAILED: u8 = 1;
const USAGE: u8 = 2;

const OPTIONS: &str = "  \
  -i, --interval MICROSECONDS  from one sample to the next (20000 unless given)
  -d, --device REGEX           interfaces whose whole name matches it (unless given: those that
                               are up or do not know it, without the loopback)
  -h, --help                   say this, and end
";

const NOTE: &str = "\
A name has to match as a whole: 'eth0' is that one interface, 'eth.*' is all that begin so, and 'eth' is none of them.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(elapsed: u64, interval: u64, expected: u64) {
        let [elapsed, interval, expected] =
            [elapsed, interval, expected].map(Duration::from_micros);
        assert_eq!(due(elapsed, interval), expected);
    }

    #[test]
    fn samples_are_due_at_multiples_of_the_interval_and_missed_ones_are_left_out() {
        check(0, 20_000, 20_000);
        check(19_999, 20_000, 20_000);
        check(20_000, 20_000, 40_000);
        check(20_700, 20_000, 40_000);
        check(1_000_001, 20_000, 1_020_000);
        check(5, i64::MAX as u64, i64::MAX as u64);
    }
}
