//! While a stream is capturing, calls that would do harm fail, and end the capture.

use kvik_tests::fake::at;

use super::{CAPTURING, CAPTURING_BEFORE, Cuda};

/// Active, and ended by a call that was not allowed.
const ACTIVE: i32 = 1;
const ENDED: i32 = 2;

fn status(cuda: &Cuda, stream: usize) -> i32 {
    let mut status = 0_i32;
    cuda.ok("cuStreamIsCapturing", [stream, at(&mut status)]);
    status
}

/// Exchanges the mode of this thread: 0 minds all captures, 1 its own, 2 none.
fn mode(cuda: &Cuda, mut mode: i32) -> i32 {
    cuda.ok("cuThreadExchangeStreamCaptureMode", [at(&mut mode)]);
    mode
}

#[test]
fn a_capturing_stream_takes_no_work_and_no_question() {
    let cuda = Cuda::start();
    let (memory, pinned, stream) = (cuda.memory(4), cuda.pinned(4), cuda.stream());
    cuda.set_capturing(stream, ACTIVE);
    assert_eq!(status(&cuda, stream), ACTIVE);
    let copied = cuda.call("cuMemcpyHtoDAsync_v2", [memory, pinned, 4, stream]);
    assert_eq!((copied, cuda.faults().len()), (CAPTURING, 1));
    mode(&cuda, 2);
    assert_eq!(cuda.call("cuStreamQuery", [stream]), CAPTURING);
}

#[test]
fn calls_of_other_threads_end_a_capture_unless_they_are_relaxed() {
    let cuda = Cuda::start();
    let (stream, other, event) = (cuda.stream(), cuda.stream(), cuda.event());
    let mut plain = [0_u8; 64];
    cuda.set_capturing(stream, ACTIVE);
    assert_eq!(mode(&cuda, 2), 0);
    cuda.ok("cuEventQuery", [event]);
    cuda.ok("cuStreamQuery", [other]);
    cuda.ok("cuMemHostRegister_v2", [at(&mut plain), 64, 0]);
    assert_eq!((status(&cuda, stream), cuda.faults().len()), (ACTIVE, 0));
    assert_eq!(mode(&cuda, 1), 2);
    cuda.ok("cuEventQuery", [event]);
    assert_eq!(mode(&cuda, 0), 1);
    let mut word = 0_usize;
    for (name, words) in [
        ("cuEventQuery", [event, 0]),
        ("cuStreamQuery", [other, 0]),
        ("cuMemHostUnregister", [at(&mut plain), 0]),
        ("cuMemAlloc_v2", [at(&mut word), 8]),
    ] {
        cuda.set_capturing(stream, ACTIVE);
        assert_eq!(cuda.call(name, words), CAPTURING, "{name}");
        assert_eq!(status(&cuda, stream), ENDED, "{name}");
    }
    assert_eq!(cuda.faults().len(), 4);
}

#[test]
fn the_default_stream_is_not_asked_while_a_blocking_stream_captures() {
    let cuda = Cuda::start();
    let (free, blocking) = (cuda.stream(), cuda.get("cuStreamCreate", [0]));
    mode(&cuda, 2);
    cuda.set_capturing(free, ACTIVE);
    cuda.ok("cuStreamQuery", [0]);
    cuda.set_capturing(blocking, ACTIVE);
    let mut word = 0_i32;
    assert_eq!(
        cuda.call("cuStreamIsCapturing", [0, at(&mut word)]),
        CAPTURING_BEFORE
    );
    assert_eq!((status(&cuda, blocking), cuda.faults().len()), (ACTIVE, 0));
    assert_eq!(cuda.call("cuStreamQuery", [0]), CAPTURING_BEFORE);
    assert_eq!(
        (status(&cuda, blocking), status(&cuda, free)),
        (ENDED, ACTIVE)
    );
}
