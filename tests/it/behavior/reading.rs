//! Counts, ends and empty targets: what a read promises.

use std::mem::MaybeUninit;
use std::time::Instant;

use kvik::{ErrorKind, ReadOptions, Target};
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, pattern};

use super::{LEN, cut, fixture};

/// "`read_at` returns the number of bytes read. It is less than asked for only where the file ends, and 0 at or past the
/// end; bytes of the target past the count are not touched."
#[test]
fn read_at_is_short_only_at_the_end_and_touches_nothing_past_its_count() {
    let (_folder, _path, handle) = fixture();
    let truth = pattern(1, 0, LEN);
    for (offset, count) in [
        (0, 400_000),
        (LEN - 400_000, 400_000),
        (LEN - 399_999, 399_999),
        (LEN - 1, 1),
        (LEN, 0),
        (LEN + 1, 0),
        (1 << 40, 0),
    ] {
        for options in [ReadOptions::new(), cut(3, 4097), cut(1, 1 << 30)] {
            let mut target = vec![UNTOUCHED; 400_000];
            assert_eq!(
                handle
                    .read_at_with(&mut target, offset as u64, &options)
                    .unwrap(),
                count
            );
            assert_same(&target[..count], &truth[offset.min(LEN)..][..count]);
            assert_all(&target[count..], UNTOUCHED);
        }
    }
}

/// The same for memory that was never initialised, which is what a target may be.
#[test]
fn read_at_fills_uninitialised_memory_up_to_its_count() {
    let (_folder, _path, handle) = fixture();
    for options in [ReadOptions::new(), cut(3, 4097)] {
        let mut memory = [const { MaybeUninit::new(UNTOUCHED) }; 5000];
        let count = handle
            .read_at_with(Target::from(&mut memory[..]), (LEN - 3000) as u64, &options)
            .unwrap();
        assert_eq!(count, 3000);
        let mut bytes: Vec<u8> = Vec::with_capacity(5000);
        let read = handle
            .read_at_with(&mut bytes.spare_capacity_mut()[..5000], 0, &options)
            .unwrap();
        assert_eq!(read, 5000);
    }
}

/// "`read_exact_at` fills the whole target or fails with `UnexpectedEof`, whose text says how far it got."
#[test]
fn read_exact_at_fills_the_target_or_says_how_far_it_got() {
    let (_folder, path, handle) = fixture();
    let mut target = vec![UNTOUCHED; 400_000];
    handle.read_exact_at(&mut target, 77).unwrap();
    assert_same(&target, &pattern(1, 77, 400_000));
    for len in [300, 400_000] {
        let offset = (LEN - 100) as u64;
        let error = handle
            .read_exact_at(&mut target[..len], offset)
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.done()),
            (ErrorKind::UnexpectedEof, 100)
        );
        let range = format!("{offset}..{}", offset + len as u64);
        let text = format!(
            "read {} {range} stopped after 100 bytes: the data ends after 100 of {len} bytes",
            path.display()
        );
        assert_eq!(error.to_string(), text);
    }
}

/// "A target of 0 bytes reads nothing and returns 0, at any offset."
#[test]
fn a_target_of_0_bytes_reads_nothing_at_any_offset() {
    let (_folder, _path, handle) = fixture();
    for offset in [
        0,
        1,
        LEN as u64,
        1 << 40,
        i64::MAX as u64,
        i64::MAX as u64 + 1,
        u64::MAX,
    ] {
        // Of no bytes, none is late, whichever way the call takes.
        let late = ReadOptions::new().deadline(Instant::now());
        for options in [
            ReadOptions::new(),
            cut(3, 1),
            late.clone(),
            late.num_threads(2),
        ] {
            assert_eq!(
                handle.read_at_with(&mut [], offset, &options).unwrap(),
                0,
                "at {offset}"
            );
        }
        assert_eq!(handle.submit_read(Vec::new(), offset).wait().unwrap(), 0);
        handle.read_exact_at(&mut [], offset).unwrap();
    }
}

/// "The result does not depend on task size, number of threads, or which thread calls."
#[test]
fn the_result_depends_neither_on_task_size_nor_on_threads_nor_on_the_caller() {
    let (_folder, _path, handle) = fixture();
    let truth = pattern(1, 12_345, 100_000);
    let read = |threads, task_size| {
        let mut target = vec![UNTOUCHED; 100_000];
        assert_eq!(
            handle
                .read_at_with(&mut target, 12_345, &cut(threads, task_size))
                .unwrap(),
            100_000
        );
        assert_same(&target, &truth);
    };
    std::thread::scope(|scope| {
        for threads in [1, 2, 3, 8, 100] {
            scope.spawn(move || {
                [97, 4095, 4096, 100_000, u64::MAX].map(|task_size| read(threads, task_size))
            });
        }
    });
}
