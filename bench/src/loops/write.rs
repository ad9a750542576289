//! The write loop: `pwrite` of 4 MiB at a time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::{CHUNK, by_threads, each_on_a_thread, part_len, size_name};

/// How many threads write, each a contiguous part, and whether past the page cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WriteLoop {
    pub(crate) threads: usize,
    pub(crate) direct: bool,
}

impl WriteLoop {
    /// One loop for each number of threads.
    pub(crate) fn all(threads: &[usize], direct: bool) -> Vec<Self> {
        let each = |&threads: &usize| Self { threads, direct };
        threads.iter().map(each).collect()
    }

    pub(crate) fn name(&self) -> String {
        let direct = if self.direct { ", O_DIRECT" } else { "" };
        let (chunk, threads) = (size_name(CHUNK as u64), by_threads(self.threads));
        format!("pwrite {chunk}{direct}, {threads}")
    }

    /// Writes `source` over the first bytes of `file`, which is open as the loop wants it. Past the page cache, `source`
    /// begins at a page and is a multiple of pages long.
    pub(crate) fn run(&self, file: &File, source: &[u8]) -> io::Result<()> {
        let part = part_len(source.len(), self.threads);
        let parts = source.chunks(part).zip((0_u64..).step_by(part)).collect();
        each_on_a_thread(parts, |(source, offset)| {
            for (piece, offset) in source.chunks(CHUNK).zip((offset..).step_by(CHUNK)) {
                file.write_all_at(piece, offset)?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::direct;
    use crate::memory::Pages;

    #[test]
    fn what_was_written_is_in_the_file() {
        let mut source = vec![0; 9 * (1 << 20) + 5];
        crate::pattern::fill(&mut source, 2, 0);
        for each in WriteLoop::all(&[1, 2, 3], false) {
            let file = tempfile::tempfile().expect("a temporary file");
            each.run(&file, &source).expect("written");
            let mut back = vec![0; source.len()];
            file.read_exact_at(&mut back, 0).expect("read back");
            assert_eq!(back, source, "{}", each.name());
        }
    }

    #[test]
    fn what_was_written_past_the_page_cache_is_in_the_file() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        // A folder in memory may refuse; then the loops are left out of the cases, too.
        let Ok(open) = direct::open(file.path(), true) else {
            return;
        };
        let len = 9 * (1 << 20);
        let mut pages = Pages::new(len).expect("memory");
        let source = pages.view_mut(0, len);
        for (seed, each) in WriteLoop::all(&[1, 2], true).iter().enumerate() {
            crate::pattern::fill(source, seed as u64, 0);
            each.run(&open, source).expect("written");
            let back = std::fs::read(file.path()).expect("read back");
            assert!(back == source, "{}", each.name());
        }
    }
}
