//! Facts about GPUs and the libraries that reach them. Only this probe loads libcuda: `Probe` never does.

mod library;
mod system;

use std::fmt;
use std::path::Path;

use kvik_config::Config;
use kvik_sys::{Cuda, CudaStatus, Device, DeviceAttribute};

use super::{Fact, LABEL, Support};

/// Facts about the GPUs of this machine, the libraries that reach them, and the ways between them and storage.
///
/// # Example: which devices does this process see?
/// ```
/// let gpu = kvik_core::GpuProbe::collect(&kvik_config::Config::current());
/// match gpu.devices.known() {
///     Some(devices) => println!("{} devices", devices.len()),
///     None => println!("{}", gpu.devices), // "none: no CUDA driver", for instance
/// }
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct GpuProbe {
    /// NVIDIA's GPUs on the PCI bus, by address, whether or not this process may use them.
    pub on_bus: Fact<Vec<String>>,
    /// Version of NVIDIA's kernel module, and whether it is the open one.
    pub kernel_module: Fact<String>,
    /// The CUDA driver's library, libcuda.
    pub cuda: Fact<CudaDriver>,
    /// The devices that the driver shows to this process, by ordinal. Never an empty list.
    pub devices: Fact<Vec<GpuDevice>>,
    /// cuFile's library, libcufile. Its driver is not opened.
    pub cufile: Fact<CuFileLibrary>,
    /// Version of the kernel module nvidia-fs.
    pub nvidia_fs: Fact<String>,
    /// Whether a GPU offers its memory to other devices on the bus, as the kernel knows it (PCI P2PDMA).
    pub p2pdma: Support,
}

/// The CUDA driver's library.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CudaDriver {
    /// The file it was loaded from.
    pub file: String,
    /// The newest version of CUDA that it serves: `13.0`.
    pub version: Fact<String>,
}

/// cuFile's library.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct CuFileLibrary {
    /// The file it was loaded from.
    pub file: String,
    /// Its version: `1.15`.
    pub version: Fact<String>,
}

/// A device that the CUDA driver shows to this process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct GpuDevice {
    /// The driver's number for it in this process.
    pub ordinal: i32,
    /// What it is called.
    pub name: Fact<String>,
    /// Its identity: `GPU-` and 32 hexadecimal digits in groups.
    pub uuid: Fact<String>,
    /// Its address on the PCI bus, as `/sys/bus/pci/devices` writes it.
    pub pci: Fact<String>,
    /// Bytes of its memory.
    pub memory: Fact<u64>,
    /// Bytes of the window through which other devices reach its memory (BAR1).
    pub bar1: Fact<u64>,
    /// Major and minor number of its compute capability: `9.0`.
    pub compute_capability: Fact<String>,
    /// Who may use it: `default`, `exclusive process` or `prohibited`.
    pub compute_mode: Fact<String>,
}

impl GpuProbe {
    /// Collects the facts, with the libraries that the settings `cuda_library` and `cufile_library` name, else the system's.
    ///
    /// It loads libcuda and starts the driver (`cuInit`), which takes from milliseconds to seconds and stays loaded; no context
    /// is made on any device. libcufile is loaded and asked for its version; its driver is not opened, since that writes a log
    /// into the working directory.
    #[must_use]
    pub fn collect(config: &Config) -> GpuProbe {
        GpuProbe::below(Path::new("/"), config)
    }

    /// As [`collect`](GpuProbe::collect), with `/proc` and `/sys` below `root`.
    pub(super) fn below(root: &Path, config: &Config) -> GpuProbe {
        let (cuda, devices) = driver_and_devices(root, config);
        let on_bus = system::on_bus(root);
        GpuProbe {
            p2pdma: system::p2pdma(root, on_bus.known().map_or(&[], Vec::as_slice)),
            on_bus,
            kernel_module: system::kernel_module(root),
            cuda,
            devices,
            cufile: library::cufile(config),
            nvidia_fs: system::nvidia_fs(root),
        }
    }

    /// Whether device memory can be used, and if not, why.
    #[must_use]
    pub fn usable(&self) -> Support {
        match (self.cuda.why_absent(), self.devices.why_absent()) {
            (Some(why), _) => Support::no(format!("no CUDA driver: {why}")),
            (_, Some(why)) => Support::no(format!("no device: {why}")),
            _ => Support::Yes,
        }
    }
}

fn driver_and_devices(root: &Path, config: &Config) -> (Fact<CudaDriver>, Fact<Vec<GpuDevice>>) {
    let cuda = match library::cuda(config) {
        Ok(cuda) => cuda,
        Err(why) => return (Fact::absent(why), Fact::absent("no CUDA driver")),
    };
    let driver = CudaDriver {
        file: library::file(cuda.path(), cuda.name()),
        version: asked(&cuda, "cuDriverGetVersion", cuda.driver_get_version())
            .and_then(version, "it names no version"),
    };
    (Fact::Known(driver), devices(root, &cuda))
}

fn devices(root: &Path, cuda: &Cuda) -> Fact<Vec<GpuDevice>> {
    let count = match cuda.init() {
        Ok(()) => asked(cuda, "cuDeviceGetCount", cuda.device_get_count()),
        Err(status) => Fact::absent(format!("cuInit: {}", cuda.text(status))),
    };
    count
        .and_then(
            |count| (count > 0).then_some(count),
            "the driver shows none",
        )
        .and_then(
            |count| {
                Some(
                    (0..count)
                        .map(|ordinal| device(root, cuda, ordinal))
                        .collect(),
                )
            },
            "",
        )
}

