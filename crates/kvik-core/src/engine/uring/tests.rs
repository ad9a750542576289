//! What once could break: bytes in the wrong place when pieces are answered in any order, memory touched behind the
//! count, neighbours of a direct write, and a kernel that writes to memory which was given back.

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use kvik_stats::names;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;
use crate::corridor::{Call, Completion, Task, Window};
use crate::engine::or_else::OrElse;
use crate::engine::posix::Posix;
use crate::error::{ErrorKind, Place};
use crate::pool::ThreadPool;
use crate::target::{Source, Target};

const UNTOUCHED: u8 = 0xEE;
const GUARD: usize = 4096;
const LEN: usize = (3 << 20) + 777;
const BLOCKS: Alignment = Alignment {
    memory: 512,
    read: 512,
    write: 512,
};

fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8)
        .collect()
}

fn buffered(path: &Path) -> Arc<File> {
    Arc::new(File::options().read(true).write(true).open(path).unwrap())
}

fn unbuffered(path: &Path) -> Arc<File> {
    let mut options = File::options();
    let options = options.read(true).write(true).custom_flags(libc::O_DIRECT);
    let file = options.open(path).unwrap_or_else(|error| {
        panic!("this test needs a temporary folder with direct I/O (set TMPDIR): {error}")
    });
    Arc::new(file)
}

fn direct(path: &Path, alignment: Alignment) -> Uring {
    Uring::direct(buffered(path), unbuffered(path), alignment).unwrap()
}

fn engines(path: &Path) -> [Arc<dyn Engine>; 2] {
    [
        Arc::new(Uring::buffered(buffered(path))),
        Arc::new(direct(path, BLOCKS)),
    ]
}

fn call(engine: Arc<dyn Engine>, threads: usize, task_size: u64) -> Call {
    Call {
        engine,
        pool: ThreadPool::new("uring"),
        threads,
        task_size,
        deadline: None,
        place: Place::from(Path::new("file")),
        name: "file".into(),
    }
}

/// A place in the file: near its start, its end, or a block.
fn offsets() -> impl Strategy<Value = usize> {
    prop_oneof![
        0..2 * LEN,
        0usize..5000,
        LEN - 5000..LEN + 5000,
        (0usize..800).prop_map(|block| block * 4096)
    ]
}

fn lengths() -> impl Strategy<Value = usize> {
    prop_oneof![
        0usize..9000,
        Just(4096),
        (0usize..200).prop_map(|block| block * 4096),
        0..LEN
    ]
}

fn skews() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0usize), Just(16), Just(512), 0usize..4096]
}

