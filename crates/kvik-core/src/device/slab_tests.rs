//! Slabs are lent, come back, are bounded, and leave when nobody wants them.

use std::sync::mpsc;

use super::*;
use crate::device::fake::{Fake, destroy, own_context, take_slab, try_take_slab};
use crate::error::ErrorKind;

const MIB: usize = 1 << 20;

fn memory(lent: u64, kept: u64) -> PinnedMemory {
    PinnedMemory { lent, kept }
}

#[test]
fn a_slab_is_pinned_starts_at_a_page_and_can_be_filled() {
    let fake = Fake::start();
    own_context(1);
    for len in [1, 4096, 4097, MIB, 4 * MIB + 3] {
        let slab = take_slab(len, 16 << 20).unwrap();
        assert_eq!((slab.len(), slab.start().addr().get() % 4096), (len, 0));
        assert_eq!(fake.call("fake_cuda_live_registered_bytes", []), len);
        // SAFETY: the slab has so many bytes, and nobody else has it.
        unsafe { slab.start().write_bytes(7, len) };
        drop(slab);
        free_pinned_memory();
    }
    assert_eq!((fake.live(), fake.faults().as_str()), ([1, 0, 0, 0], ""));
}

#[test]
fn a_slab_that_came_back_is_lent_again_to_sizes_that_are_not_much_smaller() {
    let fake = Fake::start();
    own_context(0);
    let first = take_slab(MIB, 1 << 30).unwrap();
    let place = first.start();
    drop(first);
    assert_eq!(pinned_memory(), memory(0, 1 << 20));
    let (second, small) = (
        take_slab(MIB / 2, 1 << 30).unwrap(),
        take_slab(4096, 1 << 30).unwrap(),
    );
    assert_eq!((second.start(), second.len()), (place, MIB / 2));
    assert_eq!(pinned_memory(), memory((1 << 20) + 4096, 0));
    assert_eq!(fake.calls("cuMemHostRegister_v2"), 2);
    drop(small);
    assert_eq!(take_slab(MIB, 1 << 30).unwrap().len(), MIB);
    assert_eq!(fake.calls("cuMemHostRegister_v2"), 3, "4 KiB are not 1 MiB");
}

#[test]
fn no_more_is_lent_than_the_limit_says_and_the_first_one_in_any_case() {
    Fake::start();
    own_context(0);
    let first = take_slab(3 * MIB, 1).unwrap();
    assert!(try_take_slab(1, 1).unwrap().is_none());
    assert!(
        try_take_slab(MIB, 4 << 20).unwrap().is_some(),
        "room for it"
    );
    assert_eq!(pinned_memory(), memory(3 << 20, 1 << 20));
    assert_eq!(names::PINNED_IN_USE.get(), 3 << 20);
    assert!(try_take_slab(2 * MIB, 4 << 20).unwrap().is_none());
    drop(first);
    let two = try_take_slab(2 * MIB, 2 << 20).unwrap().unwrap();
    assert_eq!(
        pinned_memory(),
        memory(3 << 20, 1 << 20),
        "a block counts as what it is"
    );
    assert!(try_take_slab(MIB, 3 << 20).unwrap().is_none());
    drop(two);
    // A block that would be too much is left where it is, and a new one made.
    let one = take_slab(MIB, 3 << 20).unwrap();
    assert_eq!(
        try_take_slab(2 * MIB, 3 << 20).unwrap().unwrap().len(),
        2 * MIB
    );
    assert!(try_take_slab(usize::MAX, u64::MAX).unwrap().is_none());
    drop(one);
    let error = take_slab(usize::MAX, u64::MAX).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert_eq!((pinned_memory().lent, names::PINNED_IN_USE.get()), (0, 0));
}

