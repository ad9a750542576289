//! What once could break: a missing library without a reason, a window of the wrong region, a text that nobody can act on.

use std::fs;

use kvik_config::Layer;

use super::*;

fn config() -> Config {
    let layer = Layer::new()
        .cuda_library(Some("/nowhere/libcuda.so.1".into()))
        .cufile_library(Some("/nowhere/libcufile.so.0".into()));
    Config::resolve([layer]).unwrap()
}

/// A root folder with these files.
fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

const NOT_OPENED: &str = "cannot open shared object file: No such file or directory";

#[test]
fn a_machine_without_anything_says_so_line_by_line() {
    let root = root(&[("sys/bus/pci/devices/0000:00:1f.2/vendor", "0x8086\n")]);
    let probe = GpuProbe::below(root.path(), &config());
    assert_eq!(
        probe.to_string(),
        format!(
            "\
GPUs on the bus       none: no NVIDIA GPU on the PCI bus
NVIDIA kernel module  none: /proc/driver/nvidia/version: No such file or directory (os error 2)
CUDA driver           none: no library could be loaded: tried /nowhere/libcuda.so.1 (/nowhere/libcuda.so.1: {NOT_OPENED})
devices               none: no CUDA driver
cuFile                none: no library could be loaded: tried /nowhere/libcufile.so.0 (/nowhere/libcufile.so.0: {NOT_OPENED})
nvidia-fs             none: the kernel module nvidia-fs is not loaded
PCI P2PDMA            no: no GPU offers its memory to other devices (no p2pmem in its folder in /sys)
IOMMU                 none: /sys/class/iommu: No such file or directory (os error 2)"
        )
    );
    let why = format!(
        "no CUDA driver: no library could be loaded: tried /nowhere/libcuda.so.1 (/nowhere/libcuda.so.1: {NOT_OPENED})"
    );
    assert_eq!(probe.usable().why_not(), Some(why.as_str()));
}

#[test]
fn a_machine_with_two_gpus_and_all_modules_is_told_without_its_libraries() {
    let root = root(&[
        ("sys/bus/pci/devices/0000:00:1f.2/vendor", "0x8086\n"),
        ("sys/bus/pci/devices/0000:00:1f.2/class", "0x030000\n"),
        ("sys/bus/pci/devices/0000:d8:00.0/vendor", "0x10de\n"),
        ("sys/bus/pci/devices/0000:d8:00.0/class", "0x030200\n"),
        ("sys/bus/pci/devices/0000:3b:00.0/vendor", "0x10de\n"),
        ("sys/bus/pci/devices/0000:3b:00.0/class", "0x030200\n"),
        (
            "sys/bus/pci/devices/0000:3b:00.0/p2pmem/size",
            "137438953472\n",
        ),
        // The audio function of a graphics card.
        ("sys/bus/pci/devices/0000:3b:00.1/vendor", "0x10de\n"),
        ("sys/bus/pci/devices/0000:3b:00.1/class", "0x040300\n"),
        (
            "proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\nGCC version: 12\n",
        ),
        ("proc/driver/nvidia-fs/version", "version: 2.20.5\n"),
    ]);
    let probe = GpuProbe::below(root.path(), &config());
    let table = probe.to_string();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(
        [lines[0], lines[1], lines[5], lines[6]],
        [
            "GPUs on the bus       0000:3b:00.0, 0000:d8:00.0",
            "NVIDIA kernel module  580.95.05 (open)",
            "nvidia-fs             2.20.5",
            "PCI P2PDMA            yes",
        ]
    );
}

#[test]
fn nvidia_fs_is_known_by_any_sign_of_it() {
    let version = |files: &[(&str, &str)]| system::nvidia_fs(root(files).path());
    let known = |text: &str| Fact::Known(text.to_owned());
    assert_eq!(
        version(&[("sys/module/nvidia_fs/version", "2.15.3\n")]),
        known("2.15.3")
    );
    assert_eq!(
        version(&[("proc/driver/nvidia-fs/version", "odd\n")]),
        known("odd")
    );
    let modules = [(
        "proc/modules",
        "nvme 65536 1 - Live 0x0\nnvidia_fs 258048 0 - Live 0x0\n",
    )];
    assert_eq!(version(&modules), known("of an unknown version"));
    let modules = [("proc/modules", "nvidia_fsx 258048 0 - Live 0x0\n")];
    assert!(version(&modules).known().is_none());
}

#[test]
fn the_window_onto_a_device_is_its_second_region() {
    let address = "0000:3b:00.0";
    let resource = "sys/bus/pci/devices/0000:3b:00.0/resource";
    let text = "\
0x00000000ac000000 0x00000000acffffff 0x0000000000040200
0x0000002000000000 0x0000003fffffffff 0x000000000014220c
0x0000000000000000 0x0000000000000000 0x0000000000000000
";
    let machine = root(&[(resource, text)]);
    assert_eq!(
        system::bar1(machine.path(), address),
        Fact::Known(128 << 30)
    );
    assert_eq!(
        system::bar1(machine.path(), "0000:3c:00.0").why_absent(),
        Some("0000:3c:00.0 is not in /sys/bus/pci/devices")
    );
    let machine = root(&[(resource, "0x0 0x0 0x0\n0x0 0x0 0x0\n")]);
    assert_eq!(
        system::bar1(machine.path(), address).why_absent(),
        Some("/sys/bus/pci/devices/0000:3b:00.0/resource has no second region")
    );
}

