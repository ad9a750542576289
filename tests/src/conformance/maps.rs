//! The door of mapped files, into memory of the host or of a device.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kvik::{MmapHandle, ReadAt};

use super::files::file;
use super::on_device::OnDevice;
use super::{Door, InFlight, Opened, Setting};
use crate::gpu::{Gpu, Kind};

/// Files in a folder, each mapped as a whole.
#[derive(Clone, Debug)]
pub struct Maps {
    folder: PathBuf,
    device: Option<Arc<Gpu>>,
}

impl Maps {
    /// Files in `folder`, which decides the file system.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Maps {
        Maps {
            folder: folder.to_owned(),
            device: None,
        }
    }

    /// The same with what is read landing on a device.
    #[must_use]
    pub fn to_device(self, gpu: Gpu) -> Maps {
        Maps {
            device: Some(Arc::new(gpu)),
            ..self
        }
    }
}

impl Door for Maps {
    fn open(&self, bytes: &[u8], setting: &Setting) -> Box<dyn Opened> {
        let path = file(&self.folder, bytes);
        let options = MmapHandle::options().config(&setting.config());
        let handle = options.open(&path).unwrap();
        match &self.device {
            None => Box::new(Mapped {
                handle,
                _path: path,
            }),
            Some(gpu) => Box::new(MappedToDevice {
                device: OnDevice {
                    gpu: Arc::clone(gpu),
                    kind: Kind::Plain,
                    handle,
                },
                _path: path,
            }),
        }
    }
}

struct Mapped {
    handle: MmapHandle,
    _path: tempfile::TempPath,
}

impl Opened for Mapped {
    fn reader(&self) -> &dyn ReadAt {
        &self.handle
    }

    fn submit_read(&self, buffer: Vec<u8>, offset: u64) -> Box<dyn InFlight> {
        Box::new(self.handle.submit_read(buffer, offset))
    }
}

struct MappedToDevice {
    device: OnDevice<MmapHandle>,
    _path: tempfile::TempPath,
}

impl Opened for MappedToDevice {
    fn reader(&self) -> &dyn ReadAt {
        &self.device
    }

    fn submit_read(&self, buffer: Vec<u8>, offset: u64) -> Box<dyn InFlight> {
        self.device.submit(&buffer, offset)
    }
}
