//! `kvik doctor`: what kvik can use on this machine, and what would make it faster.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use kvik::config::Config;
use kvik::{FileHandle, FileKind, FileProbe, Probe, Route};
use serde::Serialize;
use serde_json::json;

use crate::Exit;
use crate::cmd::stat::as_json;
use crate::failure::{Failure, Result};
use crate::output::Report;
use crate::style::{BAD, GOOD, HEADING, NOTE, Style};

/// Show what kvik can use on this machine, and what would make it faster
///
/// Collects facts about the machine, and about PATH if there is one; reads a file in parallel and compares the bytes;
/// then says what stands in the way and what to do about it.
#[derive(Debug, Args)]
#[command(after_long_help = AFTER)]
pub(crate) struct Flags {
    /// A file or directory whose storage is looked at, too
    path: Option<PathBuf>,
}

const AFTER: &str = "\
Output:
  Findings are `ok`, `note` (works, could be better) or `problem` (something does not work). Advice follows `->`.

Exit codes:
  0 no problem (notes do not count), 2 a setting is unusable, 3 no such PATH, 5 a read gave wrong bytes;
  `kvik --help` has the whole table.

Examples:
  kvik doctor
  kvik doctor /mnt/fast
  kvik doctor --json | jq '.findings[] | select(.level != \"ok\")'";

pub(crate) fn run(flags: &Flags) -> Result<Report> {
    let probe = Probe::collect();
    let file = flags.path.as_ref().map(FileProbe::of).transpose()?;
    let config = Config::current();
    let route = route(flags.path.as_deref(), file.as_ref());

    let mut findings = vec![try_a_read(Path::new("/proc/self/exe"))];
    findings.extend(of_settings(&config));
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

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    level: Level,
    what: String,
    advice: Option<String>,
    #[serde(skip)]
    exit: Exit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    Note,
    Problem,
}

impl Finding {
    fn ok(what: impl Into<String>) -> Self {
        Finding {
            level: Level::Ok,
            what: what.into(),
            advice: None,
            exit: Exit::Ok,
        }
    }

    fn note(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Finding {
            level: Level::Note,
            what: what.into(),
            advice: Some(advice.into()),
            exit: Exit::Ok,
        }
    }

    fn problem(exit: Exit, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Finding {
            level: Level::Problem,
            what: what.into(),
            advice: Some(advice.into()),
            exit,
        }
    }

    fn write(&self, text: &mut String) {
        let (style, word): (Style, _) = match self.level {
            Level::Ok => (GOOD, "ok"),
            Level::Note => (NOTE, "note"),
            Level::Problem => (BAD, "problem"),
        };
        let _ = writeln!(text, "  {style}{word:8}{style:#}{}", self.what);
        if let Some(advice) = &self.advice {
            let _ = writeln!(text, "          -> {advice}");
        }
    }
}

/// The route of the file, or of any file where the path is none.
fn route(path: Option<&Path>, file: Option<&FileProbe>) -> kvik::Result<Route> {
    let own = Path::new("/proc/self/exe");
    let is_file =
        file.is_some_and(|file| matches!(file.kind, FileKind::Regular | FileKind::BlockDevice));
    let path = path.filter(|_| is_file).unwrap_or(own);
    FileHandle::open(path).map(|handle| handle.route().clone())
}

/// Whether threads start and bring the right bytes, with the program itself as the file.
fn try_a_read(path: &Path) -> Finding {
    let read = || -> Result<bool> {
        let file = FileHandle::open(path)?;
        let mut bytes = vec![0; usize::try_from(file.len()?).unwrap_or(0).min(8 << 20)];
        file.read_exact_at(&mut bytes, 0)?;
        let expected = std::fs::read(path).map_err(|error| Failure::io("read", path, &error))?;
        Ok(expected.starts_with(&bytes))
    };
    match read() {
        Ok(true) => Finding::ok("a file read in parallel has the right bytes"),
        Ok(false) => Finding::problem(
            Exit::Integrity,
            "a file read in parallel has wrong bytes",
            "this is a bug of kvik, or of the memory or storage of this machine; please report it",
        ),
        Err(failure) => Finding::problem(
            failure.exit(),
            format!("a file cannot be read: {}", failure.message()),
            failure.hint_text().unwrap_or("see the reason").to_owned(),
        ),
    }
}

fn of_settings(config: &Config) -> Vec<Finding> {
    let problems = config.problems();
    if problems.is_empty() {
        return vec![Finding::ok("all settings are usable")];
    }
    let advice = "`kvik config` lists every setting and who said it";
    problems
        .iter()
        .map(|problem| Finding::problem(Exit::Usage, problem.to_string(), advice))
        .collect()
}

