//! Copies bring the right bytes in every way, wait for whom they have to, and disturb nobody's recording.

use super::*;
use crate::device::fake::{Fake, cuda, numbers, own_context, take_slab};
use crate::device::{Context, DeviceBuffer, Slab};
use crate::error::ErrorKind;

const LIMIT: u64 = 1 << 20;

/// A slab that holds `bytes`.
fn filled(bytes: &[u8]) -> Slab {
    let slab = take_slab(bytes.len(), LIMIT).unwrap();
    // SAFETY: the slab is as long, and nobody else has it.
    unsafe {
        slab.start()
            .copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len())
    };
    slab
}

/// What a slab holds.
fn bytes_of(slab: &Slab) -> Vec<u8> {
    // SAFETY: the slab was zeroed once, and no copy to it is under way.
    unsafe { std::slice::from_raw_parts(slab.start().as_ptr(), slab.len()) }.to_vec()
}

fn after(slab: &Slab, bytes: usize) -> NonNull<u8> {
    assert!(bytes <= slab.len());
    // SAFETY: within the slab.
    unsafe { slab.start().add(bytes) }
}

/// Copies pieces of many sizes there and back, in one batch each, with a driver of `version`; returns the calls it made:
/// batches, copies to the device, copies from it.
#[track_caller]
fn copy_pieces(version: usize, sizes: &[usize]) -> [usize; 3] {
    let fake = Fake::choose();
    fake.ok("fake_cuda_set_version", [version]);
    let context = Context::primary(1).unwrap();
    let _entered = context.enter().unwrap();
    let content = numbers(100_000);
    let (there, back) = (filled(&content), filled(&[0; 100_000]));
    let memory = DeviceBuffer::on_current(100_000).unwrap();
    let stream = CopyStream::lend(context).unwrap();
    // From the end to the start on the device, so that order cannot be mistaken for place.
    let mut at = 0;
    let pieces = sizes.iter().map(|&len| {
        at += len;
        (at - len, 100_000 - at, len)
    });
    let pieces: Vec<_> = pieces.collect();
    let copies = |slab: &Slab| -> Vec<Copy> {
        let copy = |&(at, place, len): &(usize, usize, usize)| Copy {
            device: memory.address() + place as u64,
            host: after(slab, at),
            len,
        };
        pieces.iter().map(copy).collect()
    };
    // SAFETY: slabs and buffer outlive the copies, which are waited for; pieces do not overlap.
    unsafe { stream.batch_to_device(&copies(&there)) }.unwrap();
    // SAFETY: as above.
    unsafe { stream.batch_to_host(&copies(&back)) }.unwrap();
    stream.synchronize().unwrap();
    assert!(bytes_of(&back)[..at] == content[..at]);
    assert!(bytes_of(&back)[at..].iter().all(|byte| *byte == 0));
    for &(at, place, len) in pieces.iter().filter(|piece| piece.2 > 0) {
        assert_eq!(
            fake.peek(memory.address() + place as u64, len),
            content[at..at + len]
        );
    }
    assert_eq!(fake.faults(), "");
    assert_eq!(fake.call("fake_cuda_strays", []), 0);
    let batches = fake.calls("cuMemcpyBatchAsync") + fake.calls("cuMemcpyBatchAsync_v2");
    [
        batches,
        fake.calls("cuMemcpyHtoDAsync_v2"),
        fake.calls("cuMemcpyDtoHAsync_v2"),
    ]
}

const SIZES: [usize; 7] = [1, 4096, 0, 33, 65_536, 7, 4096];

#[test]
fn a_batch_is_one_call_where_the_driver_has_the_second_form() {
    assert_eq!(copy_pieces(13_000, &SIZES), [2, 0, 0]);
}

#[test]
fn a_batch_is_one_call_where_the_driver_has_the_first_form() {
    assert_eq!(copy_pieces(12_080, &SIZES), [2, 0, 0]);
}

#[test]
fn a_batch_is_a_loop_where_the_driver_has_no_such_call() {
    assert_eq!(copy_pieces(12_070, &SIZES), [0, 6, 6]);
}

