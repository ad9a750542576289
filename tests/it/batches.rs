//! Batches of the host's memory: which bytes move, whose error it is, and every way to wait. What once could break elsewhere: a
//! status that tells an entry twice or never, and one bad entry that takes all others down.

use std::fs;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use kvik::stats::SummaryMonitor;
use kvik::{
    AnyBuffer, Batch, ByteSize, ErrorKind, FileHandle, HostBuffer, Op, PendingBatch, ReadOptions,
    ThreadPool,
};
use kvik_tests::os::forked;
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, file, pattern};

use crate::read_write;

const LEN: usize = 1_000_003;

/// A number that looks random, below `most`.
fn mixed(number: usize, most: usize) -> usize {
    let mixed = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed.rotate_left(23) % most as u64) as usize
}

/// Reads of many sizes, at many offsets.
fn reads(handle: &FileHandle, count: usize) -> Batch<Vec<u8>> {
    let mut batch = Batch::new();
    for number in 0..count {
        let (offset, len) = place(number);
        assert_eq!(batch.read(handle, offset, vec![UNTOUCHED; len]), number);
    }
    batch
}

fn place(number: usize) -> (u64, usize) {
    let len = [0, 1, 4096, 4097, 100, 300_000][number % 6];
    (mixed(number, LEN + 1000) as u64, len)
}

#[track_caller]
fn check(pending: PendingBatch<Vec<u8>>) {
    for (number, entry) in pending.finish().into_iter().enumerate() {
        let (offset, len) = place(number);
        let there = LEN.saturating_sub(offset as usize).min(len);
        assert_eq!(entry.outcome.unwrap(), there, "{number}");
        let bytes = entry.buffer.unwrap();
        assert_same(&bytes[..there], &pattern(1, offset, there));
        assert_all(&bytes[there..], UNTOUCHED);
    }
}

#[test]
fn entries_of_any_size_and_offset_are_read_whatever_their_threads_and_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let handle = read_write(&file(folder.path(), "source", 1, LEN));
    check(reads(&handle, 600).submit());
    for (threads, task_size) in [(1, 4096), (3, 10_000), (8, 1 << 20)] {
        let options = ReadOptions::new()
            .num_threads(threads)
            .task_size(ByteSize::new(task_size));
        let mut batch = Batch::with_options(&options);
        for number in 0..100 {
            let (offset, len) = place(number);
            batch.read(&handle, offset, vec![UNTOUCHED; len]);
        }
        assert_eq!((batch.len(), batch.is_empty()), (100, false));
        check(batch.submit());
    }
}

#[test]
fn reads_and_writes_of_several_files_and_kinds_of_memory_are_one_batch() {
    let folder = tempfile::tempdir().unwrap();
    let sources: Vec<_> = (0..3)
        .map(|seed| read_write(&file(folder.path(), &format!("source {seed}"), seed, LEN)))
        .collect();
    let path = file(folder.path(), "target", 9, LEN);
    let target = read_write(&path);
    let mut expected = pattern(9, 0, LEN);
    let mut batch: Batch<AnyBuffer> = Batch::new();
    for number in 0..90 {
        let (at, len) = (number * 11_003, mixed(number, 11_000));
        if number % 2 == 0 {
            let bytes = pattern(77, at as u64, len);
            expected[at..at + len].copy_from_slice(&bytes);
            batch.write(&target, at as u64, bytes.into());
        } else {
            let buffer = HostBuffer::new(len).unwrap();
            batch.read(&sources[number % 3], at as u64, buffer.into());
        }
    }
    for (number, entry) in batch.submit().finish().into_iter().enumerate() {
        let (at, len) = (number * 11_003, mixed(number, 11_000));
        assert_eq!(entry.outcome.as_ref().unwrap(), &len);
        if let AnyBuffer::Host(bytes) = entry.into_buffer().unwrap() {
            assert_same(&bytes, &pattern((number % 3) as u64, at as u64, len));
        }
    }
    assert_same(&fs::read(path).unwrap(), &expected);
}

