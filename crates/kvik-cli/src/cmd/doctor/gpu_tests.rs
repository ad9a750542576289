//! What once could break: a shortage without a next step, or advice on a machine that lacks nothing.

use super::*;
use kvik::config::{Config, Layer};
use kvik::{CompatMode, DeviceRoute, Fact, Support};

/// What is found on a machine without libraries, before a test changes it.
fn nothing() -> GpuProbe {
    let layer = Layer::new()
        .cuda_library(Some("/nowhere/libcuda.so.1".into()))
        .cufile_library(Some("/nowhere/libcufile.so.0".into()));
    let mut gpu = GpuProbe::collect(&Config::resolve([layer]).unwrap());
    gpu.on_bus = absent("no NVIDIA GPU on the PCI bus");
    gpu.kernel_module = absent("gone");
    gpu.cuda = absent("no file");
    gpu.nvidia_fs = absent("the kernel module nvidia-fs is not loaded");
    gpu.p2pdma = Support::No("no GPU offers its memory".to_owned());
    gpu
}

fn absent<T>(why: &str) -> Fact<T> {
    Fact::Absent {
        absent: why.to_owned(),
    }
}

fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    findings.iter().for_each(|finding| finding.write(&mut text));
    anstream::adapter::strip_str(&text).to_string()
}

#[track_caller]
fn check(findings: &[Finding], expected: &str) {
    assert_eq!(text(findings), expected);
}

#[test]
fn a_machine_without_a_gpu_lacks_nothing() {
    let expected = "  ok      no NVIDIA GPU here: bytes go to and from host memory\n";
    check(&of_devices(&nothing()), expected);
}

#[test]
fn what_is_missing_of_the_driver_decides_what_to_install() {
    let mut gpu = nothing();
    gpu.on_bus = Fact::Known(vec!["0000:3b:00.0".to_owned()]);
    check(
        &of_devices(&gpu),
        "  note    no CUDA driver: no file\n          -> install NVIDIA's driver, which brings libcuda.so.1 and the kernel module\n",
    );
    gpu.kernel_module = Fact::Known("580.95.05 (open)".to_owned());
    check(
        &of_devices(&gpu),
        "  note    no CUDA driver: no file\n          -> libcuda.so.1 of the same version as the kernel module: in a container, \
         let it have the GPUs (docker run --gpus all); elsewhere install the driver's libraries, or name the file: setting \
         cuda_library\n",
    );
}

#[test]
fn the_drivers_word_decides_what_to_do_where_it_shows_no_device() {
    for (status, word) in [
        (
            "CUDA_ERROR_NO_DEVICE (100): no device",
            "CUDA_VISIBLE_DEVICES",
        ),
        ("CUDA_ERROR_STUB_LIBRARY (34): a stub", "stubs"),
        (
            "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803): two versions",
            "restart",
        ),
        (
            "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE (804): no",
            "compat",
        ),
        (
            "CUDA_ERROR_SYSTEM_NOT_READY (802): wait",
            "nvidia-fabricmanager",
        ),
        ("CUDA_ERROR_UNKNOWN (999): unknown", "nvidia-modprobe"),
        (
            "CUDA status 12345, which this driver has no text for",
            "nvidia-smi",
        ),
    ] {
        assert!(
            without_device(&format!("cuInit: {status}")).contains(word),
            "{status}"
        );
    }
}

#[test]
fn devices_that_are_hidden_are_told_by_their_number() {
    check(&[seen(1, 1)], "  ok      this process sees 1 CUDA device\n");
    check(
        &[seen(2, 0)],
        "  ok      this process sees 2 CUDA devices\n",
    );
    check(
        &[seen(1, 8)],
        "  note    this process sees 1 CUDA device of 8 GPUs\n          -> CUDA_VISIBLE_DEVICES, or the devices given to the \
         container, leave out the others\n",
    );
}

