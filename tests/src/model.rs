//! The truth that a door is compared with: a `Vec<u8>`, and random operations whose places lie where things go wrong.

use proptest::prelude::*;
use proptest::sample::select;

use crate::pattern::pattern;

/// What an object should hold.
#[derive(Clone, Debug)]
pub struct Model {
    bytes: Vec<u8>,
}

impl Model {
    /// An object of `len` bytes, which are not all alike.
    #[must_use]
    pub fn new(len: usize) -> Model {
        Model {
            bytes: pattern(0, 0, len),
        }
    }

    /// All bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What a read of `len` bytes from `offset` has to give: fewer where the object ends, none past it.
    #[must_use]
    pub fn read(&self, offset: u64, len: usize) -> &[u8] {
        let from = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.len());
        &self.bytes[from..from.saturating_add(len).min(self.len())]
    }

    /// Writes; a gap before `offset` becomes zeros.
    pub fn write(&mut self, offset: usize, source: &[u8]) {
        if source.is_empty() {
            return; // As POSIX has it: nothing is written, so the object does not grow.
        }
        let end = offset + source.len();
        if end > self.len() {
            self.bytes.resize(end, 0);
        }
        self.bytes[offset..end].copy_from_slice(source);
    }

    /// Cuts the object or adds zeros.
    pub fn set_len(&mut self, len: usize) {
        self.bytes.resize(len, 0);
    }
}

/// One thing to do, in terms of the object as it then is.
#[derive(Clone, Debug)]
pub enum Operation {
    /// `read_at` into memory that starts `skew` bytes behind an aligned address.
    Read(Place, Extent, usize),
    /// `read_exact_at`.
    ReadExact(Place, Extent),
    /// `read_to_end`.
    ReadToEnd(Place),
    /// `read_ranges`: many pieces in one call, anywhere, each into memory that starts a byte further on.
    ReadRanges(Vec<(Place, Extent)>),
    /// `submit_read`, waited for.
    Submit(Place, Extent),
    /// Several `submit_read`s at once, waited for in reverse.
    SubmitMany(Vec<(Place, Extent)>),
    /// `submit_read`, cancelled at once: all of it, or `Cancelled` and what was moved.
    Cancel(Place, Extent),
    /// `submit_read`, dropped at once.
    Abandon(Place, Extent),
    /// `len`.
    Len,
    /// `write_at` of the pattern with this seed.
    Write(Place, Extent, u8),
    /// `write_ranges` of the pattern with this seed: refused as a whole if two pieces overlap.
    WriteRanges(Vec<(Place, Extent)>, u8),
    /// `submit_write`, waited for.
    SubmitWrite(Place, Extent, u8),
    /// `set_len`.
    SetLen(Place),
}

/// An offset: an anchor and a few bytes more or less.
#[derive(Clone, Copy, Debug)]
pub struct Place(Anchor, i64);

#[derive(Clone, Copy, Debug)]
enum Anchor {
    Start,
    End,
    /// A multiple of the task size.
    Task(u64),
    /// A multiple of the page.
    Page(u64),
    /// So many 65536ths of the length.
    Fraction(u16),
    /// Far past the end; for reads only.
    Beyond,
}

/// A length.
#[derive(Clone, Copy, Debug)]
pub enum Extent {
    /// So many bytes.
    Bytes(usize),
    /// So many tasks, and a few bytes more or less.
    Tasks(usize, i64),
    /// Up to the end of the object, and a few bytes more or less.
    ToEnd(i64),
    /// So many 65536ths of the room.
    Fraction(u16),
}

/// What places and extents are measured by.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Bytes in a task.
    pub task_size: usize,
    /// No object of the exam is longer.
    pub room: usize,
    /// No operation that has an extent is longer.
    pub longest: usize,
}

impl Place {
    /// The offset, in an object of `len` bytes.
    #[must_use]
    pub fn offset(self, len: usize, scale: Scale) -> u64 {
        let base = match self.0 {
            Anchor::Start => 0,
            Anchor::End => len as u64,
            Anchor::Task(count) => count * scale.task_size as u64,
            Anchor::Page(count) => count * 4096,
            Anchor::Fraction(part) => (len as u64 * u64::from(part)) >> 16,
            Anchor::Beyond => len as u64 + (1 << 40),
        };
        base.saturating_add_signed(self.1)
    }

