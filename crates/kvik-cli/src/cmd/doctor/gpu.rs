//! Findings about GPUs and the way to their memory, each with what to do about it. Values in, values out.

use kvik::{Check, CuFileCheck, FileProbe, GpuProbe, Probe};

use super::findings::Finding;

/// What this process can reach, and if nothing, why. A machine without a GPU lacks nothing.
pub(super) fn of_devices(gpu: &GpuProbe) -> Vec<Finding> {
    let (why, advice) = match (gpu.cuda.why_absent(), gpu.devices.why_absent()) {
        (Some(_), _) if gpu.on_bus.known().is_none() && gpu.kernel_module.known().is_none() => {
            return vec![Finding::ok(
                "no NVIDIA GPU here: bytes go to and from host memory",
            )];
        }
        (Some(why), _) => (format!("no CUDA driver: {why}"), without_library(gpu)),
        (_, Some(why)) => (format!("no device: {why}"), without_device(why)),
        (None, None) => return of_each_device(gpu),
    };
    vec![Finding::note(why, advice)]
}

/// How many devices of how many, and those that cannot be used.
fn of_each_device(gpu: &GpuProbe) -> Vec<Finding> {
    let devices = gpu.devices.known().map_or(&[][..], Vec::as_slice);
    let mut findings = vec![seen(devices.len(), gpu.on_bus.known().map_or(0, Vec::len))];
    for device in devices {
        let (ordinal, mode) = (device.ordinal, device.compute_mode.known());
        if mode.is_some_and(|mode| mode == "prohibited") {
            findings.push(Finding::note(
                format!("device {ordinal} may not be used by anybody (compute mode prohibited)"),
                format!("as root: nvidia-smi -i {ordinal} -c DEFAULT"),
            ));
        }
    }
    findings
}

fn seen(devices: usize, on_bus: usize) -> Finding {
    let count = |number: usize| match number {
        1 => "1 CUDA device".to_owned(),
        _ => format!("{number} CUDA devices"),
    };
    match devices < on_bus {
        true => Finding::note(
            format!("this process sees {} of {on_bus} GPUs", count(devices)),
            "CUDA_VISIBLE_DEVICES, or the devices given to the container, leave out the others",
        ),
        false => Finding::ok(format!("this process sees {}", count(devices))),
    }
}

/// The kernel's side is there and the library is not, or neither.
fn without_library(gpu: &GpuProbe) -> &'static str {
    match gpu.kernel_module.known() {
        Some(_) => {
            "libcuda.so.1 of the same version as the kernel module: in a container, let it have the GPUs (docker run --gpus all); \
             elsewhere install the driver's libraries, or name the file: setting cuda_library"
        }
        None => "install NVIDIA's driver, which brings libcuda.so.1 and the kernel module",
    }
}

/// The driver's own word tells what is to be done.
fn without_device(why: &str) -> &'static str {
    let known = DRIVER_SAYS.iter().find(|(word, _)| why.contains(word));
    known.map_or(
        "nvidia-smi and the kernel's log may say more",
        |(_, advice)| advice,
    )
}

/// What stands between cuFile and this machine, as far as anybody can mend it. Nothing where there is no device.
pub(super) fn of_cufile(
    checks: &[CuFileCheck],
    machine: &Probe,
    file: Option<&FileProbe>,
) -> Vec<Finding> {
    let driver = checks.iter().find(|check| check.check == Check::Driver);
    if !driver.is_some_and(|check| check.outcome.is_yes()) {
        return Vec::new();
    }
    let mut findings = Vec::new();
    if let (None, Some(why)) = (file, machine.udev.why_not()) {
        findings.push(Finding::note(
            format!("cuFile registers no file on a block device without a record of udev: {why}"),
            record(None),
        ));
    }
    findings.extend(checks.iter().filter_map(|check| {
        // Where nobody named a file, those two were asked about a file that nobody cares for.
        let named = file.is_some() || !matches!(check.check, Check::DirectIo | Check::Udev);
        let why = check.outcome.why_not().filter(|_| named)?;
        let advice = advice(check.check, file)?;
        Some(Finding::note(format!("cuFile is {why}"), advice))
    }));
    findings
}

