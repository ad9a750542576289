//! By which way the bytes of an open file reach device memory.

use std::os::fd::AsFd;

use kvik_config::Config;

use super::FileHandle;
use crate::compat::DeviceRoute;
use crate::error::Result;
use crate::probe::{FileProbe, GpuProbe, Probe};

impl FileHandle {
    /// By which ways its bytes may reach device memory, and why.
    ///
    /// The answer is looked for at each call, and that takes a while: the CUDA driver is loaded and started for it, where nothing
    /// else has done so. Opening a file never does.
    ///
    /// # Errors
    /// `GdsUnavailable`: the handle was opened to use cuFile and nothing else, which cannot be used.
    pub fn device_route(&self) -> Result<DeviceRoute> {
        let config = self.0.config.clone().unwrap_or_else(Config::current);
        let file = FileProbe::of(self.as_fd())?;
        let gpu = GpuProbe::collect(&config);
        DeviceRoute::resolve(self.0.route.wanted, &Probe::collect(), &gpu, &file)
            .map_err(|error| error.at(&self.0.place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kvik_config::{CompatMode, Layer};

    #[test]
    fn without_a_driver_no_way_leads_to_a_device_and_the_file_opens_all_the_same() {
        let layer = Layer::new()
            .cuda_library(Some("/nowhere/libcuda.so.1".into()))
            .compat_mode(CompatMode::On);
        let config = Config::resolve([layer]).unwrap();
        let options = FileHandle::options().read(true);
        let file = options.open_with("/proc/self/exe", &config).unwrap();
        let route = file.device_route().unwrap();
        assert_eq!(
            (route.wanted, route.allowed.as_slice()),
            (CompatMode::On, &[][..])
        );
        let text = route.to_string();
        assert!(
            text.contains("\n  staged    ruled out: no CUDA driver: no library could be loaded"),
            "{text}"
        );
        assert!(
            text.contains("\n  cuFile    ruled out: the compat mode ON leaves it alone"),
            "{text}"
        );
    }
}
