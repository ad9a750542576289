//! System calls that fall short, are interrupted or fail: by a shim before libc, by limits, and by devices that are made so.

use std::path::Path;

use kvik::{ByteSize, ErrorKind, FileHandle, ReadOptions};
use kvik_tests::child::Child;
use kvik_tests::faults::Shim;
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, file, pattern};

use crate::{BINARY, child, says};

const LEN: usize = 1_000_003;

/// What the child says, and what its target holds.
struct Read {
    said: String,
    target: Vec<u8>,
}

#[track_caller]
fn read(shim: &Shim, rules: &str, threads: u64, task_size: &str) -> Read {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let out = folder.path().join("out");
    let child = child("read")
        .arg(&path)
        .number(0)
        .number(LEN as u64)
        .number(threads)
        .arg(task_size)
        .arg(&out);
    let said = child.faults(shim, rules).succeeds();
    Read {
        said,
        target: std::fs::read(out).unwrap(),
    }
}

#[test]
fn short_reads_are_continued_and_counted() {
    let shim = Shim::build();
    let truth = pattern(1, 0, LEN);
    // Half of what is asked for in the first three calls: 1/2, 3/4, 7/8, and then the rest.
    let once = read(
        &shim,
        "pread:short:1,pread:short:2,pread:short:3",
        1,
        "2000000",
    );
    says(
        &once.said,
        &[
            "ok 1000003",
            "io_short: 3",
            "io_interrupted: 0",
            "io_again: 0",
        ],
    );
    assert_same(&once.target, &truth);
    for (threads, task_size) in [(1, "-"), (1, "4096"), (4, "65536")] {
        let often = read(&shim, "pread:short:*2", threads, task_size);
        says(&often.said, &["ok 1000003"]);
        assert_same(&often.target, &truth);
    }
    // Single bytes, as a pipe might give them.
    let bytes = read(&shim, "pread:one:*2", 3, "511");
    says(&bytes.said, &["ok 1000003"]);
    assert_same(&bytes.target, &truth);
}

#[test]
fn interrupted_reads_are_made_again_and_counted() {
    let shim = Shim::build();
    for (threads, task_size) in [(1, "2000000"), (1, "-"), (4, "65536")] {
        let read = read(
            &shim,
            "pread:EINTR:1,pread:EINTR:2,pread:EINTR:4,pread:EINTR:5",
            threads,
            task_size,
        );
        // Call 3 reads everything where there is one task; then nobody makes calls 4 and 5.
        let count = if threads == 1 && task_size == "2000000" {
            2
        } else {
            4
        };
        if task_size != "-" {
            says(&read.said, &[&format!("io_interrupted: {count}")]);
        }
        says(&read.said, &["ok 1000003", "io_short: 0"]);
        assert_same(&read.target, &pattern(1, 0, LEN));
    }
}

#[test]
fn reads_that_would_block_are_made_again_and_counted() {
    let shim = Shim::build();
    let read = read(
        &shim,
        "pread:EAGAIN:1,pread:short:2,pread:EAGAIN:3",
        1,
        "2000000",
    );
    says(&read.said, &["ok 1000003", "io_again: 2", "io_short: 1"]);
    assert_same(&read.target, &pattern(1, 0, LEN));
}

#[test]
fn a_read_error_says_how_far_the_unbroken_part_reaches() {
    let shim = Shim::build();
    let truth = pattern(1, 0, LEN);
    for threads in [1, 2, 8] {
        let read = read(&shim, "pread:EIO:@500000", threads, "65536");
        // 500000 lies in the task that starts at 458752.
        says(&read.said, &["Io after 458752"]);
        let text = "source 0..1000003 stopped after 458752 bytes: I/O error (EIO)";
        assert!(read.said.contains(text), "{}", read.said);
        assert_same(&read.target[..458_752], &truth[..458_752]);
        // Of the failed task nothing came; of those behind it, some may have.
        assert_all(&read.target[458_752..][..65_536], UNTOUCHED);
    }
    // What the task had before it failed counts too.
    let read = read(&shim, "pread:short:1,pread:EIO:2", 1, "2000000");
    says(&read.said, &["Io after 500002", "io_short: 1"]);
    assert_same(&read.target[..500_002], &truth[..500_002]);
    assert_all(&read.target[500_002..], UNTOUCHED);
}

#[test]
fn a_read_that_meets_the_end_early_is_short() {
    // As when somebody cuts the file between two tasks.
    let shim = Shim::build();
    for threads in [1, 4] {
        let read = read(&shim, "pread:zero:@983040", threads, "65536");
        says(&read.said, &["ok 983040"]);
        assert_same(&read.target[..983_040], &pattern(1, 0, 983_040));
        assert_all(&read.target[983_040..], UNTOUCHED);
    }
}

#[test]
fn errors_keep_their_kinds() {
    let shim = Shim::build();
    for (errno, kind) in [
        ("EIO", "Io"),
        ("ENOMEM", "OutOfMemory"),
        ("ESTALE", "Io"),
        ("ETIMEDOUT", "TimedOut"),
        ("EINVAL", "Misuse"),
    ] {
        for task_size in ["-", "65536"] {
            let read = read(&shim, &format!("pread:{errno}:1+"), 3, task_size);
            says(&read.said, &[&format!("{kind} after 0")]);
            assert!(read.said.contains(&format!("({errno})")), "{}", read.said);
            assert_all(&read.target, UNTOUCHED);
        }
    }
}

