//! What was read before, and whether the page cache kept it: the first time past the cache, the second time through it, and
//! if that did not last, past it for good.
//!
//! So bytes that are read once leave the cache to others, data sets that fit into memory are in it from the third round
//! at the latest, and those that do not fit stop to thrash it.
//!
//! A file is looked at in grains of 256 KiB, each of which belongs to the piece it begins in: so every piece that is worth
//! a decision has one, however offsets and lengths lie. What is known of a grain, two bits, lies in one table for the process, of
//! fixed size and without a lock; where too many grains meet, the one that was used the longest ago is forgotten. A
//! forgotten grain, or one mistaken for another, is read by the other way than it might have been, and nothing else.

use std::fs::Metadata;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
// Not those of sync.rs: the table is a static, which loom's cannot be in.
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

/// The way for bytes that are not in the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Past it: they are not there afterwards either.
    Past,
    /// Through it: they are, for a while.
    Through,
}

/// How a piece was found that is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Missing from the page cache, but for a little.
    Missing,
    /// In it or on its way, most likely by readahead alone.
    ReadAhead,
}

/// What is known of one grain, whenever it is found missing from the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing.
    Unseen = 0,
    /// It was read past the cache.
    Seen = 1,
    /// It was read through the cache, and is missing for the first time after.
    Kept = 2,
    /// The cache did not keep it.
    Lost = 3,
}

impl State {
    fn of_bits(bits: u64) -> State {
        match bits & STATE {
            0 => State::Unseen,
            1 => State::Seen,
            2 => State::Kept,
            _ => State::Lost,
        }
    }

    fn after(self, way: Way) -> State {
        match (self, way) {
            (State::Unseen | State::Seen, Way::Past) => State::Seen,
            (State::Unseen | State::Seen, Way::Through) => State::Kept,
            (State::Kept | State::Lost, _) => State::Lost,
        }
    }
}

/// Grains of many files, in `SETS` sets of four. A set is a word: four entries of a tag and a state, the one that was used
/// last in the lowest bits. Zero is an entry of nothing.
pub(crate) struct Rereads<const SETS: usize> {
    sets: [AtomicU64; SETS],
}

/// What the process knows: 512 GiB of data, in 4 MiB of memory of which only what is used is there.
pub(crate) static REREADS: Rereads<{ 1 << 19 }> = Rereads::new();

impl<const SETS: usize> Rereads<SETS> {
    pub(crate) const fn new() -> Rereads<SETS> {
        const { assert!(SETS.is_multiple_of(RUN as usize) && SETS > 0) };
        Rereads {
            sets: [const { AtomicU64::new(0) }; SETS],
        }
    }

    /// The way for a piece of `file` that was found so, at least a grain long; takes note that it goes that way.
    pub(crate) fn next(&self, file: FileId, piece: &Range<u64>, found: Found) -> Way {
        let grains = piece.start.div_ceil(GRAIN)..piece.end.div_ceil(GRAIN);
        let waiting = grains
            .clone()
            .filter(|grain| match self.state(file, *grain) {
                State::Seen => true,
                State::Kept => found == Found::ReadAhead,
                State::Unseen | State::Lost => false,
            })
            .count() as u64;
        // Pieces need not be cut as they were the last time: the larger part decides.
        let way = match waiting > 0 && waiting * 2 >= grains.end - grains.start {
            true => Way::Through,
            false => Way::Past,
        };
        // What is not missing was not lost.
        grains
            .filter(|grain| found == Found::Missing || self.state(file, *grain) != State::Kept)
            .for_each(|grain| self.advance(file, grain, way));
        way
    }

    /// Takes note that a piece is in the page cache: if it waited to be read through it, that is done. The kernel reads on
    /// behind what it is asked for, so most of a file that is read through the cache is never found missing from it.
    pub(crate) fn found_cached(&self, file: FileId, piece: &Range<u64>) {
        (piece.start.div_ceil(GRAIN)..piece.end.div_ceil(GRAIN))
            .filter(|grain| self.state(file, *grain) == State::Seen)
            .for_each(|grain| self.advance(file, grain, Way::Through));
    }

    fn state(&self, file: FileId, grain: u64) -> State {
        let (set, tag) = place::<SETS>(file, grain);
        state_in(self.sets[set].load(Ordering::Relaxed), tag)
    }

    fn advance(&self, file: FileId, grain: u64, way: Way) {
        let (set, tag) = place::<SETS>(file, grain);
        // The closure always gives a word, so this cannot fail.
        let _ = self.sets[set].fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
            Some(with(word, tag, state_in(word, tag).after(way)))
        });
    }
}

/// A file, whatever its name and whichever handle it is opened by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId(u64);

impl FileId {
    pub(crate) fn of(metadata: &Metadata) -> FileId {
        // A number that was another file's before comes with another time.
        let born = metadata
            .created()
            .ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
            .map_or(0, |since| since.as_nanos() as u64);
        FileId::new(metadata.dev(), metadata.ino(), born)
    }

    fn new(device: u64, number: u64, born: u64) -> FileId {
        FileId(mix(mix(mix(device) ^ number) ^ born))
    }
}

/// The set of a grain, and its tag. Grains that are neighbours lie in neighbouring sets, as far as one cache line goes.
fn place<const SETS: usize>(file: FileId, grain: u64) -> (usize, u64) {
    let hash = mix(file.0 ^ mix(grain / RUN));
    let run = hash % (SETS as u64 / RUN);
    ((run * RUN + grain % RUN) as usize, hash >> (64 - TAG_BITS))
}

fn state_in(word: u64, tag: u64) -> State {
    entries(word)
        .find(|entry| entry >> STATE_BITS == tag)
        .map_or(State::Unseen, State::of_bits)
}

/// The word with this entry first. Of five, the last is forgotten.
fn with(word: u64, tag: u64, state: State) -> u64 {
    let others = entries(word).filter(|entry| *entry != 0 && entry >> STATE_BITS != tag);
    let all = std::iter::once(tag << STATE_BITS | state as u64).chain(others);
    all.take(WAYS as usize)
        .zip(0..)
        .fold(0, |word, (entry, at)| word | entry << (at * ENTRY_BITS))
}

fn entries(word: u64) -> impl Iterator<Item = u64> {
    (0..WAYS).map(move |at| word >> (at * ENTRY_BITS) & ((1 << ENTRY_BITS) - 1))
}

/// A permutation of 64 bits in which each bit of the input moves all bits of the output (the finalizer of SplitMix64).
fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ number >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ number >> 31
}

/// The least length of a piece that is decided about.
pub(crate) const GRAIN: u64 = 256 << 10;
const WAYS: u32 = 4;
const ENTRY_BITS: u32 = 64 / WAYS;
const STATE_BITS: u32 = 2;
const TAG_BITS: u32 = ENTRY_BITS - STATE_BITS;
const STATE: u64 = (1 << STATE_BITS) - 1;
// A cache line of 64 bytes: a task of 4 MiB touches two or three.
const RUN: u64 = 8;

#[cfg(test)]
#[path = "rereads_tests.rs"]
mod tests;
