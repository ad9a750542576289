//! Kernels: known by name, run in the order of their stream, and loaded at the first launch, for which others wait.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use kvik_tests::fake::at;

use super::{Cuda, INVALID_HANDLE, INVALID_VALUE};

const INVALID_PTX: i32 = 218;
const NOT_FOUND: i32 = 500;

const TEXT: &str =
    ".version 6.4\n.target sm_70\n.visible .entry spin(\n.visible .entry differ(\n.entry other(";

fn kernel(cuda: &Cuda, name: &CStr) -> usize {
    let module = cuda.get("cuModuleLoadData", [TEXT.as_ptr().expose_provenance()]);
    cuda.get(
        "cuModuleGetFunction",
        [module, name.as_ptr().expose_provenance()],
    )
}

fn launch(cuda: &Cuda, kernel: usize, threads: usize, stream: usize, mut values: [u64; 4]) -> i32 {
    let mut pointers = values.each_mut().map(at);
    cuda.call(
        "cuLaunchKernel",
        [
            kernel,
            1,
            1,
            1,
            threads,
            1,
            1,
            0,
            stream,
            at(&mut pointers),
            0,
        ],
    )
}

#[test]
fn a_kernel_runs_in_the_order_of_its_stream() {
    let cuda = Cuda::start();
    let (one, other, stream) = (cuda.memory(5), cuda.memory(5), cuda.stream());
    let (count, pinned) = (cuda.memory(4), cuda.pinned(5));
    let differ = kernel(&cuda, c"differ");
    cuda.poke(one, b"bytes");
    cuda.poke(other, b"other");
    cuda.poke(count, &1_u32.to_ne_bytes());
    let values = [one, other, 5, count].map(|value| value as u64);
    assert_eq!(launch(&cuda, differ, 256, stream, values), 0);
    cuda.ok("cuStreamSynchronize", [stream]);
    assert_eq!(cuda.peek(count, 4), 5_u32.to_ne_bytes());
    cuda.hold(stream);
    cuda.poke(pinned, b"other");
    cuda.ok("cuMemcpyHtoDAsync_v2", [one, pinned, 5, stream]);
    assert_eq!(launch(&cuda, differ, 256, stream, values), 0);
    cuda.release(stream);
    cuda.ok("cuStreamSynchronize", [stream]);
    assert_eq!(cuda.peek(count, 4), 5_u32.to_ne_bytes());
}

#[test]
fn the_first_launch_waits_for_all_streams_and_all_other_threads_for_it() {
    let cuda = Cuda::start();
    let (memory, pinned) = (cuda.memory(4), cuda.pinned(4));
    let (held, stream, idle) = (cuda.stream(), cuda.stream(), cuda.stream());
    let spin = kernel(&cuda, c"spin");
    cuda.hold(held);
    cuda.ok("cuMemcpyHtoDAsync_v2", [memory, pinned, 4, held]);
    let (launched, asked) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(launch(&cuda, spin, 1, stream, [1; 4]), 0);
            launched.store(true, Ordering::Release);
        });
        scope.spawn(|| {
            // Until the other thread is at it.
            while !cuda.is_loading() {
                thread::sleep(Duration::from_millis(1));
            }
            cuda.ok("cuStreamQuery", [idle]);
            asked.store(true, Ordering::Release);
        });
        thread::sleep(Duration::from_millis(50));
        let any = launched.load(Ordering::Acquire) || asked.load(Ordering::Acquire);
        // What holds it is no call of the driver.
        cuda.release(held);
        assert!(!any);
    });
    // The second time there is nothing to wait for.
    cuda.hold(held);
    cuda.ok("cuMemcpyHtoDAsync_v2", [memory, pinned, 4, held]);
    assert_eq!(launch(&cuda, spin, 1, stream, [1; 4]), 0);
    cuda.release(held);
}

#[test]
fn what_is_no_text_no_kernel_or_no_shape_is_refused() {
    let cuda = Cuda::start();
    let mut place = 0_usize;
    let loaded = cuda.call(
        "cuModuleLoadData",
        [at(&mut place), c"no code".as_ptr().expose_provenance()],
    );
    assert_eq!(loaded, INVALID_PTX);
    let module = cuda.get("cuModuleLoadData", [TEXT.as_ptr().expose_provenance()]);
    for name in [c"nothing", c"other"] {
        let got = cuda.call(
            "cuModuleGetFunction",
            [at(&mut place), module, name.as_ptr().expose_provenance()],
        );
        assert_eq!(got, NOT_FOUND, "{name:?}");
    }
    let stream = cuda.stream();
    let spin = kernel(&cuda, c"spin");
    assert_eq!(launch(&cuda, spin, 0, stream, [1; 4]), INVALID_VALUE);
    assert_eq!(launch(&cuda, 77, 1, stream, [1; 4]), INVALID_HANDLE);
    cuda.ok("cuModuleUnload", [module]);
    assert_eq!(cuda.call("cuModuleUnload", [module]), INVALID_HANDLE);
}
