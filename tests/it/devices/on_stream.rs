//! Transfers in the order of a stream, on a driver that refuses, breaks or is held: the stream always goes on, and nothing is
//! told before it is true.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use kvik::stats::{Backend, Direction, Listener, Operation, Outcome, listen};
use kvik::{DeviceBuffer, ErrorKind, FileHandle, RawStream, pinned_memory};
use kvik_tests::fake::{self, FakeCuda};
use kvik_tests::faults::Shim;
use kvik_tests::gpu::{Kind, Memory, OwnContext, Stream, current};
use kvik_tests::os::forked;
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, file, pattern};

use super::{open, start};
use crate::child;

const LEN: usize = 100_000;

/// Nothing is lent or was done that a correct program would not do. The words of streams stay: a page for sixteen of them.
#[track_caller]
fn assert_at_rest(fake: &FakeCuda) {
    assert_eq!(pinned_memory().lent, 0);
    assert_eq!(fake.faults(), Vec::<String>::new());
    assert_eq!(fake.strays(), 0);
    kvik::free_pinned_memory();
    assert_eq!(pinned_memory().kept, 0);
    assert!(fake.registered_bytes() <= 300 / 16 * 4096 + 4096);
}

#[test]
fn whichever_call_of_the_driver_fails_the_stream_goes_on_and_the_bytes_that_count_are_there() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = open(&path, 2, 1 << 20, 8192);
    let copy = open(&folder.path().join("copy"), 2, 1 << 20, 8192);
    let stream = Stream::new(&gpu, 0);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    for write in [false, true] {
        for nth in 1.. {
            memory.set(UNTOUCHED);
            if write {
                memory.put(0, &pattern(2, 0, LEN));
                copy.set_len(0).unwrap();
            }
            kvik::free_pinned_memory();
            fake.start_log();
            fake.fail("*", &nth.to_string(), 999);
            let outcome = match write {
                false => stream.read(&handle, &mut memory, 0..LEN, 0),
                true => stream.write(&copy, &memory, 0..LEN, 0),
            }
            .and_then(|pending| pending.check());
            fake.succeed();
            let log = fake.log();
            let failed = log.get(nth - 1).cloned().unwrap_or_default();
            if failed.contains("cuCtxPopCurrent") && current().is_some() {
                fake.call("cuCtxPopCurrent_v2", [0]);
            }
            assert_eq!(current(), None, "{failed}");
            assert_eq!(pinned_memory().lent, 0, "{failed}");
            stream.wait();
            let done = outcome
                .as_ref()
                .map_or_else(|error| error.done() as usize, |done| *done);
            match write {
                false => assert_same(&memory.bytes()[..done], &pattern(1, 0, done)),
                true => {
                    let stored = std::fs::read(copy.path()).unwrap();
                    assert_same(&stored[..done], &pattern(2, 0, done));
                }
            }
            if failed.is_empty() {
                assert_eq!(outcome.unwrap(), LEN);
                assert!(nth > 50, "{nth} calls are fewer than there must be");
                break;
            }
            if let Err(error) = outcome {
                assert_eq!(error.kind(), ErrorKind::Device, "{failed}: {error}");
                assert!(error.to_string().contains("(999)"), "{failed}: {error}");
            }
        }
    }
    assert_at_rest(&fake);
}

/// One thread, and forty reads whose streams do not get to them.
#[test]
fn a_read_behind_a_stream_that_is_held_keeps_no_other_from_going_on() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = open(&path, 1, 1 << 20, 16_384);
    let mut stuck = Vec::new();
    for _ in 0..40 {
        let stream = Stream::new(&gpu, 0);
        let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
        let held = stream.hold();
        let pending = stream.read(&handle, &mut memory, 0..LEN, 0).unwrap();
        stuck.push((pending, held, memory));
    }
    let free = Stream::new(&gpu, 0);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    for offset in 0..5 {
        let read = free.read(&handle, &mut memory, 0..LEN, offset).unwrap();
        assert_eq!(read.check().unwrap(), LEN - offset as usize);
    }
    // The blocking way, too: its slabs are counted apart.
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    // Freeing the memory of one would wait for the streams of all.
    let mut memories = Vec::new();
    for (pending, held, memory) in stuck {
        assert!(!pending.is_done());
        drop(held);
        assert_eq!(pending.check().unwrap(), LEN);
        assert_same(&memory.bytes(), &pattern(1, 0, LEN));
        memories.push(memory);
    }
    drop(memories);
    assert_at_rest(&fake);
}

