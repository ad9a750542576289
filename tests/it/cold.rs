//! Files that are not in the page cache. Once each epoch over a data set larger than memory emptied the cache for everybody.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use kvik::{ByteSize, FileHandle, ReadOptions};
use kvik_tests::faults::Shim;
use kvik_tests::need;
use kvik_tests::pattern::{byte_at, file, pattern};

use crate::child;

const LEN: usize = 3 << 20;

/// On a disk: the pages of a tmpfs cannot be dropped.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

#[test]
fn what_is_read_for_the_first_time_stays_out_of_the_cache_and_what_is_read_again_is_in_it() {
    let folder = folder();
    let path = file(folder.path(), "source", 1, LEN);
    child("cold-rounds").arg(&path).succeeds();
}

#[test]
fn a_cold_read_that_is_refused_past_the_cache_goes_on_through_it_and_the_route_says_why() {
    let folder = folder();
    let path = file(folder.path(), "source", 1, LEN);
    let shim = Shim::build();
    let refused = "  direct    ruled out: a direct read was refused (EINVAL)";
    for (rules, route, direct) in [
        ("direct-pread:EINVAL:1+", refused, 0),
        ("direct-pread:EINVAL:2+", refused, 1 << 20),
        (
            "direct-pread:EOPNOTSUPP:3",
            "  direct    ruled out: a direct read was refused (EOPNOTSUPP)",
            2 << 20,
        ),
        (
            "direct-open:EINVAL:1+",
            "  direct    ruled out: open does not take the flag (EINVAL)",
            0,
        ),
    ] {
        let said = child("cold-read")
            .arg(&path)
            .faults(&shim, rules)
            .succeeds();
        let direct = format!("bytes_by_direct: {direct}");
        for line in ["ok 3145728", "fallbacks: 1", route, &direct] {
            assert!(
                said.lines().any(|found| found == line),
                "`{line}` is not in:\n{said}"
            );
        }
    }
}

#[test]
fn settings_that_forbid_direct_reads_are_heard_and_seen_in_the_route() {
    let folder = folder();
    let path = file(folder.path(), "source", 1, LEN);
    for (variable, value) in [
        ("KVIK_DIRECT_READ", "never"),
        ("KVIKIO_AUTO_DIRECT_IO_READ", "off"),
    ] {
        let said = child("cold-read")
            .arg(&path)
            .env(variable, value)
            .succeeds();
        let route = "  direct    ruled out: settings forbid it for reads";
        for line in ["ok 3145728", "fallbacks: 0", route, "bytes_by_direct: 0"] {
            assert!(
                said.lines().any(|found| found == line),
                "`{line}` is not in:\n{said}"
            );
        }
    }
    let said = child("cold-read").arg(&path).succeeds();
    assert!(said.contains("\n  direct    allowed: "), "{said}");
    assert!(said.ends_with("bytes_by_direct: 3145728\n"), "{said}");
}

#[test]
fn cold_files_of_others_are_read_through_the_cache_unless_they_can_be_sampled() {
    need::root();
    let folder = folder();
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(folder.path(), 0o755);
    let secret = file(folder.path(), "secret", 1, LEN);
    mode(&secret, 0o600);
    let shared = file(folder.path(), "shared", 1, LEN);
    mode(&shared, 0o644);
    child("cold-as-nobody").arg(&secret).arg(&shared).succeeds();
}

/// Each page is written as a whole, in one of three versions, by the page cache; pages are dropped all the while.
#[test]
fn reads_of_cold_pieces_beside_a_writer_bring_bytes_of_the_file_and_no_others() {
    const SEEDS: [u64; 3] = [1, 2, 3];
    const PAGE: usize = 4096;
    let folder = folder();
    let path = file(folder.path(), "moving", SEEDS[0], LEN + 77);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let writer = FileHandle::options().write(true).open(&path).unwrap();
            let mut round = 0_usize;
            while !done.load(Ordering::Relaxed) {
                let page = round * 31 % (LEN / PAGE);
                let (seed, offset) = (SEEDS[round % 3], (page * PAGE) as u64);
                let source = pattern(seed, offset, PAGE);
                writer.write_all_at(&source, offset).unwrap();
                round += 1;
            }
        });
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                kvik::drop_file_page_cache(&path, 0, 0, true).unwrap();
            }
        });
        let reader = FileHandle::open(&path).unwrap();
        let cut = ReadOptions::new()
            .num_threads(2)
            .task_size(ByteSize::kib(512));
        let mut target = vec![0; LEN + 2000];
        for round in 0..18 {
            // Some that are filled in place, and some that are not.
            let (skew, offset) = ([0, 16, 512][round % 3], [0, 513, 4096][round % 3]);
            let asked = LEN;
            let count = reader
                .read_at_with(&mut target[skew..skew + asked], offset as u64, &cut)
                .unwrap();
            assert_eq!(count, asked.min(LEN + 77 - offset));
            for (at, byte) in target[skew..skew + count].iter().enumerate() {
                let at = (offset + at) as u64;
                let known = SEEDS.iter().any(|seed| byte_at(*seed, at) == *byte);
                assert!(known, "byte {at} in round {round} is no version's");
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}
