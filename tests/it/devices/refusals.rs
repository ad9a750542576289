//! What is refused before anything moves, and what a stream that records a graph means.

use kvik::{DeviceBuffer, ErrorKind, FileHandle};
use kvik_tests::gpu::{Kind, Memory, Stream};
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, file, pattern};

use super::{assert_at_rest, open, start};

#[test]
fn a_stream_that_records_a_graph_is_refused_and_goes_on_recording() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 10_000);
    let handle = FileHandle::options()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let stream = Stream::new(&gpu, 0);
    let name = stream.raw().as_raw() as usize;
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, 10_000);
    memory.set(UNTOUCHED);
    fake.set_capturing(name, 1);
    let target = memory.target(0..10_000).behind(stream.raw());
    let error = handle.read_at(target, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    assert!(error.to_string().contains("recording a graph"), "{error}");
    let source = memory.source(0..10_000).behind(stream.raw());
    let error = handle.write_at(source, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    let mut status = 0_usize;
    fake.call(
        "cuStreamIsCapturing",
        [name, kvik_tests::fake::at(&mut status)],
    );
    assert_eq!(status, 1, "it records still");
    // Who does not name it is not concerned.
    handle.read_exact_at(memory.target(0..5000), 0).unwrap();
    fake.call(
        "cuStreamIsCapturing",
        [name, kvik_tests::fake::at(&mut status)],
    );
    assert_eq!(status, 1, "it records still");
    fake.set_capturing(name, 0);
    let bytes = memory.bytes();
    assert_same(&bytes[..5000], &pattern(1, 0, 5000));
    assert_all(&bytes[5000..], UNTOUCHED);
    assert_same(&std::fs::read(&path).unwrap(), &pattern(1, 0, 10_000));
    assert_at_rest(&fake);
}

#[test]
fn a_handle_that_may_not_read_or_write_refuses_memory_of_a_device_too() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 1000);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, 1000);
    memory.set(UNTOUCHED);
    let error = FileHandle::open(&path)
        .unwrap()
        .write_at(memory.source(0..10), 0)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    let written = FileHandle::options().write(true).open(&path).unwrap();
    let error = written.read_at(memory.target(0..10), 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    let error = written
        .write_at(memory.source(0..10), u64::MAX - 3)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    assert_all(&memory.bytes(), UNTOUCHED);
    assert_at_rest(&fake);
}

#[test]
fn a_device_that_has_no_pinned_memory_left_is_out_of_memory() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 1000);
    let handle = FileHandle::open(&path).unwrap();
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, 1000);
    fake.fail("cuMemHostRegister_v2", "1+", 2);
    let error = handle.read_at(memory.target(0..1000), 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    fake.succeed();
    // One slab is enough.
    fake.fail("cuMemHostRegister_v2", "2+", 2);
    handle.read_exact_at(memory.target(0..1000), 0).unwrap();
    fake.succeed();
    assert_same(&memory.bytes(), &pattern(1, 0, 1000));
    assert_at_rest(&fake);
}

/// Neither the copy nor what comes after its refusal may touch a recording, not even by waiting for the context.
#[test]
fn while_a_stream_that_waits_for_the_default_one_records_small_transfers_are_refused_and_it_goes_on()
 {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 10_000);
    let small = FileHandle::options().read(true).write(true);
    let small = small.open(&path).unwrap();
    let large = open(&path, 2, 4096, 8192);
    let name = Stream::blocking(&gpu, 0).raw().as_raw() as usize;
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, 10_000);
    memory.set(UNTOUCHED);
    fake.set_capturing(name, 1);
    for handle in [&small, &large] {
        let read = handle.read_at(memory.target(0..10_000), 0);
        let written = handle.write_at(memory.source(0..10_000), 0);
        for error in [read.unwrap_err(), written.unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
            assert!(error.to_string().contains("recording a graph"), "{error}");
        }
    }
    let mut status = 0_usize;
    fake.call(
        "cuStreamIsCapturing",
        [name, kvik_tests::fake::at(&mut status)],
    );
    assert_eq!(status, 1, "it records still");
    fake.set_capturing(name, 0);
    assert_all(&memory.bytes(), UNTOUCHED);
    assert_same(&std::fs::read(&path).unwrap(), &pattern(1, 0, 10_000));
    assert_at_rest(&fake);
}

#[test]
fn a_call_that_is_refused_leaves_nothing_behind_that_later_ones_wait_for() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 10_000);
    let handle = FileHandle::open(&path).unwrap();
    let [held, recording] = [(); 2].map(|()| Stream::new(&gpu, 0));
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, 10_000);
    let mut buffer = DeviceBuffer::new(0, 10_000).unwrap();
    let name = recording.raw().as_raw() as usize;
    fake.set_capturing(name, 1);
    let hold = held.hold();
    let target = memory.target(0..10_000);
    let target = target.behind(held.raw()).behind(recording.raw());
    let error = handle.read_at(target, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    assert_eq!(error.range(), Some(0..10_000));
    // Nobody names the stream that is held.
    buffer.copy_from_host(&[1; 10]).unwrap();
    let large = open(&path, 2, 4096, 16 << 20);
    large.read_exact_at(memory.target(0..10_000), 0).unwrap();
    drop(hold);
    fake.set_capturing(name, 0);
    assert_same(&memory.bytes(), &pattern(1, 0, 10_000));
    assert_at_rest(&fake);
}

/// One that was forgotten would still be at the memory.
#[test]
fn more_streams_than_a_transfer_can_wait_for_are_refused_and_none_is_forgotten() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 10_000);
    let small = FileHandle::options().read(true).write(true);
    let small = small.open(&path).unwrap();
    let large = open(&path, 2, 4096, 8192);
    let [one, two, three] = [(); 3].map(|()| Stream::new(&gpu, 0).raw());
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, 10_000);
    memory.set(UNTOUCHED);
    for handle in [&small, &large] {
        let target = memory.target(0..10_000);
        let target = target.behind(one).behind(two).behind(three);
        let read = handle.read_at(target, 0);
        let source = memory.source(0..10_000);
        let source = source.behind(one).behind(two).behind(three);
        let written = handle.write_at(source, 0);
        for error in [read.unwrap_err(), written.unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
            assert!(error.to_string().contains("two streams at most"), "{error}");
        }
    }
    assert_all(&memory.bytes(), UNTOUCHED);
    let target = memory.target(0..10_000);
    let target = target.behind(one).behind(two).behind(two).behind(one);
    small.read_exact_at(target, 0).unwrap();
    assert_same(&memory.bytes(), &pattern(1, 0, 10_000));
    assert_at_rest(&fake);
}
