//! The commands, one a file: flags in, report out.

pub(crate) mod bench;
pub(crate) mod cat;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod copy;
pub(crate) mod doctor;
pub(crate) mod page_cache;
pub(crate) mod serve;
pub(crate) mod stat;

use crate::failure::Result;
use crate::flags::Command;
use crate::log::Used;
use crate::output::{Output, Report};
use crate::stop::Stop;

/// Runs one command to its report.
pub(crate) fn run(command: Command, output: &Output, stop: &Stop) -> Result<Report> {
    match command {
        Command::Copy(flags) => copy::run(&flags, output, stop),
        Command::Cat(flags) => cat::run(&flags),
        Command::Stat(flags) => stat::run(&flags),
        Command::PageCache(flags) => page_cache::run(&flags),
        Command::Config(flags) => config::run(&flags),
        Command::Doctor(flags) => doctor::run(&flags),
        Command::Bench(flags) => bench::run(&flags, output, stop),
        Command::Serve(flags) => serve::run(&flags, output, stop),
        Command::Completions(flags) => completions::run(&flags),
    }
}

/// The files whose bytes a command moves.
pub(crate) fn used(command: &Command) -> Used {
    match command {
        Command::Copy(flags) => copy::used(flags),
        Command::Cat(flags) => cat::used(flags),
        Command::Bench(flags) => bench::used(flags),
        Command::Serve(flags) => serve::used(flags),
        _ => Used::default(),
    }
}
