//! The caller's current context is its own again, contexts are made where they are needed only, and one that is gone is
//! never touched.

use super::*;
use crate::device::fake::{Fake, cuda, destroy, own_context, take_slab};
use crate::device::{CopyStream, free_pinned_memory};

#[test]
fn entering_a_context_leaves_the_callers_current_one_as_it_was() {
    let fake = Fake::start();
    let (one, two) = (Context::primary(0).unwrap(), Context::primary(1).unwrap());
    assert_eq!(Context::current().unwrap(), None);
    {
        let _one = one.enter().unwrap();
        assert_eq!(Context::current().unwrap(), Some(one));
        {
            let _two = two.enter().unwrap();
            let _again = two.enter().unwrap();
            assert_eq!(Context::current().unwrap(), Some(two));
        }
        assert_eq!(Context::current().unwrap(), Some(one));
    }
    assert_eq!(Context::current().unwrap(), None);
    let mine = own_context(1);
    drop(one.enter().unwrap());
    assert_eq!(Context::current().unwrap(), Some(mine));
    assert_eq!((one.device(), two.device(), mine.device()), (0, 1, 1));
    assert_eq!(fake.faults(), "");
}

#[test]
fn a_primary_context_is_held_once_and_that_of_an_unused_device_is_not_made() {
    let fake = Fake::start();
    for _ in 0..3 {
        assert_eq!(Context::primary(1).unwrap(), Context::primary(1).unwrap());
    }
    let held = [0, 1].map(|device| fake.call("fake_cuda_retained", [device]));
    assert_eq!((held, fake.live()), ([0, 1], [1, 0, 0, 0]));
    let error = Context::primary(2).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Device);
    assert_eq!(
        error.to_string(),
        "inspect: cuDevicePrimaryCtxRetain: CUDA_ERROR_INVALID_DEVICE (101): invalid device ordinal"
    );
}

#[test]
fn what_died_with_its_context_is_never_touched_again() {
    let fake = Fake::start();
    for _ in 0..2 {
        let mine = own_context(0);
        {
            let stream = CopyStream::lend(mine).unwrap();
            stream.mark().unwrap().wait().unwrap();
            let _slab = take_slab(4096, 1 << 20).unwrap();
        }
        assert_eq!(fake.live(), [1, 1, 1, 1], "kept for the next ones");
        destroy(mine);
        let error = mine.enter().err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Device);
        assert_eq!(
            error.to_string(),
            "inspect: cuCtxGetId: CUDA_ERROR_CONTEXT_IS_DESTROYED (709): context is destroyed"
        );
        assert_eq!(Context::current().unwrap(), None);
        // The slab's memory is not pinned any more; it is ours all the same, and goes.
        assert_eq!(free_pinned_memory(), 4096);
    }
    assert_eq!(fake.faults(), "");
}

#[test]
fn a_device_that_was_reset_gets_another_context_with_streams_of_its_own() {
    let fake = Fake::start();
    let before = Context::primary(0).unwrap();
    {
        let _entered = before.enter().unwrap();
        let stream = CopyStream::lend(before).unwrap();
        stream.mark().unwrap().wait().unwrap();
    }
    fake.ok("cuDevicePrimaryCtxReset_v2", [0]);
    assert_eq!(before.state(cuda()), State::Destroyed);
    let after = Context::primary(0).unwrap();
    assert_ne!(after, before);
    let _entered = after.enter().unwrap();
    let stream = CopyStream::lend(after).unwrap();
    stream.mark().unwrap().wait().unwrap();
    assert_eq!(fake.faults(), "");
}

#[test]
fn a_broken_context_says_why_and_its_pinned_memory_goes_to_nobody_else() {
    let fake = Fake::start();
    let mine = own_context(0);
    let slab = take_slab(4096, 1 << 20).unwrap();
    fake.ok("fake_cuda_break_context", [700]);
    let error = mine.enter().err().unwrap();
    assert!(
        error
            .to_string()
            .starts_with("inspect: cuCtxGetId: CUDA_ERROR_ILLEGAL_ADDRESS (700)"),
        "{error}"
    );
    let start = slab.start();
    drop(slab);
    assert_eq!(free_pinned_memory(), 4096);
    // SAFETY: the driver still knows the memory, so it must still be there.
    assert_eq!(unsafe { start.as_ptr().read_volatile() }, 0);
}
