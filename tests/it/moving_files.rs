//! Files that grow and shrink while they are read: every byte that is counted is one that was there.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use kvik::{EngineKind, EnginePreference, FileHandle, ReadAtExt, ReadOptions};
use kvik_tests::pattern::{assert_same, pattern};

use crate::cut;

/// Runs `change` again and again on another thread while `read` runs `rounds` times.
fn meanwhile(rounds: usize, mut change: impl FnMut(usize) + Send, mut read: impl FnMut(usize)) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..)
                .take_while(|_| !over.load(Ordering::Relaxed))
                .for_each(&mut change)
        });
        // Also when a check fails, so that the failure is seen and not waited for.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            (0..rounds).for_each(&mut read)
        }));
        over.store(true, Ordering::Relaxed);
        if let Err(panic) = done {
            std::panic::resume_unwind(panic);
        }
    });
}

fn ways(round: usize) -> ReadOptions {
    match round % 3 {
        0 => ReadOptions::new(),
        1 => cut(3, 4097),
        _ => cut(8, 4 << 10),
    }
}

fn open(path: &Path, engine: EnginePreference) -> FileHandle {
    let options = FileHandle::options().read(true).engine(engine);
    options.open(path).unwrap()
}

fn growing_in(folder: &Path, engine: EnginePreference) {
    let path = folder.join("growing");
    let truth = pattern(1, 0, MOST);
    let writer = File::create(&path).unwrap();
    let file = open(&path, engine);
    let mut end = 0;
    // Appends of odd sizes; at the end the file is emptied by nobody, so the writer stops there.
    let append = |round: usize| {
        let next = (end + 1 + round * 977 % 5000).min(MOST);
        writer.write_all_at(&truth[end..next], end as u64).unwrap();
        end = next;
    };
    let mut target = vec![0; MOST];
    meanwhile(300, append, |round| {
        let before = file.len().unwrap() as usize;
        let count = match round % 4 {
            3 => {
                let (outcome, buffer) = file
                    .submit_read_with(std::mem::take(&mut target), 0, &ways(round))
                    .finish();
                target = buffer;
                outcome.unwrap()
            }
            _ => file.read_at_with(&mut target, 0, &ways(round)).unwrap(),
        };
        let after = file.len().unwrap() as usize;
        assert!(
            before <= count && count <= after,
            "{count} bytes, of a file that grew from {before} to {after}"
        );
        assert_same(&target[..count], &truth[..count]);
    });
    let all = file.read_to_end(0).unwrap();
    assert_same(&all, &truth[..all.len()]);
}

#[test]
fn a_growing_file_is_read_up_to_an_end_that_it_had_meanwhile() {
    each_way(growing_in);
}

fn shrinking_in(folder: &Path, engine: EnginePreference) {
    let path = folder.join("shrinking");
    let truth = pattern(1, 0, MOST);
    let writer = File::create(&path).unwrap();
    writer.write_all_at(&truth, 0).unwrap();
    let file = open(&path, engine);
    // Cut, made long again by a hole, filled again.
    let change = |round: usize| match round % 3 {
        0 => writer.set_len((round * 7919 % MOST) as u64).unwrap(),
        1 => writer.set_len(MOST as u64).unwrap(),
        _ => writer.write_all_at(&truth, 0).unwrap(),
    };
    let mut target = vec![0; MOST + 10];
    meanwhile(120, change, |round| {
        let count = file.read_at_with(&mut target, 0, &ways(round)).unwrap();
        assert!(
            count <= MOST,
            "{count} bytes of a file that never had more than {MOST}"
        );
        let blocks = target[..count]
            .chunks(512)
            .zip(truth.chunks(512))
            .enumerate();
        // Most blocks are as they were written; only the others are looked at byte by byte.
        for (block, (found, expected)) in
            blocks.filter(|(_, (found, expected))| found != &&expected[..found.len()])
        {
            let wrong = found
                .iter()
                .zip(expected)
                .position(|(found, expected)| found != expected && *found != 0);
            assert_eq!(
                wrong, None,
                "block {block} of {count} bytes has something that was never there"
            );
        }
    });
}

#[test]
fn a_file_that_is_cut_while_it_is_read_gives_what_it_had_and_no_garbage() {
    each_way(shrinking_in);
}

#[test]
fn a_file_that_is_replaced_or_removed_is_read_through_the_handle_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = kvik_tests::pattern::file(folder.path(), "replaced", 1, 100_000);
    let file = FileHandle::open(&path).unwrap();
    let other = kvik_tests::pattern::file(folder.path(), "other", 2, 50_000);
    std::fs::rename(&other, &path).unwrap();
    assert_same(&file.read_to_end(0).unwrap(), &pattern(1, 0, 100_000));
    std::fs::remove_file(&path).unwrap();
    assert_same(&file.read_to_end(0).unwrap(), &pattern(1, 0, 100_000));
}

/// On a disk and in memory, by each engine.
fn each_way(test: fn(&Path, EnginePreference)) {
    let mut engines = vec![
        EnginePreference::Auto,
        EnginePreference::Only(EngineKind::Scratch),
    ];
    if cfg!(target_arch = "x86_64") {
        engines.push(EnginePreference::Only(EngineKind::Mapped));
    }
    for engine in engines {
        test(tempfile::tempdir().unwrap().path(), engine);
        test(tempfile::tempdir_in("/dev/shm").unwrap().path(), engine);
    }
}

const MOST: usize = 1_000_000;
