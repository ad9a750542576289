//! Reads and writes in the order of a stream: what once hung on a real device although a fake had let it pass.

use std::thread;
use std::time::Duration;

use kvik::{CompatMode, DeviceBuffer, ErrorKind, FileHandle, RawStream};
use kvik_tests::gpu::{Kind, Memory, Stream};
use kvik_tests::need;
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, file, pattern};

const MIB: usize = 1 << 20;
const LEN: usize = 3_000_000;

fn both(path: &std::path::Path) -> FileHandle {
    let options = FileHandle::options().read(true).write(true).create(true);
    options.open(path).unwrap()
}

#[test]
fn a_read_and_a_write_of_any_size_move_all_bytes_and_no_others() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let largest = 70 * MIB;
    let handle = both(&file(folder.path(), "source", 1, largest + 5000));
    let copy = both(&folder.path().join("copy"));
    let stream = Stream::new(&gpu, 0);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, largest + 200);
    for len in [
        1,
        4095,
        4096,
        300_000,
        4 * MIB - 1,
        4 * MIB,
        4 * MIB + 1,
        largest,
    ] {
        for (offset, at) in [(0, 0), (4097, 100)] {
            memory.set(UNTOUCHED);
            let range = at..at + len;
            let read = stream.read(&handle, &mut memory, range.clone(), offset);
            let written = stream.write(&copy, &memory, range, 3);
            assert_eq!(read.unwrap().check().unwrap(), len);
            assert_eq!(written.unwrap().check().unwrap(), len);
            let truth = pattern(1, offset, len);
            let bytes = memory.bytes();
            assert_all(&bytes[..at], UNTOUCHED);
            assert_same(&bytes[at..at + len], &truth);
            assert_all(&bytes[at + len..], UNTOUCHED);
            let stored = std::fs::read(copy.path()).unwrap();
            assert_same(&stored[3..3 + len], &truth);
        }
    }
    assert_eq!(kvik::pinned_memory().lent, 0);
}

#[test]
fn owned_buffers_come_back_with_their_bytes_from_every_kind_of_stream() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let handle = both(&file(folder.path(), "source", 1, LEN));
    for stream in [
        RawStream::DEFAULT,
        RawStream::PER_THREAD,
        Stream::new(&gpu, 0).raw(),
        Stream::blocking(&gpu, 0).raw(),
    ] {
        let buffer = DeviceBuffer::new(0, LEN - 7).unwrap();
        let pending = handle.read_on_stream(buffer, 7, stream).unwrap();
        let (outcome, buffer) = pending.finish();
        assert_eq!(outcome.unwrap(), LEN - 7);
        let mut bytes = vec![0; buffer.len()];
        buffer.copy_to_host(&mut bytes).unwrap();
        assert_same(&bytes, &pattern(1, 7, LEN - 7));
        let pending = handle.write_on_stream(buffer, 0, stream).unwrap();
        let buffer = pending.into_buf();
        assert_same(&std::fs::read(handle.path()).unwrap()[..LEN - 7], &bytes);
        let pending = handle.write_on_stream(buffer, 7, stream).unwrap();
        assert_eq!(pending.check().unwrap(), LEN - 7);
        assert_eq!(pending.check().unwrap(), LEN - 7);
        assert!(pending.is_done());
    }
}

#[test]
fn nothing_begins_before_its_stream_is_there_and_what_is_queued_behind_sees_the_bytes() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let handle = both(&file(folder.path(), "source", 1, LEN));
    let stream = Stream::new(&gpu, 0);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let held = stream.hold_before(&memory, 9);
    // The nines, then the file behind them, through another handle.
    let other = both(handle.path());
    let written = stream.write(&other, &memory, 0..1000, 500).unwrap();
    let read = stream.read(&handle, &mut memory, 0..LEN, 0).unwrap();
    let copy = both(&folder.path().join("copy"));
    let copied = stream.write(&copy, &memory, 0..LEN, 0).unwrap();
    stream.set(&memory, 5);
    thread::sleep(Duration::from_millis(30));
    assert!(!written.is_done() && !read.is_done() && !copied.is_done());
    assert_same(&std::fs::read(handle.path()).unwrap(), &pattern(1, 0, LEN));
    drop(held);
    assert_eq!(copied.check().unwrap(), LEN);
    assert!(written.is_done() && read.is_done());
    let mut truth = pattern(1, 0, LEN);
    truth[500..1500].fill(9);
    assert_same(&std::fs::read(handle.path()).unwrap(), &truth);
    assert_same(&std::fs::read(copy.path()).unwrap(), &truth);
    stream.wait();
    assert_all(&memory.bytes(), 5);
}