/// The next step where a check fails; none for what is no fault of the machine.
fn advice(check: Check, file: Option<&FileProbe>) -> Option<String> {
    let place = file.map_or("the file", |file| file.place.as_str());
    Some(match check {
        Check::Kernel => "nothing to do: under WSL device memory is reached through host memory".to_owned(),
        Check::Library => {
            "install libcufile (of the CUDA toolkit, or the wheel nvidia-cufile), or name the file: setting cufile_library".to_owned()
        }
        Check::DirectIo => format!("keep {place} on ext4 or xfs on a local disk"),
        Check::Udev => record(file),
        Check::DirectPath => {
            "as root: modprobe nvidia-fs; or, with the open kernel module and Linux 6.2, let the GPU offer its memory: \
             options nvidia NVreg_RegistryDwords=\"RMForceStaticBar1=1;RmForceDisableIomapWC=1;\" in /etc/modprobe.d"
                .to_owned()
        }
        _ => return None,
    })
}

/// What udevd would have written for the device.
fn record(file: Option<&FileProbe>) -> String {
    let system = file.and_then(|file| file.file_system.known());
    let name = system.map_or("ext4", |system| system.name.as_str());
    format!(
        "run udevd, or give the container /run/udev; else as root write that file: \
         printf 'I:1\\nE:ID_FS_TYPE={name}\\nE:ID_FS_USAGE=filesystem\\nE:ID_FS_VERSION=1.0\\nG:systemd\\n'"
    )
}

/// What slows a direct path down or keeps cuFile from taking it, where one could be.
pub(super) fn of_direct_path(gpu: &GpuProbe, file: Option<&FileProbe>) -> Vec<Finding> {
    let mut findings = Vec::new();
    if gpu.nvidia_fs.known().is_none() && !gpu.p2pdma.is_yes() {
        return findings;
    }
    if let Some(how) = gpu
        .iommu
        .known()
        .filter(|how| how.starts_with("on, translating"))
    {
        findings.push(Finding::note(
            format!("the IOMMU is {how}: transfers between storage and a GPU may be slow or wrong"),
            "iommu=pt on the kernel's command line, or intel_iommu=off, amd_iommu=off",
        ));
    }
    let system = file.and_then(|file| file.file_system.known());
    if let Some((system, options)) =
        system.and_then(|system| Some((system, system.options.known()?)))
        && system.name == "ext4"
        && !options.split(',').any(|option| option == "data=ordered")
    {
        findings.push(Finding::note(
            "ext4 is not mounted with data=ordered in so many words, which cuFile looks for",
            format!("add data=ordered to the options of {}", system.mount_point),
        ));
    }
    findings.extend(
        gpu.devices
            .known()
            .into_iter()
            .flatten()
            .filter_map(|device| {
                let (window, memory) = (device.bar1.known()?, device.memory.known()?);
                (window < memory).then(|| {
                    Finding::note(
                        format!(
                            "device {}: other devices reach {window} of its {memory} bytes (BAR1)",
                            device.ordinal
                        ),
                        "above 4G decoding and resizable BAR in the firmware's settings",
                    )
                })
            }),
    );
    findings
}

/// What the driver says when it cannot start, by the name of its status.
const DRIVER_SAYS: &[(&str, &str)] = &[
    (
        "CUDA_ERROR_NO_DEVICE",
        "CUDA_VISIBLE_DEVICES may hide all of them; in a container, let it have the GPUs (docker run --gpus all)",
    ),
    (
        "CUDA_ERROR_STUB_LIBRARY",
        "the toolkit's stand-in for linking was found first; take its folder (stubs) out of LD_LIBRARY_PATH",
    ),
    (
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        "libcuda and the kernel module have different versions: restart after an update, or install the same one",
    ),
    (
        "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        "a forward-compatible libcuda does not serve this GPU: take its folder (compat) out of LD_LIBRARY_PATH",
    ),
    (
        "CUDA_ERROR_SYSTEM_NOT_READY",
        "the driver waits for a service: start nvidia-fabricmanager, where GPUs are joined by switches",
    ),
    (
        "CUDA_ERROR_UNKNOWN",
        "often a missing /dev/nvidia-uvm: nvidia-modprobe -u -c 0 makes it",
    ),
];

#[cfg(test)]
#[path = "gpu_tests.rs"]
mod tests;
