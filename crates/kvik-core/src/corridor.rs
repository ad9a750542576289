//! The corridor that every door leads to, for the sister crates that are doors themselves: cut a range into the tasks of
//! a [`Plan`], run them on an [`Engine`], land the bytes in [`Window`]s of a target.
//!
//! Applications need none of this.

pub use crate::budget::Scratch;
pub use crate::engine::kept::{FileMapping, MapEngine};
pub use crate::engine::{Completion, Engine, EngineKind, Lane};
pub use crate::gds::CuFileWay;
pub use crate::once::PerProcess;
pub use crate::open::open_to_read;
pub use crate::options::Wishes;
pub use crate::plan::{Plan, Task};
pub use crate::window::{DeviceWindow, FillWindow, Window};

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use kvik_stats::{Direction, InListener, Start};

use crate::batch::Entries;
use crate::buffer::{IoBuf, IoBufMut};
use crate::device::Spot;
use crate::engine::gds::{Gds, GdsBatch};
use crate::engine::staged::Staged;
use crate::error::{Error, ErrorKind, Op, Place, Result};
use crate::memory::Memory;
use crate::pending::Pending;
use crate::piece::{ReadPiece, WritePiece};
use crate::pool::ThreadPool;
use crate::ranges::{Limits, Ranges};
use crate::scatter::Scatter;
use crate::stretch::Stretch;
use crate::target::{Source, Target};
use crate::transfer::{Order, Transfer};

/// What all transfers of one call have in common: who moves the bytes, on which threads, until when.
#[derive(Clone)]
pub struct Call {
    /// Moves the bytes to and from memory of the host.
    pub engine: Arc<dyn Engine>,
    /// Moves them to and from the small host buffers through which those of a device go.
    pub for_device: Arc<dyn Engine>,
    /// Moves those of a device instead, where they are enough for it.
    pub cufile: Option<CuFileWay>,
    /// The most memory in bytes for one of these buffers, by the setting `bounce_buffer_size`.
    pub bounce_buffer_size: u64,
    /// Lends the workers.
    pub pool: ThreadPool,
    /// How many threads work on it at most, the calling one included.
    pub threads: usize,
    /// The largest task in bytes.
    pub task_size: u64,
    /// When to stop starting tasks.
    pub deadline: Option<Instant>,
    /// What the object is called in errors and statistics.
    pub place: Place,
    /// The same as text, made once per handle.
    pub name: Arc<str>,
}

impl Call {
    /// Reads into `target` from `offset` on and waits; returns the count, short only at the end of the data.
    ///
    /// # Errors
    /// The first error of a task, after all others have stopped.
    pub fn read(&self, target: &mut Target<'_>, offset: u64) -> Result<usize> {
        let memory = target.memory().within_offsets(offset);
        self.run(Direction::Read, memory, target.spot(), offset)
    }

    /// Writes `source` from `offset` on and waits; returns its length.
    ///
    /// # Errors
    /// As for [`read`](Call::read); `Misuse` for a range beyond 2^63 - 1.
    pub fn write(&self, source: Source<'_>, offset: u64) -> Result<usize> {
        self.run(Direction::Write, source.memory(), source.spot(), offset)
    }

    /// Reads all `pieces` and waits; returns the count of each, short only at the end of the data.
    ///
    /// Where the engine [scatters](Engine::scatters), pieces that lie within `gap` bytes of each other are read in one go.
    ///
    /// # Errors
    /// As for [`read`](Call::read); range and count are those of the piece that failed.
    pub fn read_ranges(&self, pieces: &mut [ReadPiece<'_>], gap: u64) -> Result<Vec<usize>> {
        let wanted = pieces.iter().filter(|piece| !piece.is_empty());
        let spots = wanted.map(|piece| piece.wanted().spot());
        let spots = self.checked(Direction::Read, same_place(spots))?;
        let memory = |piece: &ReadPiece<'_>| {
            let memory = piece.wanted().memory();
            (piece.offset(), memory.within_offsets(piece.offset()))
        };
        let pieces = pieces.iter().map(memory);
        self.run_ranges(Direction::Read, pieces, &spots, gap)
    }

