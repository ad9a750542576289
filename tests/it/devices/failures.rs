//! Whichever call of the driver fails: the right bytes or an error, of which the counted bytes are there; nothing is left
//! behind, and nobody writes to the target afterwards.

use std::path::Path;
use std::time::Duration;

use kvik::{DeviceBuffer, ErrorKind, FileHandle, Layer, Op, ReadPiece, Result, WritePiece};
use kvik_tests::fake::FakeCuda;
use kvik_tests::gpu::{Gpu, Kind, Memory, OwnContext, current};
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, file, pattern};

use super::{assert_at_rest, open, open_with, start};

const LEN: usize = 40_000;

/// Does `work` again and again, each time with another call of the driver failing, until it makes no more calls than that.
/// Before each time no memory is pinned.
///
/// There are `least` calls on any day: how many more, hangs on which of the workers does what, and on what is done already when it is
/// asked for.
#[track_caller]
fn whichever_call_fails(
    fake: &FakeCuda,
    least: usize,
    mut work: impl FnMut() -> Result<()>,
    mut look: impl FnMut(&str, Result<()>),
) {
    for nth in 1.. {
        kvik::free_pinned_memory();
        fake.start_log();
        fake.fail("*", &nth.to_string(), 999);
        let outcome = work();
        fake.succeed();
        let log = fake.log();
        let Some(failed) = log
            .get(nth - 1)
            .and_then(|line| line.split(' ').next_back())
        else {
            outcome.unwrap();
            assert!(nth > least, "{nth} calls are fewer than there must be");
            return;
        };
        if failed == "cuCtxPopCurrent_v2" && current().is_some() {
            fake.call("cuCtxPopCurrent_v2", [0]);
        }
        if let Err(error) = &outcome {
            assert_eq!(error.kind(), ErrorKind::Device, "{failed}: {error}");
            assert!(
                matches!(error.op(), Op::Inspect | Op::Read | Op::Write),
                "{failed}: {error}"
            );
            let text = error.to_string();
            assert!(
                text.contains("CUDA_ERROR_UNKNOWN (999)"),
                "{failed}: {text}"
            );
        }
        assert_eq!(current(), None, "{failed}");
        assert_eq!(kvik::pinned_memory().lent, 0, "{failed}");
        assert_eq!(fake.faults(), Vec::<String>::new(), "{failed}");
        look(failed, outcome);
    }
}

/// What a read of the file from its start has left in `memory`, and that nobody goes on writing to it.
#[track_caller]
fn look(memory: &mut Memory, at: usize, done: usize, failed: &str) {
    let bytes = memory.bytes();
    assert_all(&bytes[..at], UNTOUCHED);
    assert_eq!(
        bytes[at..at + done],
        pattern(1, 0, done),
        "{done} bytes after {failed}"
    );
    memory.set(UNTOUCHED);
    std::thread::sleep(Duration::from_millis(2));
    assert_all(&memory.bytes(), UNTOUCHED);
}

fn setup(folder: &Path) -> (Gpu, FakeCuda, std::path::PathBuf) {
    let (gpu, fake) = start();
    // Late enough to be noticed if somebody does not wait.
    fake.set_delay(Duration::from_micros(500));
    (gpu, fake, file(folder, "source", 1, LEN))
}

/// Reads by tasks of `task_size` through slabs of `slab` bytes.
fn reads(threads: usize, task_size: u64, slab: u64, least: usize) {
    reads_by(|path| open(path, threads, task_size, slab), threads, least);
}