/// A device may hold up what it has been lent for as long as the program likes.
#[test]
fn the_first_slab_in_each_context_is_lent_in_any_case() {
    Fake::start();
    let one = own_context(0);
    let all = take_slab(MIB, 1 << 20).unwrap();
    assert!(try_take_slab(MIB, 1 << 20).unwrap().is_none());
    let two = own_context(0);
    let first = take_slab(MIB, 1 << 20).unwrap();
    assert!(try_take_slab(MIB, 1 << 20).unwrap().is_none());
    assert_eq!(pinned_memory(), memory(2 << 20, 0));
    drop(all);
    let again = Slab::try_take(one, MIB, 1 << 20).unwrap();
    assert!(again.is_some(), "none is lent there");
    drop(first);
    assert!(Slab::try_take(two, MIB, 1 << 20).unwrap().is_some());
    drop(again);
    assert_eq!(pinned_memory().lent, 0);
}

#[test]
fn slabs_of_other_sizes_make_room_the_longest_unused_first() {
    Fake::start();
    own_context(0);
    drop([MIB, 2 * MIB].map(|len| take_slab(len, 8 << 20).unwrap()));
    assert_eq!(pinned_memory(), memory(0, 3 << 20));
    let large = take_slab(6 * MIB, 8 << 20).unwrap();
    assert_eq!(pinned_memory(), memory(6 << 20, 2 << 20));
    drop(large);
    let all = take_slab(30 * MIB, 8 << 20).unwrap();
    assert_eq!(pinned_memory(), memory(30 << 20, 0));
    drop(all);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "somebody else waits")]
fn whoever_waits_for_a_slab_gets_it_when_one_comes_back() {
    Fake::start();
    let context = own_context(0);
    let held = take_slab(MIB, 1 << 20).unwrap();
    let place = held.start().addr();
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let _entered = context.enter().unwrap();
            let slab = take_slab(MIB, 1 << 20).unwrap();
            sender.send(slab.start().addr())
        });
        assert!(receiver.recv_timeout(Duration::from_millis(50)).is_err());
        drop(held);
        assert_eq!(
            receiver.recv_timeout(Duration::from_secs(60)).unwrap(),
            place
        );
    });
    assert_eq!(pinned_memory(), memory(0, 1 << 20));
}

#[test]
fn slabs_that_nobody_took_for_long_leave_when_the_last_one_that_is_lent_comes_back() {
    let fake = Fake::start();
    let context = own_context(0);
    let budget = Budget::default();
    let lend = || match budget.take(context, 4096, 1 << 20) {
        Some(Loan::New(_)) => Pinned::new(4096, context).unwrap(),
        Some(Loan::Kept(block)) => block,
        None => panic!("the limit is far"),
    };
    let start = Instant::now();
    let soon = start + IDLE / 2;
    let late = start + IDLE;
    let (one, two, three) = (lend(), lend(), lend());
    assert!(budget.put(context, one, Lent::ToThread, start).is_empty());
    assert!(budget.put(context, two, Lent::ToThread, soon).is_empty());
    // At rest, and nothing is idle yet.
    assert!(budget.put(context, three, Lent::ToThread, soon).is_empty());
    let (again, other) = (lend(), lend());
    assert!(
        budget.put(context, again, Lent::ToThread, late).is_empty(),
        "another one is still lent"
    );
    assert_eq!(
        budget.put(context, other, Lent::ToThread, late).len(),
        1,
        "the one that came back first"
    );
    assert_eq!(budget.bytes(), memory(0, 2 * 4096));
    assert_eq!(budget.free(), 2 * 4096);
    assert_eq!((fake.live()[3], fake.faults().as_str()), (0, ""));
}

#[test]
fn memory_that_cannot_be_pinned_is_an_error_and_does_not_count() {
    let fake = Fake::start();
    assert_eq!(
        take_slab(10, 100).unwrap_err().kind(),
        ErrorKind::Misuse,
        "no context"
    );
    own_context(0);
    fake.fail("cuMemHostRegister_v2:1:2");
    let error = take_slab(MIB, 1 << 20).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert_eq!(
        error.to_string(),
        "allocate: cuMemHostRegister: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory; free memory or raise the limit, then run it again"
    );
    assert_eq!(
        take_slab(1 << 60, 1 << 20).unwrap_err().kind(),
        ErrorKind::OutOfMemory
    );
    assert_eq!(pinned_memory(), memory(0, 0));
    assert_eq!(fake.live()[3], 0);
    assert_eq!(take_slab(0, 1 << 20).unwrap().len(), 0);
}

