//! Fetches the pages of fresh memory by several threads, before anybody waits for them one by one.

use std::sync::Arc;

use kvik_stats::{Backend, Direction};

use crate::corridor::{Completion, Engine, Lane, Plan, Task, Window};
use crate::error::{Error, Op, Place, Result};
use crate::memory::Memory;
use crate::pages::{Pages, populate};
use crate::pool::ThreadPool;
use crate::stretch::Stretch;
use crate::transfer::{Order, Transfer};

/// Memory whose pages are all there. They are fetched by a transfer that nobody hears of, between nothing and the memory.
pub(crate) fn present(len: usize, pool: &ThreadPool, threads: usize) -> Result<Pages> {
    let mut pages = Pages::new(len)?;
    let order = Order {
        engine: Arc::new(Fetch),
        direction: Direction::Read,
        place: Place::Memory,
        deadline: None,
        span: None,
    };
    let plan = Plan::new(0, len as u64, CHUNK)?;
    let layout = Stretch::new(plan, Memory::of_mut(&mut pages), Direction::Read);
    Transfer::new(order, layout, None).run(pool, threads.max(1))?;
    Ok(pages)
}

/// The engine that gives each task's memory its pages.
struct Fetch;

impl Engine for Fetch {
    fn backend(&self) -> Backend {
        Backend::Posix
    }

    fn lane<'w>(&'w self) -> Result<Box<dyn Lane<'w> + 'w>> {
        Ok(Box::new(FetchLane(None)))
    }
}

struct FetchLane<'w>(Option<Completion<'w>>);

impl<'w> Lane<'w> for FetchLane<'w> {
    fn room(&self) -> usize {
        1 - self.in_flight()
    }

    fn in_flight(&self) -> usize {
        usize::from(self.0.is_some())
    }

    fn finished(&self) -> usize {
        self.in_flight()
    }

    fn start(&mut self, task: Task, mut window: Window<'w>) {
        let mut outcome = Ok(());
        if let Window::Fill(window) = &mut window {
            outcome = populate(window.room());
            let count = if outcome.is_ok() {
                window.remaining()
            } else {
                0
            };
            // SAFETY: the window is a part of `Pages` that `present` has just made, which are zeroed.
            unsafe { window.advance(count) };
        }
        self.0 = Some(Completion {
            moved: task.len() as usize,
            task,
            window,
            error: outcome.err().map(|errno| Error::os(Op::Allocate, errno)),
        });
    }

    fn poll(&mut self, done: &mut Vec<Completion<'w>>) {
        done.extend(self.0.take());
    }
}

// Some milliseconds of zeroing: coarse enough for threads not to meet in the kernel's lock too often, fine enough for all
// to be done at about the same time.
const CHUNK: u64 = 16 << 20;
