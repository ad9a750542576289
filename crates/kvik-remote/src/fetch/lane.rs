//! One worker's requests: driven by the worker itself, each with the window that its bytes go to.

use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use kvik_core::corridor::{Completion, FillWindow, Lane, Task, Window};
use kvik_core::{Error, ErrorKind, Op};
use kvik_stats::Counter;

use super::engine::Fetch;
use super::requests::{Sink, bring};
use crate::transport::Driver;

pub(super) struct FetchLane<'w> {
    engine: &'w Fetch,
    number: usize,
    under_way: FuturesUnordered<Pin<Box<dyn Future<Output = Completion<'w>> + 'w>>>,
    finished: Vec<Completion<'w>>,
    driver: Driver,
}

impl<'w> FetchLane<'w> {
    /// The lane of that number of its call.
    pub(super) fn new(engine: &'w Fetch, number: usize, driver: Driver) -> FetchLane<'w> {
        FetchLane {
            engine,
            number,
            under_way: FuturesUnordered::new(),
            finished: Vec::new(),
            driver,
        }
    }
}

impl<'w> Lane<'w> for FetchLane<'w> {
    fn engine(&self) -> &'static str {
        self.engine.object.origin.engine()
    }

    fn room(&self) -> usize {
        let room = self.engine.room(self.number);
        room.saturating_sub(self.in_flight())
    }

    fn in_flight(&self) -> usize {
        self.under_way.len() + self.finished.len()
    }

    fn finished(&self) -> usize {
        self.finished.len()
    }

    fn start(&mut self, task: Task, window: Window<'w>) {
        let mut window = match window {
            Window::Fill(window) => window,
            window => {
                let why = "a remote object was to be written to, or read by a device";
                let error = Some(Error::new(ErrorKind::Internal, Op::Read, why));
                return self.finished.push(Completion {
                    task,
                    window,
                    moved: 0,
                    error,
                });
            }
        };
        let object = &self.engine.object;
        let end = task.range.end.min(object.len);
        let mut at = task.range.start;
        if at < object.head.len() as u64 {
            let kept = &object.head[at as usize..];
            let kept = &kept[..kept.len().min((end - at) as usize)];
            at += window.put(kept) as u64;
            object.origin.bytes().add(kept.len() as u64);
        }
        if at >= end {
            return self.finished.push(completion(task, window, None));
        }
        let engine = self.engine;
        self.under_way.push(Box::pin(async move {
            let mut sink = Putting {
                window: &mut window,
                bytes: engine.object.origin.bytes(),
                too_many: false,
            };
            let outcome = engine
                .until_stopped(bring(&engine.object, at..end, &mut sink))
                .await;
            let error = match sink.too_many {
                true => Some(too_many()),
                false => outcome.err(),
            };
            if error.is_none() {
                engine.brought(window.filled() as u64);
            }
            completion(task, window, error)
        }));
    }

    fn poll(&mut self, done: &mut Vec<Completion<'w>>) {
        if self.finished.is_empty() && !self.under_way.is_empty() {
            let (under_way, finished) = (&mut self.under_way, &mut self.finished);
            self.driver.wait_for(async {
                finished.extend(under_way.next().await);
                // What else has come by now.
                while let Some(Some(next)) = under_way.next().now_or_never() {
                    finished.push(next);
                }
                if under_way.is_empty() {
                    tokio::task::yield_now().await;
                }
            });
        }
        done.append(&mut self.finished);
    }
}

impl Drop for FetchLane<'_> {
    fn drop(&mut self) {
        if !self.under_way.is_empty() {
            // Nobody wants what is under way: the network is to hear of it now.
            self.under_way.clear();
            self.driver.settle();
        }
    }
}

/// Puts what comes where it belongs.
struct Putting<'s, 'w> {
    window: &'s mut FillWindow<'w>,
    bytes: &'static Counter,
    too_many: bool,
}

impl Sink for Putting<'_, '_> {
    fn take(&mut self, bytes: Bytes) -> bool {
        let count = self.window.put(&bytes);
        self.bytes.add(count as u64);
        self.too_many = count < bytes.len();
        !self.too_many
    }
}

fn completion<'w>(task: Task, window: FillWindow<'w>, error: Option<Error>) -> Completion<'w> {
    Completion {
        moved: window.filled(),
        task,
        window: Window::Fill(window),
        error,
    }
}

fn too_many() -> Error {
    let why = "more came than was asked for";
    Error::new(ErrorKind::Internal, Op::Read, why)
}
