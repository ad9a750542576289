//! Many ranges in one call: what is read in one go, and what a fault in the middle of it does.

use kvik_tests::faults::Shim;
use kvik_tests::pattern::file;

use crate::child;

const LEN: usize = 1_000_003;

/// What the child says of `count` pieces of `len` bytes, each `step` further on.
#[track_caller]
fn read(shim: &Shim, rules: &str, [count, len, step, threads]: [u64; 4]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let child = child("read-ranges").arg(&path);
    let child = child.number(count).number(len).number(step).number(threads);
    child.faults(shim, rules).succeeds()
}

#[test]
fn pieces_that_lie_close_together_are_read_in_one_system_call_and_one_operation_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    child("calls-of-ranges").arg(&path).succeeds();
}

#[test]
fn reads_of_many_pieces_that_fall_short_anywhere_are_continued() {
    let shim = Shim::build();
    for (rules, shorts) in [
        ("pread:short:1,pread:one:2,pread:short:3", "io_short: 3"),
        ("pread:one:1,pread:EINTR:2,pread:short:3", "io_short: 2"),
    ] {
        let said = read(&shim, rules, [30, 100, 150, 1]);
        assert!(said.contains("ok 3000") && said.contains(shorts), "{said}");
    }
    // All of them lie in the file.
    for step in [1, 99, 100, 101, 1000, 4900] {
        for threads in [1, 3] {
            let said = read(
                &shim,
                "pread:one:*3,pread:short:*2",
                [200, 100, step, threads],
            );
            let past = (0..200)
                .map(|i| i * step + 100)
                .filter(|end| *end > LEN as u64);
            assert_eq!(past.count(), 0, "all pieces lie in the file");
            assert!(said.contains("ok 20000"), "{step}: {said}");
        }
    }
}

#[test]
fn an_error_in_the_middle_of_a_read_for_many_pieces_is_that_of_the_piece_it_met() {
    let shim = Shim::build();
    // The first call brings half of the 1140 bytes from the first piece to the last, 50 of those at 520..620.
    let said = read(&shim, "pread:short:1,pread:EIO:2", [9, 100, 130, 1]);
    assert!(said.contains("Io after 50 in Some(520..620)"), "{said}");
    // Half of the way from the first of 10 pieces to the last lies between two of them.
    let said = read(&shim, "pread:short:1,pread:EIO:2", [10, 100, 130, 1]);
    assert!(said.contains("Io after 0 in Some(650..750)"), "{said}");
}

#[test]
fn an_end_that_comes_early_is_an_end_for_the_pieces_behind_it_only() {
    let shim = Shim::build();
    let said = read(&shim, "pread:short:1,pread:zero:2", [10, 100, 100, 1]);
    assert!(said.contains("ok 500"), "{said}");
}
