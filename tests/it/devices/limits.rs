//! Drivers that lack calls, and how many calls they are asked for.

use kvik::{ByteSize, DeviceBuffer, ReadOptions, ReadPiece, WritePiece};
use kvik_tests::fake::FakeCuda;
use kvik_tests::gpu::{Gpu, Kind, Memory};
use kvik_tests::pattern::{UNTOUCHED, assert_same, file, pattern};

use super::{assert_at_rest, open, start};

/// Reads 3000 pieces of 100 bytes by one thread; returns how many copies and how many batches of copies that took.
fn read_pieces(gpu: &Gpu, fake: &FakeCuda, gap: usize) -> [usize; 2] {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 1 << 20);
    let handle = open(&path, 1, 4 << 20, 16 << 20);
    let mut memory = Memory::new(gpu, 0, Kind::Plain, 3000 * (100 + gap));
    let places: Vec<_> = (0..3000)
        .map(|at| at * (100 + gap)..at * (100 + gap) + 100)
        .collect();
    let offset = |at: usize| (at * 7919 % (1 << 20) - 100) as u64;
    let offset = |at: usize| offset(at + 1);
    let mut pieces: Vec<_> = memory
        .targets(&places)
        .into_iter()
        .enumerate()
        .map(|(at, target)| ReadPiece::new(offset(at), target))
        .collect();
    let batches = || fake.calls("cuMemcpyBatchAsync") + fake.calls("cuMemcpyBatchAsync_v2");
    let before = [fake.calls("cuMemcpyHtoDAsync_v2"), batches()];
    assert_eq!(handle.read_ranges(&mut pieces).unwrap(), vec![100; 3000]);
    let after = [fake.calls("cuMemcpyHtoDAsync_v2"), batches()];
    drop(pieces);
    let bytes = memory.bytes();
    for (at, place) in places.into_iter().enumerate() {
        assert_same(&bytes[place], &pattern(1, offset(at), 100));
    }
    [after[0] - before[0], after[1] - before[1]]
}

#[test]
fn small_pieces_are_gathered_and_their_copies_submitted_together() {
    let (gpu, fake) = start();
    assert_eq!(read_pieces(&gpu, &fake, 3), [0, 3000_usize.div_ceil(256)]);
    assert_at_rest(&fake);
}

#[test]
fn a_driver_without_batches_copies_each_piece_by_itself() {
    let (gpu, fake) = start();
    fake.set_version(12_070);
    assert_eq!(read_pieces(&gpu, &fake, 3), [3000, 0]);
    assert_at_rest(&fake);
}

#[test]
fn a_driver_with_the_first_form_of_batches_is_served() {
    let (gpu, fake) = start();
    fake.set_version(12_080);
    assert_eq!(read_pieces(&gpu, &fake, 3), [0, 3000_usize.div_ceil(256)]);
    assert_at_rest(&fake);
}

#[test]
fn tasks_that_follow_each_other_on_the_device_and_in_the_slab_are_one_copy() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 1 << 20);
    let handle = open(&path, 1, 4096, 16 << 20);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, 1 << 20);
    let options = ReadOptions::new().task_size(ByteSize::new(4096));
    let read = handle.read_at_with(memory.target(0..1 << 20), 0, &options);
    assert_eq!(read.unwrap(), 1 << 20);
    assert_same(&memory.bytes(), &pattern(1, 0, 1 << 20));
    assert_eq!(fake.calls("cuMemcpyHtoDAsync_v2"), 1);
    assert_at_rest(&fake);
}

#[test]
fn reads_of_nothing_and_past_the_end_copy_nothing() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 1000);
    let handle = open(&path, 2, 4096, 8192);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, 1000);
    for (len, offset) in [(0, 0), (1000, 1000), (1000, u64::MAX), (0, u64::MAX)] {
        assert_eq!(handle.read_at(memory.target(0..len), offset).unwrap(), 0);
    }
    let mut empty = kvik::DeviceBuffer::new(0, 0).unwrap();
    assert_eq!(handle.read_at(&mut empty, 5).unwrap(), 0);
    assert_eq!(handle.write_at(&empty, 5).unwrap(), 0);
    assert_eq!(handle.submit_read(empty, 5).wait().unwrap(), 0);
    assert_eq!(fake.calls("cuMemcpyHtoDAsync_v2"), 0);
    assert_at_rest(&fake);
}

/// Real drivers give out small allocations one right behind the other, and take no copy across the end of one.
#[test]
fn pieces_of_neighbouring_allocations_are_copied_one_by_one() {
    let (_gpu, fake) = start();
    fake.set_dense();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 8 * 4096);
    let handle = open(&path, 1, 4 << 20, 16 << 20);
    let mut buffers = [(); 8].map(|()| DeviceBuffer::new(0, 4096).unwrap());
    let address = |at: usize, buffers: &[DeviceBuffer; 8]| buffers[at].address();
    assert_eq!(address(1, &buffers), address(0, &buffers) + 4096);
    buffers
        .iter_mut()
        .for_each(|buffer| buffer.fill(UNTOUCHED).unwrap());
    let pieces = (0..).step_by(4096).zip(&mut buffers);
    let mut pieces: Vec<_> = pieces.map(|(at, to)| ReadPiece::new(at, to)).collect();
    assert_eq!(handle.read_ranges(&mut pieces).unwrap(), [4096; 8]);
    let mut bytes = [[0; 4096]; 8];
    for (buffer, bytes) in buffers.iter().zip(&mut bytes) {
        buffer.copy_to_host(bytes).unwrap();
    }
    assert_same(bytes.as_flattened(), &pattern(1, 0, 8 * 4096));
    let pieces = (0..).step_by(4096).zip(&buffers);
    let pieces: Vec<_> = pieces.map(|(at, from)| WritePiece::new(at, from)).collect();
    let copy = open(&folder.path().join("copy"), 1, 4 << 20, 16 << 20);
    assert_eq!(copy.write_ranges(&pieces).unwrap(), 8 * 4096);
    let stored = std::fs::read(folder.path().join("copy")).unwrap();
    assert_same(&stored, bytes.as_flattened());
    assert_at_rest(&fake);
}

/// A worker that gets no pinned memory leaves its share to the others.
#[test]
fn a_read_goes_on_with_the_workers_for_whom_memory_can_be_pinned() {
    let (gpu, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 1 << 20);
    let handle = open(&path, 8, 4096, 16_384);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, 1 << 20);
    for most in 2..6 {
        kvik::free_pinned_memory();
        memory.set(UNTOUCHED);
        fake.fail("cuMemHostRegister_v2", &format!("{most}+"), 2);
        handle.read_exact_at(memory.target(0..1 << 20), 0).unwrap();
        fake.succeed();
        assert_same(&memory.bytes(), &pattern(1, 0, 1 << 20));
    }
    assert_at_rest(&fake);
}
