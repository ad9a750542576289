//! Batches by cuFile: what is submitted together, what is continued, and what one entry's failure does to the others. What once
//! could break: an entry that nobody hears of any more, and memory that goes back to its owner while cuFile writes to it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use kvik::{
    AnyBuffer, Batch, ByteSize, DeviceBuffer, ErrorKind, FileHandle, Finished, Layer, Op,
    PendingBatch, stats,
};
use kvik_tests::fake::{FakeCuFile, FakeCuda};
use kvik_tests::gpu::{Kind, Memory, Stream};
use kvik_tests::os::forked;
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, file, pattern};

use super::{assert_at_rest, open, open_with, start};

const LEN: usize = 2_000_000;
/// Of one entry.
const PIECE: usize = 4097;

/// Reads of so many pieces, each at another offset, into memory of the device.
fn reads(handle: &FileHandle, count: usize) -> Batch<DeviceBuffer> {
    let mut batch = Batch::new();
    for number in 0..count {
        let mut buffer = DeviceBuffer::new(0, PIECE).unwrap();
        buffer.fill(UNTOUCHED).unwrap();
        assert_eq!(batch.read(handle, offset(number), buffer), number);
    }
    batch
}

fn offset(number: usize) -> u64 {
    (number * 6151 + number % 7) as u64
}

fn bytes(buffer: &DeviceBuffer) -> Vec<u8> {
    let mut bytes = vec![0; buffer.len()];
    buffer.copy_to_host(&mut bytes).unwrap();
    bytes
}

/// Checks all entries but those that `failed` names with kind and count.
#[track_caller]
fn check(finished: Vec<Finished<DeviceBuffer>>, failed: &BTreeMap<usize, (ErrorKind, u64)>) {
    for (number, entry) in finished.into_iter().enumerate() {
        let read = bytes(entry.buffer.as_ref().unwrap());
        let expected = pattern(1, offset(number), PIECE);
        match failed.get(&number) {
            None => {
                assert_eq!(entry.outcome.unwrap(), PIECE, "{number}");
                assert_same(&read, &expected);
            }
            Some((kind, done)) => {
                let error = entry.outcome.unwrap_err();
                let range = Some(offset(number)..offset(number) + PIECE as u64);
                let found = (error.kind(), error.op(), error.range(), error.done());
                assert_eq!(found, (*kind, Op::Read, range, *done), "{error}");
                assert_same(&read[..*done as usize], &expected[..*done as usize]);
            }
        }
    }
}

/// And cuFile has no batch any more.
#[track_caller]
fn assert_all_at_rest(cuda: &FakeCuda, cufile: &FakeCuFile) {
    assert_at_rest(cuda, cufile);
    assert_eq!(cufile.batches(), 0);
}

/// A file with the pattern 1.
fn source(folder: &Path) -> FileHandle {
    open(&file(folder, "source", 1, LEN), 4, 1 << 20)
}

