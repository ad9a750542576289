//! Many small pieces in one call: in any order, overlapping in the file, neighbours on the device.

use kvik::{
    ByteSize, Config, DeviceBuffer, ErrorKind, FileHandle, Layer, ReadOptions, ReadPiece,
    WritePiece,
};
use kvik_tests::gpu::{Kind, Memory};
use kvik_tests::need;
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, file, pattern};

const LEN: usize = 1_000_000;

/// Offset and length of each piece, as a shuffled index has them.
fn pieces(count: u64, most: u64) -> Vec<(u64, usize)> {
    (0..count)
        .map(|at| {
            let mixed = at.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(17);
            (mixed % LEN as u64, (mixed >> 40) as usize % most as usize)
        })
        .collect()
}

/// Reads `pieces` to places that are `gap` bytes apart, and looks at all of the memory.
#[track_caller]
fn read(handle: &FileHandle, options: &ReadOptions, pieces: &[(u64, usize)], gap: usize) {
    let gpu = need::gpu();
    let truth = pattern(1, 0, LEN);
    let mut end = 0;
    let place = |(_, len): &(u64, usize)| {
        let start = end + gap;
        end = start + len;
        start..end
    };
    let places: Vec<_> = pieces.iter().map(place).collect();
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, end + 100);
    memory.set(UNTOUCHED);
    let mut asked: Vec<_> = pieces
        .iter()
        .zip(memory.targets(&places))
        .map(|(piece, target)| ReadPiece::new(piece.0, target))
        .collect();
    let counts = handle.read_ranges_with(&mut asked, options).unwrap();
    let bytes = memory.bytes();
    let mut untouched = 0;
    for ((&(offset, len), place), count) in pieces.iter().zip(&places).zip(counts) {
        let expected = &truth[offset as usize..LEN.min(offset as usize + len)];
        assert_eq!(count, expected.len());
        assert_all(&bytes[untouched..place.start], UNTOUCHED);
        untouched = place.start + count;
        assert_same(&bytes[place.start..untouched], expected);
    }
    assert_all(&bytes[untouched..], UNTOUCHED);
}

#[test]
fn thousands_of_small_pieces_in_any_order_land_where_they_belong() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    for (slab, threads, task) in [(4 << 20, 1, 4 << 20), (65_536, 3, 10_000), (4096, 8, 1000)] {
        let settings = Layer::new().bounce_buffer_size(ByteSize::new(slab));
        let config = Config::resolve([settings]).unwrap();
        let handle = FileHandle::options()
            .read(true)
            .open_with(&path, &config)
            .unwrap();
        let options = ReadOptions::new()
            .num_threads(threads)
            .task_size(ByteSize::new(task));
        read(&handle, &options, &pieces(3000, 700), 0);
        read(&handle, &options, &pieces(700, 9000), 5);
        read(&handle, &options, &[(0, 0), (5, 0)], 1);
        read(&handle, &options, &[], 0);
        // The same piece of the file many times.
        read(&handle, &options, &[(4095, 2); 500], 0);
    }
}

#[test]
fn thousands_of_small_pieces_are_written_where_they_belong() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "there", 2, LEN);
    for (slab, threads) in [(4 << 20, 1), (8192, 3)] {
        let settings = Layer::new()
            .num_threads(threads)
            .bounce_buffer_size(ByteSize::new(slab));
        let config = Config::resolve([settings]).unwrap();
        let handle = FileHandle::options()
            .read(true)
            .write(true)
            .open_with(&path, &config)
            .unwrap();
        let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
        memory.put(0, &pattern(3, 0, LEN));
        let mut expected = std::fs::read(&path).unwrap();
        let mut asked = Vec::new();
        // Each thousandth byte begins a piece, backwards; the bytes come from the other end.
        for at in (0..1000).rev() {
            let (offset, len) = (at * 1000, (at * 31 % 900) + 1);
            let from = LEN - offset - len;
            asked.push(WritePiece::new(
                offset as u64,
                memory.source(from..from + len),
            ));
            expected[offset..offset + len].copy_from_slice(&pattern(3, from as u64, len));
        }
        let sum: usize = (0..1000).map(|at| (at * 31 % 900) + 1).sum();
        assert_eq!(handle.write_ranges(&asked).unwrap(), sum);
        assert_same(&std::fs::read(&path).unwrap(), &expected);
        let two = [
            WritePiece::new(5, memory.source(0..10)),
            WritePiece::new(14, memory.source(20..30)),
        ];
        let error = handle.write_ranges(&two).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        assert_same(&std::fs::read(&path).unwrap(), &expected);
    }
}

#[test]
fn pieces_of_host_and_device_in_one_call_are_misuse_but_empty_ones_are_nowhere() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 100);
    let handle = FileHandle::open(&path).unwrap();
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, 50);
    memory.set(UNTOUCHED);
    let (mut host, mut none) = ([UNTOUCHED; 50], []);
    let mut both = [
        ReadPiece::new(0, memory.target(0..50)),
        ReadPiece::new(50, &mut host),
    ];
    let error = handle.read_ranges(&mut both).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    assert_all(&host, UNTOUCHED);
    assert_all(&memory.bytes(), UNTOUCHED);
    let mut empty = DeviceBuffer::new(0, 0).unwrap();
    let mut pieces = [
        ReadPiece::new(0, &mut none),
        ReadPiece::new(9, memory.target(0..50)),
        ReadPiece::new(0, &mut empty),
    ];
    assert_eq!(handle.read_ranges(&mut pieces).unwrap(), [0, 50, 0]);
    assert_same(&memory.bytes(), &pattern(1, 9, 50));
    let mut pieces = [ReadPiece::new(0, &mut empty), ReadPiece::new(9, &mut host)];
    assert_eq!(handle.read_ranges(&mut pieces).unwrap(), [0, 50]);
    assert_same(&host, &pattern(1, 9, 50));
}

/// A real driver gives out small allocations side by side, and copies nothing across the end of one.
#[test]
fn pieces_that_are_allocations_of_their_own_side_by_side_are_read_and_written() {
    let _gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 64 * 512);
    let mut buffers: Vec<_> = (0..64)
        .map(|_| DeviceBuffer::new(0, 512).unwrap())
        .collect();
    buffers.sort_unstable_by_key(DeviceBuffer::address);
    let pieces = (0..).step_by(512).zip(&mut buffers);
    let mut pieces: Vec<_> = pieces.map(|(at, to)| ReadPiece::new(at, to)).collect();
    let read = FileHandle::open(&path).unwrap().read_ranges(&mut pieces);
    assert_eq!(read.unwrap(), [512; 64]);
    let pieces = (0..).step_by(512).zip(&buffers);
    let pieces: Vec<_> = pieces.map(|(at, from)| WritePiece::new(at, from)).collect();
    let copy = folder.path().join("copy");
    let written = FileHandle::create(&copy).unwrap().write_ranges(&pieces);
    assert_eq!(written.unwrap(), 64 * 512);
    assert_same(&std::fs::read(&copy).unwrap(), &pattern(1, 0, 64 * 512));
}
