//! The write loop: `pwrite` of 4 MiB at a time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::{CHUNK, by_threads, each_on_a_thread, part_len, size_name};

/// How many threads write, each a contiguous part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WriteLoop {
    pub(crate) threads: usize,
}

impl WriteLoop {
    pub(crate) fn name(&self) -> String {
        format!(
            "pwrite {}, {}",
            size_name(CHUNK as u64),
            by_threads(self.threads)
        )
    }

    /// Writes `source` over the first bytes of `file`.
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

    #[test]
    fn what_was_written_is_in_the_file() {
        let mut source = vec![0; 9 * (1 << 20) + 5];
        crate::pattern::fill(&mut source, 2, 0);
        for threads in [1, 2, 3] {
            let file = tempfile::tempfile().expect("a temporary file");
            WriteLoop { threads }.run(&file, &source).expect("written");
            let mut back = vec![0; source.len()];
            file.read_exact_at(&mut back, 0).expect("read back");
            assert_eq!(back, source, "by {threads} threads");
        }
    }
}
