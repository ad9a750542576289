//! Ours, out of a map: a file as a user of kvik maps it.

use std::path::{Path, PathBuf};

use kvik::{MmapHandle, ReadOptions};

use crate::scenes::Reads;
use crate::trouble::Outcome;

/// A map that stays, or the path of a file that is mapped anew for each read.
pub(crate) struct OurMap {
    path: PathBuf,
    kept: Option<MmapHandle>,
    how: ReadOptions,
}

impl OurMap {
    pub(crate) fn new(path: &Path, threads: usize, once: bool) -> Outcome<Self> {
        let kept = (!once).then(|| MmapHandle::open(path)).transpose()?;
        Ok(Self {
            path: path.to_owned(),
            kept,
            how: ReadOptions::new().num_threads(threads),
        })
    }

    fn read_from(&self, map: &MmapHandle, target: &mut [u8]) -> Outcome<()> {
        let len = target.len();
        let count = map.read_at_with(target, 0, &self.how)?;
        crate::ours::whole(count, len)
    }
}

impl Reads for OurMap {
    fn read_begin(&self, target: &mut [u8]) -> Outcome<()> {
        match &self.kept {
            Some(map) => self.read_from(map, target),
            None => {
                let map = MmapHandle::open(&self.path)?;
                self.read_from(&map, target)?;
                map.close();
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_that_stays_and_one_for_each_read_hold_the_file() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let content: Vec<u8> = (0..300_000_u32).map(|at| (at % 251) as u8).collect();
        std::fs::write(file.path(), &content).expect("written");
        for once in [false, true] {
            let map = OurMap::new(file.path(), 2, once).expect("mapped");
            for _ in 0..2 {
                let mut target = vec![0; content.len()];
                map.read_begin(&mut target).expect("read");
                assert!(target == content, "once: {once}");
            }
            let mut longer = vec![0; content.len() + 1];
            assert!(map.read_begin(&mut longer).is_err(), "once: {once}");
        }
    }
}
