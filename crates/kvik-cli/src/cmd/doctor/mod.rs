//! `kvik doctor`: what kvik can use on this machine, and what would make it faster.

mod findings;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use kvik::config::Config;
use kvik::{FileHandle, FileKind, FileProbe, Probe, Route};
use serde_json::json;

use crate::Exit;
use crate::cmd::stat::as_json;
use crate::failure::Result;
use crate::output::Report;
use crate::style::HEADING;

use findings::{Level, of_file, of_machine, of_route, of_settings, try_a_read};

/// Show what kvik can use on this machine, and what would make it faster
///
/// Collects facts about the machine, and about PATH if there is one; reads a file in parallel and
/// compares the bytes; then says what stands in the way and what to do about it.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment, after_long_help = AFTER)]
pub(crate) struct Flags {
    /// A file or directory whose storage is looked at, too
    path: Option<PathBuf>,
}

const AFTER: &str = "\
Output:
  Findings are `ok`, `note` (works, could be better) or `problem` (something does not work).
  Advice follows `->`.

Exit codes:
  0 no problem (notes do not count), 2 a setting is unusable, 3 no such PATH, 5 a read gave
  wrong bytes; `kvik --help` has the whole table.

Examples:
  kvik doctor
  kvik doctor /mnt/fast
  kvik doctor --json | jq '.findings[] | select(.level != \"ok\")'";

pub(crate) fn run(flags: &Flags) -> Result<Report> {
    let probe = Probe::collect();
    let file = flags.path.as_ref().map(FileProbe::of).transpose()?;
    let config = Config::current();
    let route = route(flags.path.as_deref(), file.as_ref());

    let mut findings = of_settings(&config);
    findings.extend(try_a_read(Path::new("/proc/self/exe")));
    findings.extend(of_machine(&probe));
    findings.extend(file.iter().flat_map(of_file));
    findings.extend(of_route(&route));
    let problems = findings
        .iter()
        .filter(|finding| finding.level == Level::Problem)
        .count();
    let notes = findings
        .iter()
        .filter(|finding| finding.level == Level::Note)
        .count();
    let verdict = verdict(&config, &route, problems, notes);
    let exit = findings
        .iter()
        .map(|finding| finding.exit)
        .find(|exit| *exit != Exit::Ok)
        .unwrap_or(Exit::Ok);

    let mut text = format!(
        "{HEADING}machine{HEADING:#}\n{}\n",
        indented(&probe.to_string())
    );
    // Writing to a String cannot fail, here and below.
    if let Some(file) = &file {
        let _ = writeln!(
            text,
            "{HEADING}path{HEADING:#}\n{}",
            indented(&file.to_string())
        );
    }
    if let Ok(route) = &route {
        let _ = writeln!(
            text,
            "{HEADING}route{HEADING:#}\n{}",
            indented(&route.to_string())
        );
    }
    let _ = writeln!(text, "{HEADING}findings{HEADING:#}");
    findings.iter().for_each(|finding| finding.write(&mut text));
    let _ = writeln!(text, "{HEADING}verdict{HEADING:#}\n  {verdict}");
    let object = json!({
        "machine": as_json(&probe)?,
        "path": file.as_ref().map(as_json).transpose()?,
        "route": route.as_ref().ok().map(as_json).transpose()?,
        "findings": as_json(&findings)?,
        "verdict": verdict,
    });
    Ok(Report::new(object).text(text).exit(exit))
}

/// The route of the file, or of any file where the path is none.
fn route(path: Option<&Path>, file: Option<&FileProbe>) -> kvik::Result<Route> {
    let own = Path::new("/proc/self/exe");
    let is_file =
        file.is_some_and(|file| matches!(file.kind, FileKind::Regular | FileKind::BlockDevice));
    let path = path.filter(|_| is_file).unwrap_or(own);
    FileHandle::open(path).map(|handle| handle.route())
}

fn verdict(config: &Config, route: &kvik::Result<Route>, problems: usize, notes: usize) -> String {
    let count = |number: usize, word: &str| match number {
        0 => format!("no {word}s"),
        1 => format!("1 {word}"),
        _ => format!("{number} {word}s"),
    };
    let counted = format!("{}, {}", count(problems, "problem"), count(notes, "note"));
    match (route, config.num_threads()) {
        (Ok(_), Ok(threads)) if problems == 0 => {
            format!("kvik works here, with up to {threads} threads; {counted}")
        }
        _ => format!("something stands in the way; {counted}"),
    }
}

fn indented(text: &str) -> String {
    text.lines()
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_counts_what_was_found() {
        let route = FileHandle::open("/proc/self/exe").map(|handle| handle.route());
        let config = Config::default();
        assert!(verdict(&config, &route, 0, 2).starts_with("kvik works here"));
        assert!(verdict(&config, &route, 0, 1).ends_with("no problems, 1 note"));
        assert!(
            verdict(&config, &route, 2, 0).starts_with("something stands in the way; 2 problems")
        );
    }
}
