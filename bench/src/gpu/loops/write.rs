//! From the device to a file: an asynchronous copy into a slab of pinned memory, while the slab before is written.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::Chunks;
use crate::contender::{Contender, Role};
use crate::gpu::{DeviceMemory, Gpu, Lane, SlabUse};
use crate::loops::{CHUNK, by_threads, each_on_a_thread, size_name};

/// What a turn does with each chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteWay {
    /// Copies it and writes it.
    Both,
    /// Copies it: what the bus alone can do.
    CopyOnly,
    /// Writes what is in the slab: what the file alone can do.
    WriteOnly,
}

/// A loop and what it has at hand before the clock runs.
pub(crate) struct WriteLoop {
    way: WriteWay,
    lanes: Vec<Lane>,
}

impl WriteLoop {
    pub(crate) fn new(gpu: &Arc<Gpu>, way: WriteWay, threads: usize) -> io::Result<Self> {
        let lanes = Lane::several(gpu, threads, SLABS, CHUNK, SlabUse::Copies)?;
        Ok(Self { way, lanes })
    }

    pub(crate) fn contender(&self) -> Contender {
        let threads = by_threads(self.lanes.len());
        let chunk = size_name(CHUNK as u64);
        let (role, name) = match self.way {
            WriteWay::Both => (Role::Loop, format!("copy + pwrite {chunk}, {SLABS} slabs")),
            WriteWay::CopyOnly => (Role::Part, format!("copy alone {chunk}")),
            WriteWay::WriteOnly => (Role::Part, format!("pwrite alone {chunk}")),
        };
        Contender::new(role, format!("{name}, {threads}"))
    }

    pub(crate) fn way(&self) -> WriteWay {
        self.way
    }

    /// Writes the first `amount` bytes of `memory` to `file`.
    pub(crate) fn run(
        &mut self,
        file: &File,
        memory: &DeviceMemory,
        amount: u64,
    ) -> io::Result<()> {
        let chunks = Chunks::of(amount);
        let (copies, writes) = (
            self.way != WriteWay::WriteOnly,
            self.way != WriteWay::CopyOnly,
        );
        each_on_a_thread(self.lanes.iter_mut().collect(), |lane| {
            lane.enter()?;
            // The chunk whose copy was started last.
            let mut before: Option<(usize, u64, usize)> = None;
            for turn in 0.. {
                let taken = chunks.take(CHUNK);
                let slab = turn % SLABS;
                if copies && let Some((at, len)) = taken {
                    lane.fetch(slab, memory, at as usize, len)?;
                }
                if let Some((slab, at, len)) = before.take() {
                    let bytes = lane.bytes(slab)?;
                    if writes {
                        file.write_all_at(&bytes[..len], at)?;
                    }
                }
                let Some((at, len)) = taken else {
                    break;
                };
                before = Some((slab, at, len));
            }
            lane.wait()
        })
    }
}

const SLABS: usize = 2;
