//! The machine under the figures: what a reader needs to know to compare them with others.

use std::path::Path;

use serde::Serialize;

use crate::race::{cpu_seconds, cpu_seconds_of_ended_children};

/// Where and on what the figures were measured.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Machine {
    /// The name of the CPU as the kernel gives it; empty if it gives none.
    pub cpu: String,
    /// CPUs that this process may use.
    pub cpus: usize,
    /// Memory in bytes.
    pub memory: u64,
    /// The kernel's release.
    pub kernel: String,
    /// Runnable threads of the whole machine when the run began, averaged over a minute.
    pub load: f64,
    /// The same when it ended.
    pub load_at_the_end: f64,
    /// The share of all CPUs' time that others took while the cases ran, from 0 to 1; `None` if the kernel does not tell.
    pub others: Option<f64>,
    /// The folder in which the files lay.
    pub directory: String,
    /// The file system of that folder.
    pub file_system: String,
    /// The length of the data file in bytes.
    pub data: u64,
    /// Threads that kvik used at most.
    pub threads: usize,
    /// The version of kvik.
    pub version: String,
}

impl Machine {
    pub(crate) fn look(directory: &Path, data: u64, threads: usize) -> Self {
        let proc =
            |name: &str| std::fs::read_to_string(Path::new("/proc").join(name)).unwrap_or_default();
        Self {
            cpu: field(&proc("cpuinfo"), "model name").unwrap_or_default(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            memory: kibibytes(&proc("meminfo"), "MemTotal").unwrap_or(0),
            kernel: proc("sys/kernel/osrelease").trim().to_owned(),
            load: load(),
            load_at_the_end: load(),
            others: None,
            directory: directory.display().to_string(),
            file_system: file_system(directory),
            data,
            threads,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// Runnable threads of the whole machine, averaged over a minute; 0 if the kernel does not tell.
pub(crate) fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split(' ').next();
    first.and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

/// What other processes do, from a moment on.
pub(crate) struct Others {
    machine: Option<(f64, f64)>,
    own: f64,
}

impl Others {
    /// `helpers`: CPU seconds so far of processes that are ours and have not ended.
    pub(crate) fn watch(helpers: f64) -> Self {
        Self {
            machine: std::fs::read_to_string("/proc/stat")
                .ok()
                .and_then(|text| ticks(&text)),
            own: cpu_seconds() + cpu_seconds_of_ended_children() + helpers,
        }
    }

    /// The share of all CPUs' time that was neither idle nor ours since then.
    pub(crate) fn share(&self, helpers: f64) -> Option<f64> {
        let now = Self::watch(helpers);
        let ((busy, all), (busy_before, all_before)) = (now.machine?, self.machine?);
        let own = (now.own - self.own) * ticks_per_second();
        let share = (busy - busy_before - own) / (all - all_before);
        share.is_finite().then(|| share.clamp(0.0, 1.0))
    }
}

fn ticks_per_second() -> f64 {
    // SAFETY: sysconf only answers a question.
    unsafe { libc::sysconf(libc::_SC_CLK_TCK) as f64 }
}

/// User and system seconds of a process that runs; `None` if the kernel does not tell.
pub(crate) fn cpu_seconds_of_process(id: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    Some(ticks_of_process(&stat)? / ticks_per_second())
}

/// Of /proc/PID/stat. The second field is a name in parentheses, in which anything may stand.
fn ticks_of_process(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// Busy and all clock ticks of the first line of /proc/stat. Waiting for a disk is idleness; time stolen by the host is not.
fn ticks(stat: &str) -> Option<(f64, f64)> {
    let words = stat.lines().next()?.strip_prefix("cpu ")?;
    // user, nice, system, idle, iowait, irq, softirq, steal; guests' time is in user already.
    let ticks: Vec<f64> = words
        .split_whitespace()
        .take(8)
        .filter_map(|word| word.parse().ok())
        .collect();
    let [user, nice, system, idle, waiting, irq, softirq, stolen] = ticks.try_into().ok()?;
    let busy = user + nice + system + irq + softirq + stolen;
    Some((busy, busy + idle + waiting))
}

/// Memory that can be had without swapping, in bytes, by the kernel's estimate and this process's control groups.
/// `None` if nobody says.
pub(crate) fn memory_available() -> Option<u64> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let free = read(Path::new("/proc/meminfo")).and_then(|text| kibibytes(&text, "MemAvailable"));
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let root = Path::new("/sys/fs/cgroup");
    let own = groups
        .lines()
        .find_map(|line| line.strip_prefix("0::/"))
        .unwrap_or_default();
    // A group is held to the limits of all groups around it. The file is missing in the root group and says "max" where
    // there is no limit. Version 1 has one limit that matters, in a file of another name.
    let limits = root
        .join(own)
        .ancestors()
        .map(|group| group.join("memory.max"))
        .collect::<Vec<_>>();
    let version_1 = root.join("memory/memory.limit_in_bytes");
    let limit = limits
        .iter()
        .chain([&version_1])
        .filter_map(|path| read(path)?.trim().parse::<u64>().ok())
        .min();
    free.into_iter().chain(limit).min()
}

/// The name of the file system under `path`.
pub(crate) fn file_system(path: &Path) -> String {
    let probe = kvik::FileProbe::of(path).ok();
    let name = probe.and_then(|probe| Some(probe.file_system.known()?.name.clone()));
    name.unwrap_or_else(|| "unknown".to_owned())
}

/// Whether files under `path` are kept in memory, so that there is no disk to measure.
pub(crate) fn is_in_memory(path: &Path) -> bool {
    matches!(file_system(path).as_str(), "tmpfs" | "ramfs")
}

/// Bytes that this user may still write under `path`.
pub(crate) fn free_space(path: &Path) -> std::io::Result<u64> {
    let path = c_path(path)?;
    let mut answer = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: a NUL-terminated path and a pointer to a whole `statvfs`, both alive during the call.
    let status = unsafe { libc::statvfs(path.as_ptr(), answer.as_mut_ptr()) };
    if status != 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: zeroed first, filled by the call since; all its fields are integers.
    let answer = unsafe { answer.assume_init() };
    Ok(answer.f_bavail.saturating_mul(answer.f_frsize))
}

fn c_path(path: &Path) -> std::io::Result<std::ffi::CString> {
    use std::os::unix::ffi::OsStrExt;
    Ok(std::ffi::CString::new(path.as_os_str().as_bytes())?)
}

/// The value of the first line `key : value`.
fn field(text: &str, key: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    })
}

fn kibibytes(text: &str, key: &str) -> Option<u64> {
    field(text, key)?
        .strip_suffix(" kB")?
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_proc_files_are_found() {
        let cpuinfo = "processor\t: 0\nmodel name\t: A CPU: with a colon\nmodel name\t: second\n";
        assert_eq!(
            field(cpuinfo, "model name").as_deref(),
            Some("A CPU: with a colon")
        );
        let meminfo = "MemTotal:       24689012 kB\nHugePages_Total:       0\n";
        assert_eq!(kibibytes(meminfo, "MemTotal"), Some(24_689_012 * 1024));
        assert_eq!(kibibytes(meminfo, "HugePages_Total"), None);
        assert_eq!(kibibytes(meminfo, "MemAvailable"), None);
    }

    #[test]
    fn this_machine_has_memory_space_and_a_file_system() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert!(memory_available().is_some_and(|bytes| bytes > 1 << 20));
        assert!(free_space(folder.path()).expect("statvfs") > 0);
        assert_ne!(file_system(folder.path()), "unknown");
        let machine = Machine::look(folder.path(), 7, 2);
        assert!(machine.memory > 1 << 20 && machine.cpus > 0 && !machine.kernel.is_empty());
        assert!(machine.load.is_finite());
    }

    #[test]
    fn the_ticks_of_all_cpus_are_busy_or_idle() {
        let stat = "cpu  10 1 20 300 4 5 6 7 3 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(ticks(stat), Some((49.0, 353.0)));
        assert_eq!(ticks("intr 5"), None);
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194560 1 2 3 4 250 50 0 0 20 0 1 0";
        assert_eq!(ticks_of_process(stat), Some(300.0));
        assert!(cpu_seconds_of_process(std::process::id()).is_some());
        let share = Others::watch(0.0).share(0.0);
        assert!(share.is_none_or(|share| (0.0..=1.0).contains(&share)));
    }

    #[test]
    fn proc_and_missing_folders_are_told_apart_from_disks() {
        assert!(free_space(Path::new("/no/such/folder")).is_err());
        assert_eq!(file_system(Path::new("/no/such/folder")), "unknown");
        assert_eq!(file_system(Path::new("/proc")), "proc");
    }
}
