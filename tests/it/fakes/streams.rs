//! Streams are queues: what was queued runs later, in order, and waits for what it must.

use std::sync::atomic::{AtomicUsize, Ordering};

use kvik_tests::fake::at;

use super::{Cuda, ILLEGAL_ADDRESS, INVALID_HANDLE, INVALID_VALUE, NOT_READY};

#[test]
fn a_held_stream_is_late_and_reads_its_source_when_it_runs() {
    let cuda = Cuda::start();
    let (memory, pinned, stream) = (cuda.memory(4), cuda.pinned(4), cuda.stream());
    let event = cuda.event();
    assert_eq!(cuda.call("cuEventQuery", [event]), 0);
    cuda.hold(stream);
    cuda.ok("cuMemcpyHtoDAsync_v2", [memory, pinned, 4, stream]);
    cuda.ok("cuEventRecord", [event, stream]);
    assert_eq!(cuda.call("cuEventQuery", [event]), NOT_READY);
    assert_eq!(cuda.call("cuStreamQuery", [stream]), NOT_READY);
    cuda.poke(pinned, b"late");
    cuda.release(stream);
    cuda.ok("cuEventSynchronize", [event]);
    assert_eq!(cuda.peek(memory, 4), b"late");
    assert_eq!(cuda.call("cuStreamQuery", [stream]), 0);
}

#[test]
fn a_delayed_copy_is_on_its_way_when_the_call_returns() {
    let cuda = Cuda::start();
    let (memory, pinned, stream) = (cuda.memory(4), cuda.pinned(4), cuda.stream());
    // Longer than any test runs; the process does not wait for it.
    cuda.set_delay(std::time::Duration::from_secs(3600));
    cuda.ok("cuMemcpyHtoDAsync_v2", [memory, pinned, 4, stream]);
    assert_eq!(cuda.call("cuStreamQuery", [stream]), NOT_READY);
}

#[test]
fn pageable_memory_is_read_by_the_call_and_written_before_it_returns() {
    let cuda = Cuda::start();
    let (memory, stream) = (cuda.memory(4), cuda.stream());
    let mut plain = *b"then";
    cuda.hold(stream);
    cuda.ok("cuMemcpyHtoDAsync_v2", [memory, at(&mut plain), 4, stream]);
    plain = *b"now!";
    cuda.release(stream);
    cuda.ok("cuMemcpyDtoHAsync_v2", [at(&mut plain), memory, 4, stream]);
    assert_eq!(&plain, b"then");
}

#[test]
fn the_default_stream_and_blocking_streams_wait_for_each_other() {
    let cuda = Cuda::start();
    let (memory, pinned) = (cuda.memory(8), cuda.pinned(8));
    let (free, blocking) = (cuda.stream(), cuda.get("cuStreamCreate", [0]));
    let copy = |stream| cuda.ok("cuMemcpyHtoDAsync_v2", [memory, pinned, 8, stream]);
    cuda.hold(0);
    copy(0);
    copy(free);
    copy(blocking);
    cuda.ok("cuStreamSynchronize", [free]);
    assert_eq!(cuda.call("cuStreamQuery", [blocking]), NOT_READY);
    cuda.release(0);
    cuda.ok("cuStreamSynchronize", [blocking]);
    // The other way round; 1 is another name of the default stream, 2 is that of this thread.
    for stream in [blocking, 2] {
        cuda.hold(stream);
        copy(stream);
        copy(1);
        assert_eq!(cuda.call("cuStreamQuery", [0]), NOT_READY);
        cuda.release(stream);
        cuda.ok("cuStreamSynchronize", [0]);
    }
}

#[test]
fn a_stream_waits_for_an_event_of_another() {
    let cuda = Cuda::start();
    let (first, second, event) = (cuda.stream(), cuda.stream(), cuda.event());
    let (memory, pinned) = (cuda.memory(1), cuda.pinned(1));
    cuda.hold(first);
    cuda.ok("cuMemsetD8Async", [memory, 5, 1, first]);
    cuda.ok("cuEventRecord", [event, first]);
    cuda.ok("cuStreamWaitEvent", [second, event, 0]);
    cuda.ok("cuMemcpyDtoHAsync_v2", [pinned, memory, 1, second]);
    assert_eq!(cuda.call("cuStreamQuery", [second]), NOT_READY);
    cuda.release(first);
    cuda.ok("cuStreamSynchronize", [second]);
    assert_eq!(cuda.peek(pinned, 1), [5]);
}

#[test]
fn a_stream_waits_for_a_word_of_the_host_and_writes_one() {
    let cuda = Cuda::start();
    let (words, stream) = (cuda.pinned(16), cuda.stream());
    cuda.ok("cuStreamWaitValue32_v2", [stream, words, 3, 0]);
    cuda.ok("cuStreamWriteValue32_v2", [stream, words + 4, 7, 0]);
    assert_eq!(cuda.call("cuStreamQuery", [stream]), NOT_READY);
    cuda.poke(words, &4_u32.to_le_bytes());
    cuda.ok("cuStreamSynchronize", [stream]);
    assert_eq!(cuda.peek(words + 4, 4), 7_u32.to_le_bytes());
    assert_eq!(
        cuda.call("cuStreamWaitValue32_v2", [stream, words + 1, 3, 0]),
        INVALID_VALUE
    );
}

#[test]
fn a_wait_for_a_word_ends_when_the_context_is_spoilt() {
    let cuda = Cuda::start();
    let (words, stream) = (cuda.pinned(4), cuda.stream());
    cuda.ok("cuStreamWaitValue32_v2", [stream, words, 3, 0]);
    cuda.break_context(ILLEGAL_ADDRESS);
    assert_eq!(cuda.call("cuStreamSynchronize", [stream]), ILLEGAL_ADDRESS);
}

