//! What a lane still has to cut into requests, and the requests that were not answered yet.

use std::collections::VecDeque;
use std::ops::Range;

use super::cut::pieces;
use super::ring::DEPTH;
use super::slots::Slot;
use crate::engine::direct::split::Piece;

/// A part of a job that is still to be cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) job: usize,
    pub(super) range: Range<u64>,
    /// Whether its first request may block a thread of the kernel.
    pub(super) blocking: bool,
    /// Whether it goes through the page cache, whatever holds for the job.
    pub(super) cached: bool,
}

impl Part {
    pub(super) fn new(job: usize, range: Range<u64>) -> Part {
        Part {
            job,
            range,
            blocking: false,
            cached: false,
        }
    }
}

/// The parts, in the order in which they are cut.
#[derive(Debug, Default)]
pub(super) struct Queue {
    parts: VecDeque<Part>,
    requests: usize,
}

impl Queue {
    /// How many requests it will come to, about.
    pub(super) fn requests(&self) -> usize {
        self.requests
    }

    pub(super) fn front(&self) -> Option<&Part> {
        self.parts.front()
    }

    pub(super) fn push_back(&mut self, part: Part) {
        self.requests += pieces(&part.range);
        self.parts.push_back(part);
    }

    pub(super) fn push_front(&mut self, part: Part) {
        self.requests += pieces(&part.range);
        self.parts.push_front(part);
    }

    /// Takes the bytes up to `end` off the first part; returns whether some are left.
    pub(super) fn cut_front(&mut self, end: u64) -> bool {
        let Some(mut part) = self.parts.pop_front() else {
            return false;
        };
        self.requests -= pieces(&part.range);
        part.range.start = end;
        part.blocking = false;
        let is_left = !part.range.is_empty();
        if is_left {
            self.push_front(part);
        }
        is_left
    }

    /// Takes out what `job` has in it from `at` on; returns how many parts that were.
    pub(super) fn forget_behind(&mut self, job: usize, at: u64) -> usize {
        let before = self.parts.len();
        self.parts
            .retain(|part| part.job != job || part.range.start < at);
        self.requests = self.parts.iter().map(|part| pieces(&part.range)).sum();
        before - self.parts.len()
    }

    /// Takes out the first part.
    pub(super) fn pop(&mut self) -> Option<Part> {
        let part = self.parts.pop_front()?;
        self.requests -= pieces(&part.range);
        Some(part)
    }
}

/// A request that was not answered yet.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) job: usize,
    pub(super) piece: Piece,
    pub(super) slot: Option<Slot>,
}

/// The unanswered requests of a lane, by their tokens.
#[derive(Debug)]
pub(super) struct Unanswered {
    sent: [Option<Sent>; DEPTH],
    // A bit for each token that names no request.
    idle: u64,
}

impl Default for Unanswered {
    fn default() -> Self {
        Unanswered {
            sent: [const { None }; DEPTH],
            idle: u64::MAX,
        }
    }
}

impl Unanswered {
    pub(super) fn len(&self) -> usize {
        self.idle.count_zeros() as usize
    }

    pub(super) fn has_room(&self) -> bool {
        self.idle != 0
    }

    /// Gives the request a token. There is room.
    pub(super) fn insert(&mut self, sent: Sent) -> u32 {
        let token = self.idle.trailing_zeros();
        self.idle &= self.idle - 1;
        self.sent[token as usize] = Some(sent);
        token
    }

    /// Takes out the request under `token`.
    pub(super) fn remove(&mut self, token: u32) -> Option<Sent> {
        let sent = self.sent.get_mut(token as usize)?.take()?;
        self.idle |= 1 << token;
        Some(sent)
    }

    /// The tokens that name a request.
    pub(super) fn tokens(&self) -> impl Iterator<Item = u32> + use<> {
        let idle = self.idle;
        (0..DEPTH as u32).filter(move |token| idle & 1 << token == 0)
    }
}

const _: () = assert!(DEPTH == u64::BITS as usize, "a bit for each token");

#[cfg(test)]
mod tests {
    use super::super::cut::PIECE;
    use super::*;

    fn part(job: usize, range: Range<u64>) -> Part {
        Part {
            blocking: true,
            cached: true,
            ..Part::new(job, range)
        }
    }

    #[test]
    fn a_queue_knows_how_many_requests_it_will_come_to() {
        let mut queue = Queue::default();
        queue.push_back(part(0, 0..3 * PIECE));
        queue.push_back(part(1, 0..1));
        queue.push_front(part(2, 7..PIECE));
        assert_eq!(queue.requests(), 5);
        assert!(!queue.cut_front(PIECE));
        assert!(queue.cut_front(PIECE));
        assert_eq!(
            queue.front(),
            Some(&Part {
                blocking: false,
                ..part(0, PIECE..3 * PIECE)
            })
        );
        assert_eq!((queue.forget_behind(0, PIECE), queue.requests()), (1, 1));
        assert_eq!(queue.forget_behind(1, 1), 0);
        assert_eq!(queue.pop(), Some(part(1, 0..1)));
        assert_eq!((queue.pop(), queue.requests()), (None, 0));
    }

    #[test]
    fn a_token_names_one_request_until_it_is_answered() {
        let sent = |job| Sent {
            job,
            piece: Piece::Buffered(0..1),
            slot: None,
        };
        let mut unanswered = Unanswered::default();
        let tokens: Vec<_> = (0..DEPTH).map(|job| unanswered.insert(sent(job))).collect();
        assert!(!unanswered.has_room() && unanswered.tokens().eq(tokens.iter().copied()));
        assert_eq!(unanswered.remove(5).map(|sent| sent.job), Some(5));
        assert!(unanswered.remove(5).is_none() && unanswered.remove(u32::MAX).is_none());
        assert_eq!(unanswered.len(), DEPTH - 1);
        assert_eq!(unanswered.insert(sent(99)), 5);
    }
}
