//! Many small pieces to the device: each by itself, or gathered in a slab and sent on together.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::Chunks;
use crate::contender::{Contender, Role};
use crate::gpu::{DeviceMemory, Gpu, Lane, SlabUse};
use crate::loops::{by_threads, each_on_a_thread, size_name};

/// How pieces come to their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListWay {
    /// Each is read, copied and waited for before the next.
    OneByOne,
    /// So many are read, and copied by one call to a place each.
    Batched,
    /// So many are read, and copied by one copy, for their places follow each other.
    Joined,
}

/// A loop and what it has at hand before the clock runs.
pub(crate) struct ListLoop {
    way: ListWay,
    size: usize,
    lanes: Vec<Lane>,
}

impl ListLoop {
    pub(crate) fn new(
        gpu: &Arc<Gpu>,
        way: ListWay,
        size: usize,
        threads: usize,
    ) -> io::Result<Self> {
        let gathered = if way == ListWay::OneByOne {
            1
        } else {
            GATHERED
        };
        let lanes = Lane::several(gpu, threads, 1, gathered * size, SlabUse::Copies)?;
        Ok(Self { way, size, lanes })
    }

    pub(crate) fn contender(&self) -> Contender {
        let threads = by_threads(self.lanes.len());
        let size = size_name(self.size as u64);
        let name = match self.way {
            ListWay::OneByOne => format!("pread {size} + copy + wait, {threads}"),
            ListWay::Batched => format!("pread {size}, {GATHERED} in one batch, {threads}"),
            ListWay::Joined => format!("pread {size}, {GATHERED} in one copy, {threads}"),
        };
        Contender::new(Role::Loop, name)
    }

    /// Brings the piece at each of the `offsets` to the place of the same number.
    pub(crate) fn run(
        &mut self,
        file: &File,
        offsets: &[u64],
        places: &[usize],
        memory: &DeviceMemory,
    ) -> io::Result<()> {
        let chunks = Chunks::of(offsets.len() as u64);
        let (way, size) = (self.way, self.size);
        let gathered = if way == ListWay::OneByOne {
            1
        } else {
            GATHERED
        };
        each_on_a_thread(self.lanes.iter_mut().collect(), |lane| {
            lane.enter()?;
            while let Some((first, count)) = chunks.take(gathered) {
                let all = first as usize..first as usize + count;
                let slab = lane.bytes(0)?;
                for (piece, &offset) in slab.chunks_exact_mut(size).zip(&offsets[all.clone()]) {
                    file.read_exact_at(piece, offset)?;
                }
                match way {
                    ListWay::Batched => {
                        lane.send_batch(0, memory, places[all].iter().copied(), size)?;
                    }
                    ListWay::OneByOne | ListWay::Joined => {
                        lane.send(0, memory, places[all.start], count * size)?;
                    }
                }
                lane.wait()?;
            }
            Ok(())
        })
    }
}

/// How many pieces go on together.
const GATHERED: usize = 256;