#[test]
fn a_host_function_runs_in_order_and_may_not_call_the_driver() {
    static SEEN: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn call(_data: usize) {
        let cuda = kvik_tests::fake::FakeCuda::here();
        let mut word = 0_usize;
        let code = cuda.call("cuCtxGetCurrent", [at(&mut word)]);
        SEEN.store(code as usize, Ordering::Relaxed);
    }
    let cuda = Cuda::start();
    let stream = cuda.stream();
    cuda.ok("cuLaunchHostFunc", [stream, call as *const () as usize, 0]);
    cuda.ok("cuStreamSynchronize", [stream]);
    assert_eq!(
        (SEEN.load(Ordering::Relaxed), cuda.faults().len()),
        (800, 1)
    );
}

#[test]
fn freeing_waits_for_the_work_of_the_context() {
    let cuda = Cuda::start();
    let (memory, pinned, stream) = (cuda.memory(4), cuda.pinned(4), cuda.stream());
    cuda.hold(stream);
    cuda.ok("cuMemcpyHtoDAsync_v2", [memory, pinned, 4, stream]);
    std::thread::scope(|scope| {
        let freeing = scope.spawn(|| {
            cuda.ok("cuCtxSetCurrent", [cuda.context]);
            cuda.ok("cuMemFreeHost", [pinned]);
        });
        while cuda.calls("cuMemFreeHost") == 0 {
            std::thread::yield_now();
        }
        assert!(!freeing.is_finished() && cuda.pinned_bytes() == 4);
        cuda.release(stream);
    });
    assert_eq!((cuda.pinned_bytes(), cuda.faults()), (0, Vec::new()));
}

#[test]
fn memory_of_a_pool_that_was_freed_too_early_spoils_the_context() {
    let cuda = Cuda::start();
    let (pinned, first, second) = (cuda.pinned(4), cuda.stream(), cuda.stream());
    let memory = cuda.get("cuMemAllocAsync", [4, first]);
    cuda.hold(second);
    cuda.ok("cuMemcpyHtoDAsync_v2", [memory, pinned, 4, second]);
    cuda.ok("cuMemFreeAsync", [memory, first]);
    cuda.ok("cuStreamSynchronize", [first]);
    cuda.release(second);
    assert_eq!(cuda.call("cuStreamSynchronize", [second]), ILLEGAL_ADDRESS);
    assert_eq!(cuda.faults().len(), 1);
}

#[test]
fn handles_that_are_gone_or_of_another_context_are_refused() {
    let cuda = Cuda::start();
    let (stream, event) = (cuda.stream(), cuda.event());
    assert_eq!((cuda.streams(), cuda.events()), (1, 1));
    let other = cuda.primary(1);
    cuda.ok("cuCtxPushCurrent_v2", [other]);
    let there = cuda.stream();
    assert_eq!(cuda.call("cuEventRecord", [event, there]), INVALID_HANDLE);
    let mut context = 0_usize;
    cuda.ok("cuStreamGetCtx", [there, at(&mut context)]);
    assert_eq!(context, other);
    cuda.ok("cuStreamDestroy_v2", [stream]);
    assert_eq!(cuda.call("cuStreamSynchronize", [stream]), INVALID_HANDLE);
    cuda.ok("cuEventDestroy_v2", [event]);
    assert_eq!(cuda.call("cuEventQuery", [event]), INVALID_HANDLE);
    cuda.ok("cuStreamDestroy_v2", [there]);
    assert_eq!((cuda.streams(), cuda.events()), (0, 0));
}

#[test]
fn a_destroyed_stream_still_does_what_was_queued() {
    let cuda = Cuda::start();
    let (memory, stream) = (cuda.memory(1), cuda.stream());
    cuda.hold(stream);
    cuda.ok("cuMemsetD8Async", [memory, 5, 1, stream]);
    cuda.release(stream);
    cuda.ok("cuStreamDestroy_v2", [stream]);
    cuda.ok("cuCtxSynchronize", []);
    assert_eq!(cuda.peek(memory, 1), [5]);
}

#[test]
fn a_copy_by_a_stream_of_another_device_is_counted() {
    let cuda = Cuda::start();
    let (memory, pinned) = (cuda.memory(4), cuda.pinned(4));
    let other = cuda.primary(1);
    cuda.ok("cuCtxPushCurrent_v2", [other]);
    let stream = cuda.stream();
    cuda.ok("cuMemcpyHtoDAsync_v2", [memory, pinned, 4, stream]);
    assert_eq!(cuda.strays(), 1);
}

#[test]
fn the_time_between_two_events_is_told() {
    let cuda = Cuda::start();
    let stream = cuda.stream();
    let (start, end) = (
        cuda.get("cuEventCreate", [0]),
        cuda.get("cuEventCreate", [0]),
    );
    let mut milliseconds = -1.0_f32;
    let words = [at(&mut milliseconds), start, end];
    assert_eq!(cuda.call("cuEventElapsedTime", words), INVALID_HANDLE);
    cuda.hold(stream);
    cuda.ok("cuEventRecord", [start, stream]);
    cuda.ok("cuEventRecord", [end, stream]);
    assert_eq!(cuda.call("cuEventElapsedTime", words), NOT_READY);
    cuda.release(stream);
    cuda.ok("cuStreamSynchronize", [stream]);
    cuda.ok("cuEventElapsedTime", words);
    assert!(milliseconds >= 0.0);
}
