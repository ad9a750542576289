//! What once could break: a library for devices that is loaded by whoever only reads files, and one that a child of the
//! process goes on to ask. Each test has a process to itself, as `cargo xtask test` runs them.

use std::fs;
use std::path::{Path, PathBuf};

use kvik::config::{Config, Layer};
use kvik::{DeviceWay, ErrorKind, FileHandle, FileProbe, GpuProbe, Probe};
use kvik_tests::fake;
use kvik_tests::os::forked;

/// Whether the file at `path` is mapped into this process, as a loaded library is.
fn is_loaded(path: &Path) -> bool {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let path = path.canonicalize().unwrap();
    maps.lines()
        .any(|line| line.ends_with(path.to_str().unwrap()))
}

/// Chooses the libraries of this process.
fn choose(cuda: PathBuf, cufile: PathBuf) {
    let layer = Layer::new()
        .cuda_library(Some(cuda))
        .cufile_library(Some(cufile));
    Config::set_process(layer).unwrap();
}

#[test]
fn files_are_opened_read_and_probed_without_a_driver_and_the_way_to_a_device_loads_it() {
    choose(fake::cuda(), fake::cufile());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    fs::write(&path, vec![7; 4 << 20]).unwrap();

    let file = FileHandle::open(&path).unwrap();
    let mut bytes = vec![0; 4 << 20];
    file.read_exact_at(&mut bytes, 0).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 7));
    assert!(!file.route().allowed.is_empty());
    let _ = (Probe::collect(), FileProbe::of(&path).unwrap());
    let loaded = || [fake::cuda(), fake::cufile()].map(|library| is_loaded(&library));
    assert_eq!(loaded(), [false, false], "nobody asked for a device");

    let route = file.device_route().unwrap();
    assert_eq!(loaded(), [true, true]);
    assert!(route.allows(DeviceWay::Staged) && !route.allows(DeviceWay::CuFile));
    // Which check cuFile fails first is the machine's matter.
    let start = "compat mode auto\n  staged    allowed: through page-locked host memory\n  cuFile    ruled out: ";
    assert!(route.to_string().starts_with(start), "{route}");
}

#[test]
fn both_libraries_and_two_devices_are_told_with_file_and_version() {
    choose(fake::cuda(), fake::cufile());
    let gpu = GpuProbe::collect(&Config::current());
    let text = gpu.to_string();
    for line in [
        format!("CUDA driver           13.0 ({})\n", fake::cuda().display()),
        format!(
            "cuFile                1.15 ({})\n",
            fake::cufile().display()
        ),
        "device 0              Fake H200, PCI 0000:10:00.0, ".to_owned(),
        "device 1              Fake H200, PCI 0000:11:00.0, ".to_owned(),
    ] {
        assert!(text.contains(&line), "{line} is not in:\n{text}");
    }
}

#[test]
fn a_child_of_the_process_that_asked_for_the_way_to_a_device_is_refused() {
    choose(fake::cuda(), fake::cufile());
    let file = FileHandle::open("/proc/self/exe").unwrap();
    file.device_route().unwrap();
    forked(|| {
        let error = file.device_route().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forked, "{error}");
        assert!(error.to_string().contains("/proc/self/exe"), "{error}");
    })
    .succeeded();
}
