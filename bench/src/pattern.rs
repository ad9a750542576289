//! Bytes that know their position: cheap to make, cheap to check, and different in every word (pure).

/// The page of which each gets at least one word looked at after every turn. A constant, not the machine's page: it only
/// says how densely turns are checked.
pub(crate) const PAGE: usize = 4096;

/// The word at byte position `8 * index` of the pattern `seed`: splitmix64, so that neighbours share nothing and a page
/// that landed in the wrong place, or stayed zero, cannot pass.
pub(crate) fn word(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Fills `bytes` with what the pattern `seed` has at `offset`, which must be a multiple of 8.
pub(crate) fn fill(bytes: &mut [u8], seed: u64, offset: u64) {
    debug_assert!(offset.is_multiple_of(8));
    let first = offset / 8;
    let (words, tail) = bytes.as_chunks_mut::<8>();
    let count = words.len() as u64;
    for (slot, index) in words.iter_mut().zip(first..) {
        *slot = word(seed, index).to_le_bytes();
    }
    let last = word(seed, first + count).to_le_bytes();
    tail.copy_from_slice(&last[..tail.len()]);
}

/// The position within `bytes` of the first byte that is not what the pattern `seed` has at `offset` (a multiple of 8).
pub(crate) fn first_difference(bytes: &[u8], seed: u64, offset: u64) -> Option<usize> {
    debug_assert!(offset.is_multiple_of(8));
    let first = offset / 8;
    let (words, tail) = bytes.as_chunks::<8>();
    let differs = |got: &[u8], wanted: [u8; 8]| {
        got.iter()
            .zip(wanted)
            .position(|(&got, wanted)| got != wanted)
    };
    for (position, (got, index)) in words.iter().zip(first..).enumerate() {
        let wanted = word(seed, index);
        if u64::from_le_bytes(*got) != wanted {
            return differs(got, wanted.to_le_bytes()).map(|byte| position * 8 + byte);
        }
    }
    let wanted = word(seed, first + words.len() as u64).to_le_bytes();
    differs(tail, wanted).map(|byte| words.len() * 8 + byte)
}

/// Spoils one word of each page of `bytes`, another one for each `salt`, so that a turn that skips a page is found out even
/// though an earlier turn left the right bytes there. `bytes` holds the pattern from position 0.
pub(crate) fn spoil(bytes: &mut [u8], seed: u64, salt: u64) {
    for (page, chunk) in bytes.chunks_exact_mut(PAGE).enumerate() {
        let at = spoiled_word(salt, page);
        let wrong = !word(seed, ((page * PAGE) / 8 + at) as u64);
        chunk[at * 8..][..8].copy_from_slice(&wrong.to_le_bytes());
    }
}

/// The position of the first byte of a word that [`spoil`] spoiled and no later transfer put right.
pub(crate) fn still_spoiled(bytes: &[u8], seed: u64, salt: u64) -> Option<usize> {
    bytes
        .chunks_exact(PAGE)
        .enumerate()
        .find_map(|(page, chunk)| {
            let at = spoiled_word(salt, page);
            let wanted = word(seed, ((page * PAGE) / 8 + at) as u64).to_le_bytes();
            (chunk[at * 8..][..8] != wanted).then_some(page * PAGE + at * 8)
        })
}

fn spoiled_word(salt: u64, page: usize) -> usize {
    (word(salt, page as u64) % (PAGE as u64 / 8)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_flipped_bit_is_found_wherever_it_is() {
        for len in [1, 7, 8, 9, 64, 4096, 4099] {
            let mut bytes = vec![0; len];
            fill(&mut bytes, 5, 4096);
            assert_eq!(first_difference(&bytes, 5, 4096), None, "length {len}");
            for at in 0..len {
                bytes[at] ^= 1 << (at % 8);
                assert_eq!(first_difference(&bytes, 5, 4096), Some(at), "length {len}");
                bytes[at] ^= 1 << (at % 8);
            }
        }
    }

    #[test]
    fn the_pattern_depends_on_position_and_seed_only() {
        let mut whole = vec![0; 64 * 1024];
        fill(&mut whole, 9, 0);
        let mut part = vec![0; 1000];
        fill(&mut part, 9, 4096);
        assert_eq!(part, &whole[4096..5096]);
        assert_eq!(first_difference(&part, 9, 4104), Some(0));
        assert!(first_difference(&part, 10, 4096).is_some());
    }

    #[test]
    fn a_page_that_a_turn_left_out_is_found() {
        let mut bytes = vec![0; 16 * PAGE];
        fill(&mut bytes, 1, 0);
        for salt in 0..50 {
            spoil(&mut bytes, 1, salt);
            for page in 0..16 {
                if page != 11 {
                    fill(&mut bytes[page * PAGE..][..PAGE], 1, (page * PAGE) as u64);
                }
            }
            let at = still_spoiled(&bytes, 1, salt).expect("page 11 was not put right");
            assert_eq!(at / PAGE, 11);
            fill(&mut bytes[11 * PAGE..][..PAGE], 1, 11 * PAGE as u64);
            assert_eq!(still_spoiled(&bytes, 1, salt), None);
        }
    }
}
