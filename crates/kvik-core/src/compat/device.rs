//! By which way bytes reach device memory, and why: cuFile, or pages of host memory in between.
//!
//! The order of [`Check`] is the order in which cuFile's needs are looked at; the first that is not met is the reason that is told.

use std::borrow::Cow;
use std::fmt;

use kvik_config::CompatMode;

use super::RuledOut;
use super::direct_path::sign_of_direct_path;
use crate::error::{Error, ErrorKind, Op, Result};
use crate::gds::Standing;
use crate::probe::{Fact, FileProbe, GpuProbe, Probe, Support};

/// The ways that bytes of one file may take to and from device memory, and those that they may not, each with the reason.
///
/// `Display` is what `kvik doctor` shows.
///
/// # Example: is there a way to a device at all?
/// ```
/// use kvik_core::{DeviceRoute, FileProbe, GpuProbe, Probe};
/// use kvik_config::{CompatMode, Config};
///
/// let (machine, gpu) = (Probe::collect(), GpuProbe::collect(&Config::current()));
/// let file = FileProbe::of("/proc/self/exe")?;
/// let route = DeviceRoute::resolve(CompatMode::Auto, &machine, &gpu, &file)?;
/// match route.allowed.first() {
///     Some(allowed) => println!("by {}: {}", allowed.way, allowed.why),
///     None => println!("{route}"), // "staged    ruled out: no CUDA driver: ...", for instance
/// }
/// # Ok::<(), kvik_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct DeviceRoute {
    /// The compat mode it was resolved from: `off`, `on` or `auto`.
    pub wanted: CompatMode,
    /// The ways that may be taken, the preferred one first. Empty where no device can be used.
    pub allowed: Vec<AllowedWay>,
    /// Those that may not.
    pub ruled_out: Vec<RuledOut>,
    /// What cuFile needs for this file, all of it, whether or not the compat mode lets it be used.
    pub checks: Vec<CuFileCheck>,
}

/// A way of a [`DeviceRoute`] that may be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct AllowedWay {
    /// The way.
    pub way: DeviceWay,
    /// Why, in a clause without a stop.
    pub why: Cow<'static, str>,
}

/// A way between a file and device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub enum DeviceWay {
    /// cuFile, by which storage and device talk to each other.
    #[cfg_attr(feature = "serde", serde(rename = "cuFile"))]
    CuFile,
    /// Into page-locked host memory, and on from there by the device.
    #[cfg_attr(feature = "serde", serde(rename = "staged"))]
    Staged,
}

/// One thing that cuFile needs, and whether it is there for this file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CuFileCheck {
    /// What is needed.
    pub check: Check,
    /// Whether it is there; if not, a clause that says what cuFile is without it.
    pub outcome: Support,
}

/// What cuFile needs, in the order in which it is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize),
    serde(rename_all = "kebab-case")
)]
#[non_exhaustive]
pub enum Check {
    /// A CUDA driver that shows a device.
    Driver,
    /// A kernel other than that of the Windows Subsystem for Linux.
    Kernel,
    /// libcufile.
    Library,
    /// A file that can be opened past the page cache. Where it cannot, cuFile may still take it.
    DirectIo,
    /// Udev's record of the block device, where the file lies on one. Without it cuFile was seen to refuse the file.
    Udev,
    /// A sign of a direct path between storage and device. Only `auto` asks for it, and wants the path proven for the file when it
    /// is first used: with `off`, cuFile may copy through host memory of its own.
    DirectPath,
}

impl DeviceRoute {
    /// Decides by which ways the bytes of `file` may reach device memory: a decision of its arguments alone.
    ///
    /// `on` never takes cuFile, `off` takes it or fails, `auto` takes it only where a direct path was proven for the file: of one that
    /// was not used yet, whether there is a sign of that. Whether cuFile takes the file is not known before it is asked to;
    /// [`FileHandle::device_route`](crate::FileHandle::device_route) tells how that went.
    ///
    /// # Errors
    /// `GdsUnavailable`: cuFile was required (`CompatMode::Off`) and cannot be used; the text names the check that failed.
    pub fn resolve(
        wanted: CompatMode,
        machine: &Probe,
        gpu: &GpuProbe,
        file: &FileProbe,
    ) -> Result<DeviceRoute> {
        resolve(wanted, &DeviceFacts::of(machine, gpu, file))
    }