#[test]
fn a_context_that_breaks_ends_the_wait_with_the_drivers_words_and_others_go_on() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = open(&path, 2, 1 << 20, 16_384);
    for how in ["held", "late"] {
        let mine = OwnContext::new(&gpu, 0);
        let buffer = mine.within(|| DeviceBuffer::on_current(LEN)).unwrap();
        if how == "late" {
            fake.fail_late("cuMemcpyHtoDAsync_v2", "2", 700);
        } else {
            fake.hold_all();
        }
        let pending = mine.within(|| handle.read_on_stream(buffer, 0, RawStream::DEFAULT));
        let pending = pending.unwrap();
        if how == "held" {
            mine.within(|| fake.break_context(700));
        }
        let error = pending.check().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Device, "{error}");
        let text = error.to_string();
        assert!(text.contains("CUDA_ERROR_ILLEGAL_ADDRESS (700)"), "{text}");
        assert_eq!(pending.check().unwrap_err().to_string(), text);
        fake.succeed();
        fake.release_all();
        drop(pending);
        drop(mine);
        assert_eq!(pinned_memory().lent, 0);
        let stream = Stream::new(&gpu, 0);
        let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
        let read = stream.read(&handle, &mut memory, 0..LEN, 0).unwrap();
        assert_eq!(read.check().unwrap(), LEN);
        assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    }
    assert_eq!(fake.faults(), Vec::<String>::new());
}

#[test]
fn streams_that_record_a_graph_or_are_another_devices_are_refused() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 1, 4096, 4096);
    let stream = Stream::new(&gpu, 0);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    fake.set_capturing(stream.raw().as_raw() as usize, 1);
    let error = stream.read(&handle, &mut memory, 0..LEN, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(error.to_string().contains("recording a graph"), "{error}");
    fake.set_capturing(stream.raw().as_raw() as usize, 0);
    let other = Stream::new(&gpu, 1);
    let error = other.write(&handle, &memory, 0..LEN, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(
        error.to_string().contains("the memory lies on device 0"),
        "{error}"
    );
    assert_eq!(current(), None);
    let read = stream.read(&handle, &mut memory, 0..LEN, 0).unwrap();
    assert_eq!(read.check().unwrap(), LEN);
    assert_at_rest(&fake);
}

#[test]
fn a_transfer_goes_behind_the_streams_that_its_buffer_names_as_well() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 1, 4096, 4096);
    let (own, stream) = (Stream::new(&gpu, 0), Stream::new(&gpu, 0));
    let buffer = DeviceBuffer::new_async(LEN, own.raw()).unwrap();
    let held = own.hold();
    let read = handle.read_on_stream(buffer, 0, stream.raw()).unwrap();
    thread::sleep(Duration::from_millis(20));
    assert!(!read.is_done());
    drop(held);
    let (outcome, buffer) = read.finish();
    assert_eq!(outcome.unwrap(), LEN);
    let mut bytes = vec![0; LEN];
    buffer.copy_to_host(&mut bytes).unwrap();
    assert_same(&bytes, &pattern(1, 0, LEN));
    drop(buffer);
    own.wait();
    assert_at_rest(&fake);
}

/// Behind the count the buffer's bytes are not specified, but they are nobody else's.
#[test]
fn a_file_that_ends_early_shows_no_bytes_of_other_transfers_behind_its_end() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source");
    std::fs::write(&path, vec![0xAA; LEN]).unwrap();
    let handle = open(&path, 2, 1 << 20, 16_384);
    let stream = Stream::new(&gpu, 0);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    for length in [LEN, 70_001, 5, 0] {
        let held = stream.hold();
        let read = stream.read(&handle, &mut memory, 0..LEN, 0).unwrap();
        // Only now, in the stream's order before.
        handle.set_len(length as u64).unwrap();
        drop(held);
        assert_eq!(read.check().unwrap(), length);
        let bytes = memory.bytes();
        assert_all(&bytes[..length], 0xAA);
        assert!(!bytes[length..].contains(&0xAA));
        memory.set(UNTOUCHED);
    }
    assert_at_rest(&fake);
}