    /// Writes all `pieces` and waits; returns the sum of their lengths. With append, offsets count from `base`.
    ///
    /// # Errors
    /// As for [`write`](Call::write); `Misuse` if two pieces overlap, and then nothing is written; range and count are
    /// those of the piece that failed.
    pub fn write_ranges(&self, pieces: &[WritePiece<'_>]) -> Result<usize> {
        let given = pieces.iter().filter(|piece| !piece.source().is_empty());
        let spots = given.map(|piece| piece.source().spot());
        let spots = self.checked(Direction::Write, same_place(spots))?;
        let memory = |piece: &WritePiece<'_>| (piece.offset(), piece.source().memory());
        let pieces = pieces.iter().map(memory);
        let counts = self.run_ranges(Direction::Write, pieces, &spots, 0)?;
        Ok(counts.iter().sum())
    }

    /// Starts to read into `buffer` from `offset` on.
    pub fn submit_read<B: IoBufMut>(&self, buffer: B, offset: u64) -> Pending<B> {
        // Boxed before its address is taken: from here on it does not move.
        let mut buffer = Box::new(buffer);
        let target = buffer.target();
        let (memory, spot) = (target.memory().within_offsets(offset), target.spot());
        self.submit(Direction::Read, buffer, memory, spot, offset)
    }

    /// Starts to write `buffer` from `offset` on.
    pub fn submit_write<B: IoBuf>(&self, buffer: B, offset: u64) -> Pending<B> {
        let buffer = Box::new(buffer);
        let source = buffer.source();
        let (memory, spot) = (source.memory(), source.spot());
        self.submit(Direction::Write, buffer, memory, spot, offset)
    }

    /// Plans to move entries of a batch, none of them empty, whose memory is in one place; `layout` makes theirs of the ranges.
    /// Returns the transfer, and how many threads it has use for.
    ///
    /// # Errors
    /// What is wrong with all of them.
    pub(crate) fn entries(
        &self,
        direction: Direction,
        pieces: impl ExactSizeIterator<Item = (u64, Memory)> + Clone,
        spot: Option<Spot>,
        gap: u64,
        layout: impl FnOnce(Ranges) -> Entries,
    ) -> Result<(Arc<Transfer<Entries>>, usize)> {
        let longest = pieces.clone().map(|(_, memory)| memory.len()).max();
        let longest = longest.unwrap_or(0);
        let task = self.task_size.min(longest as u64);
        let way = self.way(spot.as_slice(), task, longest, pieces.len());
        let way = self.checked(direction, way)?;
        let size = pieces.clone().map(|(_, memory)| memory.len() as u64).sum();
        let ranges = self.plan_ranges(direction, pieces, gap, &way);
        let ranges = self.checked(direction, ranges)?;
        let threads = self.threads_for(direction, &way);
        let order = self.order(direction, ranges.hull().start, size, way);
        Ok((Transfer::new(order, layout(ranges), None), threads))
    }

    fn run(
        &self,
        direction: Direction,
        memory: Memory,
        spot: Option<Spot>,
        offset: u64,
    ) -> Result<usize> {
        let way = self.way(spot.as_slice(), self.task_size, memory.len(), 1);
        let way = self.checked(direction, way)?;
        let layout = self.stretch(direction, memory, offset, &way)?;
        let threads = self.threads_for(direction, &way);
        let order = self.order(direction, offset, memory.len() as u64, way);
        Transfer::new(order, layout, None).run(&self.pool, threads)
    }

    fn submit<B: Send + 'static>(
        &self,
        direction: Direction,
        buffer: Box<B>,
        memory: Memory,
        spot: Option<Spot>,
        at: u64,
    ) -> Pending<B> {
        let way = self.way(spot.as_slice(), self.task_size, memory.len(), 1);
        let way = self.checked(direction, way);
        let planned = way.and_then(|way| Ok((self.stretch(direction, memory, at, &way)?, way)));
        let (layout, way) = match planned {
            Ok(planned) => planned,
            Err(error) => return Pending::refused(error, *buffer),
        };
        let threads = self.threads_for(direction, &way);
        let order = self.order(direction, at, memory.len() as u64, way);
        let transfer = Transfer::new(order, layout, Some(buffer));
        transfer.submit(&self.pool, threads);
        Pending::new(transfer, self.pool.clone())
    }

