//! Bytes that can be told apart by where they stand, and comparisons that say where instead of printing megabytes.

use std::path::{Path, PathBuf};

/// The byte at `offset` of the pattern `seed`. No two aligned words within reach of a test are equal.
#[must_use]
pub fn byte_at(seed: u64, offset: u64) -> u8 {
    (word(seed, offset / 8) >> (offset % 8 * 8)) as u8
}

/// `len` bytes of the pattern `seed` from `offset` on.
#[must_use]
pub fn pattern(seed: u64, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 16);
    let skip = (offset % 8) as usize;
    let mut index = offset / 8;
    while bytes.len() < len + skip {
        bytes.extend_from_slice(&word(seed, index).to_le_bytes());
        index += 1;
    }
    bytes.drain(..skip);
    bytes.truncate(len);
    bytes
}

/// A file `name` in `folder` that holds `len` bytes of the pattern `seed`.
#[must_use]
pub fn file(folder: &Path, name: &str, seed: u64, len: usize) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, pattern(seed, 0, len)).unwrap();
    path
}

/// Where the two differ first, if they do; the shorter one's end counts as a difference.
#[must_use]
pub fn first_difference(found: &[u8], expected: &[u8]) -> Option<usize> {
    if found == expected {
        return None;
    }
    let differs = |(a, b): (&u8, &u8)| a != b;
    let within = found.iter().zip(expected).position(differs);
    Some(within.unwrap_or(found.len().min(expected.len())))
}

/// Fails with the place of the first difference.
#[track_caller]
pub fn assert_same(found: &[u8], expected: &[u8]) {
    if let Some(at) = first_difference(found, expected) {
        panic!(
            "{} bytes where {} were expected; first difference at {at}: {:?} instead of {:?}",
            found.len(),
            expected.len(),
            found.get(at),
            expected.get(at)
        );
    }
}

/// Fails with the first place at which `bytes` is not `byte` all along.
#[track_caller]
pub fn assert_all(bytes: &[u8], byte: u8) {
    if let Some(at) = bytes.iter().position(|found| *found != byte) {
        panic!(
            "byte {at} of {} is {:#x}, not {byte:#x}",
            bytes.len(),
            bytes[at]
        );
    }
}

/// What a target holds before a read, so that a byte that was written by mistake is seen.
pub const UNTOUCHED: u8 = 0xEE;

fn word(seed: u64, index: u64) -> u64 {
    // The finalizer of splitmix64.
    let mut x = index
        .wrapping_add(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
        .wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_of_the_pattern_is_the_pattern_at_its_offset() {
        let whole = pattern(3, 0, 100);
        for offset in 0..20 {
            assert_same(&pattern(3, offset, 50), &whole[offset as usize..][..50]);
        }
        assert_eq!(byte_at(3, 17), whole[17]);
        assert_ne!(pattern(4, 0, 100), whole);
    }

    #[test]
    fn the_first_difference_is_where_one_ends() {
        assert_eq!(first_difference(b"abc", b"abcd"), Some(3));
        assert_eq!(first_difference(b"abX", b"abc"), Some(2));
        assert_eq!(first_difference(b"", b""), None);
    }
}