#[test]
fn any_number_of_reads_in_flight_takes_a_bounded_amount_of_pinned_memory() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let len = 8 << 20;
    let path = file(folder.path(), "source", 1, len);
    let handle = open(&path, 8, 1 << 20, 16 << 20);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, len);
    let stream = Stream::new(&gpu, 0);
    let held = stream.hold();
    let read = |memory: &mut Memory| stream.read(&handle, memory, 0..len, 0).unwrap();
    let pending: Vec<_> = (0..300).map(|_| read(&mut memory)).collect();
    let lent = pinned_memory().lent;
    // The limit of 256 MiB, and at most 256 KiB for each read beyond.
    assert!(lent <= (256 << 20) + 300 * (256 << 10), "{lent}");
    drop(held);
    for pending in &pending {
        assert_eq!(pending.check().unwrap(), len);
    }
    assert_same(&memory.bytes(), &pattern(1, 0, len));
    assert_at_rest(&fake);
}

#[test]
fn a_transfer_in_the_order_of_a_stream_is_told_to_listeners_once() {
    // The bytes moved come with the end.
    type Told = (Direction, Backend, u64, Option<u64>);
    #[derive(Default)]
    struct Heard(Mutex<Vec<Told>>);
    impl Listener for Heard {
        fn started(&self, operation: &Operation) {
            let heard = (operation.direction, operation.backend, operation.size, None);
            self.0.lock().unwrap().push(heard);
        }
        fn finished(&self, operation: &Operation, outcome: &Outcome) {
            let bytes = Some(outcome.bytes);
            let heard = (
                operation.direction,
                operation.backend,
                operation.size,
                bytes,
            );
            self.0.lock().unwrap().push(heard);
        }
    }
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 2, 4096, 16_384);
    let stream = Stream::new(&gpu, 0);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let heard = Arc::new(Heard::default());
    let listening = listen(Arc::clone(&heard) as Arc<dyn Listener>);
    let read = stream.read(&handle, &mut memory, 0..LEN, 10).unwrap();
    assert_eq!(read.check().unwrap(), LEN - 10);
    let written = stream.write(&handle, &memory, 0..LEN, 0).unwrap();
    assert_eq!(written.check().unwrap(), LEN);
    assert_eq!(written.check().unwrap(), LEN);
    drop(listening);
    let (len, posix) = (LEN as u64, Backend::Posix);
    let expected = [
        (Direction::Read, posix, len, None),
        (Direction::Read, posix, len, Some(len - 10)),
        (Direction::Write, posix, len, None),
        (Direction::Write, posix, len, Some(len)),
    ];
    assert_eq!(*heard.0.lock().unwrap(), expected);
    assert_at_rest(&fake);
}

#[test]
fn in_a_forked_child_transfers_of_streams_are_forked_at_once_and_the_parents_go_on() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 2, 4096, 16_384);
    let stream = Stream::new(&gpu, 0);
    let held = stream.hold();
    let buffer = DeviceBuffer::new(0, LEN).unwrap();
    let pending = handle.read_on_stream(buffer, 0, stream.raw()).unwrap();
    forked(|| {
        assert_eq!(pending.check().unwrap_err().kind(), ErrorKind::Forked);
        assert!(pending.is_done());
        let (outcome, buffer) = pending.finish();
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Forked);
        let again = handle.read_on_stream(buffer, 0, stream.raw());
        assert_eq!(again.unwrap_err().kind(), ErrorKind::Forked);
    })
    .succeeded();
    // The parent's was moved into the child's work, and is left to the process.
    drop(held);
    stream.wait();
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let read = stream.read(&handle, &mut memory, 0..LEN, 0).unwrap();
    assert_eq!(read.check().unwrap(), LEN);
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    assert_at_rest(&fake);
}

/// The piece at an offset fails, the others are late: the stream goes on, and the error comes with what was moved before it.
#[test]
fn an_error_in_the_middle_of_a_file_lets_the_stream_go_on_and_is_told_when_it_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "64 MiB", 1, 64 << 20);
    let shim = Shim::build();
    for (offset, done) in [
        (0_u64, 0_u64),
        (32 << 20, 32 << 20),
        ((60 << 20) + 1, 60 << 20),
    ] {
        let rules = format!("pread:EIO:@{offset},pread:delay:*3");
        let said = child("on-stream-error")
            .arg(&path)
            .env("KVIK_CUDA_LIBRARY", fake::cuda())
            .faults(&shim, &rules)
            .succeeds();
        let expected = format!("Io after {done}\ntext: read {} 0..67108864", path.display());
        assert!(said.starts_with(&expected), "{said}\ninstead of {expected}");
        assert!(said.contains("I/O error (EIO)"), "{said}");
    }
}

