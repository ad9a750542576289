//! Kernels beside reads: what was read is there for a kernel that is queued behind, and a read that is under way while kernels
//! are loaded or memory is given back comes to its end.

use std::thread;

use kvik::FileHandle;
use kvik_tests::gpu::{Kernels, Kind, Memory, Stream};
use kvik_tests::need;
use kvik_tests::pattern::{assert_same, file, pattern};

const LEN: usize = 3_000_001;

#[test]
fn kernels_run_in_the_order_of_their_stream_and_count_each_byte_that_differs() {
    let gpu = need::gpu();
    let (kernels, stream) = (Kernels::new(&gpu, 0), Stream::new(&gpu, 0));
    let mut one = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let mut other = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let mut count = Memory::new(&gpu, 0, Kind::Plain, 4);
    let truth = pattern(1, 0, LEN);
    one.put(0, &truth);
    other.put(0, &truth);
    count.set(0);
    let counted = |count: &Memory| {
        stream.wait();
        u32::from_ne_bytes(count.bytes().try_into().unwrap())
    };
    kernels.spin(stream, 1_000_000);
    kernels.differ(stream, &one, &other, &count);
    assert_eq!(counted(&count), 0);
    for at in [0, 1_000_000, LEN - 1] {
        other.put(at, &[!truth[at]]);
    }
    kernels.differ(stream, &one, &other, &count);
    assert_eq!(counted(&count), 3);
    stream.set(&one, 5);
    kernels.spin(stream, 1_000_000);
    stream.set(&other, 5);
    kernels.differ(stream, &one, &other, &count);
    assert_eq!(counted(&count), 3);
}

#[test]
fn a_kernel_that_is_launched_after_a_read_sees_its_bytes() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let handle = FileHandle::open(file(folder.path(), "source", 1, LEN)).unwrap();
    let (kernels, stream) = (Kernels::new(&gpu, 0), Stream::new(&gpu, 0));
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let mut truth = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let mut count = Memory::new(&gpu, 0, Kind::Plain, 4);
    truth.put(0, &pattern(1, 0, LEN));
    count.set(0);
    for _ in 0..10 {
        memory.set(0xEE);
        handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
        kernels.differ(stream, &memory, &truth, &count);
        stream.wait();
        assert_eq!(count.bytes(), [0; 4]);
    }
}

#[test]
fn a_read_and_the_first_launch_of_a_kernel_on_another_thread_both_come_to_their_end() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let handle = FileHandle::open(file(folder.path(), "source", 1, LEN)).unwrap();
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    for _ in 0..10 {
        let (kernels, stream) = (Kernels::new(&gpu, 0), Stream::new(&gpu, 0));
        memory.set(0xEE);
        thread::scope(|scope| {
            let target = memory.target(0..LEN);
            let read = scope.spawn(|| handle.read_exact_at(target, 0));
            kernels.spin(stream, 1);
            stream.wait();
            read.join().unwrap().unwrap();
        });
        assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    }
}
