//! Device memory by cuFile, on fakes that fail, fall short and notice what must not be done. What once could break: a driver of
//! cuFile's that is opened before CUDA's, a descriptor that is closed while cuFile uses it, a count that is taken for all.

mod auto;
mod batches;
mod driver;
mod edges;
mod failures;
mod on_stream;
mod order;
mod registration;
mod reopening;
mod silence;
mod transfers;

use std::path::Path;

use kvik::config::{Config, Layer};
use kvik::{ByteSize, CompatMode, FileHandle};
use kvik_tests::fake::{FakeCuFile, FakeCuda, cufile};
use kvik_tests::gpu::Gpu;
use kvik_tests::need;

/// Both fakes, chosen; nothing of them is used yet but the driver of CUDA.
#[track_caller]
pub(crate) fn start() -> (Gpu, FakeCuda, FakeCuFile) {
    let gpu = need::gpu();
    let (cuda, fake) = (FakeCuda::here(), FakeCuFile::here());
    Config::set_process(Layer::new().cufile_library(Some(cufile()))).unwrap();
    (gpu, cuda, fake)
}

/// A handle to read and write by cuFile alone, in tasks of so many bytes.
#[track_caller]
pub(crate) fn open(path: &Path, threads: usize, task_size: u64) -> FileHandle {
    let settings = Layer::new()
        .num_threads(threads)
        .task_size(ByteSize::new(task_size))
        .gds_threshold(ByteSize::new(0));
    open_with(path, settings)
}

#[track_caller]
fn open_with(path: &Path, settings: Layer) -> FileHandle {
    FileHandle::options()
        .read(true)
        .write(true)
        .create(true)
        .compat(CompatMode::Off)
        .open_with(path, &Config::resolve([settings]).unwrap())
        .unwrap()
}

/// Once all handles are dropped: cuFile knows no file any more, and neither fake saw anything that a correct program would
/// not do.
#[track_caller]
pub(crate) fn assert_at_rest(cuda: &FakeCuda, cufile: &FakeCuFile) {
    // A worker lets go of the file when the transfer has ended, which its caller may know before.
    while cufile.files() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(cufile.moving(), 0);
    let counts = ["cuFileHandleRegister", "cuFileHandleDeregister"].map(|name| cufile.calls(name));
    assert_eq!(counts[0], counts[1], "each file is deregistered once");
    assert_eq!(cufile.faults(), Vec::<String>::new());
    assert_eq!(cuda.faults(), Vec::<String>::new());
    assert_eq!(kvik::pinned_memory().lent, 0);
}
