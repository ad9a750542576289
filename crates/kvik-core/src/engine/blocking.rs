//! The lane of engines for which a task is one blocking matter: it is finished when `start` returns.

use super::{Completion, Lane};
use crate::corridor::{FillWindow, Task, Window};
use crate::error::{Error, Result};

/// A lane with room for one task. `fill` fills a window from an offset on and leaves it short only where the data ends;
/// `drain` writes all bytes at an offset and returns how many were written and what stopped it.
pub(crate) fn lane<'w>(
    engine: &'static str,
    fill: impl FnMut(&mut FillWindow<'_>, u64) -> Result<()> + 'w,
    drain: impl FnMut(&[u8], u64) -> (usize, Option<Error>) + 'w,
) -> Box<dyn Lane<'w> + 'w> {
    Box::new(BlockingLane {
        engine,
        fill,
        drain,
        finished: None,
    })
}

/// Does `task` now.
pub(crate) fn complete<'w>(
    task: Task,
    window: Window<'w>,
    fill: impl FnOnce(&mut FillWindow<'_>, u64) -> Result<()>,
    drain: impl FnOnce(&[u8], u64) -> (usize, Option<Error>),
) -> Completion<'w> {
    let offset = task.range.start;
    match window {
        Window::Fill(mut window) => {
            let error = fill(&mut window, offset).err();
            Completion {
                task,
                moved: window.filled(),
                window: Window::Fill(window),
                error,
            }
        }
        Window::Drain(bytes) => {
            let (moved, error) = drain(bytes, offset);
            Completion {
                task,
                moved,
                window: Window::Drain(bytes),
                error,
            }
        }
        Window::Device(window) => Completion::not_on_host(task, window),
    }
}

struct BlockingLane<'w, F, D> {
    engine: &'static str,
    fill: F,
    drain: D,
    finished: Option<Completion<'w>>,
}

impl<'w, F, D> Lane<'w> for BlockingLane<'w, F, D>
where
    F: FnMut(&mut FillWindow<'_>, u64) -> Result<()>,
    D: FnMut(&[u8], u64) -> (usize, Option<Error>),
{
    fn engine(&self) -> &'static str {
        self.engine
    }

    fn room(&self) -> usize {
        1 - self.in_flight()
    }

    fn in_flight(&self) -> usize {
        usize::from(self.finished.is_some())
    }

    fn finished(&self) -> usize {
        self.in_flight()
    }

    fn start(&mut self, task: Task, window: Window<'w>) {
        self.finished = Some(complete(task, window, &mut self.fill, &mut self.drain));
    }

    fn poll(&mut self, done: &mut Vec<Completion<'w>>) {
        done.extend(self.finished.take());
    }
}