#[test]
fn reads_land_where_they_belong_and_touch_nothing_else() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let stored = pattern(LEN);
    fs::write(file.path(), &stored).unwrap();
    let [plain, past_the_cache] = engines(file.path());
    let mut runner = TestRunner::new(Config {
        cases: 300,
        failure_persistence: None,
        ..Config::default()
    });
    let memory = RefCell::new(vec![0; 3 * LEN]);
    let address = memory.borrow().as_ptr().addr();
    let base = address.next_multiple_of(4096) - address;
    let paper = (offsets(), lengths(), skews(), any::<bool>(), any::<bool>());
    let outcome = runner.run(&paper, |(offset, len, skew, is_direct, is_cut)| {
        let engine = if is_direct { &past_the_cache } else { &plain };
        let call = call(Arc::clone(engine), 1, if is_cut { 65_536 } else { 4 << 20 });
        let mut memory = memory.borrow_mut();
        let start = base + GUARD + skew;
        let around = start - GUARD..start + len + GUARD;
        memory[around.clone()].fill(UNTOUCHED);
        let count = call
            .read(
                &mut Target::from(&mut memory[start..start + len]),
                offset as u64,
            )
            .unwrap();
        let expected = &stored[offset.min(LEN)..(offset + len).min(LEN)];
        prop_assert_eq!(count, expected.len());
        prop_assert!(memory[start..start + count] == *expected, "other bytes");
        let mut rest = memory[around.start..start]
            .iter()
            .chain(&memory[start + count..around.end]);
        prop_assert!(
            rest.all(|byte| *byte == UNTOUCHED),
            "memory around was touched"
        );
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn writes_leave_their_neighbours_alone_and_the_file_as_long_as_it_must_be() {
    let stored = RefCell::new(pattern(LEN));
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), &*stored.borrow()).unwrap();
    let engines = engines(file.path());
    let mut runner = TestRunner::new(Config {
        cases: 100,
        failure_persistence: None,
        ..Config::default()
    });
    let paper = (
        offsets(),
        lengths(),
        skews(),
        any::<bool>(),
        any::<u8>(),
        any::<bool>(),
    );
    let outcome = runner.run(&paper, |(offset, len, skew, is_direct, seed, is_cut)| {
        let source: Vec<u8> = pattern(skew + len).iter().map(|byte| byte ^ seed).collect();
        let source = &source[skew..];
        let call = call(
            Arc::clone(&engines[usize::from(is_direct)]),
            2,
            if is_cut { 65_536 } else { 4 << 20 },
        );
        prop_assert_eq!(
            call.write(Source::from(source), offset as u64).unwrap(),
            len
        );
        let mut stored = stored.borrow_mut();
        if len > 0 && stored.len() < offset + len {
            stored.resize(offset + len, 0);
        }
        if len > 0 {
            stored[offset..offset + len].copy_from_slice(source);
        }
        prop_assert!(
            fs::read(file.path()).unwrap() == *stored,
            "the file differs"
        );
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn one_lane_keeps_many_small_tasks_in_flight() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let stored = pattern(LEN);
    fs::write(file.path(), &stored).unwrap();
    for engine in engines(file.path()) {
        let mut memory = vec![0u8; 700 * 4096];
        let mut windows = memory.chunks_mut(4096);
        let mut lane = engine.lane().unwrap();
        let (mut index, mut most, mut done) = (0, 0, Vec::new());
        loop {
            while lane.room() > 0
                && let Some(window) = windows.next()
            {
                let start = (index * 7919 % 700 * 4096) as u64;
                let task = Task {
                    index,
                    range: start..start + 4096,
                };
                let window = Window::Fill(crate::target::filling(window));
                lane.start(task, window);
                index += 1;
            }
            most = most.max(lane.in_flight());
            if lane.in_flight() == 0 {
                break;
            }
            lane.poll(&mut done);
        }
        assert_eq!((most, done.len()), (ring::DEPTH, 700));
        for Completion {
            task,
            window,
            error,
            ..
        } in &done
        {
            let Window::Fill(window) = window else {
                panic!("a read became a write")
            };
            assert!(error.is_none());
            assert_eq!(window.filled(), 4096, "task {}", task.index);
        }
        drop((done, lane));
        for (index, bytes) in memory.chunks(4096).enumerate() {
            assert!(bytes == &stored[index * 7919 % 700 * 4096..][..4096]);
        }
    }
}

#[test]
fn dropping_a_lane_waits_for_what_the_kernel_still_writes() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), vec![1; 32 << 20]).unwrap();
    let file_again = buffered(file.path());
    file_again.sync_all().unwrap();
    let engine = direct(file.path(), BLOCKS);
    let mut memory = vec![0u8; (32 << 20) + 4096];
    // In place and through slots.
    for skew in [0, 16] {
        let base = memory.as_ptr().addr().next_multiple_of(4096) - memory.as_ptr().addr() + skew;
        let mut lane = engine.lane().unwrap();
        let task = |index: u64| Task {
            index: index as usize,
            range: index * (1 << 20)..(index + 1) * (1 << 20),
        };
        let windows = memory[base..].chunks_exact_mut(1 << 20).take(24);
        for (index, window) in windows.enumerate() {
            lane.start(
                task(index as u64),
                Window::Fill(crate::target::filling(window)),
            );
        }
        let mut done = Vec::new();
        lane.poll(&mut done);
        assert!(lane.in_flight() > 0, "everything was done at once");
        drop((done, lane));
        memory.fill(UNTOUCHED);
        // Requests of the same ring and disk, later than those above.
        let mut fence = vec![0; 8 << 20];
        let call = call(Arc::new(direct(file.path(), BLOCKS)), 1, 1 << 20);
        assert_eq!(
            call.read(&mut Target::from(&mut fence), 24 << 20).unwrap(),
            8 << 20
        );
        assert!(memory.iter().all(|byte| *byte == UNTOUCHED));
    }
}

