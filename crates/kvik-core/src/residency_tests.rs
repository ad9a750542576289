//! What once could break: an answer that is made up for files of others, a look that warms what it looks at.

use std::os::unix::fs::FileExt;

use super::*;
use crate::page_cache::page_cache_info;
use crate::page_cache::tests::{as_another_user, make_cold};

const PAGE: u64 = 4096;
const PAGES: u64 = 1024;

/// On a disk: the pages of a tmpfs cannot be dropped.
fn file() -> Arc<File> {
    let file = tempfile::tempfile_in("/var/tmp").unwrap();
    let all = vec![7; (PAGES * PAGE) as usize];
    file.write_all_at(&all, 0).unwrap();
    file.sync_all().unwrap();
    posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_RANDOM).unwrap();
    Arc::new(file)
}

fn warm(file: &File, pages: Range<u64>) {
    let mut target = vec![0; ((pages.end - pages.start) * PAGE) as usize];
    file.read_exact_at(&mut target, pages.start * PAGE).unwrap();
}

#[test]
fn the_count_tells_hot_cold_and_mixed() {
    let file = file();
    let cached = CachedPages::new(Arc::clone(&file));
    let all = 0..PAGES * PAGE;
    assert_eq!(cached.residency(all.clone()), Residency::Hot);
    make_cold(&file);
    assert_eq!(cached.residency(all.clone()), Residency::Cold);
    warm(&file, 0..PAGES / 2);
    assert_eq!(cached.residency(all.clone()), Residency::Mixed);
    assert_eq!(cached.residency(1..PAGE + 1), Residency::Hot);
    let behind = PAGES * PAGE * 3 / 4..PAGES * PAGE + 100;
    assert_eq!(cached.residency(behind), Residency::Cold);
    // Nothing is there, so nothing is missing.
    assert_eq!(cached.residency(PAGES * PAGE..u64::MAX), Residency::Hot);
    assert_eq!(cached.residency(5..5), Residency::Hot);
}

#[test]
fn tries_tell_the_same_and_fetch_no_more_than_they_try() {
    let file = file();
    let sampler = Sampler::of(&file).unwrap();
    let look = || sampler.look(0, PAGES, PAGE).unwrap().residency();
    assert_eq!(look(), Residency::Hot);
    for _ in 0..10 {
        // Each time: a later look may try what an earlier one has fetched.
        make_cold(&file);
        assert_eq!(look(), Residency::Cold);
        // The fetched page is in the cache as soon as the read is under way.
        let cached = page_cache_info(&*file, 0, 0).unwrap().resident_pages;
        assert!(cached <= ENOUGH * 4, "{cached}");
    }
    warm(&file, 0..PAGES / 2);
    assert_eq!(look(), Residency::Mixed);
    warm(&file, 0..PAGES);
    assert_eq!(look(), Residency::Hot);
    // One page is one try.
    let one = Share { cached: 1, of: 1 };
    assert_eq!(sampler.look(5 * PAGE, 1, PAGE), Some(one));
}

/// The usual shared data set: readable, and somebody else's. `mincore` calls all of it cached.
#[test]
fn files_of_others_are_sampled_and_never_called_hot_when_they_are_cold() {
    let theirs = if nix::unistd::Uid::effective().is_root() {
        let file = file();
        std::os::unix::fs::fchown(&*file, Some(0), Some(0)).unwrap();
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .unwrap();
        // Who may write through the descriptor is told, too.
        Arc::new(File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap())
    } else {
        Arc::new(File::open("/etc/passwd").unwrap())
    };
    let len = theirs.metadata().unwrap().len();
    let cached = CachedPages::new(Arc::clone(&theirs));
    let look = || as_another_user(|| cached.residency(0..len));
    warm(&theirs, 0..len / PAGE);
    assert_eq!(look(), Residency::Hot);
    assert!(
        cached.sampler.get().is_some() || os::cachestat_of_nothing() != Errno::EBADF,
        "this kernel counts the pages of others; then there is nothing to be sampled"
    );
    make_cold(&theirs);
    assert_eq!(look(), Residency::Cold);
}

#[test]
fn what_has_no_pages_is_unknown() {
    let device = CachedPages::new(Arc::new(File::open("/dev/zero").unwrap()));
    assert_eq!(device.residency(0..100), Residency::Unknown);
}

#[test]
fn a_piece_into_which_readahead_reached_is_nearly_cold() {
    for (cached, of, expected) in [
        (0, 1024, true),
        (256, 1024, true),
        (257, 1024, false),
        (1024, 1024, false),
        (0, 2, true),
        (1, 2, false),
        (0, 0, false),
    ] {
        assert_eq!(Share { cached, of }.is_nearly_cold(), expected, "{cached}");
    }
}