#[test]
fn an_iommu_is_off_passes_addresses_through_or_translates() {
    let unit = ("sys/class/iommu/dmar0/name", "");
    let kind = |group: &'static str, text| (group, text);
    let first = "sys/kernel/iommu_groups/0/type";
    let second = "sys/kernel/iommu_groups/1/type";
    for (files, expected) in [
        (vec![("sys/class/net/lo", "")], "off"),
        (
            vec![unit, kind(first, "identity\n")],
            "on, passing addresses through (identity)",
        ),
        (
            vec![unit, kind(first, "identity\n"), kind(second, "DMA-FQ\n")],
            "on, translating (DMA-FQ, identity)",
        ),
        (vec![unit], "on, without groups"),
    ] {
        assert_eq!(
            system::iommu(root(&files).path()),
            Fact::Known(expected.to_owned())
        );
    }
    let hidden = system::iommu(root(&[]).path());
    assert!(
        hidden
            .why_absent()
            .unwrap()
            .starts_with("/sys/class/iommu: "),
        "{hidden}"
    );
}

#[test]
fn versions_identities_and_modes_read_as_people_write_them() {
    assert_eq!(version(13_000).as_deref(), Some("13.0"));
    assert_eq!(version(12_080).as_deref(), Some("12.8"));
    assert_eq!(version(1_150).as_deref(), Some("1.15"));
    assert_eq!(version(0), None);
    let bytes = std::array::from_fn(|place| u8::try_from(place * 17).unwrap());
    assert_eq!(
        device::uuid_text(bytes),
        "GPU-00112233-4455-6677-8899-aabbccddeeff"
    );
    assert_eq!(device::compute_mode(2), "prohibited");
    assert_eq!(device::compute_mode(9), "9, which has no name here");
}

#[test]
fn the_probe_of_this_machine_has_a_reason_for_all_that_it_lacks() {
    let probe = GpuProbe::collect(&Config::default());
    let table = probe.to_string();
    assert!(table.lines().count() >= 8, "{table}");
    for line in table.lines() {
        assert!(
            line.len() > LABEL && line.is_char_boundary(LABEL),
            "{table}"
        );
    }
    assert_eq!(probe.usable().is_yes(), probe.devices.known().is_some());
}

/// The fake driver, which cargo has built beside this program.
fn fake() -> Config {
    let program = std::env::current_exe().unwrap();
    let library = program.with_file_name("libcuda_fake.so");
    let layer = Layer::new()
        .cuda_library(Some(library))
        .cufile_library(Some("/nowhere/libcufile.so.0".into()));
    Config::resolve([layer]).unwrap()
}

#[test]
fn two_devices_are_told_with_identity_memory_and_window() {
    let machine = root(&[(
        "sys/bus/pci/devices/0000:11:00.0/resource",
        "0x0 0xffffff 0x0\n0x2000000000 0x3fffffffff 0x0\n",
    )]);
    let probe = GpuProbe::below(machine.path(), &fake());
    assert_eq!(probe.usable(), Support::Yes);
    let cuda = probe.cuda.known().unwrap();
    assert!(cuda.file.ends_with("libcuda_fake.so"), "{}", cuda.file);
    assert_eq!(cuda.version, Fact::Known("13.0".to_owned()));

    let devices = probe.devices.known().unwrap();
    let memory = *devices[0].memory.known().unwrap();
    let table = probe.to_string();
    let lines: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with("device "))
        .collect();
    let line = |ordinal: usize, bar1: &str| {
        format!(
            "device {ordinal}              Fake H200, PCI 0000:1{ordinal}:00.0, GPU-66616b65-2064-6576-6963-65203030303{ordinal}, \
             memory {memory} bytes, BAR1 {bar1}, compute capability 9.0, compute mode default"
        )
    };
    let none = "none: 0000:10:00.0 is not in /sys/bus/pci/devices";
    assert_eq!(lines, [line(0, none), line(1, "137438953472 bytes")]);
}

#[test]
fn a_probe_of_devices_makes_no_context_on_any() {
    let probe = GpuProbe::collect(&fake());
    let cuda = library::cuda(&fake()).unwrap();
    for device in probe.devices.known().unwrap() {
        let device = cuda.device_get(device.ordinal).unwrap();
        let state = cuda.device_primary_ctx_get_state(device).unwrap();
        assert!(!state.active, "{state:?}");
    }
    assert_eq!(cuda.ctx_get_current(), Ok(None));
}