#[test]
fn asking_for_pinned_memory_does_not_load_the_driver() {
    let fake = Fake::choose();
    assert_eq!((pinned_memory(), free_pinned_memory()), (memory(0, 0), 0));
    assert_eq!(fake.calls("*"), 0);
}

#[test]
fn a_slab_that_is_abandoned_counts_no_more_and_is_never_lent_again() {
    let fake = Fake::start();
    own_context(0);
    let slab = take_slab(MIB, 2 << 20).unwrap();
    let place = slab.start();
    slab.abandon();
    assert_eq!(pinned_memory(), memory(0, 0));
    let other = take_slab(MIB, 1 << 20).unwrap();
    assert_ne!(other.start(), place);
    // What a device may still be at is there, and pinned.
    let registered = fake.call("fake_cuda_live_registered_bytes", []);
    assert_eq!(registered, 2 * MIB);
    // SAFETY: the pages are mapped for as long as the process lives, and no device is at them.
    unsafe { place.write_bytes(7, MIB) };
}

#[test]
fn a_slab_whose_context_is_gone_is_pinned_anew_before_it_is_lent_again() {
    let fake = Fake::start();
    let mine = own_context(0);
    drop(take_slab(MIB, 1 << 30).unwrap());
    destroy(mine);
    own_context(0);
    let again = take_slab(MIB / 2, 1 << 30).unwrap();
    assert_eq!(fake.call("fake_cuda_live_registered_bytes", []), MIB);
    assert_eq!(pinned_memory(), memory(1 << 20, 0));
    drop(again);
    assert_eq!(free_pinned_memory(), 1 << 20);
    assert_eq!((fake.live()[3], fake.faults().as_str()), (0, ""));
}

#[test]
fn slabs_for_streams_are_counted_apart_and_leave_half_to_others() {
    let fake = Fake::start();
    let context = own_context(0);
    let take = |wanted, limit| Slab::take_for_stream(context, MIB, wanted, limit).unwrap();
    let first = take(16, 8 << 20);
    let second = take(16, 8 << 20);
    let third = take(16, 8 << 20);
    assert_eq!([first.len(), second.len(), third.len()], [4, 2, 1]);
    // The last one that fits, and then none, whoever waits.
    let last = take(16, 8 << 20);
    assert_eq!((last.len(), take(16, 8 << 20).len()), (1, 0));
    let beyond = Slab::take_beyond(context, MIB).unwrap();
    assert_eq!(pinned_memory(), memory(9 << 20, 0));
    assert_eq!(names::PINNED_IN_USE.get(), 9 << 20);
    // To threads, that is nothing lent.
    let slab = try_take_slab(MIB, 1 << 20).unwrap().unwrap();
    assert!(try_take_slab(MIB, 1 << 20).unwrap().is_none());
    drop((first, second, third, last, beyond, slab));
    assert_eq!(pinned_memory(), memory(0, 10 << 20));
    // What is kept serves both.
    drop(take(2, 8 << 20));
    assert_eq!(fake.calls("cuMemHostRegister_v2"), 10);
    assert_eq!(free_pinned_memory(), 10 << 20);
    assert_eq!((fake.live()[3], fake.faults().as_str()), (0, ""));
}

#[test]
fn nothing_is_unpinned_on_the_way_while_a_stream_waits() {
    let fake = Fake::start();
    own_context(0);
    drop(take_slab(MIB, 4 << 20).unwrap());
    let stay = [StayPinned::new(), StayPinned::new()];
    let large = take_slab(4 * MIB, 4 << 20).unwrap();
    assert_eq!(pinned_memory(), memory(4 << 20, 0));
    let [one, two] = stay;
    drop(one);
    assert_eq!(fake.calls("cuMemHostUnregister"), 0);
    drop(two);
    while fake.calls("cuMemHostUnregister") == 0 {
        std::thread::yield_now();
    }
    drop(large);
    free_pinned_memory();
    assert_eq!((fake.live()[3], fake.faults().as_str()), (0, ""));
}
