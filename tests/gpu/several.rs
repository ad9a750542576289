//! Several threads, contexts and devices at once. With one device all is done on that one.

use std::thread;

use kvik::{ByteSize, Config, DeviceBuffer, ErrorKind, FileHandle, Layer, ReadPiece};
use kvik_tests::gpu::{Kind, Memory, OwnContext, current};
use kvik_tests::need;
use kvik_tests::pattern::{assert_same, file, pattern};

const LEN: usize = 400_000;

#[test]
fn many_fresh_threads_read_and_write_on_all_devices_at_once() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 2 * LEN);
    // Few and small slabs, so that threads wait for each other's.
    let settings = Layer::new()
        .num_threads(4)
        .task_size(ByteSize::kib(16))
        .bounce_buffer_size(ByteSize::kib(8));
    let config = Config::resolve([settings]).unwrap();
    let options = FileHandle::options();
    let handle = options.read(true).open_with(&path, &config).unwrap();
    let gpu = &gpu;
    thread::scope(|scope| {
        for number in 0..12 {
            let (handle, config, folder) = (&handle, &config, folder.path());
            scope.spawn(move || {
                let device = number % gpu.devices();
                let copy = folder.join(format!("copy {number}"));
                let options = FileHandle::options();
                let options = options.read(true).write(true).create(true);
                let written = options.open_with(&copy, config).unwrap();
                for turn in 0..4 {
                    let offset = number as usize * 1000 + turn;
                    let mut memory = Memory::new(gpu, device, Kind::Plain, LEN + 1);
                    let read = handle.read_at(memory.target(1..LEN + 1), offset as u64);
                    assert_eq!(read.unwrap(), LEN);
                    written.write_all_at(memory.source(1..LEN + 1), 0).unwrap();
                    assert_eq!(current(), None);
                }
                let truth = pattern(1, number as u64 * 1000 + 3, LEN);
                assert_same(&std::fs::read(&copy).unwrap(), &truth);
            });
        }
    });
    assert_eq!(kvik::pinned_memory().lent, 0);
}

#[test]
fn memory_of_a_context_of_the_programs_own_is_read_into_from_any_thread_and_context() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = FileHandle::open(&path).unwrap();
    let last = gpu.devices() - 1;
    let (one, two) = (OwnContext::new(&gpu, 0), OwnContext::new(&gpu, last));
    let mut of_one = Memory::within(&one, Kind::Plain, LEN);
    let mut of_two = Memory::within(&two, Kind::Plain, LEN);
    // In the other's context, in none, and in its own.
    two.within(|| {
        handle.read_exact_at(of_one.target(0..LEN), 0).unwrap();
        assert_eq!(current(), Some(two.address()));
    });
    handle.read_exact_at(of_two.target(0..LEN), 0).unwrap();
    assert_same(&of_one.bytes(), &pattern(1, 0, LEN));
    assert_same(&of_two.bytes(), &pattern(1, 0, LEN));
    one.within(|| {
        of_one.set(0);
        handle.read_exact_at(of_one.target(0..LEN), 0).unwrap();
        assert_eq!(current(), Some(one.address()));
    });
    assert_same(&of_one.bytes(), &pattern(1, 0, LEN));
    let mut pieces = [
        ReadPiece::new(0, of_one.target(0..10)),
        ReadPiece::new(0, of_two.target(0..10)),
    ];
    let error = handle.read_ranges(&mut pieces).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    assert!(error.to_string().contains("several contexts"), "{error}");
    assert_eq!(current(), None);
}

#[test]
fn a_context_that_was_destroyed_is_an_error_and_others_go_on() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = FileHandle::open(&path).unwrap();
    for _ in 0..3 {
        let mine = OwnContext::new(&gpu, 0);
        let mut buffer = mine.within(|| DeviceBuffer::on_current(LEN)).unwrap();
        handle.read_exact_at(&mut buffer, 0).unwrap();
        drop(mine);
        let error = handle.read_at(&mut buffer, 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Device, "{error}");
        drop(buffer);
        let mut other = Memory::new(&gpu, 0, Kind::Plain, LEN);
        handle.read_exact_at(other.target(0..LEN), 0).unwrap();
        assert_same(&other.bytes(), &pattern(1, 0, LEN));
    }
}
