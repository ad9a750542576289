//! The corridor that every door leads to, for the sister crates that are doors themselves: cut a range into the tasks of
//! a [`Plan`], run them on an [`Engine`], land the bytes in [`Window`]s of a target.
//!
//! Applications need none of this.

pub use crate::engine::{Completion, Engine, EngineKind, Lane};
pub use crate::plan::{Plan, Task};
pub use crate::target::{FillWindow, Window};

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use kvik_stats::Direction;

use crate::buffer::{IoBuf, IoBufMut};
use crate::error::{Error, ErrorKind, Op, Place, Result};
use crate::pending::Pending;
use crate::pool::ThreadPool;
use crate::target::{Memory, Source, Target};
use crate::transfer::{Order, Transfer};

/// What all transfers of one call have in common: who moves the bytes, on which threads, until when.
#[derive(Clone)]
pub struct Call {
    /// Moves the bytes.
    pub engine: Arc<dyn Engine>,
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
        self.order(Direction::Read, memory, offset)
            .and_then(|order| self.run(order, memory))
    }

    /// Writes `source` from `offset` on and waits; returns its length.
    ///
    /// # Errors
    /// As for [`read`](Call::read); `Misuse` for a range beyond 2^63 - 1.
    pub fn write(&self, source: Source<'_>, offset: u64) -> Result<usize> {
        let memory = source.memory();
        self.order(Direction::Write, memory, offset)
            .and_then(|order| self.run(order, memory))
    }

    /// Starts to read into `buffer` from `offset` on.
    pub fn submit_read<B: IoBufMut>(&self, buffer: B, offset: u64) -> Pending<B> {
        // Boxed before its address is taken: from here on it does not move.
        let mut buffer = Box::new(buffer);
        let memory = Memory::of_mut(buffer.bytes_mut()).within_offsets(offset);
        self.submit(Direction::Read, buffer, memory, offset)
    }

    /// Starts to write `buffer` from `offset` on.
    pub fn submit_write<B: IoBuf>(&self, buffer: B, offset: u64) -> Pending<B> {
        let buffer = Box::new(buffer);
        let memory = Memory::of(buffer.bytes());
        self.submit(Direction::Write, buffer, memory, offset)
    }

    fn run(&self, order: Order, memory: Memory) -> Result<usize> {
        Transfer::new(order, memory, None).run(&self.pool, self.threads)
    }

    fn submit<B: Send + 'static>(
        &self,
        direction: Direction,
        buffer: Box<B>,
        memory: Memory,
        at: u64,
    ) -> Pending<B> {
        let order = match self.order(direction, memory, at) {
            Ok(order) => order,
            Err(error) => return Pending::refused(error, *buffer),
        };
        let transfer = Transfer::new(order, memory, Some(buffer));
        transfer.submit(&self.pool, self.threads);
        Pending::new(transfer, self.pool.clone())
    }

    fn order(&self, direction: Direction, memory: Memory, offset: u64) -> Result<Order> {
        let len = memory.len() as u64;
        let op = match direction {
            Direction::Read => Op::Read,
            Direction::Write => Op::Write,
        };
        let plan = Plan::new(offset, len, self.task_size)
            .map_err(|error| error.during(op).at(&self.place))?;
        if !(1..=ThreadPool::MAX_THREADS).contains(&self.threads) {
            let why = match self.threads {
                0 => "the number of threads must be positive".to_owned(),
                many => format!(
                    "{many} threads are more than the {} that a pool starts",
                    ThreadPool::MAX_THREADS
                ),
            };
            return Err(Error::new(ErrorKind::Misuse, op, why).at(&self.place));
        }
        let backend = self.engine.backend();
        Ok(Order {
            plan,
            engine: Arc::clone(&self.engine),
            direction,
            place: self.place.clone(),
            deadline: self.deadline,
            span: kvik_stats::begin(
                backend,
                direction,
                kvik_stats::Memory::Host,
                &self.name,
                offset,
                len,
            ),
        })
    }
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