#[test]
fn the_entries_of_a_batch_go_to_cufile_together_as_many_as_it_takes() {
    let (_gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = source(folder.path());
    for (most, count) in [(128, 300), (7, 50), (2, 5)] {
        cufile.set_max_batch(most);
        let names = ["batch-entry", "cuFileBatchIOSubmit"];
        let before = names.map(|name| cufile.calls(name));
        check(reads(&handle, count).submit().finish(), &BTreeMap::new());
        let after = names.map(|name| cufile.calls(name));
        assert_eq!(after[0] - before[0], count);
        let submitted = after[1] - before[1];
        assert!(
            (count.div_ceil(most)..count).contains(&submitted),
            "{submitted} submissions"
        );
    }
    assert_eq!(cufile.calls("cuFileRead"), 0);
    assert_eq!(cuda.calls("cuMemHostRegister_v2"), 0, "nothing was staged");
    drop(handle);
    assert_all_at_rest(&cuda, &cufile);
}

#[test]
fn an_entry_that_fails_is_told_by_its_errno_or_code_and_no_other_entry_is() {
    let (_gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    // Two workers submit in an order that nobody knows; one in that of the file.
    let handle = open(&folder.path().join("source"), 1, 1 << 20);
    handle.write_all_at(&pattern(1, 0, LEN), 0).unwrap();
    cufile.fail("batch-entry", "3", 5008);
    // Asked alone, it fails again.
    cufile.fail("cuFileRead", "1", 5008);
    cufile.fail("batch-entry", "40", libc::EIO);
    let pending = reads(&handle, 200).submit();
    let outcomes = pending.wait();
    let texts = [2, 39].map(|number| outcomes[number].as_ref().unwrap_err().to_string());
    assert!(
        texts[0].contains("cuFileRead: CU_FILE_IO_NOT_SUPPORTED (5008)"),
        "{}",
        texts[0]
    );
    assert!(texts[1].contains("I/O error (EIO)"), "{}", texts[1]);
    let place = handle.path().to_str().unwrap();
    assert!(texts.iter().all(|text| text.contains(place)), "{texts:?}");
    let failed = [(2, (ErrorKind::Device, 0)), (39, (ErrorKind::Io, 0))];
    check(pending.finish(), &failed.into());
    drop(handle);
    assert_all_at_rest(&cuda, &cufile);
}

#[test]
fn short_and_interrupted_entries_are_continued() {
    let (_gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = source(folder.path());
    cufile.fall_short("batch-entry", "*3");
    cufile.fail("batch-entry", "*5", libc::EINTR);
    check(reads(&handle, 200).submit().finish(), &BTreeMap::new());
    assert!(cufile.calls("batch-entry") > 200 + 200 / 3);
    drop(handle);
    assert_all_at_rest(&cuda, &cufile);
}

#[test]
fn writes_land_where_they_belong_and_large_entries_are_cut() {
    let (gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "target", 1, LEN);
    let handle = open(&path, 3, 65_536);
    let mut expected = pattern(1, 0, LEN);
    let mut batch = Batch::new();
    for (number, len) in [1, 4096, 4097, 300_000, 0, 70_001].into_iter().enumerate() {
        let at = number * 310_007;
        let mut buffer = DeviceBuffer::new(0, len).unwrap();
        buffer.copy_from_host(&pattern(2, at as u64, len)).unwrap();
        expected[at..at + len].copy_from_slice(&pattern(2, at as u64, len));
        batch.write(&handle, at as u64, buffer);
    }
    let outcomes = batch.submit().wait();
    let counts: Vec<_> = outcomes.into_iter().map(Result::unwrap).collect();
    assert_eq!(counts, [1, 4096, 4097, 300_000, 0, 70_001]);
    assert_same(&fs::read(&path).unwrap(), &expected);
    assert!(cufile.calls("batch-entry") > 2);
    assert!(cufile.calls("cuFileWrite") > 4, "parts of pages go alone");
    drop((handle, gpu));
    assert_all_at_rest(&cuda, &cufile);
}

#[test]
fn nothing_is_read_beyond_the_end_of_the_file() {
    let (_gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, 10_000), 2, 1 << 20);
    let offsets = [0, 5903, 5904, 9999, 10_000, u64::MAX];
    let mut batch = Batch::new();
    for offset in offsets {
        let mut buffer = DeviceBuffer::new(0, PIECE).unwrap();
        buffer.fill(UNTOUCHED).unwrap();
        batch.read(&handle, offset, buffer);
    }
    for (entry, offset) in batch.submit().finish().into_iter().zip(offsets) {
        let there = 10_000_u64.saturating_sub(offset).min(PIECE as u64) as usize;
        assert_eq!(entry.outcome.unwrap(), there);
        let read = bytes(&entry.buffer.unwrap());
        assert_same(&read[..there], &pattern(1, offset, there));
        assert_all(&read[there..], UNTOUCHED);
    }
    drop(handle);
    assert_all_at_rest(&cuda, &cufile);
}

#[test]
fn where_cufile_takes_no_batch_its_single_calls_move_the_bytes() {
    let (_gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    // No batches at all; none to spare; none without a direct path, which is said when the first is submitted or in each answer.
    let rules = [
        None,
        Some(("cuFileBatchIOSetUp", 5039)),
        Some(("cuFileBatchIOSubmit", 5049)),
        Some(("batch-entry", 5049)),
    ];
    for rule in rules {
        let handle = source(folder.path());
        cufile.succeed();
        cufile.set_max_batch(if rule.is_none() { 0 } else { 128 });
        if let Some((name, code)) = rule {
            cufile.fail(name, "1+", code);
        }
        let before = cufile.calls("cuFileRead");
        let counted = stats::names::FALLBACKS.get();
        check(reads(&handle, 150).submit().finish(), &BTreeMap::new());
        assert_eq!(cufile.calls("cuFileRead") - before, 150);
        let counted = stats::names::FALLBACKS.get() - counted;
        assert_eq!(counted, u64::from(rule.is_some()), "{rule:?}");
    }
    assert_all_at_rest(&cuda, &cufile);
}

#[test]
fn a_file_that_takes_no_batch_is_not_offered_another() {
    let (_gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = source(folder.path());
    // Full, it may not be the next time.
    for (code, lasts) in [(5037, false), (5049, true)] {
        cufile.fail("cuFileBatchIOSubmit", "1+", code);
        check(reads(&handle, 150).submit().finish(), &BTreeMap::new());
        cufile.succeed();
        let counted = stats::names::FALLBACKS.get();
        let before = cufile.calls("cuFileBatchIOSetUp");
        check(reads(&handle, 150).submit().finish(), &BTreeMap::new());
        assert_eq!(cufile.calls("cuFileBatchIOSetUp") == before, lasts);
        assert_eq!(stats::names::FALLBACKS.get(), counted);
    }
    drop(handle);
    assert_all_at_rest(&cuda, &cufile);
}

#[test]
fn one_entry_is_a_single_call() {
    let (_gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = source(folder.path());
    check(reads(&handle, 1).submit().finish(), &BTreeMap::new());
    assert_eq!(cufile.calls("cuFileBatchIOSetUp"), 0);
    assert_eq!(cufile.calls("cuFileRead"), 1);
    drop(handle);
    assert_all_at_rest(&cuda, &cufile);
}

#[test]
fn entries_below_the_threshold_and_those_of_the_host_go_their_own_way_in_the_same_batch() {
    let (_gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = open_with(&path, Layer::new().gds_threshold(ByteSize::new(10_000)));
    let mut batch: Batch<AnyBuffer> = Batch::new();
    for number in 0..60 {
        let (len, offset) = ([9_999, 10_000, 5_000][number % 3], offset(number));
        match number % 3 {
            2 => batch.read(&handle, offset, vec![0; len].into()),
            _ => batch.read(&handle, offset, DeviceBuffer::new(0, len).unwrap().into()),
        };
    }
    for (number, entry) in batch.submit().finish().into_iter().enumerate() {
        let read = match entry.into_buffer().unwrap() {
            AnyBuffer::Vec(bytes) => bytes,
            AnyBuffer::Device(buffer) => bytes(&buffer),
            other => panic!("{other:?} was not given"),
        };
        assert_same(&read, &pattern(1, offset(number), read.len()));
    }
    assert_eq!(cufile.calls("batch-entry"), 20);
    drop(handle);
    assert_all_at_rest(&cuda, &cufile);
}

#[test]
fn a_batch_comes_after_what_was_queued_on_the_default_stream_before_it() {
    let (gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = source(folder.path());
    let memory = Memory::new(&gpu, 0, Kind::Plain, 8);
    let batch = reads(&handle, 20);
    let held = Stream::default_of(&gpu, 0).hold_before(&memory, 7);
    let pending = batch.submit();
    assert!(pending.wait_some(1, Duration::from_millis(30)).is_empty());
    assert_eq!(
        cufile.calls("batch-entry"),
        0,
        "the stream is not there yet"
    );
    drop(held);
    check(pending.finish(), &BTreeMap::new());
    drop(handle);
    assert_all_at_rest(&cuda, &cufile);
}

/// A batch of which one entry is on its way, and waits.
fn held(handle: &FileHandle, cufile: &FakeCuFile) -> PendingBatch<DeviceBuffer> {
    cufile.hold();
    let pending = reads(handle, 300).submit();
    while cufile.moving() == 0 {
        thread::yield_now();
    }
    pending
}

#[test]
fn cancelling_waits_for_what_cufile_has_and_leaves_the_rest() {
    let (_gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 1, 1 << 20);
    let pending = held(&handle, &cufile);
    pending.cancel();
    assert!(pending.wait_some(300, Duration::from_millis(30)).is_empty());
    assert!(!pending.is_done());
    cufile.release();
    let outcomes = pending.wait();
    let cancelled = |outcome: &kvik::Result<usize>| {
        let error = outcome.as_ref().err();
        error.is_some_and(|error| error.kind() == ErrorKind::Cancelled)
    };
    let undone = (0..300).filter(|number| cancelled(&outcomes[*number]));
    let failed: BTreeMap<_, _> = undone.map(|at| (at, (ErrorKind::Cancelled, 0))).collect();
    assert_eq!(failed.len(), 300 - 128, "what was submitted is done");
    check(pending.finish(), &failed);
    drop(handle);
    assert_all_at_rest(&cuda, &cufile);
}

#[test]
fn dropping_a_batch_waits_for_what_cufile_has() {
    let (_gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = source(folder.path());
    let pending = held(&handle, &cufile);
    let freed = cuda.calls("cuMemFree_v2");
    thread::scope(|scope| {
        let dropping = scope.spawn(|| drop(pending));
        thread::sleep(Duration::from_millis(50));
        assert!(!dropping.is_finished(), "the drop did not wait");
        assert_eq!(cuda.calls("cuMemFree_v2"), freed);
        cufile.release();
        dropping.join().unwrap();
    });
    assert_eq!(cuda.calls("cuMemFree_v2"), freed + 300);
    drop(handle);
    assert_all_at_rest(&cuda, &cufile);
}

#[test]
fn a_child_hears_that_the_batch_is_its_parents_and_releases_nothing() {
    let (_gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = source(folder.path());
    let mut pending = Some(held(&handle, &cufile));
    let names = [
        "cuFileBatchIODestroy",
        "cuFileBatchIOCancel",
        "cuFileHandleDeregister",
    ];
    let before = (
        names.map(|name| cufile.calls(name)),
        cuda.calls("cuMemFree_v2"),
    );
    forked(|| {
        let pending = pending.take().unwrap();
        assert!(pending.is_done() && pending.newly_done().is_empty());
        pending.cancel();
        for outcome in pending.wait() {
            assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Forked);
        }
        assert_eq!(pending.finish().len(), 300);
        let refused = reads_in_child(&handle).submit().wait();
        assert_eq!(refused[0].as_ref().unwrap(), &5);
        let after = (
            names.map(|name| cufile.calls(name)),
            cuda.calls("cuMemFree_v2"),
        );
        assert_eq!(after, before, "they are the parent's");
    })
    .succeeded();
    cufile.release();
    check(pending.unwrap().finish(), &BTreeMap::new());
    drop(handle);
    assert_all_at_rest(&cuda, &cufile);
}

/// What a child may still do.
fn reads_in_child(handle: &FileHandle) -> Batch<Vec<u8>> {
    let mut batch = Batch::new();
    batch.read(handle, 0, vec![0; 5]);
    batch
}

/// What becomes of a batch of which cuFile's call `name` fails, so that nobody knows what it does with the first 128 entries.
#[track_caller]
fn check_kept(name: &str, code: i32, hold: bool) {
    let (_gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 1, 1 << 20);
    let batch = reads(&handle, 300);
    cufile.fail(name, "1+", code);
    if hold {
        cufile.hold();
    }
    let freed = cuda.calls("cuMemFree_v2");
    let pending = batch.submit();
    let told = pending.wait_some(128, Duration::from_secs(60));
    assert!(told.len() >= 128);
    cufile.release();
    let mut kept = 0;
    for (number, entry) in pending.finish().into_iter().enumerate() {
        match entry.outcome {
            Ok(count) => {
                let read = bytes(&entry.buffer.unwrap());
                assert_same(&read, &pattern(1, offset(number), count));
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains(name) && text.contains("is kept"), "{text}");
                assert!(entry.buffer.is_none());
                kept += 1;
            }
        }
    }
    // What came after the failure went by single calls.
    assert_eq!((kept, cufile.calls("cuFileRead")), (128, 300 - 128));
    assert_eq!(cuda.calls("cuMemFree_v2") - freed, 300 - 128);
    drop(handle);
    // The batch and the file stay, for the same reason.
    let names = ["cuFileBatchIODestroy", "cuFileHandleDeregister"];
    assert_eq!(names.map(|name| cufile.calls(name)), [0, 0]);
    assert_eq!((cufile.batches(), cufile.files()), (1, 1));
    assert_eq!((cufile.faults(), cuda.faults()), (Vec::new(), Vec::new()));
}

#[test]
fn memory_of_which_nobody_knows_whether_cufile_took_it_is_kept_for_ever() {
    check_kept("cuFileBatchIOSubmit", 5040, false);
}

#[test]
fn memory_of_entries_that_cufile_says_nothing_of_is_kept_for_ever() {
    check_kept("cuFileBatchIOGetStatus", 5041, true);
}
