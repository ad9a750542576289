//! The lane of engines for which a task is one blocking matter: it is finished when `start` returns.

use super::{Completion, Lane};
use crate::corridor::{FillWindow, Task, Window};
use crate::error::{Error, Result};

/// A lane with room for one task. `fill` fills a window from an offset on and leaves it short only where the data ends;
/// `drain` writes all bytes at an offset and returns how many were written and what stopped it.
pub(crate) fn lane<'w>(
    fill: impl FnMut(&mut FillWindow<'_>, u64) -> Result<()> + 'w,
    drain: impl FnMut(&[u8], u64) -> (usize, Option<Error>) + 'w,
) -> Box<dyn Lane<'w> + 'w> {
    Box::new(BlockingLane {
        fill,
        drain,
        finished: None,
    })
}

struct BlockingLane<'w, F, D> {
    fill: F,
    drain: D,
    finished: Option<Completion<'w>>,
}

impl<'w, F, D> Lane<'w> for BlockingLane<'w, F, D>
where
    F: FnMut(&mut FillWindow<'_>, u64) -> Result<()>,
    D: FnMut(&[u8], u64) -> (usize, Option<Error>),
{
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
        let offset = task.range.start;
        let completion = match window {
            Window::Fill(mut window) => {
                let error = (self.fill)(&mut window, offset).err();
                Completion {
                    task,
                    moved: window.filled(),
                    window: Window::Fill(window),
                    error,
                }
            }
            Window::Drain(bytes) => {
                let (moved, error) = (self.drain)(bytes, offset);
                Completion {
                    task,
                    moved,
                    window: Window::Drain(bytes),
                    error,
                }
            }
            Window::Device(window) => Completion::not_on_host(task, window),
        };
        self.finished = Some(completion);
    }

    fn poll(&mut self, done: &mut Vec<Completion<'w>>) {
        done.extend(self.finished.take());
    }
}
