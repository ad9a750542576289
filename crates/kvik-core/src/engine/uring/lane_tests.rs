//! What once could break: a lane with one task at a time, a kernel that writes to memory which was given back, and a
//! refusal that ends a read which another engine could have done.

use std::fs;
use std::io::{Read, Write};

use kvik_stats::names;

use super::tests::{BLOCKS, LEN, UNTOUCHED, buffered, call, direct, engines, pattern, unbuffered};
use super::*;
use crate::corridor::{Completion, Task, Window};
use crate::engine::or_else::OrElse;
use crate::engine::posix::Posix;
use crate::error::ErrorKind;
use crate::target::{Target, filling};

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
                let window = Window::Fill(filling(window));
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
    let number = ring_number();
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
            lane.start(task(index as u64), Window::Fill(filling(window)));
        }
        let mut done = Vec::new();
        lane.poll(&mut done);
        assert!(lane.in_flight() > 0, "everything was done at once");
        drop((done, lane));
        assert_eq!(ring_number(), number, "the ring has nothing in flight");
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
            boundary: 4096,
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
    let before = names::FALLBACKS_OF_URING.get();
    for threads in [1, 3] {
        bytes.fill(UNTOUCHED);
        let call = call(Arc::clone(&engine) as Arc<dyn Engine>, threads, 65_536);
        assert_eq!(
            call.read(&mut Target::from(&mut bytes), 13).unwrap(),
            2 << 20
        );
        assert!(bytes == stored[13..][..2 << 20]);
    }
    assert_eq!(names::FALLBACKS_OF_URING.get() - before, 1, "counted once");
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
            boundary: 4096,
        };
        let made = |bounce: u64| {
            let second = (unbuffered(file.path()), alignment);
            let buffered = buffered(file.path());
            Uring::direct(buffered, second, Edges::Overread, ByteSize::new(bounce))
        };
        assert_eq!(made(1 << 20).is_some(), fits, "{alignment:?}");
        assert!(made((256 << 10) - 1).is_none(), "no room for a slot");
    }
}

/// The ring that this thread keeps.
fn ring_number() -> i32 {
    let ring = ring::Ring::of_this_thread().unwrap();
    let number = ring.number();
    ring.give_back();
    number
}

#[test]
fn dropping_a_lane_cancels_what_would_wait_for_ever() {
    let (end, mut other_end) = std::io::pipe().unwrap();
    let file = Arc::new(File::from(std::os::fd::OwnedFd::from(end)));
    let engine = Uring::buffered(Arc::clone(&file));
    let number = ring_number();
    let mut memory = [UNTOUCHED; 20];
    let (first, second) = memory.split_at_mut(10);
    let mut lane = engine.lane().unwrap();
    for (index, window) in [first, second].into_iter().enumerate() {
        let task = Task {
            index,
            range: 0..10,
        };
        lane.start(task, Window::Fill(filling(window)));
    }
    // Enough for the first; the second waits in the kernel.
    other_end.write_all(b"0123456789").unwrap();
    let mut done = Vec::new();
    lane.poll(&mut done);
    assert_eq!((done.len(), lane.in_flight()), (1, 1));
    drop((done, lane));
    assert_eq!(ring_number(), number, "the ring has nothing in flight");
    // What comes now is for others.
    other_end.write_all(b"abcdefghij").unwrap();
    let mut later = [0; 10];
    (&*file).read_exact(&mut later).unwrap();
    assert_eq!(&later, b"abcdefghij");
    assert_eq!(memory[..10], *b"0123456789");
    assert_eq!(memory[10..], [UNTOUCHED; 10]);
}
