//! One who reads the object within this process.

use crate::contender::Contender;
use crate::trouble::Outcome;

/// Reads pieces of the object, as whoever it stands for would.
pub(crate) trait Reader {
    fn contender(&self) -> Contender;

    /// Fills each `size` bytes of `target` with what the object has at the offset of the same number.
    fn read(&mut self, target: &mut [u8], offsets: &[u64], size: usize) -> Outcome<()>;
}