fn reads_by(open: impl FnOnce(&Path) -> FileHandle, threads: usize, least: usize) {
    let folder = tempfile::tempdir().unwrap();
    let (gpu, fake, path) = setup(folder.path());
    let handle = open(&path);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN + 1);
    memory.set(UNTOUCHED);
    let memory = std::cell::RefCell::new(memory);
    let work = || {
        let mut memory = memory.borrow_mut();
        let target = memory.claim(1, LEN)?;
        handle.read_at(target, 0).map(drop)
    };
    whichever_call_fails(&fake, least, work, |failed, outcome| {
        let done = outcome.map_or_else(|error| error.done() as usize, |()| LEN);
        look(&mut memory.borrow_mut(), 1, done, failed);
    });
    assert!(fake.streams() <= 2 * threads + 1, "{}", fake.streams());
    assert!(fake.events() <= 4 * threads, "{}", fake.events());
    assert_at_rest(&fake);
}

#[test]
fn reads_of_small_tasks_that_share_a_slab() {
    reads(1, 1000, 65_536, 20);
}

#[test]
fn small_reads_at_once() {
    reads_by(|path| open_with(path, Layer::new()), 1, 8);
}

#[test]
fn small_writes_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (gpu, fake, path) = setup(folder.path());
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    memory.put(0, &pattern(2, 0, LEN));
    let handle = open_with(&path, Layer::new());
    let source = memory.source(0..LEN);
    let work = || handle.write_at(source, 0).map(drop);
    whichever_call_fails(&fake, 8, work, |failed, outcome| {
        let stored = std::fs::read(&path).unwrap();
        // A failure behind the write, as of leaving the context, is nobody's.
        let salt = if outcome.is_ok() { 2 } else { 1 };
        assert_eq!(stored, pattern(salt, 0, LEN), "{failed}");
        std::fs::write(&path, pattern(1, 0, LEN)).unwrap();
    });
    assert_at_rest(&fake);
}

#[test]
fn reads_of_tasks_as_large_as_a_slab() {
    reads(1, 16_384, 16_384, 30);
}

#[test]
fn reads_by_several_threads() {
    reads(3, 4096, 8192, 40);
}

#[test]
fn writes() {
    let folder = tempfile::tempdir().unwrap();
    let (gpu, fake, path) = setup(folder.path());
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    memory.put(0, &pattern(2, 0, LEN));
    for (threads, task_size, slab) in [(1, 1000, 65_536), (1, 16_384, 16_384), (3, 4096, 8192)] {
        let handle = open(&path, threads, task_size, slab);
        std::fs::write(&path, pattern(1, 0, LEN)).unwrap();
        let source = memory.source(0..LEN);
        let work = || handle.write_at(source, 0).map(drop);
        whichever_call_fails(&fake, 12, work, |failed, outcome| {
            let done = outcome.map_or_else(|error| error.done() as usize, |()| LEN);
            let stored = std::fs::read(&path).unwrap();
            let (old, new) = (pattern(1, 0, LEN), pattern(2, 0, LEN));
            assert_same(&stored[..done], &new[..done]);
            // Behind what counts as written, each byte is the old one or the new one, and never a third.
            let third = (0..LEN).find(|at| stored[*at] != old[*at] && stored[*at] != new[*at]);
            assert_eq!(third, None, "{failed}");
            std::fs::write(&path, old).unwrap();
        });
    }
    assert_at_rest(&fake);
}

#[test]
fn reads_and_writes_of_many_ranges() {
    let folder = tempfile::tempdir().unwrap();
    let (gpu, fake, path) = setup(folder.path());
    let handle = open(&path, 1, 4096, 8192);
    let copy = open(&folder.path().join("copy"), 1, 4096, 8192);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let places: Vec<_> = (0..40).map(|at| at * 1000..at * 1000 + 500).collect();
    let targets = memory.targets(&places);
    let pieces = places.iter().zip(targets).rev();
    let mut pieces: Vec<_> = pieces
        .map(|(place, target)| ReadPiece::new(place.start as u64, target))
        .collect();
    let work = || {
        let counts = handle.read_ranges(&mut pieces)?;
        assert_eq!(counts, [500; 40]);
        Ok(())
    };
    whichever_call_fails(&fake, 12, work, |_, _| {});
    let bytes = memory.bytes();
    for place in &places {
        assert_same(
            &bytes[place.clone()],
            &pattern(1, place.start as u64, place.len()),
        );
    }
    let sources: Vec<_> = places
        .iter()
        .map(|place| WritePiece::new(place.start as u64, memory.source(place.clone())))
        .collect();
    whichever_call_fails(
        &fake,
        12,
        || copy.write_ranges(&sources).map(drop),
        |_, _| {},
    );
    let stored = std::fs::read(folder.path().join("copy")).unwrap();
    for place in &places {
        assert_same(
            &stored[place.clone()],
            &pattern(1, place.start as u64, place.len()),
        );
    }
    assert_at_rest(&fake);
}

