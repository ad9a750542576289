//! From a file to the device in the order of a stream: all copies are queued at once, each behind a word in memory that a
//! thread stores when the chunk is in its slab. The threads make no call of the driver, and read nothing of a piece before the
//! stream has come to it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use kvik_sys::{DevicePtr, WaitCondition};

use crate::contender::{Contender, Role};
use crate::gpu::memory::Pinned;
use crate::gpu::{DeviceMemory, Gpu, Line};
use crate::loops::{CHUNK, by_threads, each_on_a_thread, size_name};

/// A loop and what it has at hand before the clock runs.
pub(crate) struct FlaggedLoop {
    gpu: Arc<Gpu>,
    chunks: Vec<Chunk>,
    slabs: Pinned,
    words: Words,
    threads: usize,
}

struct Chunk {
    at: u64,
    len: usize,
    /// The number of the first chunk of its piece.
    piece: usize,
    ends_piece: bool,
}

/// Words by which the stream and the processor tell each other, for each chunk: that the stream has come to it, which it tells
/// of the first of each piece alone; that it is in its slab; and that it was copied out of it.
struct Words {
    memory: Pinned,
    on_device: DevicePtr,
    chunks: usize,
}

/// What a thread of a turn does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Read,
    Queue,
}

impl FlaggedLoop {
    /// For turns of `amount` bytes, behind each `piece` of which more may be queued.
    pub(crate) fn new(gpu: &Arc<Gpu>, threads: usize, amount: u64, piece: u64) -> io::Result<Self> {
        let chunks = chunks(amount, piece);
        Ok(Self {
            gpu: Arc::clone(gpu),
            slabs: Pinned::allocated(gpu, SLABS * CHUNK)?,
            words: Words::new(gpu, chunks.len())?,
            chunks,
            threads,
        })
    }

    pub(crate) fn contender(&self) -> Contender {
        let (threads, chunk) = (by_threads(self.threads), size_name(CHUNK as u64));
        let name = format!("pread {chunk}, copies queued before, {SLABS} slabs, {threads}");
        Contender::new(Role::Loop, name)
    }

    /// Fills the first bytes of `memory` with those of `file`, and waits; behind each piece a kernel takes so long. How long
    /// it was until everything was queued.
    pub(crate) fn run(
        &mut self,
        file: &File,
        memory: &DeviceMemory,
        line: &Line,
        kernels: Option<Duration>,
    ) -> io::Result<Duration> {
        self.words.clear();
        let (next, failed, queued) = (AtomicUsize::new(0), AtomicBool::new(false), OnceLock::new());
        let mut parts = vec![Part::Read; self.threads];
        parts.push(Part::Queue);
        let this = &*self;
        let began = Instant::now();
        each_on_a_thread(parts, |part| {
            let mut done = match part {
                Part::Read => this.read(file, &next, &failed),
                Part::Queue => this.queue(memory, line, kernels),
            };
            if done.is_err() {
                // The stream must not stand still, nor anybody who waits for it.
                failed.store(true, Ordering::Release);
                this.words.release();
            }
            if part == Part::Queue {
                let _ = queued.set(began.elapsed());
                done = line.wait().and(done);
            }
            done
        })?;
        Ok(queued.into_inner().unwrap_or_default())
    }

    fn queue(
        &self,
        memory: &DeviceMemory,
        line: &Line,
        kernels: Option<Duration>,
    ) -> io::Result<()> {
        self.gpu.enter()?;
        for (index, chunk) in self.chunks.iter().enumerate() {
            if chunk.piece == index {
                self.write(line, self.words.begun(index))?;
            }
            self.wait_for(line, self.words.ready(index))?;
            let from = self.slab(index).cast_const();
            let to = memory.part(chunk.at as usize, chunk.len);
            // SAFETY: both ends are memory for `len` bytes. Nobody writes to the slab before the word behind the copy is
            // written, and it stays until the stream was waited for.
            let copy =
                unsafe { (self.gpu.cuda).memcpy_htod_async(to, from, chunk.len, line.stream()) };
            copy.map_err(|status| self.gpu.failed("cuMemcpyHtoDAsync", status))?;
            self.write(line, self.words.done(index))?;
            if let Some(time) = kernels
                && chunk.ends_piece
            {
                line.queue_kernel(time)?;
            }
        }
        Ok(())
    }

    /// Lets the stream write 1 to a word.
    fn write(&self, line: &Line, word: usize) -> io::Result<()> {
        let word = self.words.address(word);
        // SAFETY: the line keeps its stream, and the loop its words until the stream was waited for.
        let queued = unsafe { (self.gpu.cuda).stream_write_value32(line.stream(), word, 1) };
        queued.map_err(|why| self.gpu.told("cuStreamWriteValue32", why))
    }