fn device(root: &Path, cuda: &Cuda, ordinal: i32) -> GpuDevice {
    let device = match cuda.device_get(ordinal) {
        Ok(device) => device,
        Err(status) => return GpuDevice::unknown(ordinal, &failed(cuda, "cuDeviceGet", status)),
    };
    let pci = asked(
        cuda,
        "cuDeviceGetPCIBusId",
        cuda.device_get_pci_bus_id(device),
    )
    .and_then(|id| Some(id.to_ascii_lowercase()), "");
    GpuDevice {
        ordinal,
        name: asked(cuda, "cuDeviceGetName", cuda.device_get_name(device)),
        uuid: asked(cuda, "cuDeviceGetUuid", cuda.device_get_uuid(device))
            .and_then(|uuid| Some(uuid_text(uuid)), ""),
        memory: asked(cuda, "cuDeviceTotalMem", cuda.device_total_mem(device))
            .and_then(|bytes| u64::try_from(bytes).ok(), "too many to count"),
        bar1: match &pci {
            Fact::Known(address) => system::bar1(root, address),
            Fact::Absent { absent } => Fact::absent(absent.clone()),
        },
        pci,
        compute_capability: compute_capability(cuda, device),
        compute_mode: attribute(cuda, device, COMPUTE_MODE)
            .and_then(|mode| Some(compute_mode(mode)), ""),
    }
}

impl GpuDevice {
    fn unknown(ordinal: i32, why: &str) -> GpuDevice {
        GpuDevice {
            ordinal,
            name: Fact::absent(why),
            uuid: Fact::absent(why),
            pci: Fact::absent(why),
            memory: Fact::absent(why),
            bar1: Fact::absent(why),
            compute_capability: Fact::absent(why),
            compute_mode: Fact::absent(why),
        }
    }
}

fn compute_capability(cuda: &Cuda, device: Device) -> Fact<String> {
    let number = |name| attribute(cuda, device, name);
    match (
        number(DeviceAttribute::COMPUTE_CAPABILITY_MAJOR),
        number(DeviceAttribute::COMPUTE_CAPABILITY_MINOR),
    ) {
        (Fact::Known(major), Fact::Known(minor)) => Fact::Known(format!("{major}.{minor}")),
        (Fact::Absent { absent }, _) | (_, Fact::Absent { absent }) => Fact::Absent { absent },
    }
}

/// The driver's numbers for who may use a device. 1 was given up long ago.
fn compute_mode(mode: i32) -> String {
    match mode {
        0 => "default".to_owned(),
        2 => "prohibited".to_owned(),
        3 => "exclusive process".to_owned(),
        other => format!("{other}, which has no name here"),
    }
}

fn attribute(cuda: &Cuda, device: Device, name: DeviceAttribute) -> Fact<i32> {
    asked(
        cuda,
        "cuDeviceGetAttribute",
        cuda.device_get_attribute(name, device),
    )
}

fn asked<T>(cuda: &Cuda, call: &str, answer: Result<T, CudaStatus>) -> Fact<T> {
    match answer {
        Ok(value) => Fact::Known(value),
        Err(status) => Fact::absent(failed(cuda, call, status)),
    }
}

fn failed(cuda: &Cuda, call: &str, status: CudaStatus) -> String {
    format!("{call}: {}", cuda.text(status))
}

/// Major and minor number in the form in which both libraries give them, `1000 * major + 10 * minor`.
fn version(number: i32) -> Option<String> {
    (number > 0).then(|| format!("{}.{}", number / 1000, number % 1000 / 10))
}

fn bytes(fact: &Fact<u64>) -> String {
    match fact {
        Fact::Known(bytes) => format!("{bytes} bytes"),
        Fact::Absent { .. } => fact.to_string(),
    }
}

fn uuid_text(uuid: [u8; 16]) -> String {
    let mut text = "GPU-".to_owned();
    for (place, byte) in uuid.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

impl fmt::Display for CudaDriver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        library::show(f, &self.version, &self.file)
    }
}

impl fmt::Display for CuFileLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        library::show(f, &self.version, &self.file)
    }
}

impl fmt::Display for GpuDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, PCI {}, {}", self.name, self.pci, self.uuid)?;
        write!(
            f,
            ", memory {}, BAR1 {}",
            bytes(&self.memory),
            bytes(&self.bar1)
        )?;
        let (capability, mode) = (&self.compute_capability, &self.compute_mode);
        write!(f, ", compute capability {capability}, compute mode {mode}")
    }
}

impl fmt::Display for GpuProbe {
    /// A table of labels and values, one fact a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.on_bus {
            Fact::Known(found) => writeln!(f, "{:LABEL$}{}", "GPUs on the bus", found.join(", "))?,
            Fact::Absent { absent } => writeln!(f, "{:LABEL$}none: {absent}", "GPUs on the bus")?,
        }
        writeln!(f, "{:LABEL$}{}", "NVIDIA kernel module", self.kernel_module)?;
        writeln!(f, "{:LABEL$}{}", "CUDA driver", self.cuda)?;
        match &self.devices {
            Fact::Known(devices) => {
                for device in devices {
                    writeln!(f, "{:LABEL$}{device}", format!("device {}", device.ordinal))?;
                }
            }
            Fact::Absent { absent } => writeln!(f, "{:LABEL$}none: {absent}", "devices")?,
        }
        writeln!(f, "{:LABEL$}{}", "cuFile", self.cufile)?;
        writeln!(f, "{:LABEL$}{}", "nvidia-fs", self.nvidia_fs)?;
        write!(f, "{:LABEL$}{}", "PCI P2PDMA", self.p2pdma)
    }
}

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_MODE`.
const COMPUTE_MODE: DeviceAttribute = DeviceAttribute::new(20);

#[cfg(test)]
#[path = "gpu_tests.rs"]
mod tests;