    /// Who moves the bytes, in tasks of up to `longest`: to or from memory of the host or, if spots are named, of the device
    /// where all of these are. The longest piece has `len` bytes, and `at_once` of them may be given to cuFile together.
    fn way(&self, spots: &[Spot], longest: u64, len: usize, at_once: usize) -> Result<Way> {
        if spots.is_empty() {
            return Ok(Way {
                engine: Arc::clone(&self.engine),
                memory: kvik_stats::Memory::Host,
            });
        }
        if let Some(gds) = self.gds(spots, len)? {
            return Ok(Way {
                engine: match at_once {
                    0 | 1 => Arc::new(gds),
                    _ => GdsBatch::over(gds),
                },
                memory: kvik_stats::Memory::Device,
            });
        }
        let host = Arc::clone(&self.for_device);
        let staged = Staged::new(host, spots, self.bounce_buffer_size, longest)?;
        Ok(Way {
            engine: Arc::new(staged),
            memory: kvik_stats::Memory::Device,
        })
    }

    /// cuFile for memory at `spots`, if it takes pieces of up to `len` bytes there.
    fn gds(&self, spots: &[Spot], len: usize) -> Result<Option<Gds>> {
        let Some(cufile) = &self.cufile else {
            return Ok(None);
        };
        if !cufile.takes(len as u64, spots)? {
            return Ok(None);
        }
        let Some(file) = cufile.registered()? else {
            return Ok(None);
        };
        let gds = Gds::new(file, spots)?;
        Ok(Some(match cufile.gives_way() {
            true => {
                let host = Arc::clone(&self.for_device);
                gds.or_staged(cufile.clone(), host, self.bounce_buffer_size)
            }
            false => gds,
        }))
    }

    fn run_ranges(
        &self,
        direction: Direction,
        pieces: impl ExactSizeIterator<Item = (u64, Memory)> + Clone,
        spots: &[Spot],
        gap: u64,
    ) -> Result<Vec<usize>> {
        let lengths: Vec<usize> = pieces.clone().map(|(_, memory)| memory.len()).collect();
        let longest = lengths.iter().max().map_or(0, |len| *len);
        let way = self.way(spots, self.task_size.min(longest as u64), longest, 1);
        let way = self.checked(direction, way)?;
        let planned = self.plan_ranges(direction, pieces, gap, &way);
        let planned = planned.and_then(|ranges| {
            if direction == Direction::Write {
                ranges.check_apart()?;
            }
            Ok(ranges)
        });
        let ranges = self.checked(direction, planned)?;
        let size = lengths.iter().map(|len| *len as u64).sum();
        let threads = self.threads_for(direction, &way);
        let order = self.order(direction, ranges.hull().start, size, way);
        let layout = Scatter::new(ranges, lengths, direction);
        let transfer = Transfer::new(order, layout, None);
        transfer.run(&self.pool, threads)?;
        Ok(transfer.layout().take_counts())
    }

    /// How the pieces are cut and put together.
    fn plan_ranges(
        &self,
        direction: Direction,
        pieces: impl ExactSizeIterator<Item = (u64, Memory)>,
        gap: u64,
        way: &Way,
    ) -> Result<Ranges> {
        let limits = Limits {
            task_size: self.task_size.min(way.engine.largest()),
            gap,
            merged: self.task_size.min(MERGED),
            // What is written to neighbours goes out piece by piece: gathering it first costs as much as it saves.
            parts: match direction {
                Direction::Read if way.engine.scatters() => PARTS,
                _ => 1,
            },
        };
        Ranges::new(pieces, &limits)
    }

