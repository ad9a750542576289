//! Buffers hold what was copied to them, are freed once, and nothing is left behind when a call of the driver fails or the
//! process forks.

use super::*;
use crate::device::fake::{Fake, cuda, destroy, numbers, own_context, take_slab};
use crate::device::{Copy, PinnedBuffer, free_pinned_memory, locate, pinned_memory};
use crate::{IoBuf, IoBufMut, Source, Target};

#[test]
fn bytes_go_to_a_device_and_back() {
    let fake = Fake::start();
    for device in [0, 1] {
        let content = numbers(100_001);
        let mut buffer = DeviceBuffer::new(device, 100_001).unwrap();
        assert_eq!(
            (buffer.device(), buffer.len(), buffer.is_empty()),
            (device, 100_001, false)
        );
        buffer.copy_from_host(&content).unwrap();
        assert!(fake.peek(buffer.address(), 100_001) == content);
        let mut back = vec![0; 100_001];
        buffer.copy_to_host(&mut back).unwrap();
        assert!(back == content);
        buffer.fill(9).unwrap();
        buffer.copy_from_host(&[1, 2]).unwrap();
        buffer.copy_to_host(&mut back[..3]).unwrap();
        assert_eq!(back[..3], [1, 2, 9]);
    }
    assert_eq!(Context::current().unwrap(), None);
    assert_eq!((fake.live()[3], fake.faults().as_str()), (0, ""));
    assert_eq!(fake.call("fake_cuda_strays", []), 0);
}

#[test]
fn a_copy_of_more_than_the_buffer_has_is_refused_before_anything_moves() {
    let fake = Fake::start();
    let mut buffer = DeviceBuffer::new(0, 10).unwrap();
    let before = fake.calls("*");
    let error = buffer.copy_from_host(&[0; 11]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert_eq!(
        error.to_string(),
        "copy: 11 bytes are more than the 10 of the buffer"
    );
    assert!(buffer.copy_to_host(&mut [0; 11]).is_err());
    assert_eq!(fake.calls("*"), before);
}

#[test]
fn a_buffer_of_no_bytes_does_nothing() {
    let fake = Fake::start();
    let mut none = DeviceBuffer::new(1, 0).unwrap();
    none.copy_from_host(&[]).unwrap();
    none.copy_to_host(&mut []).unwrap();
    none.fill(1).unwrap();
    assert_eq!((none.address(), none.len(), none.device()), (0, 0, 1));
    let mut pinned = PinnedBuffer::new(0).unwrap();
    assert_eq!((pinned.len(), pinned[..].as_mut().len()), (0, 0));
    own_context(0);
    drop(DeviceBuffer::new_async(0, RawStream::DEFAULT).unwrap());
    assert_eq!((fake.live()[3], fake.faults().as_str()), (0, ""));
}

#[test]
fn a_buffer_in_the_current_context_needs_one() {
    let fake = Fake::start();
    let error = DeviceBuffer::on_current(10).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert_eq!(
        error.to_string(),
        "allocate: no CUDA context is current on this thread"
    );
    let mine = own_context(1);
    let buffer = DeviceBuffer::on_current(10).unwrap();
    assert_eq!((buffer.context, buffer.device()), (mine, 1));
    assert_eq!(fake.call("fake_cuda_retained", [1]), 0);
    assert!(format!("{buffer:?}").ends_with(" on device 1)"));
    drop(buffer);
    // One that outlives its context is gone with it.
    let late = DeviceBuffer::on_current(10).unwrap();
    destroy(mine);
    drop(late);
    assert_eq!((fake.live()[3], fake.faults().as_str()), (0, ""));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a copy waits")]
fn a_buffer_in_stream_order_is_touched_and_freed_behind_its_stream() {
    let fake = Fake::start();
    let mine = own_context(0);
    let made = cuda()
        .stream_create(kvik_sys::StreamFlags::NON_BLOCKING)
        .unwrap();
    // SAFETY: the stream was just made, and is not destroyed.
    let stream = unsafe { RawStream::from_raw(made.as_raw()) };
    let mut buffer = DeviceBuffer::new_async(5000, stream).unwrap();
    assert_eq!((buffer.context, buffer.stream), (mine, Some(stream)));
    let hold = |held| fake.ok("fake_cuda_hold", [made.as_raw().addr(), held]);
    let to = DevicePtr::new(buffer.address());
    let queue = || {
        // SAFETY: the memory is freed in the order of the stream, and only the test touches it.
        unsafe { cuda().memset_d8_async(to, 3, 5000, made) }.unwrap();
    };
    hold(1);
    queue();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let buffer = &mut buffer;
        scope.spawn(move || sender.send(buffer.copy_from_host(&numbers(5000))));
        let early = receiver.recv_timeout(std::time::Duration::from_millis(50));
        assert!(early.is_err(), "the stream is held");
        hold(0);
        receiver.recv().unwrap().unwrap();
    });
    let mut back = [0; 5000];
    buffer.copy_to_host(&mut back).unwrap();
    assert!(
        back[..] == numbers(5000),
        "the copy came after what was queued before"
    );
    hold(1);
    queue();
    drop(buffer);
    assert_eq!(fake.live()[3], 1);
    hold(0);
    // SAFETY: the stream is there.
    unsafe { cuda().stream_synchronize(made) }.unwrap();
    assert_eq!((fake.live()[3], fake.faults().as_str()), (0, ""));
}