#[test]
fn a_process_that_ends_with_transfers_of_streams_in_flight_ends_well() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "8 MiB", 1, 8 << 20);
    for _ in 0..10 {
        for how in ["stream-returns", "stream-exits", "stream-leaks"] {
            let said = child("exit-device")
                .arg(how)
                .arg(&path)
                .env("KVIK_CUDA_LIBRARY", fake::cuda())
                .env("FAKE_CUDA_DELAY_US", "3000")
                .succeeds();
            assert_eq!(said, "", "{how}");
        }
    }
}

#[test]
fn a_driver_whose_streams_cannot_wait_for_words_is_unsupported() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle: FileHandle = open(&file(folder.path(), "source", 1, LEN), 2, 4096, 16_384);
    let stream = Stream::new(&gpu, 0);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    fake.fail("cuStreamWriteValue32_v2", "1+", 801);
    fake.fail("cuStreamWaitValue32_v2", "1+", 801);
    let error = stream.read(&handle, &mut memory, 0..LEN, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let error = stream.write(&handle, &memory, 0..LEN, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert_eq!(fake.calls("cuMemcpyDtoHAsync_v2"), 0);
    fake.succeed();
    assert_at_rest(&fake);
}

/// Pinned memory dies with the context that it was pinned in, and a copy from what is not pinned is made at the call.
#[test]
fn a_context_that_is_destroyed_takes_no_memory_from_transfers_on_streams_of_another() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = open(&path, 2, 1 << 20, 16_384);
    let mine = OwnContext::new(&gpu, 0);
    let buffer = mine.within(|| DeviceBuffer::on_current(LEN)).unwrap();
    let read = mine.within(|| handle.read_on_stream(buffer, 0, RawStream::DEFAULT));
    assert_eq!(read.unwrap().check().unwrap(), LEN);
    assert!(pinned_memory().kept > 0);
    let stream = Stream::new(&gpu, 0);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, 2 * LEN);
    memory.set(UNTOUCHED);
    let held = stream.hold();
    let first = stream.read(&handle, &mut memory, 0..LEN, 0).unwrap();
    drop(mine);
    let second = stream.read(&handle, &mut memory, LEN..2 * LEN, 0).unwrap();
    drop(held);
    assert_eq!(first.check().unwrap(), LEN);
    assert_eq!(second.check().unwrap(), LEN);
    assert_same(&memory.bytes()[..LEN], &pattern(1, 0, LEN));
    assert_same(&memory.bytes()[LEN..], &pattern(1, 0, LEN));
    assert_at_rest(&fake);
}

/// Who looks from time to time instead of waiting would look for ever.
#[test]
fn whoever_asks_only_whether_it_is_done_hears_of_a_context_that_broke() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 2, 4096, 16_384);
    let mine = OwnContext::new(&gpu, 0);
    let buffer = mine.within(|| DeviceBuffer::on_current(LEN)).unwrap();
    fake.hold_all();
    let pending = mine.within(|| handle.read_on_stream(buffer, 0, RawStream::DEFAULT));
    let pending = pending.unwrap();
    mine.within(|| fake.break_context(700));
    while !pending.is_done() {
        thread::yield_now();
    }
    let error = pending.check().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Device, "{error}");
    fake.release_all();
    drop(pending);
    drop(mine);
    assert_eq!(pinned_memory().lent, 0);
}

/// Of a transfer that the driver has taken only a part of, and that the stream cannot count to the end of.
#[test]
fn whoever_asks_only_whether_it_is_done_hears_of_a_transfer_that_was_queued_in_part() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 2, 4096, 16_384);
    let stream = Stream::new(&gpu, 0);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    fake.fail("cuStreamWriteValue32_v2", "3+", 999);
    let pending = stream.read(&handle, &mut memory, 0..LEN, 0).unwrap();
    fake.succeed();
    while !pending.is_done() {
        thread::yield_now();
    }
    let error = pending.check().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Device, "{error}");
    let done = error.done() as usize;
    assert!(done > 0);
    assert_same(&memory.bytes()[..done], &pattern(1, 0, done));
    drop(pending);
    assert_at_rest(&fake);
}
