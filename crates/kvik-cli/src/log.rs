//! The log: off unless a setting asks for it, then to standard error or to a file, never to standard output.

use std::fs::File;

use kvik::config::{Config, LogLevel};
use tracing::level_filters::LevelFilter;

use crate::failure::{Failure, Result};

/// Starts the log that `KVIK_LOG_LEVEL` and `KVIK_LOG_FILE` (or the same settings elsewhere) ask for.
pub(crate) fn start() -> Result<()> {
    let config = Config::current();
    // A bad value is told by the command that needs it, and by `kvik config`, which must run in spite of it.
    let level = match config.log_level() {
        Ok(level) => filter(level),
        Err(_) => return Ok(()),
    };
    if level == LevelFilter::OFF {
        return Ok(());
    }
    let builder = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_ansi(false);
    // A program that calls `run` may have a subscriber of its own, which then stays.
    match config.log_file() {
        Ok(Some(path)) => {
            let file = File::create(&path);
            let file = file.map_err(|error| Failure::io("open the log file", &path, &error))?;
            let _ = builder.with_writer(std::sync::Mutex::new(file)).try_init();
        }
        _ => {
            let _ = builder.with_writer(std::io::stderr).try_init();
        }
    }
    Ok(())
}

fn filter(level: LogLevel) -> LevelFilter {
    level.to_string().parse().unwrap_or(LevelFilter::OFF)
}