#[test]
fn a_refusal_of_direct_io_is_told_apart_and_another_engine_does_the_rest() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let stored = pattern(LEN);
    fs::write(file.path(), &stored).unwrap();
    // No alignment at all is asked for, so the kernel is asked for what it refuses.
    let wrong = || {
        let alignment = Alignment {
            memory: 1,
            read: 1,
            write: 1,
        };
        Arc::new(direct(file.path(), alignment))
    };
    let mut bytes = vec![0; 2 << 20];
    let error = call(wrong(), 1, 65_536)
        .read(&mut Target::from(&mut bytes), 13)
        .unwrap_err();
    assert!(error.is_refusal(), "{error}");
    assert_eq!(
        (error.kind(), error.os_error()),
        (ErrorKind::Unsupported, Some(libc::EINVAL))
    );

    let posix = Arc::new(Posix::new(buffered(file.path())));
    let engine = Arc::new(OrElse::new(wrong(), posix));
    let before = names::FALLBACKS.get();
    for threads in [1, 3] {
        bytes.fill(UNTOUCHED);
        let call = call(Arc::clone(&engine) as Arc<dyn Engine>, threads, 65_536);
        assert_eq!(
            call.read(&mut Target::from(&mut bytes), 13).unwrap(),
            2 << 20
        );
        assert!(bytes == stored[13..][..2 << 20]);
    }
    assert_eq!(names::FALLBACKS.get() - before, 1, "counted once");
}

#[test]
fn a_file_that_refuses_writes_says_why_and_how_far() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), pattern(LEN)).unwrap();
    let readable = Arc::new(File::open(file.path()).unwrap());
    let call = call(Arc::new(Uring::buffered(readable)), 1, 4 << 20);
    let error = call.write(Source::from(&[1u8; 5000]), 0).unwrap_err();
    assert_eq!(
        (error.kind(), error.done()),
        (ErrorKind::PermissionDenied, 0)
    );
}

#[test]
fn alignments_that_the_slots_do_not_have_are_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    for (memory, read, write, fits) in [
        (512, 512, 512, true),
        (4, 4096, 16_384, true),
        (8192, 512, 512, false),
        (512, 32_768, 512, false),
        (512, 0, 512, false),
        (512, 512, 1000, false),
    ] {
        let alignment = Alignment {
            memory,
            read,
            write,
        };
        let made = Uring::direct(buffered(file.path()), unbuffered(file.path()), alignment);
        assert_eq!(made.is_some(), fits, "{alignment:?}");
    }
}

#[test]
fn a_read_in_a_file_that_changes_under_it_is_a_read_of_one_of_its_lengths() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let stored = pattern(1 << 20);
    let other = buffered(file.path());
    for engine in engines(file.path()) {
        let call = call(engine, 2, 65_536);
        for round in 0..20u64 {
            other.set_len(0).unwrap();
            other.write_all_at(&stored, 0).unwrap();
            let mut bytes = vec![UNTOUCHED; 2 << 20];
            let cut = round * 40_001;
            let pending = call.submit_read(std::mem::take(&mut bytes), 0);
            other.set_len(cut).unwrap();
            let (count, bytes) = pending.finish();
            let count = count.unwrap();
            assert!(count <= 1 << 20 && count >= cut as usize);
            assert!(bytes[..cut as usize] == stored[..cut as usize]);
        }
    }
}
