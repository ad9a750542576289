//! From a file to the device: `pread` into a slab of pinned memory, on by an asynchronous copy, while the next slab fills.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::Chunks;
use crate::contender::{Contender, Role};
use crate::gpu::{DeviceMemory, Gpu, Lane, SlabUse};
use crate::loops::{CHUNK, by_threads, each_on_a_thread, size_name};
use crate::memory::FileWindow;
use crate::streaming;

/// What a turn does with each chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadWay {
    /// Reads it out of the page cache and copies it.
    Cached,
    /// Reads it past the page cache and copies it.
    Direct,
    /// Copies it out of a map of the whole file, by streaming stores, and on.
    Mapped,
    /// Copies it without reading: what the bus alone can do.
    CopyOnly,
}

/// A loop and what it has at hand before the clock runs.
pub(crate) struct ReadLoop {
    way: ReadWay,
    lanes: Vec<Lane>,
}

impl ReadLoop {
    /// `slabs`: of each thread. With one, a thread waits for its copy before it reads on.
    pub(crate) fn new(
        gpu: &Arc<Gpu>,
        way: ReadWay,
        threads: usize,
        slabs: usize,
    ) -> io::Result<Self> {
        let what = match way {
            ReadWay::Direct => SlabUse::DirectIo,
            ReadWay::Cached | ReadWay::Mapped | ReadWay::CopyOnly => SlabUse::Copies,
        };
        let lanes = Lane::several(gpu, threads, slabs, CHUNK, what)?;
        Ok(Self { way, lanes })
    }

    pub(crate) fn contender(&self) -> Contender {
        let threads = by_threads(self.lanes.len());
        let slabs = self.lanes.first().map_or(0, Lane::slabs);
        let chunk = size_name(CHUNK as u64);
        let slabs = match slabs {
            1 => "one slab".to_owned(),
            count => format!("{count} slabs"),
        };
        match self.way {
            ReadWay::Cached => {
                let name = format!("pread {chunk} + copy, {slabs}, {threads}");
                Contender::new(Role::Loop, name)
            }
            ReadWay::Direct => {
                let name = format!("pread {chunk} O_DIRECT + copy, {slabs}, {threads}");
                Contender::new(Role::Loop, name)
            }
            ReadWay::Mapped => {
                let name = format!("out of a map {chunk} + copy, {slabs}, {threads}");
                Contender::new(Role::Loop, name)
            }
            ReadWay::CopyOnly => {
                Contender::new(Role::Part, format!("copy alone {chunk}, {threads}"))
            }
        }
    }

    pub(crate) fn way(&self) -> ReadWay {
        self.way
    }

    /// Fills the first `amount` bytes of `memory` with those of the file, which `map` is of where the way goes by it.
    pub(crate) fn run(
        &mut self,
        (file, map): (&File, Option<&FileWindow>),
        memory: &DeviceMemory,
        amount: u64,
    ) -> io::Result<()> {
        let chunks = Chunks::of(amount);
        let way = self.way;
        each_on_a_thread(self.lanes.iter_mut().collect(), |lane| {
            lane.enter()?;
            let slabs = lane.slabs();
            for turn in 0.. {
                let Some((at, len)) = chunks.take(CHUNK) else {
                    break;
                };
                let slab = turn % slabs;
                let bytes = lane.bytes(slab)?;
                match (way, map) {
                    (ReadWay::CopyOnly, _) => {}
                    (ReadWay::Mapped, Some(map)) => {
                        streaming::copy(&mut bytes[..len], &map.bytes()[at as usize..][..len]);
                    }
                    _ => file.read_exact_at(&mut bytes[..len], at)?,
                }
                lane.send(slab, memory, at as usize, len)?;
            }
            lane.wait()
        })
    }
}
