//! Facts about the machine and about a file, collected once and decided on elsewhere (`compat.rs`).
//!
//! A fact that could not be had carries the reason; nothing is guessed.

mod fact;
mod file;
pub(crate) mod file_system;
mod gpu;
mod udev;

use std::fmt;
use std::fs;
use std::num::NonZero;
use std::path::Path;
use std::thread;

use nix::errno::Errno;
use nix::sys::utsname::uname;
use nix::unistd::{SysconfVar, sysconf};

use crate::engine::uring;
use crate::os::{self, Resource};

pub use fact::{Fact, Support};
pub use file::{DirectAlignment, FileKind, FileProbe};
pub use file_system::FileSystem;
pub use gpu::{CuFileLibrary, CudaDriver, GpuDevice, GpuProbe};

/// Facts about this machine and this process that decide how fast bytes can move, and by which way.
///
/// # Example: may this process use io_uring?
/// ```
/// let probe = kvik_core::Probe::collect();
/// println!("io_uring: {}", probe.io_uring); // "yes", or "no: " and the reason
/// assert!(probe.page_size.is_power_of_two());
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Probe {
    /// Release of the running kernel, by `uname(2)`.
    pub kernel: Fact<String>,
    /// Whether the kernel is that of the Windows Subsystem for Linux, told by its release.
    pub wsl: bool,
    /// What the process seems to be contained in, and the sign of it. A hint: a container can hide.
    pub container: Fact<String>,
    /// Bytes in a page.
    pub page_size: u64,
    /// Cores the machine has online.
    pub cores_online: Fact<u64>,
    /// Cores this process may use, by affinity and cgroup quota.
    pub cores_usable: Fact<u64>,
    /// Bytes this process may lock into memory (`RLIMIT_MEMLOCK`).
    pub locked_memory: Fact<Limit>,
    /// Descriptors this process may have open (`RLIMIT_NOFILE`).
    pub open_files: Fact<Limit>,
    /// Whether a ring of io_uring can be made by this process.
    pub io_uring: Support,
    /// Mode of transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Fact<String>,
    /// Whether the kernel counts cached pages by `cachestat(2)` (Linux 6.5).
    pub cachestat: Support,
    /// Whether the records of udev can be read, without which cuFile registers no file.
    pub udev: Support,
}

/// A resource limit of the process. `None` means unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Limit {
    /// What holds now.
    pub soft: Option<u64>,
    /// Up to where the process may raise it.
    pub hard: Option<u64>,
}

impl Probe {
    /// Collects the facts; takes well under a millisecond. A small io_uring is made and closed again. Libraries are left alone:
    /// what needs the CUDA driver is for [`GpuProbe`].
    #[must_use]
    pub fn collect() -> Probe {
        Probe::below(Path::new("/"))
    }

    /// As [`collect`](Probe::collect), with `/proc`, `/sys` and the signs of containers below `root`.
    fn below(root: &Path) -> Probe {
        let kernel = Fact::from_result(
            uname().map(|names| names.release().to_string_lossy().into_owned()),
            "uname",
        );
        Probe {
            wsl: kernel.known().is_some_and(|release| is_wsl(release)),
            kernel,
            container: container(root),
            page_size: os::page_size(),
            cores_online: Fact::from_result(sysconf(SysconfVar::_NPROCESSORS_ONLN), "sysconf")
                .and_then(
                    |cores| cores.and_then(|cores| u64::try_from(cores).ok()),
                    "the C library does not know",
                ),
            cores_usable: Fact::from_result(
                thread::available_parallelism().map(NonZero::get),
                "available_parallelism",
            )
            .and_then(|cores| u64::try_from(cores).ok(), "too many to count"),
            locked_memory: limit(Resource::LockedMemory),
            open_files: limit(Resource::OpenFiles),
            io_uring: io_uring(root, os::io_uring_features),
            transparent_huge_pages: huge_pages(root),
            cachestat: cachestat(),
            udev: udev::usable(root),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word =
            |limit: Option<u64>| limit.map_or("unlimited".to_owned(), |limit| limit.to_string());
        write!(f, "{}", word(self.soft))?;
        match self.soft == self.hard {
            true => Ok(()),
            false => write!(f, " (may be raised to {})", word(self.hard)),
        }
    }
}

impl fmt::Display for Probe {
    /// A table of labels and values, one fact a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wsl = if self.wsl { "yes" } else { "no" };
        writeln!(f, "{:LABEL$}{}", "kernel", self.kernel)?;
        writeln!(f, "{:LABEL$}{wsl}", "WSL")?;
        writeln!(f, "{:LABEL$}{}", "container", self.container)?;
        writeln!(f, "{:LABEL$}{} bytes", "page", self.page_size)?;
        writeln!(f, "{:LABEL$}{}", "cores online", self.cores_online)?;
        writeln!(f, "{:LABEL$}{}", "cores usable", self.cores_usable)?;
        writeln!(f, "{:LABEL$}{}", "locked memory, bytes", self.locked_memory)?;
        writeln!(f, "{:LABEL$}{}", "open files", self.open_files)?;
        writeln!(f, "{:LABEL$}{}", "io_uring", self.io_uring)?;
        writeln!(f, "{:LABEL$}{}", "huge pages", self.transparent_huge_pages)?;
        writeln!(f, "{:LABEL$}{}", "cachestat", self.cachestat)?;
        write!(f, "{:LABEL$}{}", "udev", self.udev)
    }
}

