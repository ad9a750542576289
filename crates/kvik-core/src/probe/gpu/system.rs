//! What the kernel says about GPUs and the modules that serve them, in `/proc` and `/sys` below any root.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use crate::probe::{Fact, Support};

/// The addresses of NVIDIA's GPUs on the bus, sorted.
pub(super) fn on_bus(root: &Path) -> Fact<Vec<String>> {
    let folder = match fs::read_dir(root.join("sys/bus/pci/devices")) {
        Ok(folder) => folder,
        Err(error) => return Fact::absent(format!("/sys/bus/pci/devices: {error}")),
    };
    let mut found: Vec<String> = folder
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let says = |name| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
            let is_gpu = says("vendor").trim() == NVIDIA && says("class").starts_with(DISPLAY);
            is_gpu.then(|| entry.file_name().to_string_lossy().into_owned())
        })
        .collect();
    found.sort();
    match found.is_empty() {
        true => Fact::absent("no NVIDIA GPU on the PCI bus"),
        false => Fact::Known(found),
    }
}

/// Version of NVIDIA's kernel module.
pub(super) fn kernel_module(root: &Path) -> Fact<String> {
    let text = match fs::read_to_string(root.join("proc/driver/nvidia/version")) {
        Ok(text) => text,
        Err(error) => return Fact::absent(format!("/proc/driver/nvidia/version: {error}")),
    };
    let Some(version) = version_in(&text) else {
        return Fact::absent("/proc/driver/nvidia/version names no version");
    };
    match text.contains("Open Kernel Module") {
        true => Fact::Known(format!("{version} (open)")),
        false => Fact::Known(version.to_owned()),
    }
}

/// Version of nvidia-fs. The module's folder in `/proc` is there from when it is loaded.
pub(super) fn nvidia_fs(root: &Path) -> Fact<String> {
    let said = [
        "proc/driver/nvidia-fs/version",
        "sys/module/nvidia_fs/version",
    ]
    .iter()
    .find_map(|name| fs::read_to_string(root.join(name)).ok());
    if let Some(text) = said {
        return Fact::Known(version_in(&text).unwrap_or(text.trim()).to_owned());
    }
    let modules = fs::read_to_string(root.join("proc/modules")).unwrap_or_default();
    match modules.lines().any(|line| line.starts_with("nvidia_fs ")) {
        true => Fact::Known("of an unknown version".to_owned()),
        false => Fact::absent("the kernel module nvidia-fs is not loaded"),
    }
}

/// Whether the kernel may hand out memory of one of these GPUs to other devices.
pub(super) fn p2pdma(root: &Path, gpus: &[String]) -> Support {
    let devices = root.join("sys/bus/pci/devices");
    let offers = |gpu: &String| devices.join(gpu).join("p2pmem").exists();
    match gpus.iter().any(offers) {
        true => Support::Yes,
        false => Support::no(
            "no GPU offers its memory to other devices (no p2pmem in its folder in /sys)",
        ),
    }
}

/// Each unit of the machine is a folder in `/sys/class/iommu`; how a group of devices is translated stands in its folder.
pub(super) fn iommu(root: &Path) -> Fact<String> {
    match fs::read_dir(root.join("sys/class/iommu")).map(Iterator::count) {
        Ok(0) => return Fact::Known("off".to_owned()),
        Ok(_) => {}
        // The kernel makes the folder with the first unit.
        Err(error)
            if error.kind() == io::ErrorKind::NotFound && root.join("sys/class").exists() =>
        {
            return Fact::Known("off".to_owned());
        }
        Err(error) => return Fact::absent(format!("/sys/class/iommu: {error}")),
    }
    let groups = fs::read_dir(root.join("sys/kernel/iommu_groups"));
    let kinds: BTreeSet<String> = groups
        .into_iter()
        .flatten()
        .filter_map(|group| fs::read_to_string(group.ok()?.path().join("type")).ok())
        .map(|kind| kind.trim().to_owned())
        .collect();
    Fact::Known(match kinds.into_iter().collect::<Vec<_>>() {
        kinds if kinds.is_empty() => "on, without groups".to_owned(),
        kinds if kinds == ["identity"] => "on, passing addresses through (identity)".to_owned(),
        kinds => format!("on, translating ({})", kinds.join(", ")),
    })
}

/// Bytes of the window onto a device's memory: the region of its second base address register.
pub(super) fn bar1(root: &Path, address: &str) -> Fact<u64> {
    let name = format!("sys/bus/pci/devices/{address}/resource");
    match fs::read_to_string(root.join(&name)) {
        Ok(text) => match text.lines().nth(1).and_then(region) {
            Some(bytes) => Fact::Known(bytes),
            None => Fact::absent(format!("/{name} has no second region")),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Fact::absent(format!("{address} is not in /sys/bus/pci/devices"))
        }
        Err(error) => Fact::absent(format!("/{name}: {error}")),
    }
}

/// The size of a region that is given as its first and last address and its flags; unused ones are all zeros.
fn region(line: &str) -> Option<u64> {
    let mut numbers = line
        .split_whitespace()
        .map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
    let (first, last) = (numbers.next()??, numbers.next()??);
    match last {
        0 => None,
        _ => last.checked_sub(first)?.checked_add(1),
    }
}

/// The first word that is a version: numbers with points between them.
fn version_in(text: &str) -> Option<&str> {
    text.split_whitespace().find(|word| {
        word.contains('.')
            && word
                .split('.')
                .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// NVIDIA's number as a maker of PCI devices.
const NVIDIA: &str = "0x10de";

/// How the class of a display controller begins: with a screen (`0x0300`) or without one (`0x0302`).
const DISPLAY: &str = "0x03";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(version_in(text), expected, "{text}");
    }

    #[test]
    fn a_version_is_found_among_other_words() {
        let module = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (a@b)\n";
        check(module, Some("580.95.05"));
        check("version: 2.20.5\n", Some("2.20.5"));
        check("2.20.5", Some("2.20.5"));
        check("x86.64 . 1. .5 GCC", None);
        check("", None);
    }

    #[test]
    fn a_region_is_as_long_as_its_ends_say() {
        let line = "0x0000002000000000 0x0000003fffffffff 0x000000000014220c";
        assert_eq!(region(line), Some(128 << 30));
        assert_eq!(region("0x0 0x0 0x0"), None);
        assert_eq!(region("0x2 0x1 0x0"), None);
        assert_eq!(region("0x0 0xffffffffffffffff 0x0"), None);
        assert_eq!(region("0x1"), None);
        assert_eq!(region("one two three"), None);
    }
}
