//! How long slabs are, what fits into one, and how many there may be. Pure: the setting goes in, sizes come out.

use crate::os;

/// Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    /// A slab: a task of the usual size and a page, as far as the setting allows; at least a page.
    pub(super) slab: usize,
    /// The longest task. It lies in a slab as in its page of the file, which may take most of a page before it.
    pub(super) room: u64,
    /// All slabs of the process.
    pub(super) limit: u64,
}

impl Sizes {
    pub(super) fn of(bounce_buffer_size: u64) -> Sizes {
        let page = os::page_size();
        let most = bounce_buffer_size - bounce_buffer_size % page;
        let slab = (SLAB + page).min(most.max(page));
        Sizes {
            slab: slab as usize,
            room: if slab > page { slab - page } else { slab },
            limit: slab * SLABS,
        }
    }
}

// Measured on a machine with a bus of 55 GB/s: with 4 MiB eight threads reach 52.5 GB/s, with 1 MiB 39 and with 256 KiB 20.
const SLAB: u64 = 4 << 20;
// Two for each of 32 threads: eight fill the bus of the machine that this was measured on.
const SLABS: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slab_takes_a_task_of_the_usual_size_at_any_offset_unless_the_setting_is_smaller() {
        let page = os::page_size();
        let usual = Sizes::of(16 << 20);
        assert_eq!((usual.slab as u64, usual.room), ((4 << 20) + page, 4 << 20));
        assert_eq!(usual.limit, 64 * usual.slab as u64);
        for setting in [0, 1, page - 1, page, 2 * page - 1] {
            let least = Sizes::of(setting);
            assert_eq!((least.slab as u64, least.room), (page, page), "{setting}");
        }
        let few = Sizes::of(3 * page + 1);
        assert_eq!((few.slab as u64, few.room), (3 * page, 2 * page));
        assert_eq!(Sizes::of(u64::MAX), usual);
    }
}
