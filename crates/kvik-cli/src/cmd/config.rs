//! `kvik config`: every setting, its value and who said it; and what is wrong.

use std::fmt::Write;

use clap::Args;
use kvik::config::{Config, ConfigError, Effect, Key, Origin};
use serde_json::{Value, json};

use crate::Exit;
use crate::failure::Result;
use crate::output::Report;
use crate::settings;
use crate::style::{BAD, FAINT, HEADING};

/// Show every setting, its value, and who said it
///
/// From weak to strong: the default, the user's settings file, the environment, the command line. A
/// bad value in the file or the environment only stops what needs it; here all of them are listed.
/// Behind the origin, [planned] marks what this version reads and checks but does not act on, and
/// [stored] what only KvikIO acts on.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, after_long_help = AFTER)]
pub(crate) struct Flags {
    /// Only these settings, with all there is to know about them
    #[arg(value_name = "KEY")]
    keys: Vec<String>,
}

const AFTER: &str = "\
Files:
  The file that KVIK_CONFIG names, else $XDG_CONFIG_HOME/kvik/config.toml, else
  ~/.config/kvik/config.toml; lines such as `task_size = \"8MiB\"`. Never a file of the working
  directory.

Exit codes:
  0 all settings are usable, 2 some are not, or there is no such KEY; `kvik --help` has the
  whole table.

Examples:
  kvik config
  kvik config num_threads
  KVIK_TASK_SIZE=8MiB kvik config --json | jq '.settings[] | select(.origin != \"default\")'";

pub(crate) fn run(flags: &Flags) -> Result<Report> {
    let config = Config::current();
    let asked = flags
        .keys
        .iter()
        .map(|name| settings::key(name))
        .collect::<Result<Vec<_>>>()?;
    let keys = if asked.is_empty() { Key::ALL } else { &asked };
    let mut problems = config.problems();
    if !asked.is_empty() {
        problems.retain(|problem| problem.key().is_none_or(|key| asked.contains(&key)));
    }
    let text = if asked.is_empty() {
        table(&config)
    } else {
        details(&config, keys)
    };
    let text = text + &complaints(&problems);
    let json = json!({
        "settings": keys.iter().map(|&key| setting(&config, key)).collect::<Vec<_>>(),
        "problems": problems.iter().map(problem).collect::<Vec<_>>(),
    });
    let exit = if problems.is_empty() {
        Exit::Ok
    } else {
        Exit::Usage
    };
    Ok(Report::new(json).text(text).exit(exit))
}

fn setting(config: &Config, key: Key) -> Value {
    json!({
        "name": key.name(),
        "value": config.text(key).ok(),
        "origin": origin(config, key),
        "default": key.default(),
        "kvikio_default": key.kvikio_default(),
        "unit": key.unit(),
        "expected": key.expected(),
        "variables": key.variables(),
        "effect": key.effect().word(),
        "meaning": one_line(key.sentence()),
    })
}

fn problem(error: &ConfigError) -> Value {
    json!({
        "key": error.key().map(Key::name),
        "name": error.name(),
        "value": error.text(),
        "origin": error.origin().to_string(),
        "message": error.to_string(),
    })
}

/// As people who typed the command know it.
fn origin(config: &Config, key: Key) -> String {
    match config.origin(key) {
        Origin::Process => "command line".to_owned(),
        other => other.to_string(),
    }
}

fn value(config: &Config, key: Key) -> String {
    match config.text(key) {
        Ok(text) if text.is_empty() => "(not set)".to_owned(),
        Ok(text) => text,
        Err(_) => "(unusable, see below)".to_owned(),
    }
}

fn table(config: &Config) -> String {
    let name_width = Key::ALL
        .iter()
        .map(|key| key.name().len())
        .max()
        .unwrap_or(0);
    let value_width = Key::ALL
        .iter()
        .map(|&key| value(config, key).len().min(28))
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(
        text,
        "{HEADING}{:name_width$}  {:value_width$}  ORIGIN{HEADING:#}",
        "KEY", "VALUE"
    );
    for &key in Key::ALL {
        let (value, origin) = (value(config, key), origin(config, key));
        let faint = if origin == "default" { FAINT } else { HEADING };
        let mark = match key.effect() {
            Effect::Now => String::new(),
            other => format!("  {FAINT}[{other}]{FAINT:#}"),
        };
        let _ = writeln!(
            text,
            "{:name_width$}  {value:value_width$}  {faint}{origin}{faint:#}{mark}",
            key.name()
        );
    }
    for effect in [Effect::CommandOnly, Effect::Planned, Effect::Stored] {
        let _ = writeln!(
            text,
            "{FAINT}[{effect}] {}{FAINT:#}",
            plain(effect.meaning())
        );
    }
    text
}

fn details(config: &Config, keys: &[Key]) -> String {
    let mut text = String::new();
    for &key in keys {
        let _ = writeln!(
            text,
            "{HEADING}{}{HEADING:#} = {}",
            key.name(),
            value(config, key)
        );
        let _ = writeln!(text, "  from        {}", origin(config, key));
        let _ = writeln!(
            text,
            "  default     {} (KvikIO: {})",
            or_dash(key.default()),
            or_dash(key.kvikio_default().unwrap_or_default())
        );
        let _ = writeln!(text, "  variables   {}", key.variables().join(", "));
        let _ = writeln!(text, "  value       {}", key.expected());
        let _ = writeln!(text, "  effect      {}", plain(key.effect().meaning()));
        let _ = writeln!(text, "  meaning     {}", one_line(key.sentence()));
    }
    text
}

fn complaints(problems: &[ConfigError]) -> String {
    let mut text = String::new();
    for problem in problems {
        let _ = writeln!(text, "{BAD}problem:{BAD:#} {problem}");
    }
    text
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

/// Without the marks of Markdown.
fn plain(text: &str) -> String {
    text.replace('`', "")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