    /// Lets the stream wait for a 1 in a word.
    fn wait_for(&self, line: &Line, word: usize) -> io::Result<()> {
        let word = self.words.address(word);
        let condition = WaitCondition::AT_LEAST;
        // SAFETY: as in `write`.
        let queued =
            unsafe { (self.gpu.cuda).stream_wait_value32(line.stream(), word, 1, condition) };
        queued.map_err(|why| self.gpu.told("cuStreamWaitValue32", why))
    }

    /// Reads chunks into their slabs until there are no more.
    fn read(&self, file: &File, next: &AtomicUsize, failed: &AtomicBool) -> io::Result<()> {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(chunk) = self.chunks.get(index) else {
                return Ok(());
            };
            let begun = self.words.begun(chunk.piece);
            let before = index.checked_sub(SLABS);
            let before = before.map(|before| self.words.done(before));
            for word in [Some(begun), before].into_iter().flatten() {
                let mut looks = 0_u32;
                while !self.words.is_set(word) {
                    if failed.load(Ordering::Acquire) {
                        return Ok(());
                    }
                    looks += 1;
                    match looks {
                        0..LOOKS => std::hint::spin_loop(),
                        _ => std::thread::sleep(NAP),
                    }
                }
            }
            // SAFETY: memory of the loop's for `len` bytes, all of which were written once. This thread alone has the chunk,
            // and the chunk that was in the slab before was copied out of it.
            let slab = unsafe { std::slice::from_raw_parts_mut(self.slab(index), chunk.len) };
            file.read_exact_at(slab, chunk.at)?;
            self.words.set(self.words.ready(index));
        }
    }

    /// Where the chunk of this number is read to.
    fn slab(&self, index: usize) -> *mut u8 {
        let at = index % SLABS * CHUNK;
        self.slabs.start().as_ptr().wrapping_add(at)
    }
}

impl Words {
    fn new(gpu: &Arc<Gpu>, chunks: usize) -> io::Result<Self> {
        let (memory, on_device) = Pinned::mapped(gpu, 3 * chunks * WORD)?;
        Ok(Self {
            memory,
            on_device,
            chunks,
        })
    }

    fn begun(&self, chunk: usize) -> usize {
        chunk
    }

    fn ready(&self, chunk: usize) -> usize {
        self.chunks + chunk
    }

    fn done(&self, chunk: usize) -> usize {
        2 * self.chunks + chunk
    }

    /// The word as the device knows it.
    fn address(&self, word: usize) -> DevicePtr {
        DevicePtr::new(self.on_device.address() + (word * WORD) as u64)
    }

    fn is_set(&self, word: usize) -> bool {
        self.word(word).load(Ordering::Acquire) != 0
    }

    fn set(&self, word: usize) {
        self.word(word).store(1, Ordering::Release);
    }

    /// Takes back everything that was told. No stream may be at the words.
    fn clear(&mut self) {
        for word in 0..3 * self.chunks {
            self.word(word).store(0, Ordering::Release);
        }
    }

    /// Lets the stream pass all waits.
    fn release(&self) {
        (0..self.chunks).for_each(|chunk| self.set(self.ready(chunk)));
    }

    fn word(&self, word: usize) -> &AtomicU32 {
        assert!(word < 3 * self.chunks, "a word lies within the memory");
        let at = self
            .memory
            .start()
            .as_ptr()
            .cast::<u32>()
            .wrapping_add(word);
        // SAFETY: four bytes of the memory, which begins at a page, and lives as long as the borrow; everybody on this side
        // uses it as an atomic.
        unsafe { AtomicU32::from_ptr(at) }
    }
}

fn chunks(amount: u64, piece: u64) -> Vec<Chunk> {
    let mut all: Vec<Chunk> = Vec::new();
    let (mut at, mut first) = (0, 0);
    while at < amount {
        let end = (at / piece * piece + piece).min(amount);
        let len = (end - at).min(CHUNK as u64);
        all.push(Chunk {
            at,
            len: len as usize,
            piece: first,
            ends_piece: at + len == end,
        });
        at += len;
        if at == end {
            first = all.len();
        }
    }
    all
}

const SLABS: usize = 16;
const WORD: usize = size_of::<u32>();
/// So many looks at a word follow each other, some 20 us; then there is a nap before each.
const LOOKS: u32 = 500;
const NAP: Duration = Duration::from_micros(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cover_everything_once_and_none_reaches_over_the_end_of_a_piece() {
        let told = |amount: u64, piece: u64| -> Vec<_> {
            let all = chunks(amount << 20, piece << 20);
            let told = |chunk: &Chunk| {
                (
                    chunk.at >> 20,
                    chunk.len >> 20,
                    chunk.piece,
                    chunk.ends_piece,
                )
            };
            all.iter().map(told).collect()
        };
        let whole = [(0, 4, 0, false), (4, 4, 0, false), (8, 1, 0, true)];
        assert_eq!(told(9, 9), whole);
        let uneven = [(0, 4, 0, false), (4, 1, 0, true), (5, 2, 2, true)];
        assert_eq!(told(7, 5), uneven);
        assert_eq!(told(4, 2), [(0, 2, 0, true), (2, 2, 1, true)]);
    }
}
