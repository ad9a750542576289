//! Flags: what a command line can say, and the help texts around it.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{
    ArgAction, Args, ColorChoice, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum,
};

use crate::Exit;
use crate::cmd;
use crate::failure::Failure;
use crate::output;
use crate::style;

/// Copies, prints and inspects files and remote objects in parallel, and measures the machine beside its own limit.
#[derive(Debug, Parser)]
#[command(name = "kvik", version, styles = style::HELP, after_long_help = after_help())]
pub(crate) struct Flags {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What can be asked for; the text of each is in its file.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Copy(cmd::copy::Flags),
    Cat(cmd::cat::Flags),
    Stat(cmd::stat::Flags),
    PageCache(cmd::page_cache::Flags),
    Config(cmd::config::Flags),
    Doctor(cmd::doctor::Flags),
    Bench(cmd::bench::Flags),
    Serve(cmd::serve::Flags),
    Completions(cmd::completions::Flags),
}

/// Understood by every command, before or after its name.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Global {
    /// Print one JSON object instead of text, errors included
    ///
    /// It goes to standard output; from `cat` and `serve`, whose standard output carries the file or
    /// the URL, to standard error. A failed command prints {"error": {"kind", "message",
    /// "exit_code", "hint", ...}}.
    #[arg(verbatim_doc_comment, long, global = true)]
    pub(crate) json: bool,
    /// Count what was read and written and print it at the end: as a table, as JSON or for Prometheus
    ///
    /// With --json it becomes the member "stats" of the one object.
    #[arg(verbatim_doc_comment, long, global = true, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "table")]
    pub(crate) stats: Option<StatsForm>,
    /// Print nothing but errors, and what --json or --stats ask for
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// When to color text
    ///
    /// `auto` colors terminals, unless NO_COLOR is set or TERM is `dumb`. Nothing is told by
    /// color alone.
    #[arg(
        verbatim_doc_comment,
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto"
    )]
    pub(crate) color: ColorChoice,
    /// Threads that move bytes, at most [setting num_threads]
    #[arg(long, global = true, value_name = "N", help_heading = "Settings")]
    pub(crate) threads: Option<String>,
    /// Bytes that one task moves, such as 4MiB [setting task_size]
    #[arg(long, global = true, value_name = "SIZE", help_heading = "Settings")]
    pub(crate) task_size: Option<String>,
    /// Any other setting, as often as needed; `kvik config` lists them
    #[arg(long, global = true, value_name = "KEY=VALUE", action = ArgAction::Append, help_heading = "Settings")]
    pub(crate) set: Vec<String>,
}

/// The form of `--stats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatsForm {
    /// A table for people.
    Table,
    /// One JSON object on a line.
    Json,
    /// Text that Prometheus reads, for its textfile collector.
    Prometheus,
}

/// The outcome of parsing.
pub(crate) enum Parsed {
    /// Go on with these.
    Run(Box<Flags>),
    /// Help, a version or an error was printed already.
    Told(Exit),
}

/// The command tree with its help texts, which `completions` needs, too.
pub(crate) fn command() -> clap::Command {
    Flags::command()
}

pub(crate) fn parse(args: &[OsString]) -> Parsed {
    // How an error of parsing is printed is asked for on the line that could not be parsed.
    let global = glance(args);
    let matches = command().color(global.color).try_get_matches_from(args);
    let error = match matches.and_then(|mut matches| Flags::from_arg_matches_mut(&mut matches)) {
        Ok(flags) => return Parsed::Run(Box::new(flags)),
        Err(error) => error,
    };
    let output = output::Output::new(&global);
    Parsed::Told(match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            output.written(error.print(), Exit::Ok)
        }
        _ if global.json => output.failure(&usage(&error), None),
        _ => output.written(error.print(), Exit::Usage),
    })
}

fn glance(args: &[OsString]) -> Global {
    let mut global = Global::default();
    let mut words = args
        .iter()
        .skip(1)
        .filter_map(|arg| arg.to_str())
        .take_while(|arg| *arg != "--")
        .peekable();
    while let Some(word) = words.next() {
        let color = match word {
            "--json" => {
                global.json = true;
                None
            }
            "--color" => words.peek().copied(),
            _ => word.strip_prefix("--color="),
        };
        if let Some(Ok(color)) = color.map(|text| ColorChoice::from_str(text, false)) {
            global.color = color;
        }
    }
    global
}

/// clap's message without its first word and its usage lines, which a program has no use for.
fn usage(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let message = first.strip_prefix("error: ").unwrap_or(first).trim();
    Failure::usage(message).hint("`kvik --help`, `kvik help COMMAND`")
}

/// What stands below the flags in `kvik --help`.
fn after_help() -> String {
    format!(
        "Where settings come from:
  Every setting can be given here, in the environment (KVIK_*, and KvikIO's KVIKIO_* names), or in
  the user's settings file; what is nearer to the call wins. `kvik config` lists all of them with
  value and origin, `kvik config KEY` explains one.

Log:
  Off by default. KVIK_LOG_LEVEL=debug prints it to standard error, with KVIK_LOG_FILE=PATH at the
  end of a file. A file that cannot be one is told, and standard error serves.

Exit codes:
{}

Examples:
  kvik copy --verify data.bin /mnt/fast/      # copy, then compare what the storage gives back
  kvik cat --range 1MiB+64KiB data.bin | xxd  # 64 KiB that begin at 1 MiB
  kvik doctor /mnt/fast                       # what kvik can use there, and what would be faster
  kvik bench                                  # about a minute: this machine beside its own limit

`kvik help COMMAND` has the flags of a command, the files it touches, its exit codes and examples.",
        Exit::table()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_tree_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn every_flag_and_command_is_documented() {
        fn check(command: &clap::Command) {
            let name = command.get_name();
            assert!(
                command.get_about().is_some(),
                "{name} says nothing about itself"
            );
            for arg in command.get_arguments() {
                assert!(
                    arg.get_help().is_some(),
                    "{name} {} has no help",
                    arg.get_id()
                );
            }
            command.get_subcommands().for_each(check);
        }
        check(&command());
    }

    #[test]
    fn a_glance_finds_the_output_flags_of_a_line_that_does_not_parse() {
        let glance = |line: &str| glance(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(glance("kvik copy --json").json);
        assert!(!glance("kvik copy -- --json").json);
        assert_eq!(glance("kvik --color never bogus").color, ColorChoice::Never);
        assert_eq!(
            glance("kvik --color=always bogus").color,
            ColorChoice::Always
        );
        assert_eq!(glance("kvik --color=mauve bogus").color, ColorChoice::Auto);
    }
}
