//! Failures that users of other tools reported in public, with memory of a device. The comment of each test says where, by
//! repository and issue; the first letters of its name only number the case.

use std::path::Path;

use kvik::{
    ByteSize, Config, DeviceBuffer, DirectIo, FileHandle, Layer, ReadOptions, free_pinned_memory,
    pinned_memory,
};
use kvik_tests::gpu::{Kind, Memory};
use kvik_tests::need;
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, file, pattern};

/// llnl/UnifyFS#185, ned14/llfio#29, KvikIO: one tool hangs, one fails, one is short.
#[test]
fn l1_a_read_across_or_past_the_end_is_short_on_a_device_by_every_way_to_read() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "ten thousand", 1, 10_000);
    let truth = pattern(1, 0, 10_000);
    for (offset, size, count) in [
        (9_000, 4_096, 1_000),
        (10_000, 1, 0),
        (20_000, 1, 0),
        (0, 0, 0),
        (0, 20_000, 10_000),
    ] {
        for threads in [1, 3, 8] {
            for slab in [4096, 4 << 20] {
                let settings = Layer::new()
                    .num_threads(threads)
                    .bounce_buffer_size(ByteSize::new(slab));
                let config = Config::resolve([settings]).unwrap();
                let handle = FileHandle::options()
                    .read(true)
                    .open_with(&path, &config)
                    .unwrap();
                let landed = |bytes: &[u8]| {
                    assert_same(&bytes[..count], &truth[offset.min(10_000)..][..count]);
                    assert_all(&bytes[count..], UNTOUCHED);
                };
                let mut memory = Memory::new(&gpu, 0, Kind::Plain, size + 7);
                memory.set(UNTOUCHED);
                let read = handle.read_at(memory.target(0..size), offset as u64);
                assert_eq!(read.unwrap(), count);
                landed(&memory.bytes());
                let options = ReadOptions::new().task_size(ByteSize::new(1_000));
                memory.set(UNTOUCHED);
                let read = handle.read_at_with(memory.target(0..size), offset as u64, &options);
                assert_eq!(read.unwrap(), count);
                landed(&memory.bytes());
                let mut buffer = DeviceBuffer::new(0, size).unwrap();
                buffer.fill(UNTOUCHED).unwrap();
                let (outcome, buffer) = handle.submit_read(buffer, offset as u64).finish();
                assert_eq!(outcome.unwrap(), count);
                let mut bytes = vec![0; size];
                buffer.copy_to_host(&mut bytes).unwrap();
                landed(&bytes);
            }
        }
    }
}

/// DeepSpeed#1070: the last part that is not a multiple of the block is silently not written.
#[test]
fn d1_direct_writes_from_a_device_are_exact_and_leave_their_neighbours_alone() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let direct = Layer::new()
        .direct_read(DirectIo::Always)
        .direct_write(DirectIo::Always);
    let config = Config::resolve([direct]).unwrap();
    let open = |path: &Path| {
        let options = FileHandle::options();
        let options = options.read(true).write(true).create(true);
        options.open_with(path, &config).unwrap()
    };
    for len in [1, 511, 4095, 4097, 50_000_003] {
        for offset in [0, 3] {
            let path = folder.path().join("new");
            let handle = open(&path);
            let truth = pattern(1, offset, len);
            let mut memory = Memory::new(&gpu, 0, Kind::Plain, len + 1);
            // At an odd address.
            memory.put(1, &truth);
            let written = handle.write_at(memory.source(1..1 + len), offset);
            assert_eq!(written.unwrap(), len);
            assert_eq!(handle.len().unwrap(), offset + len as u64);
            drop(handle);
            let stored = std::fs::read(&path).unwrap();
            assert_all(&stored[..offset as usize], 0);
            assert_same(&stored[offset as usize..], &truth);

            // A shorter range inside what is there now.
            let (inner, at) = (len / 2, offset + len as u64 / 4);
            let handle = open(&path);
            let changed = pattern(2, at, inner);
            memory.put(0, &changed);
            handle.write_all_at(memory.source(0..inner), at).unwrap();
            let mut expected = stored;
            expected[at as usize..][..inner].copy_from_slice(&changed);
            assert_same(&std::fs::read(&path).unwrap(), &expected);
            // And by the same way back.
            let mut memory = Memory::new(&gpu, 0, Kind::Plain, expected.len() + 2);
            memory.set(UNTOUCHED);
            let count = handle.read_at(memory.target(1..1 + expected.len()), 0);
            assert_eq!(count.unwrap(), expected.len());
            let bytes = memory.bytes();
            assert_same(&bytes[1..=expected.len()], &expected);
            assert_eq!(
                (bytes[0], bytes[expected.len() + 1]),
                (UNTOUCHED, UNTOUCHED)
            );
            drop(handle);
            std::fs::remove_file(&path).unwrap();
        }
    }
}