#[test]
fn what_is_wrong_with_an_entry_is_its_error_and_no_other_entrys() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let readable = FileHandle::open(&path).unwrap();
    let writable = FileHandle::create(folder.path().join("target")).unwrap();
    let mut batch = Batch::new();
    batch.read(&readable, 5, vec![0; 1000]);
    batch.read(&writable, 5, vec![0; 1000]);
    batch.write(&readable, 5, vec![7; 1000]);
    batch.write(&writable, i64::MAX as u64 - 10, vec![7; 1000]);
    batch.write(&writable, u64::MAX, vec![7; 1000]);
    batch.write(&writable, 5, vec![7; 1000]);
    batch.read(&readable, u64::MAX, vec![0; 1000]);
    let pending = batch.submit();
    let outcomes = pending.wait();
    let expected = [
        Ok(1000),
        Err((ErrorKind::PermissionDenied, Op::Read, 5)),
        Err((ErrorKind::PermissionDenied, Op::Write, 5)),
        Err((ErrorKind::Misuse, Op::Write, i64::MAX as u64 - 10)),
        Err((ErrorKind::Misuse, Op::Write, u64::MAX)),
        Ok(1000),
        Ok(0),
    ];
    for (number, (outcome, expected)) in outcomes.iter().zip(expected).enumerate() {
        let found = outcome.as_ref().copied().map_err(|error| {
            assert!(error.place().is_some(), "{error}");
            (error.kind(), error.op(), error.range().unwrap().start)
        });
        assert_eq!(found, expected, "{number}");
    }
    // They can be asked for again, and the buffers come back.
    assert_eq!(pending.wait().len(), 7);
    let buffers = pending
        .finish()
        .into_iter()
        .filter_map(|entry| entry.buffer);
    assert_eq!(buffers.map(|buffer| buffer.len()).sum::<usize>(), 7000);
    let bytes = fs::read(folder.path().join("target")).unwrap();
    assert_eq!(bytes.len(), 1005);
    assert_all(&bytes[5..], 7);
}

#[test]
fn an_error_of_the_file_system_is_that_of_the_entry_that_met_it() {
    let full = read_write("/dev/full".as_ref());
    let folder = tempfile::tempdir().unwrap();
    let target = FileHandle::create(folder.path().join("target")).unwrap();
    let mut batch = Batch::new();
    for number in 0..20 {
        let file = if number % 3 == 0 { &full } else { &target };
        batch.write(file, number * 1000, vec![number as u8; 1000]);
    }
    for (number, outcome) in batch.submit().wait().into_iter().enumerate() {
        match number % 3 {
            0 => {
                let error = outcome.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::StorageFull);
                let start = number as u64 * 1000;
                assert_eq!(error.range(), Some(start..start + 1000));
            }
            _ => assert_eq!(outcome.unwrap(), 1000),
        }
    }
    let bytes = fs::read(folder.path().join("target")).unwrap();
    assert_all(&bytes[19_000..], 19);
}

#[test]
fn an_empty_batch_is_done_at_once() {
    let pending = Batch::<Vec<u8>>::new().submit();
    assert!(pending.is_done());
    assert!(pending.wait_some(1, Duration::from_secs(60)).is_empty());
    assert!(pending.wait().is_empty());
    assert!(pending.finish().is_empty());
    // So is one of nothing but refusals and empty buffers.
    let mut batch = Batch::default();
    let file = FileHandle::open("/proc/self/exe").unwrap();
    batch.write(&file, 0, vec![1]);
    batch.read(&file, 0, vec![]);
    let pending = batch.submit();
    assert!(pending.is_done());
    assert_eq!(pending.newly_done().len(), 2);
}

#[test]
fn each_entry_is_told_once_as_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let handle = read_write(&file(folder.path(), "source", 1, LEN));
    let pending = reads(&handle, 500).submit();
    let mut told = vec![false; 500];
    let mut rounds = 0;
    while told.contains(&false) {
        let some = match rounds % 2 {
            0 => pending.newly_done(),
            _ => pending.wait_some(100, Duration::from_secs(60)),
        };
        let missing = told.iter().filter(|told| !**told).count();
        assert!(rounds % 2 == 0 || some.len() >= missing.min(100));
        for done in some {
            let (offset, len) = place(done.index);
            let there = LEN.saturating_sub(offset as usize).min(len);
            assert_eq!(done.outcome.unwrap(), there);
            assert!(!std::mem::replace(&mut told[done.index], true));
        }
        rounds += 1;
    }
    assert!(pending.newly_done().is_empty());
    check(pending);
}

