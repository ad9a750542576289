//! Loops that read into memory of their own making, which no one has touched: what a program pays that asks for a new
//! buffer for every read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::{CHUNK, by_threads, each_on_a_thread, part_len, size_name};
use crate::memory::{self, PageSize, Pages};

/// What kind of memory, and by how many threads it is filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FreshLoop {
    pub(crate) kind: Fresh,
    pub(crate) threads: usize,
}

/// New memory, and when its pages come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fresh {
    /// Pages of 4 KiB, each of which the kernel brings while it copies into it.
    SmallPages,
    /// Huge pages, which come likewise.
    HugePages,
    /// Huge pages that every thread asks for, all of its part at once, before it reads.
    HugePagesFirst,
}

impl FreshLoop {
    /// All kinds, by each number of threads.
    pub(crate) fn all(threads: &[usize]) -> Vec<Self> {
        let kinds = [Fresh::SmallPages, Fresh::HugePages, Fresh::HugePagesFirst];
        let of = |kind| threads.iter().map(move |&threads| Self { kind, threads });
        kinds.into_iter().flat_map(of).collect()
    }

    pub(crate) fn name(&self) -> String {
        let what = match self.kind {
            Fresh::SmallPages => SMALL_PAGES,
            Fresh::HugePages => "fresh huge pages",
            Fresh::HugePagesFirst => "fresh huge pages, pre-faulted",
        };
        let (chunk, threads) = (size_name(CHUNK as u64), by_threads(self.threads));
        format!("pread {chunk} into {what}, {threads}")
    }

    /// The first `len` bytes of `file`, in memory that is new. Giving the memory back is the caller's, and not timed.
    pub(crate) fn run(&self, file: &File, len: usize) -> io::Result<Pages> {
        let size = match self.kind {
            Fresh::SmallPages => PageSize::Small,
            Fresh::HugePages | Fresh::HugePagesFirst => PageSize::Huge,
        };
        let mut pages = Pages::untouched(len, size)?;
        let part = part_len(len, self.threads);
        let parts = pages.view_mut(0, len).chunks_mut(part);
        let parts = parts.zip((0_u64..).step_by(part)).collect();
        each_on_a_thread(parts, |(target, offset)| {
            if self.kind == Fresh::HugePagesFirst {
                memory::populate(target);
            }
            for (piece, offset) in target.chunks_mut(CHUNK).zip((offset..).step_by(CHUNK)) {
                file.read_exact_at(piece, offset)?;
            }
            Ok(())
        })?;
        Ok(pages)
    }
}

/// In the name of every loop with [`Fresh::SmallPages`], so that a wish can name them.
pub(crate) const SMALL_PAGES: &str = "fresh 4 KiB pages";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern;

    #[test]
    fn new_memory_of_every_kind_holds_the_file() {
        let len = 9 * (1 << 20) + 77;
        let mut content = vec![0; len];
        pattern::fill(&mut content, 6, 0);
        let file = tempfile::tempfile().expect("a temporary file");
        file.write_all_at(&content, 0).expect("written");
        let loops = FreshLoop::all(&[1, 3]);
        assert_eq!(loops.len(), 6);
        for each in loops {
            let mut pages = each.run(&file, len).expect("read");
            let difference = pattern::first_difference(pages.view_mut(0, len), 6, 0);
            assert_eq!(difference, None, "{}", each.name());
        }
    }
}
