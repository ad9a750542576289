//! Reads and writes past the page cache. Elsewhere the last bytes that fill no block were silently not written.

mod neighbours;
mod refusals;

use std::path::Path;

use kvik::{
    Config, DirectIo, EngineKind, EnginePreference, FileHandle, Layer, ReadOptions, ReadPiece,
    Residency,
};
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, file, pattern};

use crate::cut;

const LEN: usize = 1_000_003;

/// On a disk: `/tmp` may be a tmpfs.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

#[track_caller]
fn direct(path: &Path) -> FileHandle {
    FileHandle::options()
        .read(true)
        .write(true)
        .create(true)
        .engine(EnginePreference::Only(EngineKind::Direct))
        .open(path)
        .unwrap()
}

/// `len` bytes that begin `skew` bytes behind a page.
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
}

impl Aligned {
    fn new(len: usize, skew: usize) -> Aligned {
        let bytes = vec![UNTOUCHED; len + skew + 2 * 4096];
        let start = bytes.as_ptr().align_offset(4096) + skew;
        Aligned { bytes, start }
    }

    fn holding(source: &[u8], skew: usize) -> Aligned {
        let mut aligned = Aligned::new(source.len(), skew);
        aligned.get(source.len()).copy_from_slice(source);
        aligned
    }

    fn get(&mut self, len: usize) -> &mut [u8] {
        &mut self.bytes[self.start..][..len]
    }

    #[track_caller]
    fn assert_untouched_around(&self, len: usize) {
        assert_all(&self.bytes[..self.start], UNTOUCHED);
        assert_all(&self.bytes[self.start + len..], UNTOUCHED);
    }
}

/// DeepSpeed#1070: the last part that is not a multiple of the block is silently not written.
#[test]
fn d1_direct_writes_of_any_length_are_exact_and_leave_their_neighbours_alone() {
    let folder = folder();
    for len in [1, 511, 4095, 4097, 50_000_003] {
        for offset in [0, 3] {
            for skew in [0, 1] {
                let path = folder.path().join("new");
                let handle = direct(&path);
                let truth = pattern(1, offset, len);
                let mut source = Aligned::holding(&truth, skew);
                assert_eq!(handle.write_at(&*source.get(len), offset).unwrap(), len);
                assert_eq!(handle.len().unwrap(), offset + len as u64);
                drop(handle);
                let stored = std::fs::read(&path).unwrap();
                assert_all(&stored[..offset as usize], 0);
                assert_same(&stored[offset as usize..], &truth);

                // A shorter range inside what is there now.
                let (inner, at) = (len / 2, offset + len as u64 / 4);
                let handle = direct(&path);
                let changed = pattern(2, at, inner);
                let mut source = Aligned::holding(&changed, skew);
                handle.write_all_at(&*source.get(inner), at).unwrap();
                let mut expected = stored;
                expected[at as usize..][..inner].copy_from_slice(&changed);
                assert_same(&std::fs::read(&path).unwrap(), &expected);
                // And by the same way back.
                let mut target = Aligned::new(expected.len(), skew);
                let count = handle.read_at(target.get(expected.len()), 0).unwrap();
                assert_eq!(count, expected.len());
                assert_same(target.get(count), &expected);
                target.assert_untouched_around(count);
                drop(handle);
                std::fs::remove_file(&path).unwrap();
            }
        }
    }
}

