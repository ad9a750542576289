//! What comes first: work that was queued on the default stream before a call, and on a stream that the call names; and what
//! comes after: work that is queued when a call has returned.

use std::thread;
use std::time::Duration;

use kvik::{DeviceBuffer, FileHandle};
use kvik_tests::gpu::{Gpu, Kind, Memory, Stream};
use kvik_tests::need;
use kvik_tests::pattern::{assert_same, file, pattern};

const LEN: usize = 200_000;

/// A read into memory that `stream` is still to write to, once with `named`: the read's bytes win.
fn read_behind(gpu: &Gpu, stream: Stream, named: bool) {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = FileHandle::open(&path).unwrap();
    let mut memory = Memory::new(gpu, 0, Kind::Plain, LEN);
    let held = stream.hold_before(&memory, 9);
    thread::scope(|scope| {
        let target = memory.target(0..LEN);
        let target = if named {
            target.behind(stream.raw())
        } else {
            target
        };
        let read = scope.spawn(|| handle.read_at(target, 0));
        // It has time to go wrong, and none to end.
        thread::sleep(Duration::from_millis(30));
        assert!(!read.is_finished(), "the stream is held");
        drop(held);
        assert_eq!(read.join().unwrap().unwrap(), LEN);
    });
    stream.wait();
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
}

#[test]
fn a_read_waits_for_what_was_queued_on_the_default_stream() {
    let gpu = need::gpu();
    read_behind(&gpu, Stream::default_of(&gpu, 0), false);
}

#[test]
fn a_read_waits_for_what_was_queued_on_the_stream_that_it_names() {
    let gpu = need::gpu();
    read_behind(&gpu, Stream::new(&gpu, 0), true);
}

#[test]
fn a_read_waits_for_no_stream_that_it_does_not_name() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = FileHandle::open(&path).unwrap();
    let other = Memory::new(&gpu, 0, Kind::Plain, 100);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    // What is loaded at the first use of a device may wait for all streams.
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    memory.set(0);
    let stream = Stream::new(&gpu, 0);
    let held = stream.hold_before(&other, 9);
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    drop(held);
    stream.wait();
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
}

#[test]
fn work_that_is_queued_after_a_read_sees_its_bytes_on_every_stream() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = FileHandle::open(&path).unwrap();
    for stream in [Stream::default_of(&gpu, 0), Stream::new(&gpu, 0)] {
        let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
        for _ in 0..20 {
            handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
            stream.set(&memory, 5);
            stream.wait();
            assert_same(&memory.bytes(), &vec![5; LEN]);
        }
    }
}

#[test]
fn a_buffer_in_the_order_of_a_stream_is_read_into_and_written_from_behind_it() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = FileHandle::options()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let stream = Stream::new(&gpu, 0);
    let buffer = DeviceBuffer::new_async(LEN, stream.raw()).unwrap();
    let pending = handle.submit_read(buffer, 0);
    let (outcome, buffer) = pending.finish();
    assert_eq!(outcome.unwrap(), LEN);
    let mut bytes = vec![0; LEN];
    buffer.copy_to_host(&mut bytes).unwrap();
    assert_same(&bytes, &pattern(1, 0, LEN));
    assert_eq!(handle.write_at(&buffer, LEN as u64).unwrap(), LEN);
    let stored = std::fs::read(&path).unwrap();
    assert_same(&stored, &[&bytes[..], &bytes[..]].concat());
}

#[test]
fn dropping_a_read_in_the_background_waits_for_the_device() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = FileHandle::open(&path).unwrap();
    let stream = Stream::default_of(&gpu, 0);
    for _ in 0..3 {
        let buffer = DeviceBuffer::new(0, LEN).unwrap();
        let held = stream.hold();
        let pending = handle.submit_read(buffer, 0);
        thread::scope(|scope| {
            // Dropping it frees the buffer, which nobody may write to then.
            let dropped = scope.spawn(move || drop(pending));
            thread::sleep(Duration::from_millis(10));
            drop(held);
            dropped.join().unwrap();
        });
    }
}