fn of_machine(probe: &Probe) -> Vec<Finding> {
    let mut findings = Vec::new();
    match (probe.cores_usable.known(), probe.cores_online.known()) {
        (Some(usable), Some(online)) if usable < online => findings.push(Finding::note(
            format!("this process may use {usable} of {online} cores"),
            "affinity (taskset) or a cgroup's cpu quota limits it; raise it for more threads",
        )),
        (Some(usable), _) => findings.push(Finding::ok(format!(
            "this process may use all {usable} cores"
        ))),
        _ => {}
    }
    if let Some(soft) = probe
        .open_files
        .known()
        .and_then(|limit| limit.soft)
        .filter(|soft| *soft < FEW_FILES)
    {
        findings.push(Finding::note(
            format!("only {soft} files may be open at once"),
            format!("`ulimit -n {FEW_FILES}` or more, for programs that keep many handles"),
        ));
    }
    match probe.cachestat.why_not() {
        None => findings.push(Finding::ok("cached pages can be counted")),
        Some(why) => findings.push(Finding::note(
            format!("cached pages are counted the slow way: cachestat: {why}"),
            "Linux 6.5 or newer, and in a container a filter that allows cachestat",
        )),
    }
    if probe
        .transparent_huge_pages
        .known()
        .is_some_and(|mode| mode == "never")
    {
        findings.push(Finding::note(
            "huge pages are off, so that large new buffers cost more time than the copy into them",
            "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        ));
    }
    if probe.wsl {
        findings.push(Finding::note(
            "this is the Windows Subsystem for Linux: files below /mnt/c and its like are slow",
            "keep the data in the Linux file system",
        ));
    }
    findings
}

fn of_file(file: &FileProbe) -> Vec<Finding> {
    let mut findings = Vec::new();
    if matches!(
        file.kind,
        FileKind::CharacterDevice | FileKind::Fifo | FileKind::Socket | FileKind::Other
    ) {
        findings.push(Finding::note(
            format!(
                "{} is a {}, which has no offsets to read at",
                file.place, file.kind
            ),
            "`kvik cat` reads it front to back",
        ));
        return findings;
    }
    let name = file.file_system.known().map(|system| system.name.as_str());
    match name {
        Some(name) if NETWORK.iter().any(|known| name.starts_with(known)) => findings.push(Finding::note(
            format!("{} lies on {name}, a file system over the network or in user space", file.place),
            "more threads hide its latency: try --threads 32, and `kvik bench file` to see what helps",
        )),
        Some(name) => findings.push(Finding::ok(format!("{} lies on {name}", file.place))),
        None => {}
    }
    if matches!(file.kind, FileKind::Regular | FileKind::BlockDevice) {
        match file.direct_opens.why_not() {
            None => findings.push(Finding::ok("it can be opened past the page cache")),
            Some(why) => findings.push(Finding::note(
                format!("it cannot be opened past the page cache: {why}"),
                "nothing to do for most work; ext4 and xfs on a local disk can",
            )),
        }
        if let Some(why) = file.cached.why_absent() {
            findings.push(Finding::note(
                format!("nobody can tell how much of it is cached: {why}"),
                "own the file or be allowed to write to it",
            ));
        }
    }
    findings
}

fn of_route(route: &kvik::Result<Route>) -> Vec<Finding> {
    match route {
        Ok(route) => {
            let first = route
                .allowed
                .first()
                .map(|allowed| format!("bytes go by {}: {}", allowed.engine, allowed.why));
            first.map(Finding::ok).into_iter().collect()
        }
        Err(error) => vec![Finding::problem(
            error.kind().into(),
            format!("no route: {error}"),
            "`kvik config compat_mode` shows who asked for it",
        )],
    }
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

// The usual soft limit of a login; less than that is somebody's choice.
const FEW_FILES: u64 = 1024;

/// Beginnings of the names of file systems whose latency is that of a network or of another process.
const NETWORK: &[&str] = &[
    "nfs", "cifs", "smb", "ceph", "lustre", "beegfs", "gpfs", "9p", "fuse", "afs",
];

#[cfg(test)]
mod tests {
    use super::*;
    use kvik::{Fact, Support};

    fn advice(findings: &[Finding], word: &str) -> Option<String> {
        let found = findings.iter().find(|finding| finding.what.contains(word));
        found.and_then(|finding| finding.advice.clone())
    }

    #[test]
    fn each_shortage_of_the_machine_has_its_advice() {
        let mut probe = Probe::collect();
        probe.cores_online = Fact::Known(8);
        probe.cores_usable = Fact::Known(2);
        probe.cachestat = Support::No("too old".to_owned());
        probe.transparent_huge_pages = Fact::Known("never".to_owned());
        probe.wsl = true;
        let findings = of_machine(&probe);
        assert!(
            advice(&findings, "2 of 8 cores")
                .unwrap()
                .contains("taskset")
        );
        assert!(
            advice(&findings, "cachestat: too old")
                .unwrap()
                .contains("6.5")
        );
        assert!(advice(&findings, "huge pages").unwrap().contains("madvise"));
        assert!(advice(&findings, "Windows").is_some());
    }

    #[test]
    fn a_file_on_a_network_is_told_to_use_more_threads() {
        let mut file = FileProbe::of("/proc/self/exe").unwrap();
        if let Fact::Known(system) = &mut file.file_system {
            system.name = "nfs4".to_owned();
        }
        file.cached = Fact::Absent {
            absent: "not yours".to_owned(),
        };
        let findings = of_file(&file);
        assert!(advice(&findings, "nfs4").unwrap().contains("--threads"));
        assert!(advice(&findings, "not yours").is_some());
    }

    #[test]
    fn the_verdict_counts_what_was_found() {
        let route = FileHandle::open("/proc/self/exe").map(|handle| handle.route().clone());
        let config = Config::default();
        assert!(verdict(&config, &route, 0, 2).starts_with("kvik works here"));
        assert!(verdict(&config, &route, 0, 1).ends_with("no problems, 1 note"));
        assert!(
            verdict(&config, &route, 2, 0).starts_with("something stands in the way; 2 problems")
        );
    }
}