    /// The same for writes: within the room.
    #[must_use]
    pub fn offset_in_room(self, len: usize, scale: Scale) -> usize {
        usize::try_from(self.offset(len, scale)).map_or(scale.room, |offset| offset.min(scale.room))
    }
}

impl Extent {
    /// The length, from `offset` on in an object of `len` bytes.
    #[must_use]
    pub fn len(self, offset: u64, len: usize, scale: Scale) -> usize {
        let wanted = match self {
            Extent::Bytes(count) => count,
            Extent::Tasks(count, shift) => {
                (count * scale.task_size).saturating_add_signed(shift as isize)
            }
            Extent::ToEnd(shift) => (len as u64)
                .saturating_sub(offset)
                .saturating_add_signed(shift) as usize,
            Extent::Fraction(part) => (scale.room * usize::from(part)) >> 16,
        };
        wanted.min(scale.longest)
    }
}

/// Operations in a row; with writes among them if the door writes.
pub fn operations(writes: bool) -> impl Strategy<Value = Vec<Operation>> {
    proptest::collection::vec(operation(writes), 1..16)
}

fn operation(writes: bool) -> BoxedStrategy<Operation> {
    let reads = prop_oneof![
        6 => (place(), extent(), select(vec![0, 1, 16, 31, 33, 512])).prop_map(|(p, e, skew)| Operation::Read(p, e, skew)),
        2 => (place(), extent()).prop_map(|(p, e)| Operation::ReadExact(p, e)),
        1 => place().prop_map(Operation::ReadToEnd),
        3 => pieces().prop_map(Operation::ReadRanges),
        3 => (place(), extent()).prop_map(|(p, e)| Operation::Submit(p, e)),
        1 => proptest::collection::vec((place(), extent()), 2..6).prop_map(Operation::SubmitMany),
        1 => (place(), extent()).prop_map(|(p, e)| Operation::Cancel(p, e)),
        1 => (place(), extent()).prop_map(|(p, e)| Operation::Abandon(p, e)),
        1 => Just(Operation::Len),
    ];
    if !writes {
        return reads.boxed();
    }
    prop_oneof![
        4 => reads,
        3 => (place(), extent(), any::<u8>()).prop_map(|(p, e, seed)| Operation::Write(p, e, seed)),
        1 => (pieces(), any::<u8>()).prop_map(|(pieces, seed)| Operation::WriteRanges(pieces, seed)),
        1 => (place(), extent(), any::<u8>()).prop_map(|(p, e, seed)| Operation::SubmitWrite(p, e, seed)),
        1 => place().prop_map(Operation::SetLen),
    ]
    .boxed()
}

/// Pieces of a call with many: a few of any size, or a crowd of small ones, of which some are neighbours.
fn pieces() -> impl Strategy<Value = Vec<(Place, Extent)>> {
    let row = (
        any::<u16>(),
        1..40i64,
        select(vec![1i64, 64, 65, 512, 3000]),
    )
        .prop_map(|(start, count, step)| {
            let piece = |index| {
                let place = Place(Anchor::Fraction(start), index * step);
                (place, Extent::Bytes(64))
            };
            (0..count).rev().map(piece).collect()
        });
    prop_oneof![proptest::collection::vec((place(), extent()), 0..6), row,]
}

fn place() -> impl Strategy<Value = Place> {
    let anchor = prop_oneof![
        2 => Just(Anchor::Start),
        3 => Just(Anchor::End),
        3 => (1..4u64).prop_map(Anchor::Task),
        2 => (1..6u64).prop_map(Anchor::Page),
        4 => any::<u16>().prop_map(Anchor::Fraction),
        1 => Just(Anchor::Beyond),
    ];
    (anchor, -3..=3i64).prop_map(|(anchor, shift)| Place(anchor, shift))
}

fn extent() -> impl Strategy<Value = Extent> {
    prop_oneof![
        2 => select(vec![0, 1, 2, 511, 512, 4095, 4096, 4097]).prop_map(Extent::Bytes),
        3 => ((1..4usize), -2..=2i64).prop_map(|(count, shift)| Extent::Tasks(count, shift)),
        3 => (-2..=2i64).prop_map(Extent::ToEnd),
        2 => any::<u16>().prop_map(Extent::Fraction),
    ]
}