#[test]
fn streams_that_cannot_order_a_buffer_are_refused() {
    let fake = Fake::start();
    own_context(0);
    let made = cuda()
        .stream_create(kvik_sys::StreamFlags::NON_BLOCKING)
        .unwrap();
    // SAFETY: the stream was just made, and is not destroyed.
    let stream = unsafe { RawStream::from_raw(made.as_raw()) };
    fake.ok("fake_cuda_set_capturing", [made.as_raw().addr(), 1]);
    for stream in [stream, RawStream::PER_THREAD] {
        let error = DeviceBuffer::new_async(10, stream).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    }
    fake.ok("fake_cuda_set_capturing", [made.as_raw().addr(), 0]);
    fake.fail("cuMemAllocAsync:1:801");
    let error = DeviceBuffer::new_async(10, stream).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(
        error.to_string(),
        "allocate: cuMemAllocAsync: CUDA_ERROR_NOT_SUPPORTED (801): operation not supported"
    );
    cuda().ctx_pop_current().unwrap();
    let error = DeviceBuffer::new_async(10, RawStream::DEFAULT).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse, "no context is current");
}

#[test]
fn more_than_a_device_has_is_out_of_memory() {
    let fake = Fake::start();
    fake.ok("fake_cuda_set_memory", [1 << 20]);
    let error = DeviceBuffer::new(0, 2 << 20).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(
        error
            .to_string()
            .starts_with("allocate: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)")
    );
    assert_eq!(DeviceBuffer::new(0, 1 << 20).unwrap().len(), 1 << 20);
}

#[test]
fn a_pinned_buffer_is_a_buffer_of_the_host() {
    let fake = Fake::start();
    let mut buffer = PinnedBuffer::new(5000).unwrap();
    assert_eq!(
        (buffer[..].iter().max(), buffer.as_ptr().addr() % 4096),
        (Some(&0), 0)
    );
    buffer.copy_from_slice(&numbers(5000));
    assert!(IoBuf::source(&buffer).bytes() == Some(&numbers(5000)[..]));
    assert_eq!(IoBufMut::target(&mut buffer).len(), 5000);
    assert!(!Target::from(&mut buffer).is_on_device());
    assert_eq!(Source::from(&buffer).len(), 5000);
    assert_eq!(fake.call("fake_cuda_live_registered_bytes", []), 5000);
    assert_eq!(pinned_memory().lent, 0, "it is the user's own");
    drop(buffer);
    assert_eq!((fake.live()[3], Context::current().unwrap()), (0, None));
    assert_eq!(fake.faults(), "");
}

#[test]
fn a_null_address_is_misuse_and_no_bytes_lie_anywhere() {
    Fake::start();
    let null = std::ptr::null_mut();
    // SAFETY: nothing is done with what comes back.
    let error = unsafe { Target::from_raw(null, 10) }.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert_eq!(
        error.to_string(),
        "inspect: the address of the 10 bytes is null"
    );
    // SAFETY: as above.
    assert!(unsafe { Source::from_raw(null, 10) }.is_err());
    // SAFETY: there is no byte that it could name.
    let none = unsafe { Target::from_raw(null, 0) }.unwrap();
    assert_eq!((none.len(), none.is_on_device()), (0, false));
}

/// Everything this module does, once.
fn everything() -> Result<()> {
    let content = numbers(9000);
    let mut buffer = DeviceBuffer::new(1, 9000)?;
    buffer.copy_from_host(&content)?;
    locate(buffer.address() + 3, 8000)?;
    let context = buffer.context;
    let _entered = context.enter()?;
    let ordered = DeviceBuffer::new_async(10, RawStream::DEFAULT)?;
    let pinned = PinnedBuffer::new(100)?;
    let (one, two) = (take_slab(9000, 1 << 20)?, take_slab(9000, 1 << 20)?);
    let stream = CopyStream::lend(context)?;
    stream.follow_default()?;
    stream.follow(RawStream::PER_THREAD)?;
    let queue = || {
        // SAFETY: slabs and buffer outlive the copies, which are waited for below.
        unsafe { stream.to_host(one.start(), buffer.address(), 9000) }?;
        let pieces = [&two, &one].map(|slab| Copy {
            device: buffer.address(),
            host: slab.start(),
            len: 10,
        });
        // SAFETY: as above; the second piece and the copy before it bring the same bytes, in order.
        unsafe { stream.batch_to_host(&pieces) }?;
        stream.mark()?.wait()
    };
    let queued = queue();
    let waited = stream.synchronize();
    queued.and(waited)?;
    // SAFETY: the copies to it are done.
    let bytes = unsafe { std::slice::from_raw_parts(one.start().as_ptr(), 9000) };
    assert!(bytes == content);
    drop((ordered, pinned));
    Ok(())
}

