//! Every kind of memory, at every address, in pieces around the sizes where something changes.

use std::sync::{Arc, Mutex};

use kvik::{
    ByteSize, Config, ErrorKind, FileHandle, Layer, ReadOptions, WritePiece, free_pinned_memory,
    pinned_memory, stats,
};
use kvik_tests::gpu::{Kind, Memory, current};
use kvik_tests::need;
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, file, pattern};

#[test]
fn reads_and_writes_around_the_size_of_a_slab_are_exact_at_every_alignment() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    const LEN: usize = 300_000;
    let path = file(folder.path(), "source", 1, LEN);
    let truth = pattern(1, 0, LEN);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN + 100);
    // At once where that is possible, and in tasks.
    for (slab, inline) in [(4096_usize, 0), (8192, 0), (65_536, 0), (65_536, 1 << 20)] {
        let settings = Layer::new()
            .num_threads(2)
            .inline_size(ByteSize::new(inline))
            .bounce_buffer_size(ByteSize::new(slab as u64));
        let config = Config::resolve([settings]).unwrap();
        let options = FileHandle::options();
        let options = options.read(true).write(true).create(true);
        let handle = options.open_with(&path, &config).unwrap();
        let copy = folder.path().join("copy");
        let written = options.open_with(&copy, &config).unwrap();
        for len in [
            1,
            4095,
            slab - 4095,
            slab - 1,
            slab,
            slab + 1,
            2 * slab,
            2 * slab + 4097,
        ] {
            for (offset, at) in [(0, 0), (1, 0), (4095, 1), (5000, 64), (LEN - len, 99)] {
                memory.set(UNTOUCHED);
                let count = handle.read_at(memory.target(at..at + len), offset as u64);
                let expected = &truth[offset..LEN.min(offset + len)];
                assert_eq!(count.unwrap(), expected.len());
                let bytes = memory.bytes();
                assert_all(&bytes[..at], UNTOUCHED);
                assert_same(&bytes[at..at + expected.len()], expected);
                assert_all(&bytes[at + expected.len()..], UNTOUCHED);
                // And out again, elsewhere.
                let source = memory.source(at..at + expected.len());
                written.write_all_at(source, offset as u64 + 3).unwrap();
                let stored = std::fs::read(&copy).unwrap();
                assert_same(&stored[offset + 3..][..expected.len()], expected);
                written.set_len(0).unwrap();
            }
        }
    }
}

#[test]
fn every_kind_of_memory_is_read_into_and_written_from() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 500_000);
    let truth = pattern(1, 0, 500_000);
    let handle = FileHandle::open(&path).unwrap();
    for kind in Kind::ALL {
        let mut memory = Memory::new(&gpu, 0, kind, 500_100);
        memory.set(UNTOUCHED);
        let target = memory.target(77..500_100);
        assert_eq!(target.is_on_device(), kind != Kind::Pinned, "{kind:?}");
        assert_eq!(handle.read_at(target, 0).unwrap(), 500_000);
        let bytes = memory.bytes();
        assert_all(&bytes[..77], UNTOUCHED);
        assert_same(&bytes[77..500_077], &truth);
        assert_all(&bytes[500_077..], UNTOUCHED);
        let copy = folder.path().join("copy");
        let written = FileHandle::create(&copy).unwrap();
        written.write_all_at(memory.source(78..500_077), 1).unwrap();
        assert_same(&std::fs::read(&copy).unwrap()[1..], &truth[1..]);
    }
}

#[test]
fn an_address_with_too_many_bytes_is_misuse_before_anything_moves() {
    let gpu = need::gpu();
    // Memory of a pool ends where it was said to end; other memory may lie in a larger piece of the driver's.
    let mut memory = Memory::new(&gpu, 0, Kind::Pool, 3000);
    assert_eq!(memory.claim(0, 3000).unwrap().len(), 3000);
    assert_eq!(memory.claim(2999, 1).unwrap().len(), 1);
    for (at, len) in [(0, 3001), (1, 3000), (2999, 2)] {
        let error = memory.claim(at, len).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        let left = format!(
            "of which {} belong to its allocation on device 0",
            3000 - at
        );
        assert!(error.to_string().contains(&left), "{error}");
    }
    let mut plain = Memory::new(&gpu, 0, Kind::Plain, 3000);
    let error = plain.claim(0, 1 << 40).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
}

#[test]
fn pinned_memory_is_all_given_back_on_request_and_the_current_context_is_as_it_was() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 20 << 20);
    let before = current();
    let handle = FileHandle::open(&path).unwrap();
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, 20 << 20);
    let options = ReadOptions::new()
        .num_threads(8)
        .task_size(ByteSize::mib(1));
    let read = handle.read_at_with(memory.target(0..20 << 20), 0, &options);
    assert_eq!(read.unwrap(), 20 << 20);
    assert_same(&memory.bytes(), &pattern(1, 0, 20 << 20));
    let pinned = pinned_memory();
    assert_eq!(pinned.lent, 0);
    assert!(pinned.kept > 0, "slabs are kept for the next transfer");
    assert_eq!(free_pinned_memory(), pinned.kept);
    assert_eq!((pinned_memory().kept, free_pinned_memory()), (0, 0));
    assert_eq!(current(), before);
    // And it goes on working.
    handle
        .read_exact_at(memory.target(1..1_000_001), 7)
        .unwrap();
    assert_same(&memory.bytes()[1..1_000_001], &pattern(1, 7, 1_000_000));
    assert_eq!(current(), before);
}

#[test]
fn what_moves_to_and_from_a_device_is_counted_as_such() {
    struct Seen(Mutex<Vec<(stats::Memory, u64, bool)>>);
    impl stats::Listener for Seen {
        fn started(&self, _: &stats::Operation) {}

        fn finished(&self, operation: &stats::Operation, outcome: &stats::Outcome) {
            let seen = (operation.memory, outcome.bytes, outcome.ok);
            self.0.lock().unwrap().push(seen);
        }
    }
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 5000);
    let handle = FileHandle::options()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, 8000);
    let seen = Arc::new(Seen(Mutex::default()));
    let listening = stats::listen(Arc::clone(&seen) as Arc<dyn stats::Listener>);
    handle.read_at(memory.target(0..8000), 0).unwrap();
    handle.write_at(memory.source(0..3000), 0).unwrap();
    handle.read_at(&mut [0; 10], 0).unwrap();
    drop(listening);
    let seen = seen.0.lock().unwrap();
    assert_eq!(
        seen[..],
        [
            (stats::Memory::Device, 5000, true),
            (stats::Memory::Device, 3000, true),
            (stats::Memory::Host, 10, true)
        ]
    );
}

#[test]
fn writes_of_a_device_that_append_go_behind_what_was_there() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "there", 1, 777);
    let handle = FileHandle::options().append(true).open(&path).unwrap();
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, 10_000);
    memory.put(0, &pattern(2, 0, 10_000));
    handle.write_all_at(memory.source(0..6000), 0).unwrap();
    let rest = [WritePiece::new(6000, memory.source(6000..10_000))];
    assert_eq!(handle.write_ranges(&rest).unwrap(), 4000);
    let expected = [pattern(1, 0, 777), pattern(2, 0, 10_000)].concat();
    assert_same(&std::fs::read(&path).unwrap(), &expected);
}
