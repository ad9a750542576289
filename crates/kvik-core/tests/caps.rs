//! Settings that cap memory and pieces: scratch memory was once each thread's own, without a limit that anybody kept.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a panic here is a failed test")]

mod support;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kvik_config::{ByteSize, Config, Layer};
use kvik_core::corridor::Scratch;
use kvik_core::{
    EngineKind, EnginePreference, FileHandle, ReadOptions, ReadPiece, Residency, Source, Target,
    WritePiece, drop_file_page_cache, free_scratch_memory, scratch_memory,
};
use kvik_stats::names;
use support::{Scripted, Step, call, pattern};

const LEN: usize = 3 << 20 | 77;
const CAP: ByteSize = ByteSize::kib(64);

fn open(path: &Path, engine: EngineKind, cap: ByteSize) -> FileHandle {
    let config = Config::resolve([Layer::new().bounce_buffer_size(cap)]).unwrap();
    FileHandle::options()
        .read(true)
        .write(true)
        .engine(EnginePreference::Only(engine))
        .open_with(path, &config)
        .unwrap()
}

/// Memory that lies so that neither engine does without scratch memory.
fn read_skewed(file: &FileHandle, threads: usize) -> Vec<u8> {
    let mut bytes = vec![0; LEN + 4097];
    let start = bytes.as_ptr().align_offset(4096) + 1;
    let options = ReadOptions::new()
        .num_threads(threads)
        .task_size(ByteSize::kib(100));
    let count = file
        .read_at_with(Target::from(&mut bytes[start..][..LEN]), 0, &options)
        .unwrap();
    bytes.copy_within(start..start + count, 0);
    bytes.truncate(count);
    bytes
}

// One test, because the memory that it counts is the process's.
#[test]
fn lanes_borrow_what_the_setting_allows_and_do_without_when_all_is_lent() {
    // On a disk: `/tmp` may be a tmpfs.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = folder.path().join("source");
    fs::write(&path, pattern(LEN)).unwrap();
    for engine in [EngineKind::Scratch, EngineKind::Direct] {
        let file = open(&path, engine, CAP);
        for threads in [1, 3, 24] {
            assert!(read_skewed(&file, threads) == pattern(LEN), "{engine}");
            let memory = scratch_memory();
            assert_eq!(memory.lent, 0, "{engine}: what was borrowed went back");
            assert!((1..=16 * CAP.bytes()).contains(&memory.kept), "{memory:?}");
        }
        assert!(free_scratch_memory() > 0);

        let blocks: Vec<Scratch> = (0..16)
            .map(|_| Scratch::take(1 << 30, CAP).unwrap())
            .collect();
        let (before, fallbacks) = (names::SCRATCH_USED_UP.get(), names::FALLBACKS.get());
        drop_file_page_cache(&path, 0, 0, true).unwrap();
        assert!(read_skewed(&file, 2) == pattern(LEN), "{engine}");
        assert_eq!(scratch_memory().lent, 16 * CAP.bytes());
        assert!(names::SCRATCH_USED_UP.get() > before, "{engine}");
        // Not a reason to give up direct I/O for good.
        assert_eq!(names::FALLBACKS.get(), fallbacks, "{engine}");
        assert_eq!(file.residency(0..LEN as u64), Residency::Hot, "{engine}");

        let changed: Vec<u8> = pattern(LEN + 1).split_off(1);
        let mut source = vec![0; LEN + 4097];
        let start = source.as_ptr().align_offset(4096) + 1;
        source[start..][..LEN].copy_from_slice(&changed);
        file.write_all_at(Source::from(&source[start..][..LEN]), 0)
            .unwrap();
        assert!(fs::read(&path).unwrap() == changed, "{engine}");
        fs::write(&path, pattern(LEN)).unwrap();
        drop(blocks);
        drop_file_page_cache(&path, 0, 0, true).unwrap();
        assert!(read_skewed(&file, 2) == pattern(LEN), "{engine}");
    }
    // A block that is smaller than a page is none.
    for engine in [EngineKind::Scratch, EngineKind::Direct] {
        let file = open(&path, engine, ByteSize::new(1));
        assert!(read_skewed(&file, 3) == pattern(LEN), "{engine}");
    }
}

#[test]
fn no_task_is_longer_than_the_task_size_whatever_the_call() {
    for task_size in [1, 511, 4096, 10_000, 1 << 20] {
        let longest = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&longest);
        let mut engine = Scripted::new(LEN, move |task| {
            seen.fetch_max(task.range.end - task.range.start, Ordering::Relaxed);
            Step::Move
        });
        (engine.scatters, engine.depth) = (true, 3);
        let call = call(engine, 3, task_size);
        let check = |what: &str| {
            let longest = longest.swap(0, Ordering::Relaxed);
            assert!((1..=task_size).contains(&longest), "{what}: {longest}");
        };
        let mut bytes = vec![0; (3 * task_size as usize + 5).min(LEN - 4095)];
        call.read(&mut Target::from(&mut bytes), 4095).unwrap();
        check("read");
        call.write(Source::from(&bytes), 4095).unwrap();
        check("write");
        let len = bytes.len();
        let (outcome, _) = call.submit_read(bytes, 4095).finish();
        assert_eq!(outcome.unwrap(), len);
        check("submit_read");
        // Neighbours, with gaps that are read along, and one of several tasks.
        let mut memory = vec![vec![0; 60]; 100];
        let mut long = vec![0; len];
        let mut pieces: Vec<ReadPiece<'_>> = memory
            .iter_mut()
            .zip(0u64..)
            .map(|(bytes, at)| ReadPiece::new(at * 64, bytes))
            .collect();
        pieces.push(ReadPiece::new(7, &mut long));
        call.read_ranges(&mut pieces, 1 << 20).unwrap();
        check("read_ranges");
        let pieces: Vec<WritePiece<'_>> = memory
            .iter()
            .zip(0u64..)
            .map(|(bytes, at)| WritePiece::new(at * 64, bytes))
            .collect();
        call.write_ranges(&pieces).unwrap();
        check("write_ranges");
    }
}
