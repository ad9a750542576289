//! A page that two ways write to once lost the bytes of one of them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use kvik::FileHandle;
use kvik_tests::pattern::{assert_same, pattern};

use super::{direct, folder};

/// Two descriptors, two ways, one page: all of the bytes of both writers are there.
#[test]
fn writers_of_neighbouring_ranges_past_and_through_the_page_cache_lose_nothing() {
    let folder = folder();
    for (round, chunk) in [5000, 4096, 1000, 512, 70_001, 12_288, 3, 300_000]
        .into_iter()
        .enumerate()
    {
        let path = folder.path().join("shared");
        let count = (2_000_000 / chunk).clamp(8, 400);
        std::fs::write(&path, vec![0; count * chunk / 2]).unwrap();
        let truth = pattern(round as u64, 0, count * chunk);
        let handles = [
            direct(&path),
            FileHandle::options().write(true).open(&path).unwrap(),
            direct(&path),
        ];
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| read_while(&path, &truth, &done));
            let writers: Vec<_> = handles
                .iter()
                .enumerate()
                .map(|(which, handle)| {
                    let truth = &truth;
                    scope.spawn(move || {
                        for at in (which..count).step_by(3).map(|piece| piece * chunk) {
                            let source = &truth[at..][..chunk];
                            handle.write_all_at(source, at as u64).unwrap();
                        }
                    })
                })
                .collect();
            writers
                .into_iter()
                .for_each(|writer| writer.join().unwrap());
            done.store(true, Ordering::Release);
            reader.join().unwrap();
        });
        assert_same(&std::fs::read(&path).unwrap(), &truth);
        // What is on the disk is the same.
        kvik::drop_file_page_cache(&path, 0, 0, true).unwrap();
        let mut stored = vec![0; truth.len()];
        handles[0].read_exact_at(&mut stored, 0).unwrap();
        assert_same(&stored, &truth);
        std::fs::remove_file(&path).unwrap();
    }
}

/// Each byte is the old one, a zero, or the new one.
#[track_caller]
fn read_while(path: &Path, truth: &[u8], done: &AtomicBool) {
    let readers = [direct(path), FileHandle::open(path).unwrap()];
    while !done.load(Ordering::Acquire) {
        for reader in &readers {
            let mut target = vec![0; truth.len()];
            let count = reader.read_at(&mut target, 0).unwrap();
            let foreign = (0..count).find(|&at| target[at] != 0 && target[at] != truth[at]);
            assert_eq!(foreign, None, "a byte that nobody wrote there");
        }
    }
}