#[test]
fn a_batch_of_one_piece_is_a_copy() {
    assert_eq!(copy_pieces(13_000, &[0, 5000, 0]), [0, 1, 1]);
}

#[test]
fn a_batch_of_nothing_is_nothing() {
    assert_eq!(copy_pieces(13_000, &[]), [0, 0, 0]);
}

#[test]
fn a_batch_that_the_driver_refuses_to_take_is_a_loop() {
    let fake = Fake::choose();
    fake.fail("cuMemcpyBatchAsync_v2:1+:801");
    assert_eq!(copy_pieces(13_000, &SIZES), [2, 6, 6]);
}

#[test]
fn copies_wait_on_the_device_for_work_of_the_default_stream_and_of_no_other() {
    let fake = Fake::start();
    let mine = own_context(0);
    let memory = DeviceBuffer::on_current(1000).unwrap();
    let slab = filled(&[0; 1000]);
    let stream = CopyStream::lend(mine).unwrap();
    stream.follow_default().unwrap();
    assert_eq!(fake.calls("cuEventRecord"), 0, "nothing to wait for");
    fake.ok("fake_cuda_hold", [0, 1]);
    let default = kvik_sys::Stream::DEFAULT;
    let to = DevicePtr::new(memory.address());
    // SAFETY: the memory outlives the work, and is the test's.
    unsafe { cuda().memset_d8_async(to, 9, 1000, default) }.unwrap();
    let free = CopyStream::lend(mine).unwrap();
    free.mark().unwrap().wait().unwrap();
    stream.follow_default().unwrap();
    // SAFETY: slab and buffer outlive the copy, which is waited for.
    unsafe { stream.to_host(slab.start(), memory.address(), 1000) }.unwrap();
    let mark = stream.mark().unwrap();
    assert!(!mark.is_done().unwrap(), "the default stream is held");
    fake.ok("fake_cuda_hold", [0, 0]);
    mark.wait().unwrap();
    assert!(mark.is_done().unwrap());
    assert_eq!(bytes_of(&slab), [9; 1000]);
    assert_eq!(fake.faults(), "");
}

#[test]
fn copies_follow_a_stream_of_another_device() {
    let fake = Fake::start();
    let theirs = own_context(1);
    let made = cuda().stream_create(StreamFlags::NON_BLOCKING).unwrap();
    // SAFETY: the stream was just made, and is not destroyed.
    let raw = unsafe { RawStream::from_raw(made.as_raw()) };
    cuda().ctx_pop_current().unwrap();
    let ours = Context::primary(0).unwrap();
    let _entered = ours.enter().unwrap();
    let stream = CopyStream::lend(ours).unwrap();
    stream.follow(raw).unwrap();
    assert_eq!(fake.calls("cuEventRecord"), 0);
    fake.ok("fake_cuda_hold", [raw.as_raw().addr(), 1]);
    let word = DeviceBuffer::new(1, 1).unwrap();
    // SAFETY: the memory outlives the work, and is the test's.
    unsafe { cuda().memset_d8_async(DevicePtr::new(word.address()), 1, 1, made) }.unwrap();
    stream.follow(raw).unwrap();
    assert_eq!(Context::current().unwrap(), Some(ours));
    let mark = stream.mark().unwrap();
    assert!(!mark.is_done().unwrap());
    fake.ok("fake_cuda_hold", [raw.as_raw().addr(), 0]);
    mark.wait().unwrap();
    assert_ne!(theirs, ours);
    assert_eq!(fake.faults(), "");
}

/// Whether `stream` still records.
fn records(stream: kvik_sys::Stream) -> bool {
    let mut status = 0_i32;
    let fake = Fake::choose();
    fake.ok(
        "cuStreamIsCapturing",
        [stream.as_raw().addr(), (&raw mut status).addr()],
    );
    status == 1
}

