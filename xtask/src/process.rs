//! Starting other programs: their output passes through unchanged, and their failure becomes a sentence.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::workspace;

/// What a step of xtask returns: nothing, or the sentence that is printed before the exit.
pub(crate) type Done<T = ()> = Result<T, String>;

/// `cargo ARGUMENTS` in the root of the workspace.
pub(crate) fn cargo<I, S>(arguments: I) -> Command
where
    I: IntoIterator<Item = S>,
    S: AsRef<OsStr>,
{
    // Not the path in $CARGO: it bypasses rustup, and with it the toolchain that `+1.95` names.
    let mut command = Command::new("cargo");
    command.args(arguments).current_dir(workspace::root());
    command
}

/// Runs a program with its output untouched; a failure names the whole line, so that it can be tried again.
pub(crate) fn run(command: &mut Command) -> Done {
    println!("$ {}", line(command));
    let status = command.status().map_err(|why| unstarted(command, &why))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("`{}` failed ({status})", line(command)))
}

/// Runs a program with its output passed on line by line as it comes, and hands back a copy of it without colours.
#[expect(
    clippy::disallowed_methods,
    reason = "no library of ours: both streams of a program are read at the same time"
)]
pub(crate) fn run_and_keep(command: &mut Command) -> Done<String> {
    println!("$ {}", line(command));
    if io::stdout().is_terminal() {
        // The program sees a pipe and would drop its colours.
        command.env("CARGO_TERM_COLOR", "always");
    }
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|why| unstarted(command, &why))?;
    let out = child.stdout.take();
    let err = child.stderr.take();
    let text = thread::scope(|scope| {
        let errors = scope.spawn(|| err.map_or_else(String::new, |pipe| tee(pipe, io::stderr())));
        let mut text = out.map_or_else(String::new, |pipe| tee(pipe, io::stdout()));
        text.push_str(&errors.join().unwrap_or_default());
        text
    });
    let status = child.wait().map_err(|why| unstarted(command, &why))?;
    if status.success() {
        return Ok(without_colours(&text));
    }
    Err(format!("`{}` failed ({status})", line(command)))
}

/// A program that runs while others do. Dropped before its end, it is killed.
pub(crate) struct Running {
    child: Child,
    name: String,
    begin: Instant,
}

impl Running {
    /// Starts a program. Its arguments, which may be secrets or pages long, stand in no message; `name` does.
    pub(crate) fn start(name: &str, command: &mut Command) -> Done<Self> {
        let child = command
            .spawn()
            .map_err(|why| format!("{name} could not run: {why}"))?;
        Ok(Self {
            child,
            name: name.to_owned(),
            begin: Instant::now(),
        })
    }

    /// Waits for its end, which must be good and come within `limit` of its start.
    pub(crate) fn wait(mut self, limit: Duration) -> Done {
        loop {
            match self.child.try_wait() {
                Ok(None) if self.begin.elapsed() < limit => {
                    thread::sleep(Duration::from_millis(20));
                }
                Ok(None) => {
                    return Err(format!(
                        "{} did not end within {} s",
                        self.name,
                        limit.as_secs()
                    ));
                }
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(status)) => return Err(format!("{} failed ({status})", self.name)),
                Err(why) => return Err(format!("{}: {why}", self.name)),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail for one that has ended, as it should have.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a program with a limit.
pub(crate) fn within(name: &str, command: &mut Command, limit: Duration) -> Done {
    Running::start(name, command)?.wait(limit)
}

/// What a program prints, for programs that are asked and not shown.
pub(crate) fn ask(command: &mut Command) -> Done<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|why| unstarted(command, &why))?;
    if !output.status.success() {
        return Err(format!("`{}` failed ({})", line(command), output.status));
    }
    String::from_utf8(output.stdout)
        .map_err(|why| format!("`{}` printed no UTF-8: {why}", line(command)))
}

/// Whether a program starts and ends well, with nothing shown.
pub(crate) fn answers(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn tee(from: impl Read, mut to: impl Write) -> String {
    let mut kept = String::new();
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        // A closed terminal must not stop the tests that are still running.
        let _ = to.write_all(&line).and_then(|()| to.flush());
        kept.push_str(&String::from_utf8_lossy(&line));
        line.clear();
    }
    kept
}

/// Drops the escape sequences that set colours (`ESC [ ... m`).
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == '\u{1b}' {
            characters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(character);
        }
    }
    plain
}

fn line(command: &Command) -> String {
    let mut text = String::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            text.push_str(&format!(
                "{}={:?} ",
                name.to_string_lossy(),
                value.to_string_lossy()
            ));
        }
    }
    text.push_str(&command.get_program().to_string_lossy());
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

fn unstarted(command: &Command, why: &io::Error) -> String {
    format!("`{}` could not run: {why}", line(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_dropped_and_text_is_kept() {
        assert_eq!(
            without_colours("\u{1b}[32;1m     Summary\u{1b}[0m 3 tests"),
            "     Summary 3 tests"
        );
    }

    #[test]
    fn a_program_that_takes_too_long_is_killed() {
        let begin = Instant::now();
        let sleep = Running::start("sleep", Command::new("sleep").arg("60")).unwrap();
        let error = sleep.wait(Duration::from_millis(50)).unwrap_err();
        assert!(error.starts_with("sleep did not end"), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(30));
        let error = Running::start("false", &mut Command::new("false")).unwrap();
        let error = error.wait(Duration::from_secs(30)).unwrap_err();
        assert!(error.starts_with("false failed"), "{error}");
    }

    #[test]
    fn a_failing_program_is_named_with_its_arguments() {
        let error = run(Command::new("false").arg("x")).unwrap_err();
        assert!(error.starts_with("`false x` failed"), "{error}");
    }
}