#[test]
fn reads_and_writes_in_the_background() {
    let folder = tempfile::tempdir().unwrap();
    let (_gpu, fake, path) = setup(folder.path());
    let handle = open(&path, 2, 4096, 16_384);
    let mut idle = Some(DeviceBuffer::new(0, LEN).unwrap());
    let work = || {
        let (read, buffer) = handle.submit_read(idle.take().unwrap(), 0).finish();
        let (written, buffer) = match read {
            Ok(_) => handle.submit_write(buffer, 0).finish(),
            Err(error) => (Err(error), buffer),
        };
        idle = Some(buffer);
        written.map(drop)
    };
    whichever_call_fails(&fake, 20, work, |failed, outcome| {
        let stored = std::fs::read(&path).unwrap();
        assert_eq!(stored, pattern(1, 0, LEN), "{failed}: {outcome:?}");
    });
    drop(idle);
    assert_at_rest(&fake);
}

/// A copy that fails on the device spoils its context: all that is left in it are errors, and other contexts go on, even
/// when that has happened to as many slabs as may be lent at once.
#[test]
fn what_fails_on_the_device_is_an_error_and_takes_no_staging_memory_from_others() {
    let folder = tempfile::tempdir().unwrap();
    let (gpu, fake, path) = setup(folder.path());
    let handle = open(&path, 8, 4096, 4096);
    for nth in 1..=24 {
        let mine = OwnContext::new(&gpu, 0);
        let mut buffer = mine.within(|| DeviceBuffer::on_current(LEN)).unwrap();
        fake.fail_late("cuMemcpyHtoDAsync_v2", &(nth % 7 + 1).to_string(), 700);
        let error = handle.read_at(&mut buffer, 0).unwrap_err();
        fake.succeed();
        assert_eq!(error.kind(), ErrorKind::Device, "{error}");
        let text = error.to_string();
        assert!(text.contains("CUDA_ERROR_ILLEGAL_ADDRESS (700)"), "{text}");
        let again = handle.read_at(&mut buffer, 0).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Device, "{again}");
        assert_eq!(kvik::pinned_memory().lent, 0, "after {nth}");
        drop(buffer);
        drop(mine);
        let mut other = Memory::new(&gpu, 0, Kind::Plain, LEN);
        handle.read_exact_at(other.target(0..LEN), 0).unwrap();
        assert_same(&other.bytes(), &pattern(1, 0, LEN));
    }
    assert_eq!(fake.faults(), Vec::<String>::new());
}

/// A file that fails half way, seen by its handle: bytes before that are on the device, and counted.
#[test]
fn a_file_that_shrinks_while_it_is_read_gives_the_bytes_that_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let (gpu, fake, path) = setup(folder.path());
    let handle: FileHandle = open(&path, 2, 1000, 8192);
    handle.set_len(12_345).unwrap();
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    memory.set(UNTOUCHED);
    assert_eq!(handle.read_at(memory.target(0..LEN), 0).unwrap(), 12_345);
    look(&mut memory, 0, 12_345, "the end");
    let error = handle
        .read_exact_at(memory.target(0..LEN), 300)
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.done()),
        (ErrorKind::UnexpectedEof, 12_045)
    );
    assert_at_rest(&fake);
}
