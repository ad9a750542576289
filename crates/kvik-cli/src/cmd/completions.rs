//! `kvik completions`: a script that completes commands and flags in a shell.

use clap::Args;
use clap_complete::Shell;
use serde_json::json;

use crate::failure::{Failure, Result};
use crate::flags::command;
use crate::output::Report;

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct Flags {
    /// The shell that reads the script
    shell: Shell,
}

const AFTER: &str = "\
Examples:
  kvik completions bash > ~/.local/share/bash-completion/completions/kvik
  kvik completions zsh > \"${fpath[1]}/_kvik\"
  kvik completions fish > ~/.config/fish/completions/kvik.fish

Exit codes:
  0 printed, 2 unknown shell; `kvik --help` has the whole table.";

pub(crate) fn run(flags: &Flags) -> Result<Report> {
    let mut script = Vec::new();
    clap_complete::generate(flags.shell, &mut command(), "kvik", &mut script);
    let script = String::from_utf8(script)
        .map_err(|error| Failure::usage(format!("completions: {error}")))?;
    Ok(Report::new(json!({ "shell": flags.shell.to_string(), "script": script })).text(script))
}
