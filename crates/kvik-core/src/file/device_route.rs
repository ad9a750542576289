//! By which way the bytes of an open file reach device memory.

use std::os::fd::AsFd;

use kvik_config::Config;

use super::FileHandle;
use crate::compat::DeviceRoute;
use crate::device::Context;
use crate::error::{ErrorKind, Result};
use crate::gds::sign::sign;
use crate::probe::{FileProbe, GpuProbe, Probe};

impl FileHandle {
    /// By which ways its bytes may reach device memory, and why: what was proven of cuFile and this file, by transfers so far, and
    /// what was given up, by any clone of the handle.
    ///
    /// The answer is looked for at each call, and that takes a while: the CUDA driver is loaded and started for it, where nothing
    /// else has done so, as the settings of the process say. Opening a file never does.
    ///
    /// # Errors
    /// - `GdsUnavailable`: the handle was opened to use cuFile and nothing else, which cannot be used.
    /// - `Forked`: this is a child of the process that uses the devices.
    pub fn device_route(&self) -> Result<DeviceRoute> {
        // Whether there is a driver, and what else it says, is the probe's to tell; who may ask it is not.
        if let Err(error) = Context::current()
            && error.kind() == ErrorKind::Forked
        {
            return Err(error.at(&self.0.place));
        }
        let file = FileProbe::of(self.as_fd())?;
        let (machine, gpu) = (Probe::collect(), GpuProbe::collect(&Config::current()));
        let facts = (&machine, &gpu, &file);
        let route = DeviceRoute::resolve_with(self.0.route.wanted, facts, sign().clone())
            .map_err(|error| error.at(&self.0.place))?;
        Ok(match &self.0.cufile {
            Some(cufile) => route.of_file(cufile.standing()),
            None => route,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvik_config::{CompatMode, Layer};

    #[test]
    fn without_a_driver_no_way_leads_to_a_device_and_the_file_opens_all_the_same() {
        let nowhere = Some("/nowhere/libcuda.so.1".into());
        Config::set_process(Layer::new().cuda_library(nowhere)).unwrap();
        let options = FileHandle::options().read(true).compat(CompatMode::On);
        let file = options.open("/proc/self/exe").unwrap();
        let route = file.device_route().unwrap();
        assert_eq!(
            (route.wanted, route.allowed.as_slice()),
            (CompatMode::On, &[][..])
        );
        let text = route.to_string();
        for line in [
            "\n  staged    ruled out: no CUDA driver: no library could be loaded: tried /nowhere/libcuda.so.1 (",
            "\n  cuFile    ruled out: the compat mode ON leaves it alone",
        ] {
            assert!(text.contains(line), "{line} is not in:\n{text}");
        }
    }
}
