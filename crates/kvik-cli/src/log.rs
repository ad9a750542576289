//! The log: off unless a setting asks for it, then to standard error or to a file, never to standard output.
//!
//! A file is appended to. KvikIO empties it first, which costs whoever names the wrong file its contents; so does a log
//! that goes into the file being copied, which is refused.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use kvik::config::{Config, LogLevel};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::format::FmtSpan;

use crate::failure::{Failure, Result, show};
use crate::output::Output;

/// The files whose bytes a command moves: none of them may be the log.
#[derive(Debug, Default)]
pub(crate) struct Used {
    /// By name; those that do not exist yet may come to.
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) stdin: bool,
    pub(crate) stdout: bool,
}

/// Starts the log that `KVIK_LOG_LEVEL` and `KVIK_LOG_FILE` (or the same settings elsewhere) ask for.
pub(crate) fn start(used: &Used, output: &Output) -> Result<()> {
    let config = Config::current();
    // A bad value is told by the command that needs it, and by `kvik config`, which must run in spite of it.
    let level = match config.log_level() {
        Ok(level) => filter(level),
        Err(_) => return Ok(()),
    };
    if level == LevelFilter::OFF {
        return Ok(());
    }
    let file = match config.log_file() {
        Ok(Some(path)) => file(&path, used, output)?,
        _ => None,
    };
    let builder = tracing_subscriber::fmt()
        .with_max_level(level)
        // An operation and a task are a line each, when they are over.
        .with_span_events(FmtSpan::CLOSE)
        .with_ansi(false);
    // A program that calls `run` may have a subscriber of its own, which then stays.
    let _ = match file {
        Some(file) => builder.with_writer(Mutex::new(file)).try_init(),
        None => builder.with_writer(io::stderr).try_init(),
    };
    Ok(())
}

/// The log file; `None` for standard error, which serves where the file does not. A log is no reason to stop the work.
fn file(path: &Path, used: &Used, output: &Output) -> Result<Option<File>> {
    let instead = |why: &str| {
        output.warn(&format!(
            "{why}; the log goes to standard error (setting log_file)"
        ));
        Ok(None)
    };
    // Looked at before it is opened: a FIFO waits for a reader, and opening a device may do something to it.
    match fs::metadata(path) {
        Ok(found) if is(&found, io::stderr().as_fd()) => return Ok(None),
        Ok(found) if !may_be_log(&found) => return instead(&unfit(path)),
        _ => {}
    }
    let (file, created) = match open(path) {
        Ok(opened) => opened,
        Err(error) => return instead(Failure::io("open the log file", path, &error).message()),
    };
    let Ok(found) = file.metadata() else {
        return instead(&unfit(path));
    };
    if used.has(&found) {
        if created {
            // Empty, and in the place where the command would put its own file.
            let _ = fs::remove_file(path);
        }
        return Err(Failure::usage(format!(
            "log to {}: the command reads or writes this file itself",
            show(path)
        ))
        .hint("name another file in KVIK_LOG_FILE, or none to log to standard error"));
    }
    let fits = found.is_file() || may_be_log(&found) && (is_null(&found) || file.is_terminal());
    if fits {
        Ok(Some(file))
    } else {
        instead(&unfit(path))
    }
}

/// Opens for appending, without waiting, and says whether the file is new.
fn open(path: &Path) -> io::Result<(File, bool)> {
    let mut options = OpenOptions::new();
    options
        .append(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return Ok((opened?, false)),
    }
    match options.clone().create_new(true).open(path) {
        // A symbolic link to what does not exist, or somebody was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok((options.create(true).open(path)?, false))
        }
        opened => Ok((opened?, true)),
    }
}

impl Used {
    fn has(&self, log: &Metadata) -> bool {
        let named = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| same(&found, log));
        // Nobody minds a log that goes to /dev/null or to the terminal as well.
        log.is_file()
            && (self.paths.iter().any(named)
                || self.stdin && is(log, io::stdin().as_fd())
                || self.stdout && is(log, io::stdout().as_fd()))
    }
}

fn is(found: &Metadata, stream: BorrowedFd<'_>) -> bool {
    let facts = stream
        .try_clone_to_owned()
        .and_then(|fd| File::from(fd).metadata());
    facts.is_ok_and(|facts| same(&facts, found))
}

fn same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

fn may_be_log(found: &Metadata) -> bool {
    found.is_file() || found.file_type().is_char_device()
}

/// `/dev/null`, whatever its name.
fn is_null(found: &Metadata) -> bool {
    found.rdev() == libc::makedev(1, 3)
}

fn unfit(path: &Path) -> String {
    format!(
        "open the log file {}: it is neither a regular file nor /dev/null nor a terminal",
        show(path)
    )
}

fn filter(level: LogLevel) -> LevelFilter {
    level.to_string().parse().unwrap_or(LevelFilter::OFF)
}
