//! The lane of engines for which a task is one blocking matter: it is finished when `start` returns.

use super::{Completion, Lane};
use crate::corridor::{FillWindow, Task, Window};
use crate::error::{Error, Result};

/// Moves the bytes of one window on the calling thread.
pub(crate) trait Blocking: Sync {
    /// Fills the window from `offset` on; it stays short only where the data ends.
    fn fill(&self, window: &mut FillWindow<'_>, offset: u64) -> Result<()>;

    /// Writes all of `bytes` at `offset`; returns how many were written and what stopped it.
    fn drain(&self, bytes: &[u8], offset: u64) -> (usize, Option<Error>);
}

/// A lane with room for one task.
pub(crate) struct BlockingLane<'w, B> {
    by: &'w B,
    finished: Option<Completion<'w>>,
}

impl<'w, B: Blocking> BlockingLane<'w, B> {
    pub(crate) fn boxed(by: &'w B) -> Box<dyn Lane<'w> + 'w> {
        Box::new(BlockingLane { by, finished: None })
    }
}

impl<'w, B: Blocking> Lane<'w> for BlockingLane<'w, B> {
    fn room(&self) -> usize {
        1 - self.in_flight()
    }

    fn in_flight(&self) -> usize {
        usize::from(self.finished.is_some())
    }

    fn start(&mut self, task: Task, window: Window<'w>) {
        let offset = task.range.start;
        let completion = match window {
            Window::Fill(mut window) => {
                let error = self.by.fill(&mut window, offset).err();
                Completion {
                    task,
                    moved: window.filled(),
                    window: Window::Fill(window),
                    error,
                }
            }
            Window::Drain(bytes) => {
                let (moved, error) = self.by.drain(bytes, offset);
                Completion {
                    task,
                    moved,
                    window: Window::Drain(bytes),
                    error,
                }
            }
        };
        self.finished = Some(completion);
    }

    fn poll(&mut self, done: &mut Vec<Completion<'w>>) {
        done.extend(self.finished.take());
    }
}
