//! A device that is late: nobody returns before it is done, and one that is held up holds up nobody else.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use kvik::stats::{Listener, Operation, Outcome, listen};
use kvik::{DeviceBuffer, FileHandle, Layer, free_pinned_memory, pinned_memory};
use kvik_tests::gpu::{Kind, Memory, Stream, current};
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, file, pattern};

use super::{assert_at_rest, open, open_with, start};

const LEN: usize = 100_000;

#[test]
fn a_read_returns_when_its_bytes_are_on_the_device_and_a_write_when_they_are_in_the_file() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    for (threads, task, slab) in [(1, 1 << 20, 4 << 20), (1, 500, 8192), (4, 10_000, 16_384)] {
        let handle = open(&path, threads, task, slab);
        let copy = open(&folder.path().join("copy"), threads, task, slab);
        fake.set_delay(Duration::from_millis(1));
        let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
        handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
        assert_eq!(
            fake.peek(memory.address() as usize, LEN),
            pattern(1, 0, LEN)
        );
        copy.write_all_at(memory.source(0..LEN), 0).unwrap();
        let stored = std::fs::read(folder.path().join("copy")).unwrap();
        assert_same(&stored, &pattern(1, 0, LEN));
        // What the program does with the memory now is disturbed by nobody.
        fake.poke(memory.address() as usize, &[UNTOUCHED; LEN]);
        thread::sleep(Duration::from_millis(5));
        assert_all(&fake.peek(memory.address() as usize, LEN), UNTOUCHED);
    }
    assert_at_rest(&fake);
}

/// Everything is held: a transfer that is dropped or waited for by one thread must not end before it is let go.
#[test]
fn dropping_a_read_or_write_in_the_background_waits_for_a_device_that_is_late() {
    let (_gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = open(&path, 2, 10_000, 16_384);
    for write in [false, true] {
        let buffer = DeviceBuffer::new(0, LEN).unwrap();
        fake.hold_all();
        let dropped = match write {
            false => {
                let pending = handle.submit_read(buffer, 0);
                while fake.calls("cuMemcpyHtoDAsync_v2") == 0 {
                    thread::yield_now();
                }
                thread::spawn(move || drop(pending))
            }
            true => {
                let pending = handle.submit_write(buffer, 0);
                while fake.calls("cuMemcpyDtoHAsync_v2") == 0 {
                    thread::yield_now();
                }
                thread::spawn(move || drop(pending))
            }
        };
        thread::sleep(Duration::from_millis(30));
        assert!(!dropped.is_finished(), "the device has not done its copies");
        fake.release_all();
        dropped.join().unwrap();
    }
    assert_at_rest(&fake);
}

#[test]
fn a_device_that_is_held_up_does_not_hold_up_another_one_or_the_host() {
    let (gpu, fake) = start();
    assert_eq!(gpu.devices(), 2);
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = open(&path, 1, 10_000, 16_384);
    let stuck = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let held = Stream::default_of(&gpu, 0).hold();
    thread::scope(|scope| {
        let mut stuck = stuck;
        let handle = &handle;
        let read = scope.spawn(move || {
            handle.read_exact_at(stuck.target(0..LEN), 0).unwrap();
            assert_same(&stuck.bytes(), &pattern(1, 0, LEN));
        });
        while pinned_memory().lent == 0 {
            thread::yield_now();
        }
        let mut other = Memory::new(&gpu, 1, Kind::Plain, LEN);
        let mut host = vec![0; LEN];
        handle.read_exact_at(other.target(0..LEN), 0).unwrap();
        handle.read_exact_at(&mut host, 0).unwrap();
        assert_same(&other.bytes(), &host);
        assert!(!read.is_finished());
        drop(held);
        read.join().unwrap();
    });
    assert_at_rest(&fake);
}

/// More lanes than the limit has slabs for, one after another held up: they wait for slabs and get them.
#[test]
fn more_transfers_than_there_are_slabs_wait_for_each_other_and_end() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = open(&path, 4, 4096, 4096);
    fake.set_delay(Duration::from_micros(50));
    let gpu = &gpu;
    thread::scope(|scope| {
        for number in 0..24 {
            let handle = &handle;
            scope.spawn(move || {
                let mut memory = Memory::new(gpu, number % 2, Kind::Plain, LEN);
                for offset in [0, 1, 4095] {
                    let read = handle.read_at(memory.target(0..LEN), offset);
                    assert_eq!(read.unwrap(), LEN - offset as usize);
                }
                let bytes = memory.bytes();
                assert_same(&bytes[..LEN - 4095], &pattern(1, 4095, LEN - 4095));
            });
        }
    });
    // So many of a page each may be lent at once.
    assert!(pinned_memory().kept <= 64 * 4096, "{:?}", pinned_memory());
    free_pinned_memory();
    assert_at_rest(&fake);
}

#[test]
fn pinned_memory_may_be_given_back_while_transfers_are_in_flight() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = open(&path, 3, 4096, 16_384);
    thread::scope(|scope| {
        let reads = scope.spawn(|| {
            let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
            for _ in 0..50 {
                memory.set(UNTOUCHED);
                handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
                assert_same(&memory.bytes(), &pattern(1, 0, LEN));
            }
        });
        while !reads.is_finished() {
            free_pinned_memory();
        }
        reads.join().unwrap();
    });
    assert_at_rest(&fake);
}

