//! Batches of device memory, staged; `gds` has the same entries go by cuFile.

use kvik::{
    AnyBuffer, Batch, ByteSize, CompatMode, Config, DeviceBuffer, ErrorKind, FileHandle, Layer,
};
use kvik_tests::gpu::Gpu;
use kvik_tests::need;
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, file, pattern};
use tempfile::TempDir;

const LEN: usize = 8_000_000;
const SIZES: [usize; 6] = [0, 1, 4096, 4097, 1 << 20, 70_001];

/// The way by which the bytes go.
#[derive(Clone, Copy, Debug)]
pub(crate) enum By {
    CuFile,
    Slabs,
}

/// A file with the pattern 1, and a handle on it.
fn setup(by: By) -> (Gpu, TempDir, FileHandle) {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let settings = Layer::new().num_threads(4).gds_threshold(ByteSize::new(0));
    let mode = match by {
        By::CuFile => {
            need::cufile(&gpu, &path);
            CompatMode::Off
        }
        By::Slabs => CompatMode::On,
    };
    let options = FileHandle::options().read(true).write(true).compat(mode);
    let handle = options
        .open_with(&path, &Config::resolve([settings]).unwrap())
        .unwrap();
    (gpu, folder, handle)
}

/// Where an entry is, and how long.
fn place(number: usize) -> (u64, usize) {
    let mixed = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let offset = mixed.rotate_left(19) % (LEN as u64 + 5000);
    // Every third one begins with a page.
    let offset = if number.is_multiple_of(3) {
        offset & !4095
    } else {
        offset
    };
    (offset, SIZES[number % SIZES.len()])
}

fn untouched(len: usize) -> DeviceBuffer {
    let mut buffer = DeviceBuffer::new(0, len).unwrap();
    buffer.fill(UNTOUCHED).unwrap();
    buffer
}

fn reads(handle: &FileHandle, count: usize) -> Batch<DeviceBuffer> {
    let mut batch = Batch::new();
    for number in 0..count {
        let (offset, len) = place(number);
        batch.read(handle, offset, untouched(len));
    }
    batch
}

fn bytes(buffer: &DeviceBuffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.len()];
    buffer.copy_to_host(&mut bytes).unwrap();
    bytes
}

/// What an entry has read is in its buffer, as far as the file goes, and nothing else is.
#[track_caller]
fn check(number: usize, count: usize, buffer: &DeviceBuffer) {
    let (offset, len) = place(number);
    assert_eq!(
        count,
        LEN.saturating_sub(offset as usize).min(len),
        "{number}"
    );
    let bytes = bytes(buffer);
    assert_same(&bytes[..count], &pattern(1, offset, count));
    assert_all(&bytes[count..], UNTOUCHED);
}

pub(crate) fn hundreds_of_entries(by: By) {
    let (_gpu, _folder, handle) = setup(by);
    for (number, entry) in reads(&handle, 300)
        .submit()
        .finish()
        .into_iter()
        .enumerate()
    {
        let count = entry.outcome.unwrap();
        check(number, count, &entry.buffer.unwrap());
    }
}

#[test]
fn hundreds_of_entries_of_all_sizes_and_offsets_are_read_by_slabs() {
    hundreds_of_entries(By::Slabs);
}

pub(crate) fn entries_are_written(by: By) {
    let (_gpu, _folder, handle) = setup(by);
    let mut truth = pattern(1, 0, LEN);
    let mut batch = Batch::new();
    let mut at = 3;
    for number in 0..60 {
        let len = SIZES[number % 4];
        let data = pattern(2, at as u64, len);
        truth[at..at + len].copy_from_slice(&data);
        let mut buffer = DeviceBuffer::new(0, len).unwrap();
        buffer.copy_from_host(&data).unwrap();
        batch.write(&handle, at as u64, buffer);
        at += len + number * 97;
    }
    for (number, outcome) in batch.submit().wait().into_iter().enumerate() {
        assert_eq!(outcome.unwrap(), SIZES[number % 4]);
    }
    assert_same(&std::fs::read(handle.path()).unwrap(), &truth);
}

#[test]
fn entries_of_all_sizes_are_written_by_slabs_and_what_lies_between_them_stays() {
    entries_are_written(By::Slabs);
}

pub(crate) fn cancelled_and_dropped(by: By) {
    let (_gpu, _folder, handle) = setup(by);
    drop(reads(&handle, 300).submit());
    let pending = reads(&handle, 300).submit();
    pending.cancel();
    for (number, entry) in pending.finish().into_iter().enumerate() {
        match entry.outcome {
            Ok(count) => check(number, count, &entry.buffer.unwrap()),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
                let (offset, done) = (place(number).0, error.done() as usize);
                let bytes = bytes(&entry.buffer.unwrap());
                assert_same(&bytes[..done], &pattern(1, offset, done));
            }
        }
    }
    // Nothing is left behind that would keep others from working.
    for (number, outcome) in reads(&handle, 50).submit().wait().into_iter().enumerate() {
        let (offset, len) = place(number);
        assert_eq!(
            outcome.unwrap(),
            LEN.saturating_sub(offset as usize).min(len)
        );
    }
}

#[test]
fn cancelled_and_dropped_batches_by_slabs_leave_nothing_behind() {
    cancelled_and_dropped(By::Slabs);
}

pub(crate) fn memory_of_all_kinds(by: By) {
    let (_gpu, _folder, handle) = setup(by);
    let other = FileHandle::open(handle.path()).unwrap();
    let mut batch: Batch<AnyBuffer> = Batch::new();
    for number in 0..120 {
        let (offset, len) = place(number);
        match number % 4 {
            0 | 1 => batch.read(&handle, offset, untouched(len).into()),
            2 => batch.read(&other, offset, untouched(len).into()),
            _ => batch.read(&handle, offset, vec![UNTOUCHED; len].into()),
        };
    }
    for (number, entry) in batch.submit().finish().into_iter().enumerate() {
        let count = entry.outcome.unwrap();
        match entry.buffer.unwrap() {
            AnyBuffer::Device(buffer) => check(number, count, &buffer),
            AnyBuffer::Vec(bytes) => {
                let (offset, _) = place(number);
                assert_same(&bytes[..count], &pattern(1, offset, count));
                assert_all(&bytes[count..], UNTOUCHED);
            }
            other => panic!("{other:?} was not given"),
        }
    }
}

#[test]
fn memory_of_host_and_device_is_one_batch_by_slabs() {
    memory_of_all_kinds(By::Slabs);
}
