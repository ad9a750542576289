//! A task on a lane of a ring: its window, what of it is moved, and where it stopped.

use std::ops::Range;
use std::ptr::NonNull;

use kvik_stats::Direction;

use super::cut::Rule;
use super::outcome::Step;
use crate::corridor::{Completion, Task, Window};
use crate::engine::direct::split::write_parts;
use crate::engine::posix;
use crate::error::{Error, ErrorKind, Op};

/// A task that is being moved, in pieces that are answered in any order.
#[derive(Debug)]
pub(super) struct Job<'w> {
    task: Task,
    window: Window<'w>,
    // Where the byte at `range.start` stands. The window is not looked into while the kernel may write to it.
    memory: NonNull<u8>,
    /// The part of the file that the ring moves: what the window has room for; of a direct write its whole blocks.
    pub(super) range: Range<u64>,
    /// What holds for its pieces.
    pub(super) rule: Rule,
    /// Its parts that are still to be cut, and its requests that are not answered.
    pub(super) parts: usize,
    // The lowest offset at which a piece stopped.
    stop: Option<(u64, Step)>,
    // The highest offset up to which a piece was moved.
    furthest: u64,
    // The end of the data that was already asked for again.
    asked_again: Option<u64>,
}

impl<'w> Job<'w> {
    /// `rule` says what holds for reads and for writes.
    pub(super) fn new(
        task: Task,
        mut window: Window<'w>,
        rule: impl Fn(Direction) -> Rule,
    ) -> Job<'w> {
        let (direction, start, memory, len) = match &mut window {
            Window::Fill(window) => {
                let start = task.range.start + window.filled() as u64;
                let room = window.room();
                (
                    Direction::Read,
                    start,
                    NonNull::from(&mut *room).cast(),
                    room.len(),
                )
            }
            Window::Drain(bytes) => {
                let memory = NonNull::from(*bytes).cast();
                (Direction::Write, task.range.start, memory, bytes.len())
            }
            // The lane has refused it.
            Window::Device(window) => {
                (window.direction(), task.range.start, NonNull::dangling(), 0)
            }
        };
        let rule = rule(direction);
        let mut range = start..start.saturating_add(len as u64);
        let mut memory: NonNull<u8> = memory;
        if let (Direction::Write, Rule::Direct { boundary, .. }) = (direction, rule) {
            let body = write_parts(&range, boundary).body;
            let head = (body.start - start) as usize;
            // SAFETY: the body lies in the range, which is as long as the source, so what is before it is no longer.
            memory = unsafe { memory.add(head) };
            range = body;
        }
        Job {
            furthest: range.start,
            task,
            window,
            memory,
            range,
            rule,
            parts: 0,
            stop: None,
            asked_again: None,
        }
    }

    pub(super) fn direction(&self) -> Direction {
        self.window.direction()
    }

    /// Where the byte at `at` of the file stands, which lies in the range.
    pub(super) fn memory_at(&self, at: u64) -> NonNull<u8> {
        debug_assert!(self.range.start <= at && at <= self.range.end);
        // SAFETY: `memory` is as long as `range` (see `new`), in which `at` lies.
        unsafe { self.memory.add((at - self.range.start) as usize) }
    }

    /// Takes note that these bytes, if any, were moved.
    pub(super) fn moved(&mut self, bytes: Range<u64>) {
        if !bytes.is_empty() {
            self.furthest = self.furthest.max(bytes.end);
        }
    }

    /// Takes note that a piece stopped at `at` for good; what lies behind need not be started. The lowest stop counts.
    pub(super) fn stop_at(&mut self, at: u64, why: Step) {
        if self.stop.is_none_or(|(lowest, _)| at < lowest) {
            self.stop = Some((at, why));
        }
    }

    /// From where on nothing more is to be started.
    pub(super) fn stopped_at(&self) -> Option<u64> {
        self.stop.map(|(at, _)| at)
    }

    /// What is to be asked for again when all parts are done, if a piece met the end of the data and a later one found
    /// bytes: the file grew meanwhile.
    pub(super) fn gap(&mut self) -> Option<Range<u64>> {
        match self.stop {
            Some((at, Step::End)) if at < self.furthest && self.asked_again != Some(at) => {
                self.asked_again = Some(at);
                self.stop = None;
                Some(at..self.range.end)
            }
            _ => None,
        }
    }

    /// The finished task. The edges of a direct write are written now, through the page cache of `buffered`.
    pub(super) fn complete(self, buffered: &std::fs::File) -> Completion<'w> {
        let end = self.stop.map_or(self.range.end, |(at, _)| at);
        let op = Op::from(self.direction());
        let mut error = self.stop.and_then(|(_, why)| error_of(op, why));
        let moved = (end - self.task.range.start) as usize;
        let (window, moved) = match self.window {
            Window::Fill(mut window) => {
                let start = self.task.range.start + window.filled() as u64;
                // SAFETY: every piece from `start` up to `end`, the lowest stop, was moved in full, none is in flight.
                unsafe { window.advance((end - start) as usize) };
                (Window::Fill(window), moved)
            }
            Window::Drain(bytes) => {
                let start = self.task.range.start;
                let head = (self.range.start - start) as usize;
                let body = (self.range.end - self.range.start) as usize;
                let mut moved = moved.min(bytes.len());
                let (written, why) = posix::drain(buffered, &bytes[..head], start);
                if written < head {
                    (moved, error) = (written, why);
                } else if error.is_none() {
                    let tail = bytes.get(head + body..).unwrap_or_default();
                    let (written, why) = posix::drain(buffered, tail, self.range.end);
                    (moved, error) = (head + body + written, why);
                }
                (Window::Drain(bytes), moved)
            }
            window @ Window::Device(_) => (window, 0),
        };
        Completion {
            task: self.task,
            window,
            moved,
            error,
        }
    }
}

