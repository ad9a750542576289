//! Facts about one device, each asked for by itself.

use std::fmt;
use std::path::Path;

use kvik_sys::{Cuda, Device, DeviceAttribute};

use super::{asked, failed, system};
use crate::probe::Fact;

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

impl GpuDevice {
    /// The facts about the device of an ordinal. A number that was just counted and is not there has a reason for all.
    pub(super) fn of(root: &Path, cuda: &Cuda, ordinal: i32) -> GpuDevice {
        let device = match cuda.device_get(ordinal) {
            Ok(device) => device,
            Err(status) => {
                return GpuDevice::unknown(ordinal, &failed(cuda, "cuDeviceGet", status));
            }
        };
        let pci = asked(
            cuda,
            "cuDeviceGetPCIBusId",
            cuda.device_get_pci_bus_id(device),
        )
        .map(|id| id.to_ascii_lowercase());
        GpuDevice {
            ordinal,
            name: asked(cuda, "cuDeviceGetName", cuda.device_get_name(device)),
            uuid: asked(cuda, "cuDeviceGetUuid", cuda.device_get_uuid(device)).map(uuid_text),
            memory: asked(cuda, "cuDeviceTotalMem", cuda.device_total_mem(device))
                .and_then(|bytes| u64::try_from(bytes).ok(), "too many to count"),
            bar1: match &pci {
                Fact::Known(address) => system::bar1(root, address),
                Fact::Absent { absent } => Fact::absent(absent.clone()),
            },
            pci,
            compute_capability: compute_capability(cuda, device),
            compute_mode: attribute(cuda, device, COMPUTE_MODE).map(compute_mode),
        }
    }

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
pub(super) fn compute_mode(mode: i32) -> String {
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

fn bytes(fact: &Fact<u64>) -> String {
    match fact {
        Fact::Known(bytes) => format!("{bytes} bytes"),
        Fact::Absent { .. } => fact.to_string(),
    }
}

pub(super) fn uuid_text(uuid: [u8; 16]) -> String {
    let mut text = "GPU-".to_owned();
    for (place, byte) in uuid.iter().enumerate() {
        if matches!(place, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
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

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_MODE`.
const COMPUTE_MODE: DeviceAttribute = DeviceAttribute::new(20);
