//! A copy that goes past the cache, for large targets that nobody reads back at once.
//!
//! A plain store first fetches the line it is about to overwrite; a streaming (non-temporal) store does not, so a copy
//! moves two thirds of the bytes. On CPUs other than x86-64 it is the plain copy.

use std::mem::MaybeUninit;

/// Copies `from` into the first `from.len()` bytes of `to`, which is at least as long, by streaming stores where the CPU has them.
///
/// When it returns, all threads that learn of it see the bytes.
pub(crate) fn stream(to: &mut [MaybeUninit<u8>], from: &[u8]) {
    let to = &mut to[..from.len()];
    #[cfg(target_arch = "x86_64")]
    lines::stream(to, from);
    #[cfg(not(target_arch = "x86_64"))]
    to.write_copy_of_slice(from);
}

/// The same for a piece of any length: short ones by plain stores, which leave them in the cache.
pub(crate) fn land(to: &mut [MaybeUninit<u8>], from: &[u8]) {
    match from.len() < LARGE {
        true => drop(to[..from.len()].write_copy_of_slice(from)),
        false => stream(to, from),
    }
}

/// From this length on a copy goes past the cache: no more of it stays in the first-level one anyway.
pub(crate) const LARGE: usize = 64 << 10;

#[cfg(target_arch = "x86_64")]
mod lines {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    use std::mem::MaybeUninit;

    /// A quarter of a line: what one streaming store of SSE2, which every x86-64 has, fills. It faults at any other alignment.
    #[derive(Clone, Copy)]
    #[repr(C, align(16))]
    struct Lane([MaybeUninit<u8>; 16]);

    /// What leaves for memory at once. Lines are filled one after the other: with two open at a time, copies out of the page
    /// cache were slower by an eighth. Wider stores (AVX2, AVX-512) and prefetching gave nothing for copies out of the
    /// processor's cache, which are this module's; measured on Sapphire Rapids.
    #[repr(C, align(64))]
    struct Line([Lane; 4]);

    pub(super) fn stream(to: &mut [MaybeUninit<u8>], from: &[u8]) {
        // SAFETY: a `Line` is 64 bytes without padding, each of which may be anything, so any 64 bytes at its alignment make
        // a valid one, and whatever is stored to a `Line` leaves valid `MaybeUninit<u8>`.
        let (head, body, tail) = unsafe { to.align_to_mut::<Line>() };
        let (from_head, rest) = from.split_at(head.len());
        let (from_body, from_tail) = rest.split_at(size_of_val(body));
        head.write_copy_of_slice(from_head);
        tail.write_copy_of_slice(from_tail);

        let (chunks, _) = from_body.as_chunks::<16>();
        let (chunks, _) = chunks.as_chunks::<4>();
        for (line, [a, b, c, d]) in body.iter_mut().zip(chunks) {
            let Line([to_a, to_b, to_c, to_d]) = line;
            // All loads before the first store, so that the four stores of a line follow each other.
            let (a, b, c, d) = (load(a), load(b), load(c), load(d));
            store(to_a, a);
            store(to_b, b);
            store(to_c, c);
            store(to_d, d);
        }
        // Streaming stores are not ordered with others: without the fence, whoever is told that the copy is done might still
        // see the target as it was.
        // SAFETY: SSE is part of x86-64.
        unsafe { _mm_sfence() };
    }

    #[inline(always)]
    fn load(chunk: &[u8; 16]) -> __m128i {
        // SAFETY: 16 readable bytes, as the type says; `loadu` asks for no alignment.
        unsafe { _mm_loadu_si128(chunk.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(lane: &mut Lane, value: __m128i) {
        // SAFETY: 16 writable bytes at a multiple of 16, as the type says; `stream` fences before anybody looks at them.
        unsafe { _mm_stream_si128(lane.0.as_mut_ptr().cast(), value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at * 31 % 251) as u8).collect()
    }

    /// Copies with bytes of another value around the target, and looks at all of it.
    #[track_caller]
    fn check(memory: &mut [u8], at: usize, from: &[u8]) {
        memory.fill(0xee);
        let (before, rest) = memory.split_at_mut(at);
        let (to, behind) = rest.split_at_mut(from.len());
        // SAFETY: every `u8` is a valid `MaybeUninit<u8>`, and `stream` stores nothing uninitialised through it.
        let uninit = unsafe { &mut *(std::ptr::from_mut(to) as *mut [MaybeUninit<u8>]) };
        stream(uninit, from);
        assert_eq!(to, from, "at {at}");
        assert!(before.iter().all(|byte| *byte == 0xee), "wrote before {at}");
        assert!(
            behind.iter().all(|byte| *byte == 0xee),
            "wrote behind {at} + {}",
            from.len()
        );
    }

    #[test]
    fn every_alignment_and_length_copies_exactly_its_bytes() {
        let from = numbers(512);
        let mut memory = [0; 512];
        for at in 0..64 {
            for len in 0..=300 {
                // Walks through all source alignments as well, without running every pair of them.
                let from_at = (at * 7 + len) % 64;
                check(&mut memory, at, &from[from_at..from_at + len]);
            }
        }
    }

    #[test]
    fn long_copies_at_odd_places_are_whole() {
        let from = numbers((3 << 20) + 5);
        let mut memory = vec![0; from.len() + 128];
        for (at, from_at) in [(0, 0), (13, 0), (16, 1), (63, 4), (64, 5)] {
            check(&mut memory, at, &from[from_at..]);
        }
    }

    #[test]
    fn a_target_with_more_room_keeps_the_rest() {
        let mut memory = [MaybeUninit::new(7u8); 200];
        stream(&mut memory[..], &numbers(130));
        // SAFETY: the whole array was initialised when it was made.
        let memory = memory.map(|byte| unsafe { byte.assume_init() });
        assert_eq!(memory[..130], numbers(130));
        assert_eq!(memory[130..], [7; 70]);
    }
}