/// fastsafetensors#28, ai-dynamo/nixl#2146: a buffer that cannot be registered ends the load; a batch larger than the staging
/// memory waits for ever. Through slabs nothing is registered but these.
#[test]
fn g3_many_reads_larger_than_the_staging_memory_end_and_parts_of_a_buffer_need_no_registration() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 3 << 20);
    let truth = pattern(1, 0, 3 << 20);
    let settings = Layer::new()
        .num_threads(8)
        .task_size(ByteSize::kib(64))
        .bounce_buffer_size(ByteSize::kib(8));
    let config = Config::resolve([settings]).unwrap();
    let handle = FileHandle::options()
        .read(true)
        .open_with(&path, &config)
        .unwrap();
    let pending: Vec<_> = (0..200)
        .map(|at| {
            let buffer = DeviceBuffer::new(0, 40_001).unwrap();
            handle.submit_read(buffer, at * 15_000)
        })
        .collect();
    for (at, pending) in pending.into_iter().enumerate().rev() {
        let (outcome, buffer) = pending.finish();
        assert_eq!(outcome.unwrap(), 40_001);
        let mut bytes = vec![0; 40_001];
        buffer.copy_to_host(&mut bytes).unwrap();
        assert_same(&bytes, &truth[at * 15_000..][..40_001]);
    }
    // The whole buffer, a part of it, the same part again.
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, 3 << 20);
    for part in [0..3 << 20, 5_000..2 << 20, 5_000..2 << 20] {
        memory.set(UNTOUCHED);
        handle
            .read_exact_at(memory.target(part.clone()), part.start as u64)
            .unwrap();
        let bytes = memory.bytes();
        assert_same(&bytes[part.clone()], &truth[part.clone()]);
        assert_all(&bytes[..part.start], UNTOUCHED);
        assert_all(&bytes[part.end..], UNTOUCHED);
    }
    assert_eq!(pinned_memory().lent, 0);
    free_pinned_memory();
    assert_eq!(pinned_memory().kept, 0);
}

/// kvikio#437, cudf#21094, kvikio#818: a write to a file starts before the work that fills the buffer has ended.
#[test]
fn g2_a_write_waits_for_the_work_that_fills_its_buffer_on_the_default_stream_or_on_the_one_named() {
    use kvik_tests::gpu::Stream;
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    for (turn, named) in [(1, false), (2, true)] {
        let stream = match named {
            true => Stream::new(&gpu, 0),
            false => Stream::default_of(&gpu, 0),
        };
        let memory = Memory::new(&gpu, 0, Kind::Plain, 100_000);
        let handle = FileHandle::create(folder.path().join("out")).unwrap();
        let held = stream.hold_before(&memory, turn);
        let source = match named {
            true => memory.source(0..100_000).behind(stream.raw()),
            false => memory.source(0..100_000),
        };
        std::thread::scope(|scope| {
            let write = scope.spawn(|| handle.write_at(source, 0));
            // It has time to go wrong, and none to end.
            std::thread::sleep(std::time::Duration::from_millis(30));
            assert!(!write.is_finished(), "the stream is held");
            drop(held);
            assert_eq!(write.join().unwrap().unwrap(), 100_000);
        });
        assert_all(&std::fs::read(folder.path().join("out")).unwrap(), turn);
    }
}