/// Each read by one thread has two slabs, and 64 may be lent.
#[test]
fn a_device_that_has_all_the_staging_memory_does_not_hold_up_another_one() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = open(&path, 1, 4096, 4096);
    let held = Stream::default_of(&gpu, 0).hold();
    thread::scope(|scope| {
        let stuck: Vec<_> = (0..40)
            .map(|_| {
                let mut buffer = Memory::new(&gpu, 0, Kind::Plain, LEN);
                let handle = &handle;
                scope.spawn(move || handle.read_exact_at(buffer.target(0..LEN), 0).unwrap())
            })
            .collect();
        while pinned_memory().lent < 64 * 4096 {
            thread::yield_now();
        }
        let mut other = Memory::new(&gpu, 1, Kind::Plain, LEN);
        handle.read_exact_at(other.target(0..LEN), 0).unwrap();
        assert_same(&other.bytes(), &pattern(1, 0, LEN));
        let small = FileHandle::open(&path).unwrap();
        small.read_exact_at(other.target(0..5000), 1).unwrap();
        assert_same(&other.bytes()[..5000], &pattern(1, 1, 5000));
        assert!(stuck.iter().all(|read| !read.is_finished()));
        drop(held);
    });
    assert_at_rest(&fake);
}

/// All that is held and set apart for a small read is set apart after its start was told.
#[test]
fn whoever_listens_to_small_transfers_hears_of_them_in_the_callers_context() {
    struct Listening(Mutex<Vec<Option<usize>>>);
    impl Listener for Listening {
        fn started(&self, _: &Operation) {
            assert_eq!(pinned_memory().lent, 0);
            self.0.lock().unwrap().push(current());
        }
        fn finished(&self, _: &Operation, outcome: &Outcome) {
            assert!(outcome.ok);
            assert_eq!(pinned_memory().lent, 0);
            self.0.lock().unwrap().push(current());
        }
    }
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = open_with(&path, Layer::new());
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, 1000);
    let heard = Arc::new(Listening(Mutex::default()));
    let listening = listen(Arc::clone(&heard) as Arc<dyn Listener>);
    handle.read_exact_at(memory.target(0..1000), 0).unwrap();
    handle.write_all_at(memory.source(0..1000), 0).unwrap();
    drop(listening);
    assert_eq!(*heard.0.lock().unwrap(), [None; 4]);
    assert_at_rest(&fake);
}

/// The workers of a pool may all wait for a device; whoever waits for a transfer works on it.
#[test]
fn waiting_for_a_transfer_in_the_background_needs_no_worker_that_a_device_holds_up() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = open(&path, 1, 10_000, 16_384);
    let buffer = DeviceBuffer::new(0, LEN).unwrap();
    let held = Stream::default_of(&gpu, 0).hold();
    let stuck = handle.submit_read(buffer, 0);
    while pinned_memory().lent == 0 {
        thread::yield_now();
    }
    let (read, bytes) = handle.submit_read(vec![0; LEN], 0).finish();
    assert_eq!(read.unwrap(), LEN);
    assert_same(&bytes, &pattern(1, 0, LEN));
    let other = DeviceBuffer::new(1, LEN).unwrap();
    assert_eq!(handle.submit_read(other, 0).wait().unwrap(), LEN);
    assert!(!stuck.is_done());
    drop(held);
    assert_eq!(stuck.wait().unwrap(), LEN);
    drop(stuck);
    assert_at_rest(&fake);
}

/// What CUDA orders with the default stream comes first as well, since that is what small copies go on.
#[test]
fn streams_that_the_default_one_waits_for_come_first_too() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, 1000);
    let handle = open_with(&path, Layer::new());
    let held = Stream::blocking(&gpu, 0).hold_before(&memory, 9);
    thread::scope(|scope| {
        let target = memory.target(0..1000);
        let read = scope.spawn(|| handle.read_exact_at(target, 0));
        thread::sleep(Duration::from_millis(30));
        assert!(!read.is_finished(), "the stream is held");
        drop(held);
        read.join().unwrap().unwrap();
    });
    assert_same(&memory.bytes(), &pattern(1, 0, 1000));
    assert_at_rest(&fake);
}

/// The driver forgets pinned memory only when all streams of its context are done, which nobody named.
#[test]
fn slabs_that_make_room_for_others_do_not_let_a_read_wait_for_streams_that_it_does_not_name() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let large = open(&path, 2, 10_000, 16 << 20);
    large.read_exact_at(memory.target(0..LEN), 0).unwrap();
    memory.set(UNTOUCHED);
    let kept = pinned_memory().kept;
    let held = Stream::new(&gpu, 0).hold();
    let little = open(&path, 2, 4096, 4096);
    little.read_exact_at(memory.target(0..LEN), 0).unwrap();
    assert!(pinned_memory().kept < kept);
    drop(held);
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    assert_at_rest(&fake);
}
