//! Contexts belong to threads one by one, and primary ones are counted.

use kvik_tests::fake::at;

use super::{CONTEXT_IS_DESTROYED, Cuda, INVALID_CONTEXT, INVALID_HANDLE};

fn current(cuda: &Cuda) -> usize {
    cuda.get("cuCtxGetCurrent", [])
}

#[test]
fn a_fresh_thread_has_no_context_and_calls_that_need_one_say_so() {
    let cuda = Cuda::start();
    let (memory, pinned) = (cuda.memory(8), cuda.pinned(8));
    let (stream, event) = (cuda.stream(), cuda.event());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut word = 0_usize;
            assert_eq!(current(&cuda), 0);
            for (name, words) in [
                ("cuMemAlloc_v2", [at(&mut word), 8, 0, 0]),
                ("cuStreamCreate", [at(&mut word), 0, 0, 0]),
                ("cuEventCreate", [at(&mut word), 0, 0, 0]),
                ("cuCtxGetDevice", [at(&mut word), 0, 0, 0]),
                ("cuCtxSynchronize", [0; 4]),
                ("cuCtxPopCurrent_v2", [at(&mut word), 0, 0, 0]),
                ("cuMemHostRegister_v2", [4096, 4096, 0, 0]),
                ("cuStreamSynchronize", [0; 4]),
                ("cuMemcpyHtoD_v2", [memory, pinned, 8, 0]),
            ] {
                assert_eq!(cuda.call(name, words), INVALID_CONTEXT, "{name}");
            }
            // A stream, an event and memory bring theirs along.
            cuda.ok("cuMemcpyHtoDAsync_v2", [memory, pinned, 8, stream]);
            cuda.ok("cuEventRecord", [event, stream]);
            cuda.ok("cuStreamWaitEvent", [stream, event, 0]);
            cuda.ok("cuEventSynchronize", [event]);
            cuda.ok("cuStreamSynchronize", [stream]);
            cuda.ok("cuMemFree_v2", [memory]);
        });
    });
    assert_eq!(current(&cuda), cuda.context);
}

#[test]
fn the_stack_gives_back_what_was_current() {
    let cuda = Cuda::start();
    let other = cuda.primary(1);
    cuda.ok("cuCtxPushCurrent_v2", [other]);
    assert_eq!((current(&cuda), cuda.get("cuCtxGetDevice", [])), (other, 1));
    assert_eq!(cuda.get("cuCtxPopCurrent_v2", []), other);
    assert_eq!(current(&cuda), cuda.context);
    cuda.ok("cuCtxSetCurrent", [0]);
    assert_eq!(current(&cuda), 0);
}

#[test]
fn the_last_release_of_a_primary_context_ends_what_was_made_in_it() {
    let cuda = Cuda::start();
    assert_eq!(cuda.primary(0), cuda.context);
    assert_eq!(
        (cuda.retained(0), cuda.retained(1), cuda.contexts()),
        (2, 0, 1)
    );
    let id = |cuda: &Cuda| {
        let mut id = 0_usize;
        cuda.ok("cuCtxGetId", [cuda.context, at(&mut id)]);
        id
    };
    let before = id(&cuda);
    cuda.memory(100);
    let stream = cuda.stream();
    let mut plain = [0_u8; 64];
    cuda.ok("cuMemHostRegister_v2", [at(&mut plain), 64, 0]);
    cuda.ok("cuDevicePrimaryCtxRelease_v2", [0]);
    assert_eq!(cuda.device_bytes(), 100);
    cuda.ok("cuDevicePrimaryCtxRelease_v2", [0]);
    assert_eq!(
        (cuda.device_bytes(), cuda.streams(), cuda.contexts()),
        (0, 0, 0)
    );
    assert_eq!(cuda.registered_bytes(), 0);
    // The real driver crashes here.
    assert_eq!(cuda.call("cuStreamQuery", [stream]), INVALID_HANDLE);
    assert_eq!(cuda.faults().len(), 1);
    let mut word = 0_usize;
    assert_eq!(
        cuda.call("cuMemAlloc_v2", [at(&mut word), 8]),
        CONTEXT_IS_DESTROYED
    );
    assert_eq!(
        cuda.call("cuDevicePrimaryCtxRelease_v2", [0]),
        INVALID_CONTEXT
    );
    // It comes back with the same handle, empty, and tells itself from what it was by its number.
    assert_eq!(cuda.primary(0), cuda.context);
    cuda.memory(8);
    assert!(id(&cuda) != before);
}

#[test]
fn a_spoilt_primary_context_comes_back_sound_after_its_last_release() {
    let cuda = Cuda::start();
    let (words, stream) = (cuda.pinned(4), cuda.stream());
    cuda.ok("cuStreamWaitValue32_v2", [stream, words, 3, 0]);
    cuda.break_context(700);
    assert_eq!(cuda.call("cuMemFreeHost", [words]), 700);
    cuda.ok("cuDevicePrimaryCtxRelease_v2", [0]);
    assert_eq!((cuda.pinned_bytes(), cuda.primary(0)), (0, cuda.context));
    cuda.memory(8);
    cuda.ok("cuCtxSynchronize", []);
}

#[test]
fn the_state_of_a_primary_context_is_told_without_making_it() {
    let cuda = Cuda::start();
    let state = |device: usize| {
        let (mut flags, mut active) = (9_i32, 9_i32);
        cuda.ok(
            "cuDevicePrimaryCtxGetState",
            [device, at(&mut flags), at(&mut active)],
        );
        active
    };
    assert_eq!((state(0), state(1), cuda.contexts()), (1, 0, 1));
}

#[test]
fn a_created_context_is_current_and_its_own() {
    let cuda = Cuda::start();
    let made = cuda.get("cuCtxCreate_v2", [0, 0]);
    assert!(made != cuda.context && current(&cuda) == made);
    let memory = cuda.memory(8);
    assert_eq!(cuda.attribute(1, memory), Ok(made));
    cuda.ok("cuCtxDestroy_v2", [made]);
    assert_eq!((current(&cuda), cuda.device_bytes()), (cuda.context, 0));
    // It can be made current, as with the real driver, and nothing can be done in it.
    cuda.ok("cuCtxSetCurrent", [made]);
    let mut word = 0_usize;
    let allocated = cuda.call("cuMemAlloc_v2", [at(&mut word), 8]);
    let asked = cuda.call("cuCtxGetId", [made, at(&mut word)]);
    assert_eq!(
        (allocated, asked),
        (CONTEXT_IS_DESTROYED, CONTEXT_IS_DESTROYED)
    );
    assert_eq!(cuda.call("cuCtxSetCurrent", [made + 1]), INVALID_CONTEXT);
}
