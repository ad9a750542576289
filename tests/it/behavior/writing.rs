//! All or an error, gaps and neighbours, append: what a write promises.

use kvik::{ErrorKind, FileHandle, ReadOptions};
use kvik_tests::pattern::{assert_all, assert_same, pattern};

use super::{LEN, cut, fixture};

/// "`write_at` writes all bytes of the source or fails; the file grows where the range reaches past its end, and a gap reads
/// as zeros."
#[test]
fn write_at_writes_all_and_a_gap_reads_as_zeros() {
    let (_folder, path, handle) = fixture();
    for (seed, (options, offset)) in
        (2..).zip([(ReadOptions::new(), LEN + 1000), (cut(3, 4097), 2 * LEN)])
    {
        let before = handle.len().unwrap() as usize;
        assert_eq!(
            handle
                .write_at_with(&pattern(seed, 0, 500_000), offset as u64, &options)
                .unwrap(),
            500_000
        );
        let stored = std::fs::read(&path).unwrap();
        assert_eq!(stored.len(), offset + 500_000);
        assert_all(&stored[before..offset], 0);
        assert_same(&stored[offset..], &pattern(seed, 0, 500_000));
        assert_same(&stored[..LEN], &pattern(1, 0, LEN));
    }
    // Nothing, written past the end, is nothing.
    let before = handle.len().unwrap();
    assert_eq!(handle.write_at(&[], before + 1000).unwrap(), 0);
    assert_eq!(handle.len().unwrap(), before);
}

/// "Bytes before and after the range are not touched, whatever offset and length are."
#[test]
fn bytes_around_a_written_range_are_not_touched() {
    let (_folder, path, handle) = fixture();
    let mut truth = pattern(1, 0, LEN);
    let mut seed = 2;
    for offset in [0, 1, 511, 4095, 4096, 4097, 500_000] {
        for len in [1, 2, 511, 4095, 4096, 4097, 300_001] {
            for options in [ReadOptions::new(), cut(3, 1000)] {
                let source = pattern(seed, 0, len);
                handle
                    .write_at_with(&source, offset as u64, &options)
                    .unwrap();
                truth[offset..offset + len].copy_from_slice(&source);
                seed += 1;
            }
            assert_same(&std::fs::read(&path).unwrap(), &truth);
        }
    }
}

/// "A handle opened with `append` creates a missing file, and its offsets count from where the file ended when it was
/// opened."
#[test]
fn append_creates_a_missing_file_and_counts_from_the_end_at_opening() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("appended");
    let append = || FileHandle::options().append(true).open(&path).unwrap();
    append().write_all_at(b"one", 0).unwrap();
    let second = append();
    second.write_all_at(b"two", 0).unwrap();
    // From the end at opening, not from the end as it is now.
    second.write_all_at(b"TW", 0).unwrap();
    second.submit_write(b"three".to_vec(), 3).wait().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"oneTWothree");
    append()
        .write_at_with(&pattern(1, 0, 300_000), 5, &cut(3, 4096))
        .unwrap();
    let stored = std::fs::read(&path).unwrap();
    assert_eq!(&stored[..16], b"oneTWothree\0\0\0\0\0");
    assert_same(&stored[16..], &pattern(1, 0, 300_000));
    // Reads count from the start.
    let both = FileHandle::options()
        .read(true)
        .append(true)
        .open(&path)
        .unwrap();
    let mut start = [0; 3];
    both.read_exact_at(&mut start, 0).unwrap();
    assert_eq!(&start, b"one");
    assert_eq!(
        append().read_at(&mut start, 0).unwrap_err().kind(),
        ErrorKind::PermissionDenied
    );
}