#[test]
fn every_check_of_cufile_that_fails_has_its_next_step() {
    let mut machine = Probe::collect();
    machine.wsl = true;
    let mut file = FileProbe::of("/proc/self/exe").unwrap();
    file.place = "data.bin".to_owned();
    file.direct_opens = Support::No("EINVAL".to_owned());
    if let Fact::Known(system) = &mut file.file_system {
        system.name = "xfs".to_owned();
    }
    let mut gpu = nothing();
    gpu.cufile = absent("no file");
    let route = DeviceRoute::resolve(CompatMode::Auto, &machine, &gpu, &file).unwrap();
    assert!(
        of_cufile(&route.checks, &machine, Some(&file)).is_empty(),
        "there is no device"
    );

    let mut checks = route.checks;
    for check in &mut checks {
        match check.check {
            Check::Driver => check.outcome = Support::Yes,
            Check::Udev => {
                let why = "not usable without the record of udev: /run/udev/data/b8:1: gone";
                check.outcome = Support::No(why.to_owned());
            }
            _ => {}
        }
    }
    check(
        &of_cufile(&checks, &machine, Some(&file)),
        "  note    cuFile is not usable under WSL
          -> nothing to do: under WSL device memory is reached through host memory
  note    cuFile is not installed: no file
          -> install libcufile (of the CUDA toolkit, or the wheel nvidia-cufile), or name the file: setting cufile_library
  note    cuFile is not usable on a file that is not read past the page cache: EINVAL
          -> keep data.bin on ext4 or xfs on a local disk
  note    cuFile is not usable without the record of udev: /run/udev/data/b8:1: gone
          -> run udevd, or give the container /run/udev; else as root write that file: printf 'I:1\\nE:ID_FS_TYPE=xfs\\nE:ID_FS_USAGE=filesystem\\nE:ID_FS_VERSION=1.0\\nG:systemd\\n'
  note    cuFile is without a direct path: the kernel module nvidia-fs is not loaded, and no GPU offers its memory
          -> as root: modprobe nvidia-fs; or, with the open kernel module and Linux 6.2, let the GPU offer its memory: options nvidia NVreg_RegistryDwords=\"RMForceStaticBar1=1;RmForceDisableIomapWC=1;\" in /etc/modprobe.d
",
    );
}

#[test]
fn without_a_file_only_what_holds_for_all_files_is_told() {
    let mut machine = Probe::collect();
    machine.udev = Support::No("/run/udev/data: gone".to_owned());
    let file = FileProbe::of("/proc/self/exe").unwrap();
    let route = DeviceRoute::resolve(CompatMode::Auto, &machine, &nothing(), &file).unwrap();
    let mut checks = route.checks;
    for check in &mut checks {
        check.outcome = match check.check {
            Check::DirectIo | Check::Udev => Support::No("of no interest".to_owned()),
            _ => Support::Yes,
        };
    }
    check(
        &of_cufile(&checks, &machine, None),
        "  note    cuFile registers no file on a block device without a record of udev: /run/udev/data: gone
          -> run udevd, or give the container /run/udev; else as root write that file: printf 'I:1\\nE:ID_FS_TYPE=ext4\\nE:ID_FS_USAGE=filesystem\\nE:ID_FS_VERSION=1.0\\nG:systemd\\n'
",
    );
}

#[test]
fn an_iommu_and_a_mount_option_are_told_only_where_a_direct_path_could_be() {
    let mut file = FileProbe::of("/proc/self/exe").unwrap();
    if let Fact::Known(system) = &mut file.file_system {
        system.name = "ext4".to_owned();
        system.mount_point = Fact::Known("/data".to_owned());
        system.options = Fact::Known("rw,relatime".to_owned());
    }
    let mut gpu = nothing();
    gpu.iommu = Fact::Known("on, translating (DMA-FQ)".to_owned());
    check(&of_direct_path(&gpu, Some(&file)), "");
    gpu.nvidia_fs = Fact::Known("2.20.5".to_owned());
    check(
        &of_direct_path(&gpu, Some(&file)),
        "  note    the IOMMU is on, translating (DMA-FQ): transfers between storage and a GPU may be slow or wrong
          -> iommu=pt on the kernel's command line, or intel_iommu=off, amd_iommu=off
  note    ext4 is not mounted with data=ordered in so many words, which cuFile looks for
          -> add data=ordered to the options of /data
",
    );
    gpu.iommu = Fact::Known("on, passing addresses through (identity)".to_owned());
    if let Fact::Known(system) = &mut file.file_system {
        system.options = Fact::Known("rw,data=ordered".to_owned());
    }
    check(&of_direct_path(&gpu, Some(&file)), "");
}