#[test]
fn a_read_sees_how_long_the_file_is_in_the_order_of_the_stream() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let handle = both(&file(folder.path(), "source", 1, 1000));
    let stream = Stream::new(&gpu, 0);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, 2 * LEN);
    memory.set(7);
    let held = stream.hold();
    let short = stream.read(&handle, &mut memory, 0..LEN, 10).unwrap();
    let written = stream.write(&handle, &memory, 0..LEN, 1000).unwrap();
    let grown = stream.read(&handle, &mut memory, LEN..2 * LEN, 0).unwrap();
    let behind = stream.read(&handle, &mut memory, 0..9, u64::MAX / 2 - 9);
    drop(held);
    assert_eq!(short.check().unwrap(), 990);
    assert_eq!(written.check().unwrap(), LEN);
    assert_eq!(grown.check().unwrap(), LEN);
    assert_eq!(behind.unwrap().check().unwrap(), 0);
    let bytes = memory.bytes();
    assert_same(&bytes[LEN..LEN + 1000], &pattern(1, 0, 1000));
    assert_same(&bytes[LEN + 1000..LEN + 1990], &pattern(1, 10, 990));
}

#[test]
fn a_hundred_and_twenty_eight_streams_with_a_read_each_all_go_on() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let handle = both(&file(folder.path(), "source", 1, 2 * LEN));
    let streams: Vec<_> = (0..128).map(|_| Stream::new(&gpu, 0)).collect();
    let mut memory: Vec<_> = (0..128)
        .map(|_| Memory::new(&gpu, 0, Kind::Plain, LEN))
        .collect();
    let mut pending = Vec::new();
    for (at, (stream, memory)) in streams.iter().zip(&mut memory).enumerate() {
        pending.push(
            stream
                .read(&handle, memory, 0..LEN, at as u64 * 11)
                .unwrap(),
        );
    }
    let pinned = kvik::pinned_memory();
    assert!(pinned.lent + pinned.kept <= 512 << 20, "{pinned:?}");
    // The last one first.
    for (at, read) in pending.iter().enumerate().rev() {
        assert_eq!(read.check().unwrap(), LEN);
        assert_same(&memory[at].bytes(), &pattern(1, at as u64 * 11, LEN));
    }
    assert_eq!(kvik::pinned_memory().lent, 0);
}

#[test]
fn streams_may_wait_for_each_other() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let handle = both(&file(folder.path(), "source", 1, LEN));
    let (one, two) = (Stream::new(&gpu, 0), Stream::new(&gpu, 0));
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let held = one.hold();
    let mut pending = Vec::new();
    for turn in 0..20 {
        let (first, second) = if turn % 2 == 0 {
            (&one, &two)
        } else {
            (&two, &one)
        };
        let to = (turn + 1) * LEN as u64;
        let from = turn * LEN as u64;
        pending.push(first.read(&handle, &mut memory, 0..LEN, from).unwrap());
        second.follow(first);
        pending.push(second.write(&handle, &memory, 0..LEN, to).unwrap());
    }
    drop(held);
    for pending in pending.iter().rev() {
        assert_eq!(pending.check().unwrap(), LEN);
    }
    let stored = std::fs::read(handle.path()).unwrap();
    for part in stored.chunks(LEN) {
        assert_same(part, &pattern(1, 0, LEN));
    }
}

