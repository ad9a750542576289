//! A copy that goes past the cache: 32-byte streaming (non-temporal) stores where the CPU has AVX2.
//!
//! A plain store reads the line it is about to overwrite; a streaming store does not, so a copy into memory that is not read
//! back soon moves two thirds of the bytes. Ported from `nt` in the loops that set the limits.

/// Whether [`copy`] streams on this machine. Where it does not, a loop that is named after streaming is left out.
pub(crate) fn available() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx2")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// Copies `source` over `target` (same length), streaming where that is [`available`] and plainly elsewhere.
///
/// # Panics
/// If the lengths differ, like `copy_from_slice`.
pub(crate) fn copy(target: &mut [u8], source: &[u8]) {
    assert_eq!(target.len(), source.len(), "a copy has one length");
    #[cfg(target_arch = "x86_64")]
    if available() {
        // SAFETY: the CPU has AVX2, which `available` has just asked it.
        unsafe { avx2::copy(target, source) };
        return;
    }
    target.copy_from_slice(source);
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _MM_HINT_NTA, _mm_prefetch, _mm_sfence, _mm256_loadu_si256, _mm256_stream_si256,
    };

    /// What one streaming store fills; the store faults at any other alignment.
    #[repr(C, align(32))]
    struct Lane([u8; 32]);

    const LANES: usize = 4;
    // About a microsecond ahead at the speeds seen; `readlimits.c` uses the same.
    const AHEAD: usize = 1024;

    #[target_feature(enable = "avx2")]
    pub(super) fn copy(target: &mut [u8], source: &[u8]) {
        // SAFETY: a `Lane` is 32 plain bytes: any bytes make a valid one, and it has no padding.
        let (head, body, tail) = unsafe { target.align_to_mut::<Lane>() };
        let (source_head, rest) = source.split_at(head.len());
        let (source_body, source_tail) = rest.split_at(body.len() * 32);
        head.copy_from_slice(source_head);
        tail.copy_from_slice(source_tail);

        let (sources, _) = source_body.as_chunks::<32>();
        let (fours, ones) = body.as_chunks_mut::<LANES>();
        let (source_fours, source_ones) = sources.as_chunks::<LANES>();
        for (lanes, chunks) in fours.iter_mut().zip(source_fours) {
            // Four loads before four stores, so that the stores of one 128-byte group leave together.
            let [a, b, c, d] = [
                load(&chunks[0]),
                load(&chunks[1]),
                load(&chunks[2]),
                load(&chunks[3]),
            ];
            // A hint: it does not fault, though it points past the end of the source at last.
            _mm_prefetch::<_MM_HINT_NTA>(chunks.as_ptr().cast::<i8>().wrapping_add(AHEAD));
            stream(&mut lanes[0], a);
            stream(&mut lanes[1], b);
            stream(&mut lanes[2], c);
            stream(&mut lanes[3], d);
        }
        for (lane, chunk) in ones.iter_mut().zip(source_ones) {
            stream(lane, load(chunk));
        }
        // Streaming stores are not ordered with others: without the fence another thread, or this one by a plain load, might
        // see the target as it was.
        _mm_sfence();
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn load(chunk: &[u8; 32]) -> __m256i {
        // SAFETY: 32 readable bytes, as the type says; `loadu` asks for no alignment.
        unsafe { _mm256_loadu_si256(chunk.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn stream(lane: &mut Lane, value: __m256i) {
        // SAFETY: 32 writable bytes at a multiple of 32, as the type says; `copy` fences before anybody looks at them.
        unsafe { _mm256_stream_si256(lane.0.as_mut_ptr().cast(), value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern;

    #[test]
    fn every_alignment_and_length_copies_exactly_its_bytes() {
        let mut source = vec![0; 512];
        pattern::fill(&mut source, 3, 0);
        let mut target = vec![0_u8; 512];
        for target_at in 0..64 {
            for len in 0..=300 {
                // Walks through all source alignments as well, without running every pair of them.
                let source_at = (target_at * 7 + len) % 64;
                target.fill(0xee);
                copy(
                    &mut target[target_at..target_at + len],
                    &source[source_at..source_at + len],
                );
                assert_eq!(
                    target[target_at..target_at + len],
                    source[source_at..source_at + len]
                );
                let untouched = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0xee);
                assert!(
                    untouched(&target[..target_at]),
                    "wrote before the target: at {target_at}, length {len}"
                );
                assert!(
                    untouched(&target[target_at + len..]),
                    "wrote past the target: at {target_at}, length {len}"
                );
            }
        }
    }

    #[test]
    fn a_long_copy_at_an_odd_place_is_whole() {
        let mut source = vec![0; 3 * 1024 * 1024 + 5];
        pattern::fill(&mut source, 4, 0);
        let mut target = vec![0; source.len() + 16];
        copy(&mut target[13..][..source.len()], &source);
        assert_eq!(
            pattern::first_difference(&target[13..][..source.len()], 4, 0),
            None
        );
    }

    #[test]
    #[should_panic(expected = "one length")]
    fn different_lengths_panic() {
        copy(&mut [0; 3], &[0; 4]);
    }
}
