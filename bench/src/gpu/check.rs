//! What is in the device's memory: fetched and compared, or put there, by as many threads as there are.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{DeviceMemory, Gpu, Lane, SlabUse};
use crate::loops::{CHUNK, each_on_a_thread};

/// Looks at memory of the device after a turn, and fills it before one.
pub(crate) struct Checker {
    lanes: Vec<Lane>,
}

impl Checker {
    pub(crate) fn new(gpu: &Arc<Gpu>, threads: usize) -> io::Result<Self> {
        let lanes = Lane::several(gpu, threads.max(1), 1, CHUNK, SlabUse::Copies)?;
        Ok(Self { lanes })
    }

    /// Hands the first `len` bytes of `memory` to `judge`, chunk by chunk with the place of each, which answers with a
    /// position that is wrong. The least of these positions.
    pub(crate) fn look(
        &mut self,
        memory: &DeviceMemory,
        len: usize,
        judge: impl Fn(usize, &[u8]) -> Option<u64> + Sync,
    ) -> io::Result<Option<u64>> {
        self.least(len, |lane, at, size| {
            lane.fetch(0, memory, at, size)?;
            Ok(judge(at, &lane.bytes(0)?[..size]))
        })
    }

    /// Puts into the first `len` bytes of `memory` what `make` writes into each chunk, of which it is told the place.
    pub(crate) fn put(
        &mut self,
        memory: &DeviceMemory,
        len: usize,
        make: impl Fn(usize, &mut [u8]) + Sync,
    ) -> io::Result<()> {
        self.each_chunk(len, |lane, at, size| {
            make(at, &mut lane.bytes(0)?[..size]);
            lane.send(0, memory, at, size)?;
            lane.wait()
        })
    }

    /// The same as [`look`](Self::look) for the first `len` bytes of a file.
    pub(crate) fn read_back(
        &mut self,
        file: &File,
        len: usize,
        judge: impl Fn(usize, &[u8]) -> Option<u64> + Sync,
    ) -> io::Result<Option<u64>> {
        self.least(len, |lane, at, size| {
            let bytes = &mut lane.bytes(0)?[..size];
            file.read_exact_at(bytes, at as u64)?;
            Ok(judge(at, bytes))
        })
    }

    /// The least position that `work` finds in any chunk.
    fn least(
        &mut self,
        len: usize,
        work: impl Fn(&mut Lane, usize, usize) -> io::Result<Option<u64>> + Sync,
    ) -> io::Result<Option<u64>> {
        let found = AtomicU64::new(u64::MAX);
        self.each_chunk(len, |lane, at, size| {
            if let Some(position) = work(lane, at, size)? {
                found.fetch_min(position, Ordering::Relaxed);
            }
            Ok(())
        })?;
        let found = found.into_inner();
        Ok((found != u64::MAX).then_some(found))
    }

    fn each_chunk(
        &mut self,
        len: usize,
        work: impl Fn(&mut Lane, usize, usize) -> io::Result<()> + Sync,
    ) -> io::Result<()> {
        let next = AtomicU64::new(0);
        each_on_a_thread(self.lanes.iter_mut().collect(), |lane| {
            lane.enter()?;
            loop {
                let at = next.fetch_add(CHUNK as u64, Ordering::Relaxed) as usize;
                if at >= len {
                    return lane.wait();
                }
                work(lane, at, CHUNK.min(len - at))?;
            }
        })
    }
}