/// Wakes the thread that polls, and counts.
struct Unpark(std::thread::Thread, AtomicUsize);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.unpark();
    }
}

#[test]
fn a_batch_is_a_future_that_any_executor_can_await() {
    let folder = tempfile::tempdir().unwrap();
    let handle = read_write(&file(folder.path(), "source", 1, LEN));
    let mut pending = reads(&handle, 500).submit();
    let unpark = Arc::new(Unpark(std::thread::current(), AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&unpark));
    {
        let mut future = pin!(&mut pending);
        let outcomes = loop {
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(outcomes) => break outcomes,
                Poll::Pending => std::thread::park(),
            }
        };
        assert_eq!(outcomes.len(), 500);
    }
    assert!(
        unpark.1.load(Ordering::SeqCst) <= 1,
        "woken once, at the end"
    );
    assert!(pending.is_done());
    check(pending);
}

#[test]
fn cancelled_and_dropped_batches_leave_their_files_usable() {
    let folder = tempfile::tempdir().unwrap();
    let handle = read_write(&file(folder.path(), "source", 1, LEN));
    for _ in 0..20 {
        drop(reads(&handle, 300).submit());
        let pending = reads(&handle, 300).submit();
        pending.cancel();
        for (number, entry) in pending.finish().into_iter().enumerate() {
            let (offset, len) = place(number);
            let bytes = entry.buffer.unwrap();
            let done = match entry.outcome {
                Ok(count) => count,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Cancelled);
                    assert_eq!(error.range(), Some(offset..offset + len as u64));
                    error.done() as usize
                }
            };
            assert_same(&bytes[..done], &pattern(1, offset, done));
        }
    }
    check(reads(&handle, 100).submit());
}

#[test]
fn a_deadline_that_has_passed_stops_all_entries() {
    let folder = tempfile::tempdir().unwrap();
    let handle = read_write(&file(folder.path(), "source", 1, LEN));
    let late = ReadOptions::new().deadline(Instant::now());
    let mut batch = Batch::with_options(&late);
    batch.read(&handle, 0, vec![UNTOUCHED; 10]);
    batch.read(&handle, 0, vec![]);
    let [late, empty] = batch.submit().finish().try_into().unwrap();
    assert_eq!(late.outcome.unwrap_err().kind(), ErrorKind::TimedOut);
    assert_all(&late.buffer.unwrap(), UNTOUCHED);
    assert_eq!(empty.outcome.unwrap(), 0);
}

#[test]
fn thousands_of_entries_take_no_more_threads_than_were_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let pool = ThreadPool::new("few");
    let options = FileHandle::options().read(true).thread_pool(&pool);
    let handle = options.open(&path).unwrap();
    let mut batch = Batch::with_options(&ReadOptions::new().num_threads(3));
    for number in 0..10_000 {
        batch.read(&handle, mixed(number, LEN - 100) as u64, vec![0; 100]);
    }
    let monitor = SummaryMonitor::start();
    for (number, entry) in batch.submit().finish().into_iter().enumerate() {
        let offset = mixed(number, LEN - 100) as u64;
        assert_same(&entry.into_buffer().unwrap(), &pattern(1, offset, 100));
    }
    assert_eq!(monitor.get().bytes_read, 1_000_000);
    assert!((1..=3).contains(&pool.threads()), "{}", pool.threads());
}

#[test]
fn a_child_hears_at_once_that_the_batch_is_its_parents() {
    let folder = tempfile::tempdir().unwrap();
    let handle = read_write(&file(folder.path(), "source", 1, LEN));
    let mut pending = Some(reads(&handle, 600).submit());
    forked(|| {
        let pending = pending.take().unwrap();
        assert!(pending.is_done() && pending.newly_done().is_empty());
        let outcomes = pending.wait();
        assert_eq!(outcomes.len(), 600);
        for outcome in outcomes {
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Forked);
        }
        drop(pending);
        check(reads(&handle, 50).submit());
    })
    .succeeded();
    check(pending.unwrap());
}
