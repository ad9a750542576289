//! Which bytes move, and by whom.

use std::fs;
use std::sync::Barrier;
use std::thread;

use kvik::{ByteSize, DeviceBuffer, FileHandle, Layer, ReadPiece, ThreadPool, WritePiece};
use kvik_tests::gpu::{Kind, Memory};
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, file, pattern};

use super::{assert_at_rest, open, open_with, start};

const LEN: usize = 40_000;
/// Around the edges of bytes, sectors, pages and tasks.
const OFFSETS: [usize; 6] = [0, 1, 511, 4096, 8191, 12_289];
const LENGTHS: [usize; 6] = [1, 511, 4096, 4097, 8193, 20_000];

#[test]
fn reads_fill_their_target_and_nothing_else_at_every_alignment() {
    let (gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 3, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN + 64);
    for offset in OFFSETS {
        for len in LENGTHS {
            for at in [0, 1, 63] {
                memory.set(UNTOUCHED);
                handle
                    .read_exact_at(memory.target(at..at + len), offset as u64)
                    .unwrap();
                let bytes = memory.bytes();
                assert_all(&bytes[..at], UNTOUCHED);
                assert_same(&bytes[at..at + len], &pattern(1, offset as u64, len));
                assert_all(&bytes[at + len..], UNTOUCHED);
            }
        }
    }
    assert!(cufile.calls("cuFileRead") > OFFSETS.len() * LENGTHS.len() * 3);
    assert_eq!(cuda.calls("cuMemHostRegister_v2"), 0, "nothing was staged");
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn writes_change_their_range_and_nothing_else_at_every_alignment() {
    let (gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "target", 1, LEN);
    let handle = open(&path, 3, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    memory.put(0, &pattern(2, 0, LEN));
    let mut expected = pattern(1, 0, LEN);
    for (round, offset) in OFFSETS.into_iter().enumerate() {
        for len in LENGTHS {
            let source = memory.source(round..round + len);
            assert_eq!(handle.write_at(source, offset as u64).unwrap(), len);
            expected[offset..offset + len].copy_from_slice(&pattern(2, round as u64, len));
            assert_same(&fs::read(&path).unwrap(), &expected);
        }
    }
    assert!(cufile.calls("cuFileWrite") > OFFSETS.len() * LENGTHS.len());
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn a_read_past_the_end_returns_the_short_count() {
    let (gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, 10_000), 2, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    memory.set(UNTOUCHED);
    assert_eq!(handle.read_at(memory.target(0..LEN), 3).unwrap(), 9997);
    let bytes = memory.bytes();
    assert_same(&bytes[..9997], &pattern(1, 3, 9997));
    assert_all(&bytes[9997..], UNTOUCHED);
    assert_eq!(handle.read_at(memory.target(0..10), 10_000).unwrap(), 0);
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn counts_that_fall_short_are_continued() {
    let (gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = open(&path, 1, 8192);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    cufile.fall_short("cuFileRead", "*2");
    cufile.fall_short("cuFileWrite", "*2");
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    memory.put(0, &pattern(2, 0, LEN));
    assert_eq!(handle.write_at(memory.source(0..LEN), 0).unwrap(), LEN);
    assert_same(&fs::read(&path).unwrap(), &pattern(2, 0, LEN));
    assert!(cufile.calls("cuFileRead") > LEN.div_ceil(8192));
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn transfers_below_the_threshold_are_staged_and_do_not_use_cufile() {
    let (gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = open_with(&path, Layer::new().gds_threshold(ByteSize::new(10_000)));
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    handle.read_exact_at(memory.target(0..9999), 1).unwrap();
    assert_same(&memory.bytes()[..9999], &pattern(1, 1, 9999));
    handle.write_all_at(memory.source(0..9999), 1).unwrap();
    assert_eq!(
        (cufile.opened(), cufile.calls("cuFileHandleRegister")),
        (0, 0),
        "cuFile was not needed"
    );
    handle.read_exact_at(memory.target(0..10_000), 2).unwrap();
    assert_same(&memory.bytes()[..10_000], &pattern(1, 2, 10_000));
    assert_eq!(cufile.calls("cuFileRead"), 1);
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn many_threads_open_the_driver_once_and_register_a_file_once() {
    let (gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 2, 4096);
    let other = open(&file(folder.path(), "other", 2, LEN), 2, 4096);
    let begin = Barrier::new(8);
    thread::scope(|scope| {
        for number in 0..8_u64 {
            let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
            let (begin, salt) = (&begin, 1 + number % 2);
            let handle = if salt == 1 {
                handle.clone()
            } else {
                other.clone()
            };
            scope.spawn(move || {
                begin.wait();
                for _ in 0..10 {
                    memory.set(UNTOUCHED);
                    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
                    assert_same(&memory.bytes(), &pattern(salt, 0, LEN));
                }
            });
        }
    });
    assert_eq!(cufile.calls("cuFileDriverOpen"), 1);
    assert_eq!(
        (cufile.calls("cuFileHandleRegister"), cufile.files()),
        (2, 2)
    );
    drop((handle, other));
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn transfers_in_the_background_and_of_many_ranges_go_by_cufile_too() {
    let (gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = open(&path, 2, 4096);
    let buffer = DeviceBuffer::new(0, LEN).unwrap();
    let pending = handle.submit_read(buffer, 0);
    let clone = handle.clone();
    // The transfer has the file still.
    drop(handle);
    assert_eq!(pending.wait().unwrap(), LEN);
    let buffer = pending.into_buf();
    let pending = clone.submit_write(buffer, LEN as u64);
    assert_eq!(pending.wait().unwrap(), LEN);
    drop(pending);
    let twice = [pattern(1, 0, LEN), pattern(1, 0, LEN)].concat();
    assert_same(&fs::read(&path).unwrap(), &twice);

    let mut memory = Memory::new(&gpu, 0, Kind::Plain, 3000);
    let targets = memory.targets(&[0..1000, 1000..3000]);
    let offsets = [7_000, 100];
    let mut pieces: Vec<_> = offsets
        .into_iter()
        .zip(targets)
        .map(|(offset, target)| ReadPiece::new(offset, target))
        .collect();
    assert_eq!(clone.read_ranges(&mut pieces).unwrap(), [1000, 2000]);
    drop(pieces);
    assert_same(&memory.bytes()[..1000], &pattern(1, 7_000, 1000));
    assert_same(&memory.bytes()[1000..], &pattern(1, 100, 2000));
    let pieces = [WritePiece::new(20_000, memory.source(0..1000))];
    assert_eq!(clone.write_ranges(&pieces).unwrap(), 1000);
    assert_same(
        &fs::read(&path).unwrap()[20_000..21_000],
        &pattern(1, 7_000, 1000),
    );
    assert_eq!(cuda.calls("cuMemHostRegister_v2"), 0, "nothing was staged");
    drop(clone);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn memory_of_the_host_goes_its_old_way_and_nothing_of_nvidias_is_asked() {
    let (_gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle: FileHandle = open(&file(folder.path(), "source", 1, LEN), 2, 4096);
    let mut bytes = vec![0; LEN];
    handle.read_exact_at(&mut bytes, 0).unwrap();
    assert_same(&bytes, &pattern(1, 0, LEN));
    handle.write_all_at(&bytes, 5).unwrap();
    assert_eq!((cufile.calls("*"), cufile.opened()), (0, 0));
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn unsplit_transfers_are_one_call_of_cufile_on_the_calling_thread() {
    let (gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = open(&path, 4, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let len = LEN - 5;
    let count = handle.read_unsplit(memory.target(5..LEN), 3).unwrap();
    assert_eq!((count, cufile.calls("cuFileRead")), (len, 1));
    assert_same(&memory.bytes()[5..], &pattern(1, 3, len));
    let count = handle.write_unsplit(memory.source(5..LEN), 4099).unwrap();
    assert_eq!((count, cufile.calls("cuFileWrite")), (len, 1));
    assert_same(&fs::read(&path).unwrap()[4099..], &pattern(1, 3, len));
    // And the host's.
    let mut bytes = vec![0; len];
    assert_eq!(handle.read_unsplit(&mut bytes, 4099).unwrap(), len);
    assert_same(&bytes, &pattern(1, 3, len));
    assert_eq!(handle.write_unsplit(&bytes, 0).unwrap(), len);
    assert_same(&fs::read(&path).unwrap()[..len], &pattern(1, 3, len));
    assert_eq!(ThreadPool::global().threads(), 0, "no worker was needed");
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}
