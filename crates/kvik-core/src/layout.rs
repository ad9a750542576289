//! What a transfer moves, as the transfer sees it: tasks, handed out in batches, and what the end of each one means.
//!
//! Three layouts there are: a [`Stretch`](crate::stretch::Stretch) is one range of a file and one piece of memory, a
//! [`Scatter`](crate::scatter::Scatter) is many of both, and [`Entries`](crate::batch::Entries) are many, each with an outcome
//! of its own.

use std::ops::Range;

use kvik_stats::Direction;

use crate::corridor::{Engine, Task, Window};
use crate::error::{Error, ErrorKind, Op, Result};
use crate::memory::Memory;

/// The tasks of a transfer with their memory.
pub(crate) trait Layout: Send + Sync + 'static {
    /// How many batches of tasks there are. A worker takes a batch at a time.
    fn batches(&self) -> usize;

    /// The numbers of the tasks in batch `number`, which is below [`batches`](Layout::batches). Never empty.
    fn batch(&self, number: usize) -> Range<usize>;

    /// Task `index` with its window; `None` if it need not be done any more, and then nobody hears of its end.
    ///
    /// # Safety
    /// It is asked for once, and only until the transfer has settled: the memory is valid for that long, and the windows
    /// of different tasks do not overlap.
    unsafe fn task(&self, index: usize) -> Option<(Task, Window<'_>)>;

    /// Whether `window` is the one that belongs to `task`, both as an engine gave them back.
    fn owns(&self, task: &Task, window: &Window<'_>) -> bool;

    /// Notes that `moved` bytes of the task were moved, and why no more if it did not meet the end of the data.
    fn ended(&self, task: &Task, moved: usize, error: Option<Error>) -> Ended;

    /// Notes that the tasks from batch `number` on will not be started.
    fn given_up(&self, number: usize);

    /// Notes that a worker failed and what became of its tasks is not known.
    fn lost(&self);

    /// Closes gaps that a growing file left, at the end and without an error.
    ///
    /// # Errors
    /// What it met; or, where tasks failed without stopping the others, what the first of them met.
    ///
    /// # Safety
    /// No window is left, and the memory is still valid.
    unsafe fn mend(&self, engine: &dyn Engine) -> Result<()>;

    /// Notes that all is over, and why if not all was done. Nobody touches the memory any more.
    fn settled(&self, _error: Option<&Error>) {}

    /// How many bytes were moved, when all work is done.
    fn moved(&self) -> u64;

    /// The range from the first byte to the last.
    fn hull(&self) -> Range<u64>;

    /// Adds to an error what part of the call it concerns.
    fn explain(&self, error: Error) -> Error;
}

/// What the end of a task means for the tasks that have not started.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Nothing.
    GoOn,
    /// They would find nothing.
    Stop,
    /// They must not start.
    Failed(Error),
}

/// Reads on from `at` to the end of `range`, whose memory is `memory`, or to the end of the data; `at` says how far it came.
///
/// # Safety
/// The memory is valid, and nobody else has a window of it.
pub(crate) unsafe fn read_on(
    engine: &dyn Engine,
    range: Range<u64>,
    memory: Memory,
    at: &mut u64,
) -> Result<()> {
    let mut lane = engine.lane()?;
    let mut done = Vec::with_capacity(1);
    while *at < range.end {
        let task = Task {
            index: 0,
            range: *at..range.end.min(*at + STEP.min(engine.largest())),
        };
        let (from, asked) = ((*at - range.start) as usize, task.len());
        // SAFETY: valid and without another window by the caller's promise, and the one before has come back; the task
        // lies in the range, which is as long as the memory.
        let window = unsafe { memory.window(from, asked as usize, Direction::Read) };
        lane.start(task, window);
        lane.poll(&mut done);
        let Some(completion) = done.pop() else {
            let why = "the engine lost a task";
            return Err(Error::new(ErrorKind::Internal, Op::Read, why));
        };
        let filled = completion.window.filled() as u64;
        *at += filled;
        match completion.error {
            Some(error) => return Err(error),
            None if filled < asked => break,
            None => {}
        }
    }
    Ok(())
}

// Gaps are rare and small: one piece at a time keeps the arithmetic simple.
const STEP: u64 = 4 << 20;
