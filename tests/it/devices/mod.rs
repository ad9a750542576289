//! Device memory on a fake driver that is late, fails, or lacks things: what a real one cannot be told to do. What both can do
//! is in `tests/gpu`.

mod failures;
mod lateness;
mod limits;
mod on_stream;
mod processes;
mod refusals;
mod scripted;

use std::path::Path;

use kvik::{ByteSize, Config, FileHandle, Layer};
use kvik_tests::fake::FakeCuda;
use kvik_tests::gpu::Gpu;
use kvik_tests::need;

/// The fake, chosen and started.
#[track_caller]
fn start() -> (Gpu, FakeCuda) {
    let gpu = need::gpu();
    // From here on kvik has it started, too.
    drop(kvik::DeviceBuffer::new(0, 1).unwrap());
    (gpu, FakeCuda::here())
}

/// A handle to read and write by, in tasks through slabs of so many bytes, however little it is.
#[track_caller]
fn open(path: &Path, threads: usize, task_size: u64, slab: u64) -> FileHandle {
    let settings = Layer::new()
        .num_threads(threads)
        .task_size(ByteSize::new(task_size))
        .inline_size(ByteSize::new(0))
        .bounce_buffer_size(ByteSize::new(slab));
    open_with(path, settings)
}

/// A handle to read and write by; what is small is moved at once.
#[track_caller]
fn open_with(path: &Path, settings: Layer) -> FileHandle {
    FileHandle::options()
        .read(true)
        .write(true)
        .create(true)
        .open_with(path, &Config::resolve([settings]).unwrap())
        .unwrap()
}

/// Nothing of kvik's is lent or on its way, and nothing was done that a correct program would not do.
#[track_caller]
fn assert_at_rest(fake: &FakeCuda) {
    assert_eq!(kvik::pinned_memory().lent, 0);
    assert_eq!(fake.faults(), Vec::<String>::new());
    assert_eq!(fake.strays(), 0);
    kvik::free_pinned_memory();
    assert_eq!(
        (kvik::pinned_memory().kept, fake.registered_bytes()),
        (0, 0)
    );
}
