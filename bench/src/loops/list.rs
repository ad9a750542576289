//! Many small pieces, each at a place of its own, one `pread` after the other.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::{by_threads, each_on_a_thread, size_name};

/// How many threads share the list, and whether past the page cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListLoop {
    pub(crate) threads: usize,
    pub(crate) direct: bool,
}

impl ListLoop {
    pub(crate) fn name(&self, size: usize) -> String {
        let direct = if self.direct { ", O_DIRECT" } else { "" };
        let (size, threads) = (size_name(size as u64), by_threads(self.threads));
        format!("pread {size} one by one{direct}, {threads}")
    }

    /// Fills each `size` bytes of `target` with what `file` has at the offset of the same number.
    pub(crate) fn run(
        &self,
        file: &File,
        offsets: &[u64],
        size: usize,
        target: &mut [u8],
    ) -> io::Result<()> {
        let share = offsets.len().div_ceil(self.threads.max(1)).max(1);
        let parts = offsets.chunks(share).zip(target.chunks_mut(share * size));
        each_on_a_thread(parts.collect(), |(offsets, target)| {
            for (&offset, piece) in offsets.iter().zip(target.chunks_mut(size)) {
                file.read_exact_at(piece, offset)?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern;

    #[test]
    fn every_piece_lands_in_its_place() {
        let mut content = vec![0; 1 << 20];
        pattern::fill(&mut content, 4, 0);
        let file = tempfile::tempfile().expect("a temporary file");
        file.write_all_at(&content, 0).expect("written");
        let offsets: Vec<u64> = (0..101).map(|index| index * 7919 % 255 * 4096).collect();
        for threads in [1, 2, 7, 200] {
            let mut target = vec![0; offsets.len() * 4096];
            let each = ListLoop {
                threads,
                direct: false,
            };
            each.run(&file, &offsets, 4096, &mut target).expect("read");
            for (&offset, piece) in offsets.iter().zip(target.chunks(4096)) {
                assert_eq!(pattern::first_difference(piece, 4, offset), None);
            }
        }
    }
}
