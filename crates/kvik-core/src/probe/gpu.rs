//! Facts about GPUs and the libraries that reach them. Only this probe loads libcuda: `Probe` never does.

mod device;
mod library;
mod system;

use std::fmt;
use std::path::Path;

use kvik_config::Config;
use kvik_sys::{Cuda, CudaStatus};

use super::{Fact, LABEL, Support};

pub use device::GpuDevice;

/// Facts about the GPUs of this machine, the libraries that reach them, and the ways between them and storage.
///
/// # Example: which devices does this process see?
/// ```
/// let gpu = kvik_core::GpuProbe::collect(&kvik_config::Config::current());
/// match &gpu.devices {
///     kvik_core::Fact::Known(devices) => println!("{} devices, the first is {}", devices.len(), devices[0]),
///     none => println!("{}", none.why_absent().unwrap_or_default()), // "no CUDA driver", for instance
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
    /// Whether addresses of devices go through an IOMMU: `off`, or `on` and how.
    pub iommu: Fact<String>,
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
            iommu: system::iommu(root),
        }
    }

    /// What shows a direct path between storage and a device, `nvidia_fs` and `p2pdma`, for which nothing is loaded.
    pub(crate) fn signs() -> (Fact<String>, Support) {
        let root = Path::new("/");
        let on_bus = system::on_bus(root);
        let gpus = on_bus.known().map_or(&[][..], Vec::as_slice);
        (system::nvidia_fs(root), system::p2pdma(root, gpus))
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
        Err(status) => Fact::absent(failed(cuda, "cuInit", status)),
    };
    let all = |count| (0..count).map(|ordinal| GpuDevice::of(root, cuda, ordinal));
    count
        .and_then(
            |count| (count > 0).then_some(count),
            "the driver shows none",
        )
        .map(|count| all(count).collect())
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
        writeln!(f, "{:LABEL$}{}", "PCI P2PDMA", self.p2pdma)?;
        write!(f, "{:LABEL$}{}", "IOMMU", self.iommu)
    }
}

#[cfg(test)]
#[path = "gpu_tests.rs"]
mod tests;