    fn stretch(
        &self,
        direction: Direction,
        memory: Memory,
        offset: u64,
        way: &Way,
    ) -> Result<Stretch> {
        let task_size = self.task_size.min(way.engine.largest());
        let plan = Plan::new(offset, memory.len() as u64, task_size);
        let plan = self.checked(direction, plan)?;
        Ok(Stretch::new(plan, memory, direction))
    }

    fn threads_for(&self, direction: Direction, way: &Way) -> usize {
        let useful = match direction {
            Direction::Read => way.engine.readers(),
            Direction::Write => way.engine.writers(),
        };
        self.threads.min(useful.max(1))
    }

    /// What was planned, unless it or this call cannot be carried out.
    fn checked<T>(&self, direction: Direction, planned: Result<T>) -> Result<T> {
        let planned = planned.map_err(|error| error.during(direction.into()).at(&self.place))?;
        if !(1..=ThreadPool::MAX_THREADS).contains(&self.threads) {
            let why = match self.threads {
                0 => "the number of threads must be positive".to_owned(),
                many => format!(
                    "{many} threads are more than the {} that a pool starts",
                    ThreadPool::MAX_THREADS
                ),
            };
            let error = Error::new(ErrorKind::Misuse, direction.into(), why);
            return Err(error.at(&self.place));
        }
        Ok(planned)
    }

    fn order(&self, direction: Direction, offset: u64, len: u64, way: Way) -> Order {
        let span = kvik_stats::begin(Start {
            backend: way.engine.backend(),
            direction,
            memory: way.memory,
            source: &self.name,
            offset,
            size: len,
        });
        Order {
            engine: way.engine,
            direction,
            place: self.place.clone(),
            deadline: self.deadline,
            span: Some(span),
        }
    }
}

/// The engine for one kind of memory.
struct Way {
    engine: Arc<dyn Engine>,
    memory: kvik_stats::Memory,
}

/// Where the memory of all pieces, of which none is empty, is: nowhere in particular if it is the host's, else in one
/// context, with each stream that comes first once.
fn same_place(spots: impl Iterator<Item = Option<Spot>>) -> Result<Vec<Spot>> {
    let mut found: Option<Vec<Spot>> = None;
    for spot in spots {
        let known = found.get_or_insert_with(|| spot.into_iter().collect());
        let context = |spot: &Spot| spot.context;
        if known.first().map(context) != spot.as_ref().map(context) {
            let why = "the pieces of one call lie partly on the host and partly on a device, or in several contexts";
            return Err(Error::new(ErrorKind::Misuse, Op::Read, why));
        }
        if let Some(spot) = spot
            && !known.contains(&spot)
        {
            known.push(spot);
        }
    }
    Ok(found.unwrap_or_default())
}

/// Refuses what is asked from inside a call of a listener of statistics. Every door asks this first.
///
/// # Errors
/// `InListener` there.
pub fn outside_listeners(op: Op) -> Result<()> {
    InListener::check().map_err(|why| Error::new(ErrorKind::InListener, op, why.to_string()))
}

/// A transfer that a door refuses before it begins.
pub fn refused<B: Send + 'static>(error: Error, buffer: B) -> Pending<B> {
    Pending::refused(error, buffer)
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("place", &self.place)
            .field("backend", &self.engine.backend())
            .field("threads", &self.threads)
            .field("task_size", &self.task_size)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

// Beyond this a read is as fast as it gets, and the next piece is better left to another thread.
const MERGED: u64 = 256 << 10;
// Beyond this the system call is a small part of the cost of the slices that it fills.
const PARTS: usize = 64;
