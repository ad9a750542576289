//! Where tasks lie in a slab: one behind the other, each as in its page of the file.

use std::ops::Range;

/// Hands out the places of one slab. Pure arithmetic.
#[derive(Debug)]
pub(super) struct Places {
    size: usize,
    used: usize,
    page: usize,
}

impl Places {
    pub(super) fn new(size: usize, page: usize) -> Places {
        Places {
            size,
            used: 0,
            page,
        }
    }

    /// The place for `len` bytes from the file offset `offset` on; `None` if there is no room left.
    ///
    /// Pieces of a page and more lie as in their page, so that they can be read past the page cache in place.
    pub(super) fn take(&mut self, offset: u64, len: usize) -> Option<Range<usize>> {
        let unit = if len >= self.page { self.page } else { LINE };
        let wanted = (offset % unit as u64) as usize;
        // Without room for that, as when a slab is one page, anywhere.
        let start = aligned(self.used, unit, wanted)
            .filter(|start| self.fits(*start, len))
            .or_else(|| aligned(self.used, LINE, 0).filter(|start| self.fits(*start, len)))?;
        self.used = start + len;
        Some(start..self.used)
    }

    /// Whether a piece of `len` bytes has room, wherever it lies in the file.
    pub(super) fn has_room_for(&self, len: usize) -> bool {
        self.fits(self.used + self.page + LINE, len)
    }

    fn fits(&self, start: usize, len: usize) -> bool {
        start.checked_add(len).is_some_and(|end| end <= self.size)
    }

    pub(super) fn clear(&mut self) {
        self.used = 0;
    }
}

/// The first number from `from` on that is `remainder` modulo `unit`.
fn aligned(from: usize, unit: usize, remainder: usize) -> Option<usize> {
    let base = from
        .checked_sub(remainder)
        .map_or(Some(0), |above| above.checked_next_multiple_of(unit))?;
    base.checked_add(remainder)
}

// Smaller pieces are packed, though each as in its line of the cache, where copies are the fastest.
const LINE: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_each_other_and_lie_as_in_their_page() {
        let mut places = Places::new(16 << 10, 4096);
        assert_eq!(places.take(8192, 4096), Some(0..4096));
        assert_eq!(places.take(4096 * 7, 4096), Some(4096..8192));
        assert_eq!(places.take(100, 10), Some(8192 + 36..8192 + 46));
        // It would begin a byte behind 12288, and end a byte behind the slab: so it lies at the next line.
        assert_eq!(places.take(4097, 4096), Some(8256..12_352));
        places.clear();
        assert_eq!(places.take(4095, 4097), Some(4095..8192));
    }

    #[test]
    fn a_piece_as_long_as_the_slab_fits_wherever_it_lies_in_the_file() {
        let mut places = Places::new(4096, 4096);
        assert_eq!(places.take(17, 4096), Some(0..4096));
        assert_eq!(places.take(0, 1), None);
    }

    #[test]
    fn no_two_places_overlap_or_leave_the_slab() {
        let mut places = Places::new(1 << 20, 4096);
        let mut end = 0;
        for index in 0..u64::MAX {
            let len = (index * 7919 % 9000) as usize + 1;
            let Some(place) = places.take(index * 104_729, len) else {
                break;
            };
            assert_eq!(place.len(), len);
            assert!(place.start >= end && place.end <= 1 << 20);
            if len >= 4096 {
                assert_eq!(place.start as u64 % 4096, index * 104_729 % 4096);
            }
            end = place.end;
        }
        assert!(end > (1 << 20) - 20_000, "{end}");
    }
}
