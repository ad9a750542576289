//! The fake libcufile, and what a test can ask of it.

use std::ops::Deref;
use std::path::Path;
use std::time::Duration;

use super::{Controls, Library, cufile};

/// The fake libcufile in this process. It works on the fake libcuda that is loaded, which must come first.
#[derive(Debug, Clone, Copy)]
pub struct FakeCuFile(Controls);

impl Deref for FakeCuFile {
    type Target = Controls;

    fn deref(&self) -> &Controls {
        &self.0
    }
}

impl FakeCuFile {
    /// The one at [`cufile`].
    #[track_caller]
    #[must_use]
    pub fn here() -> FakeCuFile {
        FakeCuFile::at(&cufile())
    }

    /// The one at `path`, a copy of it. It looks for the libcuda that `FAKE_CUFILE_CUDA` names.
    #[track_caller]
    #[must_use]
    pub fn at(path: &Path) -> FakeCuFile {
        FakeCuFile(Controls::new(Library::load(path), "fake_cufile"))
    }

    /// What `cuFileGetVersion` says, such as 1150.
    pub fn set_version(&self, version: usize) {
        self.control("set_version", [version]);
    }

    /// The major version of nvidia-fs; 0 where it is not there.
    pub fn set_nvfs(&self, major: usize) {
        self.control("set_nvfs", [major]);
    }

    /// The most entries in a batch; with 0 there are no batches.
    pub fn set_max_batch(&self, most: usize) {
        self.control("set_max_batch", [most]);
    }

    /// Whether the kernel's own way between devices is there.
    pub fn set_p2p(&self, there: bool) {
        self.control("set_p2p", [usize::from(there)]);
    }

    /// Whether a direct path leads to the files that are registered from now on; by default, where nvidia-fs is.
    pub fn set_direct(&self, direct: bool) {
        self.control("set_direct", [usize::from(direct)]);
    }

    /// Whoever opens the driver waits until it may go on.
    pub fn hold_opening(&self) {
        self.control("hold_opening", [1]);
    }

    /// Lets them go on.
    pub fn release_opening(&self) {
        self.control("hold_opening", [0]);
    }

    /// Whoever closes the driver waits until it may go on.
    pub fn hold_closing(&self) {
        self.control("hold_closing", [1]);
    }

    /// Lets them go on.
    pub fn release_closing(&self) {
        self.control("hold_closing", [0]);
    }

    /// How often a transfer named a registered buffer by the address where that starts.
    #[must_use]
    pub fn hits(&self) -> usize {
        self.number("hits")
    }

    /// What each transfer takes longer.
    pub fn set_delay(&self, delay: Duration) {
        let microseconds = usize::try_from(delay.as_micros()).unwrap();
        self.control("set_delay", [microseconds]);
    }

    /// No transfer goes on until they are released.
    pub fn hold(&self) {
        self.control("hold", [1]);
    }

    /// Lets them go.
    pub fn release(&self) {
        self.control("hold", [0]);
    }

    /// What was set, in order, as `bool:1=false` or `max-cache=1024`.
    #[must_use]
    pub fn parameters(&self) -> Vec<String> {
        self.lines("parameters")
    }

    /// How often the driver was opened and not closed.
    #[must_use]
    pub fn opened(&self) -> usize {
        self.number("opened")
    }

    /// Files that are registered.
    #[must_use]
    pub fn files(&self) -> usize {
        self.number("live_files")
    }

    /// Buffers that are registered.
    #[must_use]
    pub fn buffers(&self) -> usize {
        self.number("live_buffers")
    }

    /// Bytes of theirs.
    #[must_use]
    pub fn buffer_bytes(&self) -> usize {
        self.number("live_buffer_bytes")
    }

    /// Streams that are registered.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.number("live_streams")
    }

    /// Batches that were not destroyed.
    #[must_use]
    pub fn batches(&self) -> usize {
        self.number("live_batches")
    }

    /// Transfers that are on their way.
    #[must_use]
    pub fn moving(&self) -> usize {
        self.number("moving")
    }

    /// How many there were at once, at most.
    #[must_use]
    pub fn most_moving(&self) -> usize {
        self.number("most_moving")
    }
}