#[test]
fn the_program_may_free_unpin_and_load_while_streams_wait() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let handle = both(&file(folder.path(), "source", 1, 70 * MIB));
    let stream = Stream::new(&gpu, 0);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, 70 * MIB);
    for _ in 0..3 {
        let pinned = Memory::new(&gpu, 0, Kind::Pinned, MIB);
        let plain = Memory::new(&gpu, 0, Kind::Plain, MIB);
        let mut other = Memory::new(&gpu, 0, Kind::Plain, LEN);
        let read = stream.read(&handle, &mut memory, 0..70 * MIB, 0).unwrap();
        // A real driver loads what sets memory at the first use, and may let that wait for the stream.
        let beside = Stream::new(&gpu, 0);
        beside.set(&plain, 3);
        drop(pinned);
        let again = stream.read(&handle, &mut memory, 0..70 * MIB, 0).unwrap();
        beside.wait();
        drop(plain);
        // It stages through slabs of the same budget, by the ordinary pool.
        handle.read_exact_at(other.target(0..LEN), 1).unwrap();
        kvik::free_pinned_memory();
        assert_eq!(again.check().unwrap(), 70 * MIB);
        assert_eq!(read.check().unwrap(), 70 * MIB);
        assert_same(&other.bytes(), &pattern(1, 1, LEN));
    }
    assert_same(&memory.bytes(), &pattern(1, 0, 70 * MIB));
}

#[test]
fn dropping_a_read_that_was_not_checked_waits_for_the_stream() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let handle = both(&file(folder.path(), "source", 1, LEN));
    let stream = Stream::new(&gpu, 0);
    let held = stream.hold();
    let buffer = DeviceBuffer::new(0, LEN).unwrap();
    let pending = handle.read_on_stream(buffer, 0, stream.raw()).unwrap();
    thread::scope(|scope| {
        let dropped = scope.spawn(move || drop(pending));
        thread::sleep(Duration::from_millis(30));
        assert!(!dropped.is_finished());
        drop(held);
        dropped.join().unwrap();
    });
}

#[test]
fn what_cannot_be_done_in_the_order_of_a_stream_is_refused_at_once() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = FileHandle::open(&path).unwrap();
    let stream = Stream::new(&gpu, 0);
    let on_host = handle.read_on_stream(vec![0; 10], 0, stream.raw());
    assert_eq!(on_host.unwrap_err().kind(), ErrorKind::Misuse);
    let memory = Memory::new(&gpu, 0, Kind::Plain, 10);
    let written = stream.write(&handle, &memory, 0..10, 0);
    assert_eq!(written.unwrap_err().kind(), ErrorKind::PermissionDenied);
    let far = both(&path);
    let written = stream.write(&far, &memory, 0..10, u64::MAX - 3);
    assert_eq!(written.unwrap_err().kind(), ErrorKind::Misuse);
    let empty = DeviceBuffer::new(0, 0).unwrap();
    let read = handle.read_on_stream(empty, 0, stream.raw()).unwrap();
    assert!(read.is_done());
    assert_eq!(read.check().unwrap(), 0);
}

#[test]
fn a_write_to_a_file_that_takes_no_more_lets_the_stream_go_on_and_tells_when_it_is_checked() {
    let gpu = need::gpu();
    let full = FileHandle::options()
        .write(true)
        // cuFile takes no such file.
        .compat(CompatMode::On)
        .open("/dev/full")
        .unwrap();
    let stream = Stream::new(&gpu, 0);
    let memory = Memory::new(&gpu, 0, Kind::Plain, 70 * MIB);
    let written = stream.write(&full, &memory, 0..70 * MIB, 0).unwrap();
    stream.set(&memory, 4);
    stream.wait();
    let error = written.check().unwrap_err();
    assert_eq!((error.kind(), error.done()), (ErrorKind::StorageFull, 0));
    assert_eq!(written.check().unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(kvik::pinned_memory().lent, 0);
}
