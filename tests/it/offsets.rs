//! Offsets beyond 2 GiB, at the largest there is, and past it: 32-bit arithmetic and sums that wrap break here.

use kvik::{ErrorKind, FileHandle, ReadAtExt, ReadOptions};
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, file, pattern};

use crate::{cut, read_write};

const LAST: u64 = i64::MAX as u64;

#[test]
fn a_sparse_file_is_read_and_written_beyond_2_4_and_100_gib() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sparse");
    let handle = FileHandle::options()
        .read(true)
        .write(true)
        .create(true)
        .open(&path)
        .unwrap();
    let cut = cut(4, 64 << 10);
    let places = [(2u64 << 30) - 300_000, (4 << 30) - 300_000, 100 << 30];
    for (seed, offset) in (1..).zip(places) {
        assert_eq!(
            handle
                .write_at_with(&pattern(seed, 0, 600_000), offset, &cut)
                .unwrap(),
            600_000
        );
        assert_eq!(handle.len().unwrap(), offset + 600_000);
    }
    let handle = FileHandle::open(&path).unwrap();
    for (seed, offset) in (1..).zip(places) {
        for options in [&cut, &ReadOptions::new()] {
            let mut target = vec![UNTOUCHED; 600_200];
            assert!(
                handle
                    .read_at_with(&mut target, offset - 100, options)
                    .unwrap()
                    >= 600_100
            );
            assert_all(&target[..100], 0);
            assert_same(&target[100..600_100], &pattern(seed, 0, 600_000));
        }
        let mut few = [0; 10];
        handle.read_exact_at(&mut few, offset + 17).unwrap();
        assert_same(&few, &pattern(seed, 17, 10));
    }
    let pending = handle.submit_read_with(vec![0; 1 << 20], 100 << 30, &cut);
    assert_eq!(pending.wait().unwrap(), 600_000);
    assert_same(&pending.into_buf()[..600_000], &pattern(3, 0, 600_000));
    let data: u64 = handle
        .data_extents(0..u64::MAX)
        .unwrap()
        .iter()
        .map(|extent| extent.end - extent.start)
        .sum();
    assert!((1_800_000..4 << 20).contains(&data), "{data} bytes of data");
}

#[test]
fn reads_at_and_beyond_the_largest_offset_are_reads_past_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let handle = FileHandle::open(file(folder.path(), "small", 1, 10_000)).unwrap();
    let cut = cut(2, 511);
    for options in [&ReadOptions::new(), &cut] {
        for offset in [
            LAST - 4096,
            LAST - 4095,
            LAST - 1,
            LAST,
            LAST + 1,
            u64::MAX - 4096,
            u64::MAX - 4095,
            u64::MAX,
        ] {
            for len in [1, 4096] {
                let (outcome, buffer) = handle
                    .submit_read_with(vec![UNTOUCHED; len], offset, options)
                    .finish();
                assert_eq!(outcome.unwrap(), 0, "{len} from {offset}");
                assert_all(&buffer, UNTOUCHED);
                let mut target = buffer;
                assert_eq!(
                    handle.read_at_with(&mut target, offset, options).unwrap(),
                    0,
                    "{len} from {offset}"
                );
                let error = handle.read_exact_at(&mut target, offset).unwrap_err();
                assert_eq!(
                    (error.kind(), error.done()),
                    (ErrorKind::UnexpectedEof, 0),
                    "{error}"
                );
                assert_all(&target, UNTOUCHED);
            }
        }
    }
    // A device without an end gives bytes up to the last offset that there is.
    let zero = FileHandle::open("/dev/zero").unwrap();
    for options in [&ReadOptions::new(), &cut] {
        let mut target = vec![UNTOUCHED; 4096];
        assert_eq!(
            zero.read_at_with(&mut target, LAST - 1000, options)
                .unwrap(),
            1000
        );
        assert_all(&target[..1000], 0);
        assert_all(&target[1000..], UNTOUCHED);
    }
}

#[test]
fn reading_to_the_end_from_anywhere_past_it_gives_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let handle = FileHandle::open(file(folder.path(), "small", 1, 10_000)).unwrap();
    for offset in [10_000, 10_001, 1 << 40, LAST - (1 << 20), LAST - 1, LAST] {
        assert_eq!(handle.read_to_end(offset).unwrap(), b"", "from {offset}");
    }
}

#[test]
fn writes_that_no_file_can_hold_are_refused_and_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "small", 1, 10_000);
    let handle = read_write(&path);
    let cut = cut(2, 511);
    for options in [&ReadOptions::new(), &cut] {
        for offset in [LAST - 4095, LAST, u64::MAX - 4095, u64::MAX] {
            let error = handle
                .write_at_with(&[1; 4096], offset, options)
                .unwrap_err();
            assert_eq!(
                (error.kind(), error.done()),
                (ErrorKind::Misuse, 0),
                "{error}"
            );
            let (outcome, buffer) = handle
                .submit_write_with(vec![1; 4096], offset, options)
                .finish();
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Misuse);
            assert_all(&buffer, 1);
        }
        // An offset that exists, in a file that the file system cannot make so long.
        let error = handle
            .write_at_with(&[1; 4096], LAST - 4096, options)
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.os_error()),
            (ErrorKind::StorageFull, Some(libc::EFBIG)),
            "{error}"
        );
    }
    for len in [LAST, LAST + 1, u64::MAX] {
        let error = handle.set_len(len).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Misuse | ErrorKind::StorageFull),
            "{error}"
        );
    }
    assert_same(&std::fs::read(&path).unwrap(), &pattern(1, 0, 10_000));

    let append = FileHandle::options().append(true).open(&path).unwrap();
    for offset in [LAST, LAST - 10_000, u64::MAX] {
        assert_eq!(
            append.write_at(&[1], offset).unwrap_err().kind(),
            ErrorKind::Misuse
        );
        assert_eq!(
            append
                .submit_write(vec![1], offset)
                .wait()
                .unwrap_err()
                .kind(),
            ErrorKind::Misuse
        );
    }
    assert_same(&std::fs::read(&path).unwrap(), &pattern(1, 0, 10_000));
}

/// More than any process can address; tmpfs takes such a length, ext4 does not.
#[test]
fn a_file_that_no_memory_can_hold_is_out_of_memory() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = file(folder.path(), "vast", 1, 10_000);
    let handle = read_write(&path);
    for len in [1 << 47, LAST] {
        handle.set_len(len).unwrap();
        assert_eq!(handle.len().unwrap(), len);
        let error = handle.read_to_end(0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
        assert_same(&handle.read_to_end(len - 1000).unwrap(), &[0; 1000]);
    }
}
