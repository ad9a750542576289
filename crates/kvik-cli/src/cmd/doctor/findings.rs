//! Findings: what the facts mean, and what to do about it. All but the trial read take values and return values.

use std::fmt::Write;
use std::path::Path;

use kvik::config::Config;
use kvik::{ErrorKind, FileHandle, FileKind, FileProbe, Probe, Route};
use serde::Serialize;

use crate::Exit;
use crate::failure::{Failure, Result};
use crate::style::{BAD, GOOD, NOTE, Style};

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) level: Level,
    pub(super) what: String,
    pub(super) advice: Option<String>,
    #[serde(skip)]
    pub(super) exit: Exit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Ok,
    Note,
    Problem,
}

impl Finding {
    pub(super) fn ok(what: impl Into<String>) -> Self {
        Finding {
            level: Level::Ok,
            what: what.into(),
            advice: None,
            exit: Exit::Ok,
        }
    }

    pub(super) fn note(what: impl Into<String>, advice: impl Into<String>) -> Self {
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

    pub(super) fn write(&self, text: &mut String) {
        let (style, word): (Style, _) = match self.level {
            Level::Ok => (GOOD, "ok"),
            Level::Note => (NOTE, "note"),
            Level::Problem => (BAD, "problem"),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {style}{word:8}{style:#}{}", self.what);
        if let Some(advice) = &self.advice {
            let _ = writeln!(text, "          -> {advice}");
        }
    }
}

/// Whether threads start and bring the right bytes, with the program itself as the file. Nothing where a setting stands in
/// the way: [`of_settings`] says so.
pub(super) fn try_a_read(path: &Path) -> Option<Finding> {
    let read = || -> Result<bool> {
        let file = FileHandle::open(path)?;
        let mut bytes = vec![0; usize::try_from(file.len()?).unwrap_or(0).min(8 << 20)];
        file.read_exact_at(&mut bytes, 0)?;
        let expected = std::fs::read(path).map_err(|error| Failure::io("read", path, &error))?;
        Ok(expected.starts_with(&bytes))
    };
    Some(match read() {
        Ok(true) => Finding::ok("a file read in parallel has the right bytes"),
        Ok(false) => Finding::problem(
            Exit::Integrity,
            "a file read in parallel has wrong bytes",
            "this is a bug of kvik, or of the memory or storage of this machine; please report it",
        ),
        Err(failure) if failure.is(ErrorKind::Config) => return None,
        Err(failure) => Finding::problem(
            failure.exit(),
            format!("a file cannot be read: {}", failure.message()),
            failure.hint_text().unwrap_or("see the reason").to_owned(),
        ),
    })
}

pub(super) fn of_settings(config: &Config) -> Vec<Finding> {
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

pub(super) fn of_machine(probe: &Probe) -> Vec<Finding> {
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
    if let Some(why) = probe.io_uring.why_not() {
        findings.push(Finding::note(
            format!("io_uring cannot be used: {why}"),
            "nothing to do for most work; a container's filter of system calls, the setting kernel.io_uring_disabled or the \
             limit on locked memory (`ulimit -l`) can be loosened by who runs this machine",
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

pub(super) fn of_file(file: &FileProbe) -> Vec<Finding> {
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

pub(super) fn of_route(route: &kvik::Result<Route>) -> Vec<Finding> {
    match route {
        Ok(route) => {
            let first = route
                .allowed
                .first()
                .map(|allowed| format!("bytes go by {}: {}", allowed.engine, allowed.why));
            first.map(Finding::ok).into_iter().collect()
        }
        // A bad setting, which `of_settings` names.
        Err(error) if error.kind() == ErrorKind::Config => Vec::new(),
        Err(error) => vec![Finding::problem(
            error.kind().into(),
            format!("no route: {error}"),
            "`kvik config compat_mode` shows who asked for it",
        )],
    }
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
}