fn error_of(op: Op, why: Step) -> Option<Error> {
    match why {
        Step::Failed(errno) => Some(Error::os(op, errno)),
        Step::Refused(errno) => Some(Error::refused(op, errno)),
        Step::Stuck => {
            let why = "the file takes no more bytes, without saying why";
            Some(Error::new(ErrorKind::Io, op, why))
        }
        Step::Done | Step::More | Step::Cached | Step::Again(_) | Step::End => None,
    }
}

#[cfg(test)]
mod tests {
    use nix::errno::Errno;

    use super::*;
    use crate::target::filling;

    fn job(bytes: &mut [u8]) -> Job<'_> {
        let task = Task {
            index: 0,
            range: 1000..1000 + bytes.len() as u64,
        };
        Job::new(task, Window::Fill(filling(bytes)), |_| Rule::Buffered)
    }

    fn moved(job: Job<'_>) -> (usize, Option<ErrorKind>) {
        let file = tempfile::tempfile().unwrap();
        let done = job.complete(&file);
        let Window::Fill(window) = done.window else {
            panic!("a read became a write")
        };
        assert_eq!(window.filled(), done.moved);
        (done.moved, done.error.map(|error| error.kind()))
    }

    #[test]
    fn the_lowest_stop_decides_in_whatever_order_pieces_are_answered() {
        let failed = Step::Failed(Errno::EIO);
        for stops in [
            [(1300, failed), (1100, Step::End), (1200, failed)],
            [(1100, Step::End), (1200, failed), (1300, failed)],
        ] {
            let mut bytes = [0; 500];
            let mut job = job(&mut bytes);
            stops.iter().for_each(|(at, why)| job.stop_at(*at, *why));
            assert_eq!(job.stopped_at(), Some(1100));
            assert_eq!(moved(job), (100, None));
        }
        let mut bytes = [0; 500];
        let mut job = job(&mut bytes);
        job.stop_at(1100, Step::End);
        job.stop_at(1010, failed);
        assert_eq!(moved(job), (10, Some(ErrorKind::Io)));
    }

    #[test]
    fn an_end_in_front_of_bytes_is_asked_for_again_until_nothing_more_comes() {
        let mut bytes = [0; 500];
        let mut job = job(&mut bytes);
        job.moved(1000..1400);
        job.stop_at(1100, Step::End);
        assert_eq!(job.gap(), Some(1100..1500));
        // Some more was there.
        job.stop_at(1200, Step::End);
        assert_eq!(job.gap(), Some(1200..1500));
        // Now the file is cut: no more comes, and that is the answer.
        job.stop_at(1200, Step::End);
        assert_eq!(job.gap(), None);
        assert_eq!(moved(job), (200, None));
    }

    #[test]
    fn an_end_behind_all_bytes_and_an_error_are_no_gaps() {
        let mut bytes = [0; 500];
        let mut end = job(&mut bytes);
        end.moved(1000..1100);
        end.stop_at(1100, Step::End);
        assert_eq!(end.gap(), None);
        let mut bytes = [0; 500];
        let mut failed = job(&mut bytes);
        failed.moved(1000..1400);
        failed.stop_at(1100, Step::Failed(Errno::EIO));
        assert_eq!(failed.gap(), None);
    }
}