#[track_caller]
fn write(shim: &Shim, rules: &str, threads: u64, task_size: &str) -> (String, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("target");
    let child = child("write")
        .arg(&path)
        .number(0)
        .number(LEN as u64)
        .number(threads)
        .arg(task_size);
    (
        child.faults(shim, rules).succeeds(),
        std::fs::read(path).unwrap(),
    )
}

#[test]
fn short_interrupted_and_blocked_writes_are_continued() {
    let shim = Shim::build();
    let truth = pattern(1, 0, LEN);
    let rules = "pwrite:short:1,pwrite:EINTR:2,pwrite:EAGAIN:3,pwrite:short:4";
    let (said, stored) = write(&shim, rules, 1, "2000000");
    says(
        &said,
        &[
            "ok 1000003",
            "io_short: 2",
            "io_interrupted: 1",
            "io_again: 1",
        ],
    );
    assert_same(&stored, &truth);
    for (threads, task_size) in [(1, "-"), (4, "65536"), (3, "511")] {
        let (said, stored) = write(&shim, "pwrite:EINTR:*3,pwrite:short:*2", threads, task_size);
        says(&said, &["ok 1000003"]);
        assert_same(&stored, &truth);
    }
}

#[test]
fn a_write_that_runs_out_of_space_says_how_much_is_written() {
    let shim = Shim::build();
    for (errno, threads) in [("ENOSPC", 1), ("ENOSPC", 4), ("EDQUOT", 4), ("EFBIG", 4)] {
        let (said, stored) = write(&shim, &format!("pwrite:{errno}:@500000"), threads, "65536");
        says(&said, &["StorageFull after 458752"]);
        let text = format!("({errno}); free space or raise the quota, then run it again");
        assert!(said.contains(&text), "{said}");
        assert_same(&stored[..458_752], &pattern(1, 0, 458_752));
    }
}

#[test]
fn a_write_that_moves_nothing_and_says_nothing_is_an_error_not_a_loop() {
    let shim = Shim::build();
    let (said, _) = write(&shim, "pwrite:short:1,pwrite:zero:2+", 1, "2000000");
    says(&said, &["Io after 500002"]);
    assert!(said.contains("takes no more bytes"), "{said}");
}

/// As users meet it: `ulimit -f`. The kernel writes up to the limit, then refuses.
#[test]
fn a_file_size_limit_is_storage_full_with_the_bytes_done() {
    // On a disk: `/tmp` may be a tmpfs.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let limited = "trap '' XFSZ; exec prlimit --fsize=300100 \"$@\"";
    let ways = ["never", "always"];
    let cuts = [(1, "-"), (1, "4096"), (4, "65536")];
    for (way, (threads, task_size)) in ways.iter().flat_map(|way| cuts.map(|cut| (way, cut))) {
        let path = folder.path().join(format!("{way}-{threads}-{task_size}"));
        // Past the page cache, too: of blocks that the limit cuts the kernel says that they are no whole blocks.
        let child = Child::new_by(limited, BINARY, "write")
            .env("KVIK_DIRECT_WRITE", way)
            .arg(&path)
            .number(0)
            .number(LEN as u64)
            .number(threads)
            .arg(task_size);
        let said = child.succeeds();
        says(&said, &["StorageFull after 300100"]);
        assert!(
            said.contains("0..1000003 stopped after 300100 bytes: File too large (EFBIG)"),
            "{said}"
        );
        assert_same(&std::fs::read(&path).unwrap(), &pattern(1, 0, 300_100));
    }
}

#[test]
fn a_device_that_is_always_full_is_storage_full() {
    let full = FileHandle::options().write(true).open("/dev/full").unwrap();
    for len in [1, 3_000_000] {
        let error = full.write_at(&vec![1; len], 0).unwrap_err();
        assert_eq!(
            (error.kind(), error.done()),
            (ErrorKind::StorageFull, 0),
            "{error}"
        );
        let (outcome, buffer) = full.submit_write(vec![1; len], 0).finish();
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(buffer, vec![1; len]);
    }
}

/// Address 0 is mapped in no process, so the kernel answers EIO: a real one.
#[test]
fn memory_that_is_not_there_is_an_io_error_that_names_the_range() {
    let memory = FileHandle::open("/proc/self/mem").unwrap();
    for (len, options) in [
        (100, ReadOptions::new()),
        (
            65_536,
            ReadOptions::new()
                .task_size(ByteSize::kib(4))
                .num_threads(4),
        ),
    ] {
        let mut target = vec![UNTOUCHED; len];
        let error = memory.read_at_with(&mut target, 0, &options).unwrap_err();
        assert_eq!(
            (error.kind(), error.os_error(), error.done()),
            (ErrorKind::Io, Some(libc::EIO), 0)
        );
        assert_eq!(
            error.to_string(),
            format!("read /proc/self/mem 0..{len}: I/O error (EIO)")
        );
        assert_eq!(
            error.place().map(ToString::to_string).as_deref(),
            Path::new("/proc/self/mem").to_str()
        );
        assert_all(&target, UNTOUCHED);
    }
}