#[test]
fn direct_reads_agree_with_the_file_at_every_alignment_and_at_its_end() {
    let folder = folder();
    let len = 3 << 20 | 77;
    let path = file(folder.path(), "source", 1, len);
    let truth = pattern(1, 0, len);
    let handle = direct(&path);
    for (offset, size) in [
        (0, len),
        (0, len + 5000),
        (0, 3 << 20),
        (512, 1 << 20),
        (1, 2 << 20),
        (513, 700_000),
        (4096, 100),
        (len - 78, 200),
        (len - 77, 77),
        (len - 1, 1),
        (len, 10),
        (len + 511, 4096),
        (1 << 40, 4096),
    ] {
        for skew in [0, 512, 1, 16, offset % 4096] {
            for options in [ReadOptions::new(), cut(3, 65_536), cut(2, 4097)] {
                let mut target = Aligned::new(size, skew);
                let count = handle
                    .read_at_with(target.get(size), offset as u64, &options)
                    .unwrap();
                let expected =
                    &truth[offset.min(len)..(offset + size).min(len).max(offset.min(len))];
                assert_same(&target.get(size)[..count], expected);
                target.assert_untouched_around(count);
            }
        }
    }
    // Nothing of it came by the page cache.
    kvik::drop_file_page_cache(&path, 0, 0, true).unwrap();
    let mut target = Aligned::new(len, 16);
    handle.read_at(target.get(len), 1).unwrap();
    assert_eq!(handle.residency(0..len as u64), Residency::Cold);
}

/// KvikIO's switch: edges by the page cache.
#[test]
fn edges_are_buffered_where_reading_too_much_is_forbidden() {
    let folder = folder();
    let path = file(folder.path(), "source", 1, LEN);
    let layer = Layer::new().direct_read(DirectIo::Always);
    let config = Config::resolve([layer.auto_direct_io_read_overread(false)]).unwrap();
    let handle = FileHandle::options()
        .read(true)
        .open_with(&path, &config)
        .unwrap();
    assert!(
        handle.route().allows(EngineKind::Direct),
        "{}",
        handle.route()
    );
    for (offset, size) in [(0, LEN), (3, LEN), (700, 100), (4095, 2), (511, 600_000)] {
        for skew in [0, 1, offset % 4096] {
            let count = size.min(LEN - offset);
            let mut target = Aligned::new(size, skew);
            let outcome = handle.read_at(target.get(size), offset as u64);
            assert_eq!(outcome.unwrap(), count, "{size} from {offset}");
            assert_same(
                &target.get(size)[..count],
                &pattern(1, offset as u64, count),
            );
            target.assert_untouched_around(count);
        }
    }
}

/// Elsewhere a list of ranges was read one by one, each waiting for the one before.
#[test]
fn ranges_past_the_page_cache_are_requests_of_a_ring_that_are_in_flight_together() {
    let folder = folder();
    let path = file(folder.path(), "source", 1, LEN);
    kvik::drop_file_page_cache(&path, 0, 0, true).unwrap();
    let layer = Layer::new().direct_read(DirectIo::Always);
    let config = Config::resolve([layer]).unwrap();
    let by_settings = FileHandle::options().read(true).open_with(&path, &config);
    let one = ReadOptions::new().num_threads(1);
    for handle in [direct(&path), by_settings.unwrap()] {
        // In place, through a slot, and over the edges of blocks.
        for (skew, step) in [(0, 4096), (16, 4096), (0, 4099)] {
            let offset = |index: usize| (index * 101 % 240 * step) as u64;
            let mut target = Aligned::new(240 * 4096, skew);
            let pieces = target.get(240 * 4096).chunks_mut(4096).enumerate();
            let mut pieces: Vec<_> = pieces
                .map(|(index, piece)| ReadPiece::new(offset(index), piece))
                .collect();
            let before = own_reads();
            let counts = handle.read_ranges_with(&mut pieces, &one).unwrap();
            // Looking takes some.
            assert!(own_reads() - before < 10, "blocking calls");
            assert_eq!(counts, [4096; 240]);
            target.assert_untouched_around(240 * 4096);
            for (index, bytes) in target.get(240 * 4096).chunks(4096).enumerate() {
                assert_same(bytes, &pattern(1, offset(index), 4096));
            }
        }
        assert_eq!(handle.residency(0..LEN as u64), Residency::Cold);
    }
}

/// How many read calls this thread has made; what a ring does is none.
fn own_reads() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    let row = text.lines().find_map(|line| line.strip_prefix("syscr: "));
    row.unwrap().parse().unwrap()
}
