//! What a program may do while reads in the order of a stream are under way: free, unpin, load, launch. The driver lets such
//! calls wait for the streams of the context, and others for them, so a read that needed the driver to go on would never end.

use std::thread;
use std::time::Duration;

use kvik::FileHandle;
use kvik_tests::gpu::{Gpu, Kernels, Kind, Memory, Registered, Stream};
use kvik_tests::need;
use kvik_tests::pattern::{assert_same, file, pattern};

const LEN: usize = 20 << 20;

/// What is done while reads are under way, on a thread of its own.
type Act<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Does what `prepare` has made ready, while reads are queued on a stream that is held, and while they run; it comes to its
/// end, and the reads to theirs.
fn check(prepare: impl for<'a> Fn(&'a Gpu) -> Act<'a>) {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let handle = FileHandle::open(file(folder.path(), "source", 1, LEN)).unwrap();
    let truth = pattern(1, 0, LEN);
    let streams = [Stream::new(&gpu, 0), Stream::new(&gpu, 0)];
    let mut memory = streams.map(|_| Memory::new(&gpu, 0, Kind::Plain, LEN));
    for is_held in [true, false, true, false] {
        let act = prepare(&gpu);
        memory.iter_mut().for_each(|memory| memory.set(0xEE));
        // A function of the host's holds one at a time: the driver calls them one after the other.
        let held = is_held.then(|| streams[0].hold());
        streams[1].follow(&streams[0]);
        thread::scope(|scope| {
            let mut reads = Vec::new();
            for (stream, memory) in streams.iter().zip(&mut memory) {
                reads.push(stream.read(&handle, memory, 0..LEN, 0).unwrap());
            }
            let acting = scope.spawn(act);
            if let Some(held) = held {
                // It has time to begin to wait.
                thread::sleep(Duration::from_millis(30));
                drop(held);
            }
            for read in &reads {
                assert_eq!(read.check().unwrap(), LEN);
            }
            acting.join().unwrap();
        });
        for memory in &memory {
            assert_same(&memory.bytes(), &truth);
        }
    }
}

#[test]
fn memory_of_a_device_is_freed_beside_reads() {
    for kind in [Kind::Plain, Kind::Pool, Kind::Managed] {
        check(|gpu| {
            let memory = Memory::new(gpu, 0, kind, 1 << 20);
            Box::new(move || drop(memory))
        });
    }
}

#[test]
fn pinned_memory_is_freed_beside_reads() {
    check(|gpu| {
        let memory = Memory::new(gpu, 0, Kind::Pinned, 1 << 20);
        Box::new(move || drop(memory))
    });
}

#[test]
fn host_memory_is_unregistered_beside_reads() {
    check(|gpu| {
        let memory = Registered::new(gpu, 0, 1 << 20);
        Box::new(move || drop(memory))
    });
}

#[test]
fn memory_is_allocated_and_a_module_loaded_beside_reads() {
    check(|gpu| {
        Box::new(|| {
            let pinned = Memory::new(gpu, 0, Kind::Pinned, 1 << 20);
            let plain = Memory::new(gpu, 0, Kind::Plain, 1 << 20);
            let _ = Kernels::new(gpu, 0);
            drop((pinned, plain));
        })
    });
}

#[test]
fn kernels_are_launched_for_the_first_time_beside_reads() {
    check(|gpu| {
        let (kernels, stream) = (Kernels::new(gpu, 0), Stream::new(gpu, 0));
        let memory = Memory::new(gpu, 0, Kind::Plain, 1 << 20);
        let mut count = Memory::new(gpu, 0, Kind::Plain, 4);
        count.set(0);
        Box::new(move || {
            kernels.spin(stream, 1000);
            kernels.differ(stream, &memory, &memory, &count);
            stream.wait();
            assert_eq!(count.bytes(), [0; 4]);
        })
    });
}

#[test]
fn reads_of_the_other_kind_and_what_they_pin_go_on_beside_reads() {
    check(|gpu| {
        let folder = tempfile::tempdir().unwrap();
        let handle = FileHandle::open(file(folder.path(), "other", 2, LEN)).unwrap();
        let mut memory = Memory::new(gpu, 0, Kind::Plain, LEN);
        Box::new(move || {
            // Everybody waits for what is queued on the default stream, and nobody for other streams.
            handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
            kvik::free_pinned_memory();
            assert_same(&memory.bytes(), &pattern(2, 0, LEN));
            drop(folder);
        })
    });
}

#[test]
fn kernels_behind_reads_on_128_streams_see_the_bytes() {
    const SHORT: usize = 1_000_003;
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, SHORT + 128 * 11);
    let handle = FileHandle::open(path).unwrap();
    let kernels = Kernels::new(&gpu, 0);
    let mut all: Vec<_> = (0..128)
        .map(|number| {
            let mut truth = Memory::new(&gpu, 0, Kind::Plain, SHORT);
            truth.put(0, &pattern(1, number * 11, SHORT));
            let mut count = Memory::new(&gpu, 0, Kind::Plain, 4);
            count.set(0);
            let mut memory = Memory::new(&gpu, 0, Kind::Plain, SHORT);
            memory.set(0xEE);
            (Stream::new(&gpu, 0), memory, truth, count)
        })
        .collect();
    let mut reads = Vec::new();
    for (number, (stream, memory, truth, count)) in all.iter_mut().enumerate() {
        let read = stream.read(&handle, memory, 0..SHORT, number as u64 * 11);
        reads.push(read.unwrap());
        // The first launch finds reads under way.
        kernels.differ(*stream, memory, truth, count);
    }
    for (stream, .., count) in &all {
        stream.wait();
        assert_eq!(count.bytes(), [0; 4]);
    }
    for read in reads {
        assert_eq!(read.check().unwrap(), SHORT);
    }
}
