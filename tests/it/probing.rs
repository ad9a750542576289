//! What once could break: a library for devices that is loaded by whoever only reads files.

use std::fs;
use std::path::Path;

use kvik::config::{Config, Layer};
use kvik::{DeviceWay, FileHandle, FileProbe, GpuProbe, Probe};
use kvik_tests::fake;

/// Whether the file at `path` is mapped into this process, as a loaded library is.
fn is_loaded(path: &Path) -> bool {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines()
        .any(|line| line.ends_with(path.to_str().unwrap()))
}

#[test]
fn files_are_opened_read_and_probed_without_a_driver_and_the_way_to_a_device_loads_it() {
    // A copy of its own, which no other test of the process loads.
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().canonicalize().unwrap().join("libcuda.so.1");
    fs::copy(fake::cuda(), &library).unwrap();
    let layer = Layer::new()
        .cuda_library(Some(library.clone()))
        .cufile_library(Some("/nowhere/libcufile.so.0".into()));
    let config = Config::resolve([layer]).unwrap();
    let path = folder.path().join("data");
    fs::write(&path, vec![7; 4 << 20]).unwrap();

    let file = FileHandle::options()
        .read(true)
        .open_with(&path, &config)
        .unwrap();
    let mut bytes = vec![0; 4 << 20];
    file.read_exact_at(&mut bytes, 0).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 7));
    assert!(!file.route().allowed.is_empty());
    let _ = (Probe::collect(), FileProbe::of(&path).unwrap());
    assert!(!is_loaded(&library), "nobody asked for a device");

    let route = file.device_route().unwrap();
    assert!(is_loaded(&library));
    assert!(route.allows(DeviceWay::Staged) && !route.allows(DeviceWay::CuFile));
    assert_eq!(
        route.to_string(),
        "compat mode auto\n  staged    allowed: through page-locked host memory\n  cuFile    ruled out: not in this build"
    );
    assert_eq!(
        GpuProbe::collect(&config).devices.known().map(Vec::len),
        Some(2)
    );
}
