//! The driver itself and its devices: made-up H200s, all alike but for their ordinals.

use std::ffi::{c_int, c_uint};

use crate::abi::{Answer, INVALID_VALUE, NO_DEVICE, Out, hand_out};
use crate::entry::driver;
use crate::world::{self, world};

driver! { ENTRIES:
    any fn cuInit(flags: c_uint) {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        let world = world();
        if world.settings.init != 0 {
            return Err(world.settings.init);
        }
        if world.devices.is_empty() {
            return Err(NO_DEVICE);
        }
        world::initialise();
        Ok(())
    }

    any fn cuDriverGetVersion(version: Out<c_int>) {
        version.set(world().settings.version)
    }

    ready fn cuDeviceGetCount(count: Out<c_int>) {
        let found = world().devices.len();
        count.set(c_int::try_from(found).map_err(|_| INVALID_VALUE)?)
    }

    ready fn cuDeviceGet(device: Out<c_int>, ordinal: c_int) {
        world().device(ordinal)?;
        device.set(ordinal)
    }

    ready fn cuDeviceGetName(name: Out<u8>, len: c_int, device: c_int) {
        world().device(device)?;
        text("Fake H200", name, len)
    }

    ready fn cuDeviceGetUuid(uuid: Out<[u8; 16]>, device: c_int) {
        uuid_of(uuid, device)
    }

    ready fn cuDeviceGetUuid_v2(uuid: Out<[u8; 16]>, device: c_int) {
        uuid_of(uuid, device)
    }

    ready fn cuDeviceGetPCIBusId(id: Out<u8>, len: c_int, device: c_int) {
        world().device(device)?;
        text(&format!("0000:{:02X}:00.0", 0x10 + device), id, len)
    }

    ready fn cuDeviceGetAttribute(value: Out<c_int>, attribute: c_int, device: c_int) {
        world().device(device)?;
        value.set(attribute_of(attribute, device)?)
    }

    ready fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: c_int) {
        let mut world = world();
        world.device(device)?;
        bytes.set(world.settings.memory)
    }

    ready fn cuDeviceComputeCapability(major: Out<c_int>, minor: Out<c_int>, device: c_int) {
        world().device(device)?;
        major.set(9)?;
        minor.set(0)
    }
}

fn text(text: &str, to: Out<u8>, len: c_int) -> Answer {
    let len = usize::try_from(len).map_err(|_| INVALID_VALUE)?;
    hand_out(text, to, len);
    Ok(())
}

fn uuid_of(uuid: Out<[u8; 16]>, device: c_int) -> Answer {
    world().device(device)?;
    let mut bytes = *b"fake device 0000";
    bytes[15] = b'0' + u8::try_from(device).map_err(|_| INVALID_VALUE)?;
    uuid.set(bytes)
}

/// What programs ask before they use a feature; the numbers are `CUdevice_attribute`s.
fn attribute_of(attribute: c_int, device: c_int) -> Answer<c_int> {
    Ok(match attribute {
        // MAX_THREADS_PER_BLOCK, WARP_SIZE, MULTIPROCESSOR_COUNT
        1 => 1024,
        10 => 32,
        16 => 132,
        // CAN_MAP_HOST_MEMORY, CONCURRENT_KERNELS, UNIFIED_ADDRESSING, MANAGED_MEMORY, CONCURRENT_MANAGED_ACCESS
        19 | 31 | 41 | 83 | 89 => 1,
        // INTEGRATED, PAGEABLE_MEMORY_ACCESS
        18 | 88 => 0,
        // PCI_BUS_ID, PCI_DEVICE_ID, PCI_DOMAIN_ID
        33 => 0x10 + device,
        34 | 50 => 0,
        // ASYNC_ENGINE_COUNT
        40 => 3,
        // COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR
        75 => 9,
        76 => 0,
        // CAN_USE_64_BIT_STREAM_MEM_OPS, CAN_USE_STREAM_WAIT_VALUE_NOR, and their forms since CUDA 12
        92..=94 | 122 | 123 => 1,
        // CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, HOST_REGISTER_SUPPORTED, HOST_REGISTER_READ_ONLY
        91 | 99 | 113 => 1,
        // MEMORY_POOLS_SUPPORTED, GPU_DIRECT_RDMA_SUPPORTED
        115 | 116 => 1,
        _ if (1..=200).contains(&attribute) => 0,
        _ => return Err(INVALID_VALUE),
    })
}
