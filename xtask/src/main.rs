//! The table of contents of every build, check, bench and release step; each job of CI is one line of it.
//!
//! Each step starts programs and reads what they say, with the standard library alone; a laptop can do what CI does.
#![forbid(unsafe_code)]

mod against;
mod api;
mod bench;
mod book;
mod bundle;
mod ci;
mod codegen;
mod deep;
mod features;
mod flags;
mod process;
mod release;
mod servers;
mod setup;
mod stage;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::Parser;

use crate::flags::{Command, Flags};

fn main() -> ExitCode {
    let done = match Flags::parse().command {
        Command::Setup => setup::run(),
        Command::Ci => ci::run(),
        Command::Test { group } => test::run(group),
        Command::Servers { what } => servers::run(what),
        Command::Tidy => tidy::run(),
        Command::Codegen { what, check } => codegen::run(what, check),
        Command::Features { package } => features::run(package.as_deref()),
        Command::Loom { filter } => deep::loom(filter.as_deref()),
        Command::Fuzz { target, seconds } => deep::fuzz(target.as_deref(), seconds),
        Command::Api { check } => api::run(check),
        Command::Bench { arguments } => bench::run(&arguments),
        Command::GpuBundle { no_rivals } => bundle::run(!no_rivals),
        Command::Book => book::run(),
        Command::Release { dry_run } => release::run(dry_run),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("xtask: {why}");
            ExitCode::FAILURE
        }
    }
}
