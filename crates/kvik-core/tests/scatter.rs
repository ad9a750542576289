//! Many ranges in one call, under an engine that misbehaves on cue and on real files: counts, errors, growth, overlaps.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a panic here is a failed test")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kvik_config::ByteSize;
use kvik_core::corridor::Call;
use kvik_core::{
    ErrorKind, FileHandle, OpenOptions, ReadAt, ReadOptions, ReadPiece, Result, WritePiece,
};
use support::{Scripted, Step, call, pattern};

const TASK: usize = 4096;
const GAP: u64 = 100;

/// Reads ranges of the given offsets and lengths; the counts, and the memory with what was not touched as 0xEE.
fn read(
    ranges: &[(u64, usize)],
    read: impl FnOnce(&mut [ReadPiece<'_>]) -> Result<Vec<usize>>,
) -> (Result<Vec<usize>>, Vec<Vec<u8>>) {
    let mut memory: Vec<Vec<u8>> = ranges.iter().map(|(_, len)| vec![0xEE; *len]).collect();
    let mut pieces: Vec<_> = ranges
        .iter()
        .zip(&mut memory)
        .map(|((offset, _), memory)| ReadPiece::new(*offset, memory))
        .collect();
    (read(&mut pieces), memory)
}

fn read_by(call: &Call, ranges: &[(u64, usize)]) -> (Result<Vec<usize>>, Vec<Vec<u8>>) {
    read(ranges, |pieces| call.read_ranges(pieces, GAP))
}

/// Counts and bytes are those of `data`, and nothing behind a count was touched.
#[track_caller]
fn check(ranges: &[(u64, usize)], outcome: (Result<Vec<usize>>, Vec<Vec<u8>>), data: &[u8]) {
    let (counts, memory) = outcome;
    let counts = counts.unwrap();
    assert_eq!(counts.len(), ranges.len());
    for (((offset, len), memory), count) in ranges.iter().zip(memory).zip(counts) {
        let from = (*offset).min(data.len() as u64) as usize;
        let expected = &data[from..(from + len).min(data.len())];
        assert_eq!(
            count,
            expected.len(),
            "the count of {len} bytes at {offset}"
        );
        assert_eq!(&memory[..count], expected, "{len} bytes at {offset}");
        assert!(memory[count..].iter().all(|byte| *byte == 0xEE), "{offset}");
    }
}

/// Pieces of all sizes, near and far, twice, out of order, at the end and beyond it.
fn mixed(end: u64) -> Vec<(u64, usize)> {
    let mut ranges = vec![
        (0, 3 * TASK + 5),
        (end - 7, 20),
        (end, 5),
        (end + 1_000_000, 9),
        (u64::MAX, 3),
        (5, 0),
        (7, 100),
        (7, 100),
        (end - 2 * TASK as u64, 5 * TASK),
    ];
    ranges.extend((0..200).map(|i| ((i * 7919) % end, (i % 60) as usize)));
    ranges.extend((0..100).map(|i| (3000 + i * 70, 50)));
    ranges
}

#[test]
fn every_piece_gets_its_bytes_and_its_count_whatever_order_tasks_complete_in() {
    let len = 10 * TASK + 123;
    for threads in [1, 2, 7] {
        for (depth, scatters) in [(1, false), (1, true), (5, false), (5, true)] {
            let mut engine = Scripted::new(len, |_| Step::Move);
            (engine.depth, engine.scatters) = (depth, scatters);
            let call = call(engine, threads, TASK as u64);
            let ranges = mixed(len as u64);
            check(&ranges, read_by(&call, &ranges), &pattern(len));
        }
    }
}

#[test]
fn the_error_is_the_failing_pieces_with_its_range_and_count_and_nothing_starts_behind_it() {
    let started = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&started);
    let engine = Scripted::new(1000 * TASK, move |task| {
        seen.fetch_add(1, Ordering::Relaxed);
        match task.range.start == 5 * 8192 {
            true => Step::FailAfter(17),
            false => Step::Move,
        }
    });
    let ranges: Vec<_> = (0..1000).map(|i| (i * 8192, 100)).collect();
    let (outcome, _) = read_by(&call(engine, 1, 1 << 20), &ranges);
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert_eq!((error.range(), error.done()), (Some(40_960..41_060), 17));
    assert_eq!(
        error.to_string(),
        "read scripted 40960..41060 stopped after 17 bytes: the device gave up"
    );
    assert_eq!(started.load(Ordering::Relaxed), 6);
}

#[test]
fn a_panic_of_the_engine_is_an_internal_error_of_the_whole_call() {
    let engine = Scripted::new(100 * TASK, |task| match task.range.start {
        40 => Step::Panic,
        _ => Step::Move,
    });
    let call = call(engine, 2, TASK as u64);
    let error = read_by(&call, &[(40, 5), (3, 2), (400_000, 100)])
        .0
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert_eq!((error.range(), error.done()), (Some(3..400_100), 0));
    check(&[(0, 9)], read_by(&call, &[(0, 9)]), &pattern(100 * TASK));
}

#[test]
fn an_engine_that_mixes_up_windows_is_an_internal_error() {
    // Two tasks of one piece each, of one and several, and of several each.
    for ranges in [
        vec![(0, 10), (1000, 10)],
        vec![(0, 10), (1000, 10), (1010, 10)],
        vec![(0, 10), (10, 10), (1000, 10), (1010, 10)],
    ] {
        let mut engine = Scripted::new(TASK, |_| Step::Move);
        (engine.depth, engine.scatters, engine.swaps) = (2, true, true);
        let error = read_by(&call(engine, 1, 1 << 20), &ranges).0.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
        assert!(error.to_string().contains("another window"), "{error}");
    }
}

#[test]
fn a_deadline_that_has_passed_is_timed_out_and_nothing_starts() {
    let mut call = call(Scripted::new(TASK, |_| Step::Panic), 2, TASK as u64);
    call.deadline = Some(std::time::Instant::now());
    let error = read_by(&call, &[(0, 5), (100, 7)]).0.unwrap_err();
    assert_eq!(
        (error.kind(), error.range()),
        (ErrorKind::TimedOut, Some(0..107))
    );
}

#[test]
fn a_long_piece_of_a_file_that_grows_is_read_without_a_gap() {
    // The second task of the piece meets the end; the third, a moment later, finds the file grown.
    let met_the_end = AtomicBool::new(false);
    let engine = Scripted::new(4 * TASK, move |task| match task.range.start as usize {
        TASK if !met_the_end.swap(true, Ordering::Relaxed) => Step::EndAfter(10),
        _ => Step::Move,
    });
    let ranges = [(0, 4 * TASK), (20, 5)];
    check(
        &ranges,
        read_by(&call(engine, 1, TASK as u64), &ranges),
        &pattern(4 * TASK),
    );
}

#[test]
fn no_pieces_are_no_work_and_zero_threads_or_task_sizes_are_refused_by_name() {
    let call_of = |threads, size| call(Scripted::new(TASK, |_| Step::Panic), threads, size);
    assert_eq!(read_by(&call_of(1, 4096), &[]).0.unwrap(), [0; 0]);
    assert_eq!(
        read_by(&call_of(1, 4096), &[(9, 0), (7, 0)]).0.unwrap(),
        [0, 0]
    );
    for (threads, size, what) in [(0, 4096, "number of threads"), (1, 0, "task size")] {
        let error = read_by(&call_of(threads, size), &[(0, 5)]).0.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert!(error.to_string().contains(what), "{error}");
    }
}

/// A file that holds `bytes`, open for both.
fn file(bytes: &[u8]) -> (FileHandle, tempfile::TempPath) {
    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    std::fs::write(&path, bytes).unwrap();
    (
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap(),
        path,
    )
}

#[test]
fn ranges_of_a_file_are_read_whatever_is_merged_with_what() {
    let data = pattern(300_000);
    let (file, _path) = file(&data);
    let ranges = mixed(300_000);
    for gap in [0, 1, 2048, 1 << 20, u64::MAX] {
        for threads in [1, 3] {
            for task_size in [1, 100, 4097, 1 << 20] {
                let options = ReadOptions::new()
                    .gap(ByteSize::new(gap))
                    .num_threads(threads)
                    .task_size(ByteSize::new(task_size));
                let outcome = read(&ranges, |pieces| file.read_ranges_with(pieces, &options));
                check(&ranges, outcome, &data);
            }
        }
    }
    let object: &dyn ReadAt = &file;
    check(
        &ranges,
        read(&ranges, |pieces| object.read_ranges(pieces)),
        &data,
    );
}

#[test]
fn pieces_of_one_read_that_meet_the_end_each_get_their_own_count() {
    let data = pattern(1000);
    let (file, _path) = file(&data);
    let ranges: Vec<_> = (0..30).map(|i| (700 + i * 20, 15)).collect();
    check(
        &ranges,
        read(&ranges, |pieces| file.read_ranges(pieces)),
        &data,
    );
}

#[test]
fn more_pieces_than_a_system_call_takes_are_read_all_the_same() {
    let data = pattern(200_000);
    let (file, _path) = file(&data);
    let ranges: Vec<_> = (0..5000).map(|i| (i * 40, 30)).collect();
    check(
        &ranges,
        read(&ranges, |pieces| file.read_ranges(pieces)),
        &data,
    );
}

#[test]
fn written_ranges_are_what_was_given_and_what_lies_between_them_stays() {
    let before = pattern(100_000);
    for threads in [1, 4] {
        let (file, path) = file(&before);
        let new: Vec<u8> = before.iter().map(|byte| byte ^ 0x55).collect();
        let ranges: Vec<(usize, usize)> = (0..900)
            .map(|i| (i * 111, i % 112))
            .rev()
            .chain([(150_000, 10)])
            .collect();
        let source = |offset: usize, len: usize| match offset < new.len() {
            true => &new[offset..offset + len],
            false => &new[..len],
        };
        let pieces: Vec<_> = ranges
            .iter()
            .map(|(offset, len)| WritePiece::new(*offset as u64, source(*offset, *len)))
            .collect();
        let options = ReadOptions::new()
            .num_threads(threads)
            .task_size(ByteSize::new(100));
        let total: usize = ranges.iter().map(|(_, len)| len).sum();
        assert_eq!(file.write_ranges_with(&pieces, &options).unwrap(), total);
        let mut expected = before.clone();
        expected.resize(150_010, 0);
        for (offset, len) in ranges {
            expected[offset..offset + len].copy_from_slice(source(offset, len));
        }
        assert!(
            std::fs::read(&path).unwrap() == expected,
            "by {threads} threads"
        );
    }
}

#[test]
fn ranges_that_overlap_are_not_written_at_all() {
    let (file, path) = file(b"unchanged");
    let pieces = [WritePiece::new(4, b"xyz"), WritePiece::new(0, b"12345")];
    let error = file.write_ranges(&pieces).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(
        error
            .to_string()
            .contains("piece 1, 0..5, and piece 0, 4..7, overlap"),
        "{error}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"unchanged");
}

#[test]
fn offsets_of_ranges_count_from_the_end_at_opening_with_append() {
    let (_, path) = file(b"head");
    let file = OpenOptions::new().append(true).open(&path).unwrap();
    let pieces = [WritePiece::new(2, b"cd"), WritePiece::new(0, b"ab")];
    assert_eq!(file.write_ranges(&pieces).unwrap(), 4);
    assert_eq!(std::fs::read(&path).unwrap(), b"headabcd");
    let far = [WritePiece::new(u64::MAX, b"x")];
    assert_eq!(
        file.write_ranges(&far).unwrap_err().kind(),
        ErrorKind::Misuse
    );
}

#[test]
fn the_wrong_direction_is_permission_denied() {
    let (_, path) = file(b"bytes");
    let reader = FileHandle::open(&path).unwrap();
    let error = reader
        .write_ranges(&[WritePiece::new(0, b"x")])
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    let writer = OpenOptions::new().write(true).open(&path).unwrap();
    let error = writer
        .read_ranges(&mut [ReadPiece::new(0, &mut [0; 1])])
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
}
