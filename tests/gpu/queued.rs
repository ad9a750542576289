//! Many transfers on one stream, all queued before the first has begun: they share their pinned memory, and nothing else.

use std::sync::Barrier;
use std::thread;

use kvik::{FileHandle, pinned_memory};
use kvik_tests::gpu::{Kind, Memory, Stream};
use kvik_tests::need;
use kvik_tests::pattern::{assert_same, file, pattern};

const MIB: usize = 1 << 20;

#[test]
fn transfers_queued_on_one_stream_share_pinned_memory_and_each_moves_its_own_bytes() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let handle = FileHandle::open(file(folder.path(), "source", 1, 40 * MIB)).unwrap();
    let options = FileHandle::options().write(true).create(true);
    let copy = options.open(folder.path().join("copy")).unwrap();
    let stream = Stream::new(&gpu, 0);
    // Around the sizes at which pieces and slabs change, in turn.
    let lens = [20 * MIB, 3, 300_000, 4 * MIB + 1, 20 * MIB - 1, 9 * MIB];
    let starts = |number: usize| (number * 100_003) as u64;
    let mut memory: Vec<_> = (0..24)
        .map(|number| Memory::new(&gpu, 0, Kind::Plain, lens[number % 6]))
        .collect();
    let held = stream.hold();
    let mut pending = Vec::new();
    let mut at = 0;
    for (number, memory) in memory.iter_mut().enumerate() {
        let len = memory.len();
        let read = stream.read(&handle, memory, 0..len, starts(number));
        pending.push((read.unwrap(), len));
        let written = stream.write(&copy, memory, 0..len, at);
        pending.push((written.unwrap(), len));
        at += len as u64;
    }
    let lent = pinned_memory().lent;
    assert!(lent <= 256 << 20, "{lent} bytes are pinned for one stream");
    drop(held);
    for (pending, len) in &pending {
        assert_eq!(pending.check().unwrap(), *len);
    }
    let stored = std::fs::read(copy.path()).unwrap();
    let mut at = 0;
    for (number, memory) in memory.iter().enumerate() {
        let truth = pattern(1, starts(number), memory.len());
        assert_same(&memory.bytes(), &truth);
        assert_same(&stored[at..at + truth.len()], &truth);
        at += truth.len();
    }
    assert_eq!(pinned_memory().lent, 0);
}

#[test]
fn threads_that_queue_on_one_stream_at_the_same_time_get_their_own_bytes() {
    const LEN: usize = 5 * MIB;
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let handle = FileHandle::open(file(folder.path(), "source", 1, 8 * MIB)).unwrap();
    let stream = Stream::new(&gpu, 0);
    let together = Barrier::new(4);
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (gpu, handle, together) = (&gpu, &handle, &together);
            scope.spawn(move || {
                let mut memory = Memory::new(gpu, 0, Kind::Plain, 6 * LEN);
                together.wait();
                let mut reads = Vec::new();
                for turn in 0..6_u64 {
                    let at = turn as usize * LEN;
                    let offset = thread * 500_009 + turn * 101;
                    let read = stream.read(handle, &mut memory, at..at + LEN, offset);
                    reads.push((read.unwrap(), at, offset));
                }
                for (read, ..) in &reads {
                    assert_eq!(read.check().unwrap(), LEN);
                }
                let bytes = memory.bytes();
                for (_, at, offset) in reads {
                    assert_same(&bytes[at..at + LEN], &pattern(1, offset, LEN));
                }
            });
        }
    });
}