#[test]
fn a_stream_that_records_a_graph_is_not_followed_and_goes_on_recording() {
    let fake = Fake::start();
    let mine = own_context(0);
    let made = cuda().stream_create(StreamFlags::DEFAULT).unwrap();
    // SAFETY: the stream was just made, and is not destroyed.
    let raw = unsafe { RawStream::from_raw(made.as_raw()) };
    let stream = CopyStream::lend(mine).unwrap();
    fake.ok("fake_cuda_set_capturing", [made.as_raw().addr(), 1]);
    for (outcome, text) in [
        (
            stream.follow(raw),
            "copy: the stream is recording a graph, ",
        ),
        (
            stream.follow_default(),
            "copy: a stream that is ordered with the default stream is recording a graph, ",
        ),
    ] {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert!(error.to_string().starts_with(text), "{error}");
        assert!(records(made));
    }
}

#[test]
fn copies_go_on_while_another_thread_records_a_graph_and_do_not_end_it() {
    let fake = Fake::start();
    let context = own_context(0);
    let made = cuda().stream_create(StreamFlags::NON_BLOCKING).unwrap();
    fake.ok("fake_cuda_set_capturing", [made.as_raw().addr(), 1]);
    let mut memory = DeviceBuffer::on_current(70_000).unwrap();
    memory.copy_from_host(&numbers(70_000)).unwrap();
    {
        let _entered = context.enter().unwrap();
        let slab = take_slab(70_000, LIMIT).unwrap();
        let stream = CopyStream::lend(context).unwrap();
        stream.follow_default().unwrap();
        // SAFETY: slab and buffer outlive the copy, which is waited for.
        unsafe { stream.to_host(slab.start(), memory.address(), 70_000) }.unwrap();
        let mark = stream.mark().unwrap();
        while !mark.is_done().unwrap() {}
        assert!(bytes_of(&slab) == numbers(70_000));
    }
    assert!(records(made));
    assert_eq!(fake.faults(), "");
    // The caller's thread is as strict as before, and ends the recording.
    // SAFETY: the default stream is there.
    let asked = unsafe { cuda().stream_query(kvik_sys::Stream::DEFAULT) };
    assert_eq!((asked.unwrap_err().code(), records(made)), (900, false));
}

#[test]
fn streams_and_marks_are_used_again_and_belong_to_one_user_at_a_time() {
    let fake = Fake::start();
    let (one, two) = (Context::primary(0).unwrap(), Context::primary(1).unwrap());
    for _ in 0..5 {
        for context in [one, two] {
            let _entered = context.enter().unwrap();
            let stream = CopyStream::lend(context).unwrap();
            let other = CopyStream::lend(context).unwrap();
            assert_ne!(stream.stream, other.stream);
            let marks = [stream.mark().unwrap(), other.mark().unwrap()];
            assert_ne!(marks[0].event(), marks[1].event());
            marks.iter().for_each(|mark| mark.wait().unwrap());
        }
    }
    assert_eq!(fake.live(), [2, 4, 4, 0]);
}

#[test]
fn what_goes_wrong_on_the_device_is_told_by_the_mark_behind_it() {
    let fake = Fake::start();
    let mine = own_context(0);
    let memory = DeviceBuffer::on_current(100).unwrap();
    let slab = filled(&[1; 100]);
    let stream = CopyStream::lend(mine).unwrap();
    fake.fail("cuMemcpyHtoDAsync_v2:1:700:late");
    // SAFETY: slab and buffer outlive the copy, which is waited for.
    unsafe { stream.to_device(memory.address(), slab.start(), 100) }.unwrap();
    let error = stream.mark().and_then(|mark| mark.wait()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Device);
    assert!(
        error
            .to_string()
            .contains("CUDA_ERROR_ILLEGAL_ADDRESS (700)"),
        "{error}"
    );
    assert!(stream.synchronize().is_err());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "many threads on two devices")]
