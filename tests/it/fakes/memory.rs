//! Memory of a device is out of the CPU's reach, ends where it ends, and is gone when it is freed.

use kvik_tests::fake::at;

use super::{Cuda, INVALID_VALUE, OUT_OF_MEMORY};

const ALREADY_REGISTERED: i32 = 712;
const NOT_REGISTERED: i32 = 713;

#[test]
fn the_cpu_cannot_touch_memory_of_a_device() {
    let cuda = Cuda::start();
    let memory = cuda.memory(4096);
    let pool = cuda.get("cuMemAllocAsync", [4096, 0]);
    for address in [memory, pool] {
        // The kernel refuses it as it refuses what is mapped nowhere.
        assert_eq!(
            kvik_tests::os::is_readable(address),
            (false, true),
            "{address:#x}"
        );
    }
    let managed = cuda.get("cuMemAllocManaged", [4096, 1]);
    let pinned = cuda.pinned(4096);
    assert_eq!(kvik_tests::os::is_readable(managed), (true, true));
    assert_eq!(kvik_tests::os::is_readable(pinned), (true, true));
    cuda.ok("cuMemFreeHost", [pinned]);
    assert!(!kvik_tests::os::is_readable(pinned).0);
}

#[test]
fn bytes_go_to_the_device_and_back() {
    let cuda = Cuda::start();
    let memory = cuda.memory(1000);
    // What lay there before is not zero.
    assert_eq!(cuda.peek(memory, 4), [0xDB; 4]);
    let mut bytes: Vec<u8> = (0..1000).map(|number| number as u8).collect();
    cuda.ok("cuMemcpyHtoD_v2", [memory, at(bytes.as_mut_slice()), 1000]);
    assert_eq!(cuda.peek(memory, 1000), bytes);
    let mut back = vec![0_u8; 500];
    cuda.ok(
        "cuMemcpyDtoH_v2",
        [at(back.as_mut_slice()), memory + 100, 500],
    );
    assert_eq!(back, bytes[100..600]);
    cuda.ok("cuMemsetD8_v2", [memory, 9, 10]);
    cuda.ok("cuCtxSynchronize", []);
    assert_eq!(cuda.peek(memory + 8, 3), [9, 9, bytes[10]]);
}

#[test]
fn copies_past_the_end_or_to_freed_memory_are_refused_and_noted() {
    let cuda = Cuda::start();
    let (memory, pinned, stream) = (cuda.memory(100), cuda.pinned(200), cuda.stream());
    let past = cuda.call("cuMemcpyHtoDAsync_v2", [memory + 50, pinned, 51, stream]);
    let before = cuda.call("cuMemcpyHtoDAsync_v2", [memory - 1, pinned, 1, stream]);
    let host = cuda.call(
        "cuMemcpyHtoDAsync_v2",
        [at(&mut [0_u8; 8]), pinned, 8, stream],
    );
    cuda.ok("cuMemFree_v2", [memory]);
    let freed = cuda.call("cuMemcpyDtoHAsync_v2", [pinned, memory, 1, stream]);
    let twice = cuda.call("cuMemFree_v2", [memory]);
    assert_eq!([past, before, host, freed, twice], [INVALID_VALUE; 5]);
    assert_eq!(cuda.faults().len(), 5, "{:?}", cuda.faults());
    assert!(
        cuda.faults()[0].contains("ends after 50"),
        "{:?}",
        cuda.faults()
    );
}

#[test]
fn a_device_is_full_when_its_memory_is_used() {
    let cuda = Cuda::start();
    cuda.set_memory(1000);
    let first = cuda.memory(600);
    let mut word = 0_usize;
    assert_eq!(
        cuda.call("cuMemAlloc_v2", [at(&mut word), 401]),
        OUT_OF_MEMORY
    );
    let mut total = 0_usize;
    assert_eq!(cuda.get("cuMemGetInfo_v2", [at(&mut total)]), 400);
    assert_eq!(total, 1000);
    cuda.ok("cuMemFree_v2", [first]);
    cuda.memory(1000);
    assert_eq!(cuda.faults(), Vec::<String>::new());
}

#[test]
fn what_is_registered_twice_or_never_is_refused() {
    let cuda = Cuda::start();
    let mut bytes = vec![0_u8; 10_000];
    // Registering takes any alignment.
    let start = at(bytes.as_mut_slice()) + 1;
    let register =
        |address: usize, size: usize| cuda.call("cuMemHostRegister_v2", [address, size, 1]);
    assert_eq!(register(start, 5000), 0);
    assert_eq!(register(start + 4999, 10), ALREADY_REGISTERED);
    assert_eq!(register(start - 1, 2), ALREADY_REGISTERED);
    assert_eq!(register(start + 5000, 10), 0);
    assert_eq!(cuda.registered_bytes(), 5010);
    assert_eq!(
        cuda.call("cuMemHostUnregister", [start + 1]),
        NOT_REGISTERED
    );
    cuda.ok("cuMemHostUnregister", [start]);
    cuda.ok("cuMemHostUnregister", [start + 5000]);
    assert_eq!(cuda.call("cuMemHostUnregister", [start]), NOT_REGISTERED);
    assert_eq!((cuda.registered_bytes(), cuda.allocations()), (0, 0));
}

#[test]
fn each_kind_of_memory_is_freed_by_its_own_call() {
    let cuda = Cuda::start();
    let (memory, pinned) = (cuda.memory(8), cuda.pinned(8));
    let pool = cuda.get("cuMemAllocAsync", [8, 0]);
    assert_eq!(cuda.call("cuMemFreeHost", [memory]), INVALID_VALUE);
    assert_eq!(cuda.call("cuMemFree_v2", [pinned]), INVALID_VALUE);
    assert_eq!(cuda.call("cuMemFreeAsync", [memory, 0]), INVALID_VALUE);
    assert_eq!(cuda.call("cuMemFree_v2", [memory + 1]), INVALID_VALUE);
    cuda.ok("cuMemFreeAsync", [pool, 0]);
    cuda.ok("cuCtxSynchronize", []);
    cuda.ok("cuMemFree_v2", [memory]);
    cuda.ok("cuMemFreeHost", [pinned]);
    assert_eq!((cuda.allocations(), cuda.faults().len()), (0, 4));
}