#[test]
fn whichever_call_of_the_driver_fails_nothing_is_left_behind() {
    let fake = Fake::start();
    let context = Context::primary(1).unwrap();
    // What a failing call would not free.
    let mut kept = 0;
    for nth in 1.. {
        fake.ok("fake_cuda_log_start", []);
        fake.fail(&format!("*:{nth}:999"));
        let outcome = everything();
        fake.succeed();
        let Some(failed) = fake.log().get(nth - 1).cloned() else {
            outcome.unwrap();
            assert!(nth > 60, "there are more calls than {nth}");
            return;
        };
        if failed == "cuCtxPopCurrent_v2" {
            cuda().ctx_pop_current().unwrap();
        }
        assert_eq!(Context::current().unwrap(), None, "{failed}");
        drop(
            context
                .enter()
                .inspect(|_| cuda().ctx_synchronize().unwrap()),
        );
        free_pinned_memory();
        let [_, streams, events, allocations] = fake.live();
        match outcome {
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Device, "{failed}: {error}");
                assert!(
                    error.to_string().contains("CUDA_ERROR_UNKNOWN (999)"),
                    "{error}"
                );
                assert_eq!(allocations, kept, "{failed}");
            }
            // Somebody was dropped, who has nobody to tell: one allocation may have stayed.
            Ok(()) => assert!((kept..=kept + 1).contains(&allocations), "{failed}"),
        }
        kept = allocations;
        assert_eq!(
            (pinned_memory().lent, fake.faults().as_str()),
            (0, ""),
            "{failed}"
        );
        // One of ours, and the default one of this thread.
        assert!(streams <= 2 && events <= 1, "{failed}: {streams} {events}");
    }
}

#[test]
fn a_transfer_told_of_other_streams_still_waits_for_that_of_its_buffer() {
    let fake = Fake::start();
    own_context(0);
    let made = cuda()
        .stream_create(kvik_sys::StreamFlags::NON_BLOCKING)
        .unwrap();
    // SAFETY: the stream was just made, and is not destroyed.
    let own = unsafe { RawStream::from_raw(made.as_raw()) };
    let mut buffer = DeviceBuffer::new_async(100, own).unwrap();
    let (one, two) = (RawStream::DEFAULT, RawStream::PER_THREAD);
    let target = Target::from(&mut buffer)
        .behind(one)
        .behind(own)
        .behind(one);
    let spot = target.spot().unwrap();
    assert_eq!(spot.streams, [Some(own), Some(one)]);
    spot.check().unwrap();
    let error = target.behind(two).spot().unwrap().check().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    let source = Source::from(&buffer).behind(one);
    assert_eq!(source.spot().unwrap().streams, [Some(own), Some(one)]);
    // SAFETY: the memory is the buffer's, which outlives the target.
    let raw = unsafe { Target::from_raw(buffer.address() as *mut u8, 100) }.unwrap();
    let streams = raw.behind(one).behind(two).spot().unwrap().streams;
    assert_eq!(streams, [Some(one), Some(two)]);
    assert_eq!(fake.faults(), "");
}

/// The driver may answer with what went wrong before, once, and without having waited.
#[test]
fn a_copy_that_fails_is_over_when_the_error_comes() {
    let fake = Fake::start();
    let mut buffer = DeviceBuffer::new(0, 1000).unwrap();
    buffer.fill(7).unwrap();
    // Only pinned memory is copied to when the call has returned.
    let mut bytes = PinnedBuffer::new(1000).unwrap();
    fake.ok("fake_cuda_set_delay", [20_000]);
    fake.fail("cuStreamSynchronize:1:999");
    let error = buffer.copy_to_host(&mut bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Device);
    assert!(bytes[..] == [7; 1000], "the device goes on behind our back");
    fake.succeed();
    fake.fail("cuStreamSynchronize:1:999");
    bytes.fill(8);
    buffer.copy_from_host(&bytes).unwrap_err();
    bytes.fill(9);
    assert!(fake.peek(buffer.address(), 1000) == [8; 1000]);
    assert_eq!(fake.faults(), "");
}
