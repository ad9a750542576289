//! Scratch memory is lent, comes back, is bounded, and nobody waits for it.

use super::*;

#[test]
fn a_budget_counts_whole_pages_and_prefers_what_came_back_last() {
    let budget = Budget::default();
    let take = |len, limit| match budget.take(len, limit) {
        Some(Loan::New(len)) => Some(Pages::new(len).unwrap()),
        Some(Loan::Kept(pages)) => Some(pages),
        None => None,
    };
    let (one, two) = (take(5000, 1 << 20).unwrap(), take(8000, 1 << 20).unwrap());
    assert_eq!(budget.bytes(), (16_384, 0));
    let place = two.as_ptr();
    budget.put(one);
    budget.put(two);
    assert_eq!(take(5000, 1 << 20).unwrap().as_ptr(), place);
    assert_eq!(budget.bytes(), (8192, 8192));
    assert!(
        take(8193, 16_384).is_none(),
        "12 KiB besides the 8 KiB that are lent"
    );
    assert!(take(3 * 4096, 20_480).is_some());
    assert_eq!(budget.bytes(), (20_480, 0), "what was kept made room");
    budget.forgo(3 * 4096);
    assert_eq!((budget.bytes(), budget.free()), ((8192, 0), 0));
}

#[test]
fn a_wish_that_cannot_be_counted_is_refused() {
    let budget = Budget::default();
    assert!(matches!(budget.take(1, u64::MAX), Some(Loan::New(1))));
    assert!(budget.take(usize::MAX - 8192, 1 << 40).is_none());
}

// One test, because the budget of the process is one.
#[test]
fn scratch_memory_is_capped_by_the_setting_block_by_block_and_in_all_and_can_be_freed() {
    let cap = ByteSize::kib(64);
    let mut blocks: Vec<Scratch> = (0..16)
        .map(|_| Scratch::take(1 << 30, cap).unwrap())
        .collect();
    assert!(blocks.iter().all(|block| block.len() == 64 << 10));
    assert!(
        Scratch::take(1, cap).is_none(),
        "16 blocks are all there are"
    );
    assert_eq!(scratch_memory().lent, 16 << 16);
    blocks[3].fill(7);
    let place = blocks[3].as_ptr();
    blocks.swap(3, 15);
    drop(blocks.pop());
    let again = Scratch::take(40_000, cap).unwrap();
    assert_eq!(
        (again.as_ptr(), again.len(), again[39_999]),
        (place, 40_000, 7)
    );
    drop(again);
    drop(blocks);
    assert_eq!(
        scratch_memory(),
        ScratchMemory {
            lent: 0,
            kept: 16 << 16
        }
    );
    assert_eq!(free_scratch_memory(), 16 << 16);
    assert_eq!(scratch_memory(), ScratchMemory { lent: 0, kept: 0 });
    let least = Scratch::take(0, ByteSize::new(1)).unwrap();
    assert_eq!(least.len(), 1, "a block is never of no bytes");
    drop(least);
    let used_up = names::SCRATCH_USED_UP.get();
    let much = ByteSize::new(1 << 55);
    assert!(
        Scratch::take(1 << 55, much).is_none(),
        "what the system does not have is no error"
    );
    assert_eq!(scratch_memory().lent, 0);
    assert!(names::SCRATCH_USED_UP.get() > used_up);
}