fn many_threads_copy_at_once_on_two_devices() {
    let fake = Fake::start();
    fake.ok("fake_cuda_set_delay", [20]);
    std::thread::scope(|scope| {
        for thread in 0..6 {
            scope.spawn(move || {
                let context = Context::primary(thread % 2).unwrap();
                let _entered = context.enter().unwrap();
                for turn in 0..10 {
                    let content = vec![(thread * 16 + turn) as u8; 3000];
                    let (there, back) = (filled(&content), take_slab(3000, LIMIT).unwrap());
                    let memory = DeviceBuffer::on_current(3000).unwrap();
                    let stream = CopyStream::lend(context).unwrap();
                    // SAFETY: slabs and buffer outlive the copies, which are waited for.
                    unsafe { stream.to_device(memory.address(), there.start(), 3000) }.unwrap();
                    // SAFETY: as above.
                    unsafe { stream.to_host(back.start(), memory.address(), 3000) }.unwrap();
                    stream.mark().unwrap().wait().unwrap();
                    assert!(bytes_of(&back) == content);
                }
            });
        }
    });
    assert!(fake.live()[1] <= 6, "a stream for each thread at most");
    assert_eq!(
        (fake.faults().as_str(), fake.call("fake_cuda_strays", [])),
        ("", 0)
    );
}

#[test]
fn a_default_stream_can_be_that_of_one_context_wherever_it_is_used() {
    let fake = Fake::start();
    let theirs = own_context(1);
    let memory = DeviceBuffer::on_current(1000).unwrap();
    let raw = theirs.handle().as_raw().cast();
    // SAFETY: the context is there until the end of the test.
    let named = unsafe { RawStream::DEFAULT.in_context(raw) };
    fake.ok("fake_cuda_hold", [0, 1]);
    let to = DevicePtr::new(memory.address());
    // SAFETY: the memory outlives the work, and is the test's.
    unsafe { cuda().memset_d8_async(to, 9, 1000, kvik_sys::Stream::DEFAULT) }.unwrap();
    let mine = own_context(0);
    let nothing = RawStream::DEFAULT.queue(mine).unwrap();
    assert!(nothing.is_none(), "nobody waits for another context's");
    let mark = named.queue(mine).unwrap().unwrap();
    assert!(!mark.is_done().unwrap());
    assert_eq!(Context::current().unwrap(), Some(mine));
    let there = theirs.enter().unwrap();
    fake.ok("fake_cuda_hold", [0, 0]);
    drop(there);
    mark.wait().unwrap();
    assert!(named.queue(mine).unwrap().is_none());
    let buffer = DeviceBuffer::new_async(10, named).unwrap();
    assert_eq!(buffer.device(), 1);
    drop((buffer, memory));
    // SAFETY: nothing is done with it.
    let other = unsafe { RawStream::from_raw(8 as *mut _) };
    // SAFETY: the context is there until the end of the test.
    let same = unsafe { other.in_context(raw) };
    assert_eq!(other, same, "a stream that is no default one has a context");
    assert_eq!(fake.faults(), "");
}

/// What it was told to wait for is nothing to whoever gets it next.
#[test]
fn a_stream_that_may_still_wait_for_others_is_lent_to_nobody_else() {
    let fake = Fake::start();
    let mine = own_context(0);
    let made = cuda().stream_create(StreamFlags::NON_BLOCKING).unwrap();
    // SAFETY: the stream was just made, and is not destroyed.
    let raw = unsafe { RawStream::from_raw(made.as_raw()) };
    let word = DeviceBuffer::on_current(1).unwrap();
    fake.ok("fake_cuda_hold", [raw.as_raw().addr(), 1]);
    // SAFETY: the memory outlives the work, and is the test's.
    unsafe { cuda().memset_d8_async(DevicePtr::new(word.address()), 1, 1, made) }.unwrap();
    let stream = CopyStream::lend(mine).unwrap();
    stream.follow(raw).unwrap();
    drop(stream);
    let next = CopyStream::lend(mine).unwrap();
    next.mark().unwrap().wait().unwrap();
    next.follow(raw).unwrap();
    fake.ok("fake_cuda_hold", [raw.as_raw().addr(), 0]);
    next.synchronize().unwrap();
    let place = next.stream;
    drop(next);
    assert_eq!(
        CopyStream::lend(mine).unwrap().stream,
        place,
        "it is at rest"
    );
    assert_eq!(fake.faults(), "");
}