    /// The same with a sign of a direct path that was found before.
    ///
    /// # Errors
    /// As for `resolve`.
    pub(crate) fn resolve_with(
        wanted: CompatMode,
        (machine, gpu, file): (&Probe, &GpuProbe, &FileProbe),
        sign: Fact<String>,
    ) -> Result<DeviceRoute> {
        let facts = DeviceFacts::of(machine, gpu, file);
        let direct_path = sign;
        resolve(
            wanted,
            &DeviceFacts {
                direct_path,
                ..facts
            },
        )
    }

    /// Whether `way` may be taken.
    #[must_use]
    pub fn allows(&self, way: DeviceWay) -> bool {
        self.allowed.iter().any(|allowed| allowed.way == way)
    }
}

/// The facts that decide.
#[derive(Clone, Debug)]
struct DeviceFacts {
    /// Whether a device can be used at all; if not, why.
    device: Support,
    /// What else cuFile needs, in the order of [`Check`], without the path.
    checks: Vec<CuFileCheck>,
    /// What shows a direct path, for the machine.
    direct_path: Fact<String>,
}

impl DeviceFacts {
    fn of(machine: &Probe, gpu: &GpuProbe, file: &FileProbe) -> DeviceFacts {
        let device = gpu.usable();
        let checks = vec![
            check(Check::Driver, without("not usable", &device)),
            check(
                Check::Kernel,
                machine.wsl.then(|| "not usable under WSL".to_owned()),
            ),
            check(
                Check::Library,
                gpu.cufile
                    .why_absent()
                    .map(|why| format!("not installed: {why}")),
            ),
            check(
                Check::DirectIo,
                without(
                    "not usable on a file that is not read past the page cache",
                    &file.direct_opens,
                ),
            ),
            check(Check::Udev, unrecorded(file)),
        ];
        DeviceFacts {
            device,
            checks,
            direct_path: sign_of_direct_path(&gpu.nvidia_fs, &gpu.p2pdma),
        }
    }
}

fn check(check: Check, why_not: Option<String>) -> CuFileCheck {
    let outcome = why_not.map_or(Support::Yes, Support::No);
    CuFileCheck { check, outcome }
}

fn without(what: &str, support: &Support) -> Option<String> {
    support.why_not().map(|why| format!("{what}: {why}"))
}

/// Only files on a block device need a record; cuFile knows network file systems by themselves.
pub(crate) fn unrecorded(file: &FileProbe) -> Option<String> {
    file.block_device.known()?;
    without("not usable without the record of udev", &file.udev_record)
}

