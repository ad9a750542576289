//! The one place where an engine gives way to another: when it cannot open a lane here, or is refused what it needs.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kvik_stats::{Backend, names};

use super::{Completion, Engine, Lane};
use crate::corridor::{Task, Window};
use crate::error::{Error, Result};

/// Works by `first` until that proves impossible, and by `second` from then on. The change is counted once.
pub(crate) struct OrElse {
    first: Arc<dyn Engine>,
    second: Arc<dyn Engine>,
    given_up: AtomicBool,
}

impl OrElse {
    pub(crate) fn new(first: Arc<dyn Engine>, second: Arc<dyn Engine>) -> OrElse {
        OrElse {
            first,
            second,
            given_up: AtomicBool::new(false),
        }
    }

    fn has_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    fn give_up(&self, why: &Error) {
        if !self.given_up.swap(true, Ordering::Relaxed) {
            names::FALLBACKS.increment();
            names::FALLBACKS_OF_URING.increment();
            tracing::debug!(%why, "a handle gives up an engine for another");
        }
    }
}

impl Engine for OrElse {
    fn backend(&self) -> Backend {
        match self.has_given_up() {
            true => self.second.backend(),
            false => self.first.backend(),
        }
    }

    fn lane<'w>(&'w self) -> Result<Box<dyn Lane<'w> + 'w>> {
        if self.has_given_up() {
            return self.second.lane();
        }
        match self.first.lane() {
            Ok(first) => Ok(Box::new(OrElseLane {
                engine: self,
                first,
                second: None,
                redone: VecDeque::new(),
            })),
            Err(why) => {
                let second = self.second.lane()?;
                self.give_up(&why);
                Ok(second)
            }
        }
    }
}

/// A lane on the first engine, and one on the second from the first refusal on.
struct OrElseLane<'w> {
    engine: &'w OrElse,
    first: Box<dyn Lane<'w> + 'w>,
    second: Option<Box<dyn Lane<'w> + 'w>>,
    // Tasks that the first engine was refused, with what was wrong.
    redone: VecDeque<(Task, Window<'w>, Error)>,
}

impl<'w> Lane<'w> for OrElseLane<'w> {
    fn engine(&self) -> &'static str {
        self.current().engine()
    }

    fn room(&self) -> usize {
        // What is to be done again comes before what is new.
        match self.redone.is_empty() {
            true => self.current().room(),
            false => 0,
        }
    }

    fn in_flight(&self) -> usize {
        let second = self.second.as_ref().map_or(0, |lane| lane.in_flight());
        self.first.in_flight() + second + self.redone.len()
    }

    fn start(&mut self, task: Task, window: Window<'w>) {
        match &mut self.second {
            Some(second) => second.start(task, window),
            None => self.first.start(task, window),
        }
    }

    fn poll(&mut self, done: &mut Vec<Completion<'w>>) {
        let before = done.len();
        while done.len() == before && self.in_flight() > 0 {
            if self.first.in_flight() > 0 {
                self.first.poll(done);
                self.take_refused(done, before);
            }
            self.redo(done);
            if let Some(second) = self.second.as_mut().filter(|lane| lane.in_flight() > 0) {
                second.poll(done);
            }
        }
    }
}

impl<'w> OrElseLane<'w> {
    fn current(&self) -> &(dyn Lane<'w> + 'w) {
        match &self.second {
            Some(second) => second.as_ref(),
            None => self.first.as_ref(),
        }
    }

    /// Takes the tasks that were refused out of `done`, from `before` on.
    fn take_refused(&mut self, done: &mut Vec<Completion<'w>>, before: usize) {
        let is_refused = |completion: &mut Completion<'w>| {
            completion.error.as_ref().is_some_and(Error::is_refusal)
        };
        for completion in done.extract_if(before.., is_refused) {
            if let Some(why) = completion.error {
                self.engine.give_up(&why);
                self.redone
                    .push_back((completion.task, completion.window, why));
            }
        }
    }

    /// Starts on the second engine what the first was refused, as far as there is room.
    fn redo(&mut self, done: &mut Vec<Completion<'w>>) {
        while let Some((task, window, why)) = self.redone.pop_front() {
            match self.second_lane() {
                Ok(second) if second.room() > 0 => second.start(task, window),
                Ok(_) => return self.redone.push_front((task, window, why)),
                // Neither engine can: the first one's reason stands.
                Err(_) => done.push(Completion {
                    task,
                    window,
                    moved: 0,
                    error: Some(why),
                }),
            }
        }
    }

    fn second_lane(&mut self) -> Result<&mut Box<dyn Lane<'w> + 'w>> {
        let engine = self.engine;
        match &mut self.second {
            Some(second) => Ok(second),
            none => Ok(none.insert(engine.second.lane()?)),
        }
    }
}