/// Width of the label column in the tables of [`Probe`], [`GpuProbe`] and [`FileProbe`].
const LABEL: usize = 22;

fn is_wsl(release: &str) -> bool {
    // KvikIO's test: "Microsoft" and "microsoft" both occur.
    release.contains("icrosoft")
}

fn container(root: &Path) -> Fact<String> {
    if root.join(".dockerenv").exists() {
        return Fact::Known("docker (/.dockerenv is there)".to_owned());
    }
    if root.join("run/.containerenv").exists() {
        return Fact::Known("podman (/run/.containerenv is there)".to_owned());
    }
    if let Ok(name) = fs::read_to_string(root.join("run/systemd/container")) {
        return Fact::Known(format!("{} (/run/systemd/container says so)", name.trim()));
    }
    let groups = fs::read_to_string(root.join("proc/1/cgroup")).unwrap_or_default();
    for name in ["kubepods", "docker", "containerd", "libpod", "lxc"] {
        if groups.contains(name) {
            return Fact::Known(format!("{name} (/proc/1/cgroup names it)"));
        }
    }
    Fact::absent("no sign of one")
}

fn limit(resource: Resource) -> Fact<Limit> {
    Fact::from_result(
        os::limit(resource).map(|(soft, hard)| Limit { soft, hard }),
        "getrlimit",
    )
}

/// Whether this thread can have a ring of io_uring. The ring that is made for it stays with the thread.
pub(crate) fn io_uring_here() -> Support {
    io_uring(Path::new("/"), || uring::probe().map(|()| 0))
}

/// The setting explains a refusal; the attempt decides, since a filter of system calls stands in no setting.
fn io_uring(root: &Path, attempt: impl Fn() -> Result<u32, Errno>) -> Support {
    let Err(errno) = attempt() else {
        return Support::Yes;
    };
    let setting =
        fs::read_to_string(root.join("proc/sys/kernel/io_uring_disabled")).unwrap_or_default();
    Support::no(match (errno, setting.trim()) {
        (Errno::ENOSYS, _) => "this kernel is built without it, or a filter of system calls hides it".to_owned(),
        (Errno::EPERM, "2") => "switched off for everybody (kernel.io_uring_disabled = 2)".to_owned(),
        (Errno::EPERM, "1") => {
            "switched off for all but privileged processes and one group (kernel.io_uring_disabled = 1)".to_owned()
        }
        (Errno::EPERM, _) => "a filter of system calls forbids it, as containers do by default (EPERM)".to_owned(),
        (Errno::ENOMEM, _) => "the limit on locked memory leaves no room for a ring (ENOMEM)".to_owned(),
        (errno, _) => format!("{} ({errno:?})", errno.desc()),
    })
}

fn huge_pages(root: &Path) -> Fact<String> {
    let path = root.join("sys/kernel/mm/transparent_hugepage/enabled");
    match fs::read_to_string(path) {
        // `always [madvise] never`: the mode in force stands in brackets.
        Ok(text) => match text.split(['[', ']']).nth(1) {
            Some(mode) => Fact::Known(mode.to_owned()),
            None => Fact::absent(format!("{:?} names no mode", text.trim())),
        },
        Err(error) => Fact::absent(format!(
            "/sys/kernel/mm/transparent_hugepage/enabled: {error}"
        )),
    }
}

fn cachestat() -> Support {
    // A file of our own choosing would have to be opened; a descriptor that cannot exist is enough. The kernel looks at the
    // descriptor first, so EBADF means that the call is there.
    match os::cachestat_of_nothing() {
        Errno::EBADF => Support::Yes,
        Errno::ENOSYS => Support::no("this kernel does not have it (it came with 6.5)"),
        Errno::EPERM => Support::no("a filter of system calls forbids it (EPERM)"),
        errno => Support::no(format!("{} ({errno:?})", errno.desc())),
    }
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