fn resolve(wanted: CompatMode, facts: &DeviceFacts) -> Result<DeviceRoute> {
    let first = |of: fn(Check) -> bool| {
        let mut checks = facts.checks.iter().filter(|check| of(check.check));
        checks.find_map(|check| check.outcome.why_not())
    };
    let missing = first(Check::is_needed);
    // Whether cuFile takes the file, it says when it is asked to.
    let doubt = match first(|check| !check.is_needed()) {
        Some(why) => format!("; it may refuse this file: {why}"),
        None => String::new(),
    };
    let (cufile, why) = match (wanted, missing, &facts.direct_path) {
        (CompatMode::On, ..) => (false, "the compat mode ON leaves it alone".to_owned()),
        (CompatMode::Off, Some(why), _) => {
            let why = format!("the compat mode OFF requires cuFile, which is {why}");
            return Err(Error::new(ErrorKind::GdsUnavailable, Op::Open, why));
        }
        (CompatMode::Auto, Some(why), _) => (false, why.to_owned()),
        (CompatMode::Off, None, Fact::Known(sign)) => (
            true,
            format!("the compat mode OFF requires it; a sign of a direct path: {sign}{doubt}"),
        ),
        (CompatMode::Off, None, Fact::Absent { absent }) => (
            true,
            format!(
                "the compat mode OFF requires it; without a direct path it copies through memory of its own: {absent}{doubt}"
            ),
        ),
        (CompatMode::Auto, None, Fact::Known(sign)) => (
            true,
            format!(
                "there is a sign of a direct path, which the first transfer tries with its compatible mode off: {sign}{doubt}"
            ),
        ),
        (CompatMode::Auto, None, Fact::Absent { absent }) => (
            false,
            format!("slower than staging where there is no direct path: {absent}"),
        ),
    };
    let mut route = DeviceRoute {
        wanted,
        allowed: Vec::new(),
        ruled_out: Vec::new(),
        checks: facts.checks.clone(),
    };
    route.checks.push(check(
        Check::DirectPath,
        facts
            .direct_path
            .why_absent()
            .map(|why| format!("without a direct path: {why}")),
    ));
    let staged = match cufile {
        true => FOR_THE_REST,
        false => THROUGH_THE_HOST,
    };
    route.add(DeviceWay::CuFile, cufile, why);
    match facts.device.why_not() {
        None => route.add(DeviceWay::Staged, true, staged.to_owned()),
        Some(why) => route.add(DeviceWay::Staged, false, why.to_owned()),
    }
    Ok(route)
}

const FOR_THE_REST: &str = "for what is smaller than gds_threshold, and managed memory";
const THROUGH_THE_HOST: &str = "through page-locked host memory";

impl Check {
    /// Whether nothing can be tried without it. Of the others, cuFile has the last word.
    fn is_needed(self) -> bool {
        matches!(self, Check::Driver | Check::Kernel | Check::Library)
    }
}

impl DeviceRoute {
    /// The same for an open file, of which more is known by now.
    pub(crate) fn of_file(mut self, standing: Standing) -> DeviceRoute {
        let allows = self.allows(DeviceWay::CuFile);
        match standing {
            Standing::Registered(proof) if allows => {
                self.allowed
                    .retain(|allowed| allowed.way != DeviceWay::CuFile);
                let why = match self.wanted {
                    CompatMode::Auto => {
                        Cow::Owned(format!("a direct path was proven for this file: {proof}"))
                    }
                    _ => Cow::Borrowed(proof),
                };
                let way = DeviceWay::CuFile;
                self.allowed.insert(0, AllowedWay { way, why });
            }
            Standing::GivenUp(why) if allows => {
                self.allowed
                    .retain(|allowed| allowed.way != DeviceWay::CuFile);
                for allowed in &mut self.allowed {
                    allowed.why = Cow::Borrowed(THROUGH_THE_HOST);
                }
                self.add(DeviceWay::CuFile, false, why);
            }
            _ => {}
        }
        self
    }

    fn add(&mut self, way: DeviceWay, allowed: bool, why: String) {
        let why = Cow::Owned(why);
        match allowed {
            true => self.allowed.push(AllowedWay { way, why }),
            false => self.ruled_out.push(RuledOut {
                engine: Cow::Borrowed(way.name()),
                why,
            }),
        }
    }
}

impl DeviceWay {
    fn name(self) -> &'static str {
        match self {
            DeviceWay::CuFile => "cuFile",
            DeviceWay::Staged => "staged",
        }
    }
}

impl fmt::Display for DeviceWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Check::Driver => "CUDA driver",
            Check::Kernel => "kernel",
            Check::Library => "libcufile",
            Check::DirectIo => "direct I/O",
            Check::Udev => "record of udev",
            Check::DirectPath => "direct path",
        })
    }
}

impl fmt::Display for DeviceRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "compat mode {}", self.wanted)?;
        for AllowedWay { way, why } in &self.allowed {
            write!(f, "\n  {way:10}allowed: {why}")?;
        }
        for RuledOut { engine, why } in &self.ruled_out {
            write!(f, "\n  {engine:10}ruled out: {why}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
