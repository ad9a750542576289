//! What the cases of one run share on the device's side.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::{Checker, DeviceMemory, Gpu};
use crate::data::Data;
use crate::folder::{self, Folder};
use crate::loops::{CHUNK, size_name};
use crate::options::{Options, Progress};
use crate::trouble::{Doing, Outcome};

pub(crate) struct Rig {
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) memory: DeviceMemory,
    pub(crate) checker: Checker,
    /// A file that is kept in memory, where a case asks for one; the folder goes with the run.
    pub(crate) in_memory: Option<(Folder, Data)>,
}

impl Rig {
    /// Memory on the device for `len` bytes, and threads to look at it.
    pub(crate) fn set_up(gpu: Arc<Gpu>, len: u64) -> Outcome<Self> {
        let here = Path::new("the device");
        let memory = DeviceMemory::new(&gpu, len as usize).doing("get memory of", here)?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let checker = Checker::new(&gpu, threads).doing("get pinned memory for", here)?;
        Ok(Self {
            gpu,
            memory,
            checker,
            in_memory: None,
        })
    }

    /// The device, and how bytes come to it, in a sentence.
    pub(crate) fn about(&self) -> String {
        format!(
            "{}; large cases move the first {} of a file to address {:#x}, the loops in chunks of {}; all bytes of each turn \
             are compared",
            self.gpu.about,
            size_name(self.memory.len() as u64),
            self.memory.address(),
            size_name(CHUNK as u64)
        )
    }

    /// The folder of the file that is kept in memory, for whoever removes it.
    pub(crate) fn into_folder(self) -> Option<Folder> {
        self.in_memory.map(|(folder, _)| folder)
    }

    /// Makes the file that is kept in memory.
    pub(crate) fn add_file_in_memory(
        &mut self,
        options: &Options,
        len: u64,
        progress: &mut dyn FnMut(Progress<'_>),
        stop: &AtomicBool,
    ) -> Outcome<Vec<String>> {
        let there = Options {
            dir: Some(IN_MEMORY.into()),
            size: len,
            ..options.clone()
        };
        let folder = Folder::make(&there)?;
        let (size, notes) = folder::affordable(&there, folder.parent())?;
        let data = Data::make(&folder, size, Duration::MAX, progress, stop)?;
        self.in_memory = Some((folder, data));
        Ok(notes)
    }
}

/// The folder that every Linux keeps in memory.
const IN_MEMORY: &str = "/dev/shm";
