//! Entries on an engine that does to each task what a test says.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kvik_stats::{Backend, Direction};

use super::Entries;
use crate::batch::PendingBatch;
use crate::buffer::{IoBuf, IoBufMut};
use crate::corridor::{Call, Completion, Engine, Lane, Task, Window};
use crate::error::{Error, ErrorKind, Op, Place, Result};
use crate::pool::ThreadPool;

/// What becomes of a task: so many bytes of it are moved, and then it fails or meets the end of the data.
type Step = (usize, Option<Error>);

type Script = dyn Fn(usize, &Task) -> Step + Send + Sync;

/// Fills windows with bytes that tell their offset, as far as the script lets it; it is asked with the number of the call.
struct Scripted {
    script: Box<Script>,
    calls: AtomicUsize,
    seen: Mutex<Vec<(u64, u64)>>,
    scatters: bool,
    // How many tasks a lane has in flight; the last one started ends first.
    depth: usize,
}

impl Scripted {
    fn new(script: impl Fn(usize, &Task) -> Step + Send + Sync + 'static) -> Scripted {
        Scripted {
            script: Box::new(script),
            calls: AtomicUsize::new(0),
            seen: Mutex::default(),
            scatters: false,
            depth: 1,
        }
    }
}

impl Engine for Scripted {
    fn backend(&self) -> Backend {
        Backend::Posix
    }

    fn lane<'w>(&'w self) -> Result<Box<dyn Lane<'w> + 'w>> {
        Ok(Box::new(ScriptedLane {
            engine: self,
            started: Vec::new(),
        }))
    }

    fn scatters(&self) -> bool {
        self.scatters
    }
}

struct ScriptedLane<'w> {
    engine: &'w Scripted,
    started: Vec<(Task, Window<'w>)>,
}

impl<'w> Lane<'w> for ScriptedLane<'w> {
    fn room(&self) -> usize {
        self.engine.depth - self.in_flight()
    }

    fn in_flight(&self) -> usize {
        self.started.len()
    }

    fn start(&mut self, task: Task, window: Window<'w>) {
        self.started.push((task, window));
    }

    fn poll(&mut self, done: &mut Vec<Completion<'w>>) {
        let Some((task, mut window)) = self.started.pop() else {
            return;
        };
        let range = (task.range.start, task.range.end);
        self.engine.seen.lock().unwrap().push(range);
        let call = self.engine.calls.fetch_add(1, Ordering::SeqCst);
        let (moved, error) = (self.engine.script)(call, &task);
        let moved = moved.min(task.len() as usize);
        if let Window::Fill(window) = &mut window {
            let bytes: Vec<u8> = (0..moved as u64).map(|at| byte(range.0 + at)).collect();
            window.put(&bytes);
        }
        done.push(Completion {
            task,
            window,
            moved,
            error,
        });
    }
}

fn byte(offset: u64) -> u8 {
    (offset % 251) as u8
}

fn broken() -> Option<Error> {
    Some(Error::new(ErrorKind::Io, Op::Start, "the device gave up"))
}

/// Starts reads of these offsets and lengths, in tasks of 100 bytes, on one thread; and the engine, to be looked at.
fn start(engine: Scripted, reads: &[(u64, usize)]) -> (PendingBatch<Vec<u8>>, Arc<Scripted>) {
    start_with(engine, reads, None, Direction::Read)
}

fn start_with(
    engine: Scripted,
    reads: &[(u64, usize)],
    deadline: Option<Instant>,
    direction: Direction,
) -> (PendingBatch<Vec<u8>>, Arc<Scripted>) {
    let engine = Arc::new(engine);
    let call = Call {
        engine: Arc::clone(&engine) as Arc<dyn Engine>,
        for_device: Arc::clone(&engine) as Arc<dyn Engine>,
        cufile: None,
        bounce_buffer_size: 1 << 20,
        pool: ThreadPool::new("entries"),
        threads: 1,
        task_size: 100,
        deadline,
        place: Place::Descriptor(7),
        name: "scripted".into(),
    };
    let mut buffers: Vec<Vec<u8>> = reads.iter().map(|(_, len)| vec![0xEE; *len]).collect();
    let pieces: Vec<_> = reads
        .iter()
        .zip(&mut buffers)
        .map(|((offset, _), buffer)| match direction {
            Direction::Read => (*offset, buffer.target().memory()),
            Direction::Write => (*offset, buffer.source().memory()),
        })
        .collect();
    let mut pending = PendingBatch::new(buffers);
    let named: Vec<_> = reads
        .iter()
        .map(|(offset, len)| *offset..*offset + *len as u64)
        .enumerate()
        .collect();
    let progress = Arc::clone(pending.progress());
    let layout = |ranges| {
        Entries::new(
            ranges,
            named.into_iter(),
            direction,
            call.place.clone(),
            progress,
        )
    };
    let (transfer, threads) = call
        .entries(direction, pieces.into_iter(), None, 50, layout)
        .unwrap();
    pending.start(transfer, &call.pool, threads);
    (pending, engine)
}

#[track_caller]
fn count(outcome: &Result<usize>) -> usize {
    *outcome.as_ref().unwrap()
}

#[track_caller]
fn check(outcome: &Result<usize>, kind: ErrorKind, range: std::ops::Range<u64>, done: u64) {
    let error = outcome.as_ref().unwrap_err();
    assert_eq!(
        (error.kind(), error.op(), error.range(), error.done()),
        (kind, Op::Read, Some(range), done),
        "{error}"
    );
    assert!(error.to_string().contains("descriptor 7"), "{error}");
}

#[track_caller]
fn assert_filled(bytes: &[u8], offset: u64, count: usize) {
    let expected: Vec<u8> = (0..count as u64).map(|at| byte(offset + at)).collect();
    assert_eq!(bytes[..count], expected);
    assert!(bytes[count..].iter().all(|byte| *byte == 0xEE));
}

#[test]
fn an_entry_that_fails_stops_itself_and_no_other() {
    let engine = Scripted::new(|_, task| match task.range.start {
        1100 => (30, broken()),
        _ => (100, None),
    });
    let (pending, engine) = start(engine, &[(0, 250), (1000, 400), (2000, 100)]);
    let [first, second, third] = pending.finish().try_into().unwrap();
    check(&second.outcome, ErrorKind::Io, 1000..1400, 130);
    assert_filled(&second.buffer.unwrap(), 1000, 130);
    assert_filled(&first.into_buffer().unwrap(), 0, 250);
    assert_filled(&third.into_buffer().unwrap(), 2000, 100);
    // What lies behind its error was not tried.
    let seen = engine.seen.lock().unwrap();
    assert!(seen.iter().all(|(start, _)| ![1200, 1300].contains(start)));
}

#[test]
fn entries_that_are_read_in_one_go_are_read_on_their_own_where_that_fails() {
    let mut engine = Scripted::new(|call, task| match (call, task.range.start) {
        // All three at once; then the second alone fails for good.
        (0, _) => (25, broken()),
        (_, 30..40) => (0, broken()),
        _ => (100, None),
    });
    engine.scatters = true;
    let (pending, engine) = start(engine, &[(0, 20), (30, 10), (50, 20)]);
    let [first, second, third] = pending.finish().try_into().unwrap();
    assert_filled(&first.into_buffer().unwrap(), 0, 20);
    check(&second.outcome, ErrorKind::Io, 30..40, 0);
    assert_filled(&second.buffer.unwrap(), 30, 0);
    assert_filled(&third.into_buffer().unwrap(), 50, 20);
    assert_eq!(
        engine.seen.lock().unwrap()[..],
        [(0, 70), (30, 40), (50, 70)]
    );
}

#[test]
fn an_entry_that_meets_the_end_is_short_and_nothing_is_tried_behind_it() {
    let engine = Scripted::new(|_, task| match task.range.start {
        100 => (50, None),
        5000.. => (0, None),
        _ => (100, None),
    });
    let (pending, engine) = start(engine, &[(0, 400), (5000, 300)]);
    let [short, beyond] = pending.finish().try_into().unwrap();
    assert_eq!(short.outcome.unwrap(), 150);
    assert_filled(&short.buffer.unwrap(), 0, 150);
    assert_eq!(beyond.outcome.unwrap(), 0);
    assert_filled(&beyond.buffer.unwrap(), 5000, 0);
    assert_eq!(engine.seen.lock().unwrap().len(), 3);
}

#[test]
fn an_entry_of_a_file_that_grows_is_read_without_a_gap() {
    let mut engine = Scripted::new(|_, task| match task.range.start {
        // It had grown when its neighbours were read.
        100 => (50, None),
        _ => (100, None),
    });
    engine.depth = 3;
    let (pending, engine) = start(engine, &[(0, 400)]);
    let grown = pending.finish().remove(0);
    assert_filled(&grown.into_buffer().unwrap(), 0, 400);
    let seen = engine.seen.lock().unwrap();
    assert_eq!((seen.len(), seen[4]), (5, (150, 200)));
}

#[test]
fn cancelling_leaves_what_has_not_started_undone() {
    let (told, hear) = std::sync::mpsc::channel();
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let engine = Scripted::new(move |call, _| {
        if call == 1 {
            told.send(()).unwrap();
            wait.lock().unwrap().recv().unwrap();
        }
        (100, None)
    });
    let (pending, engine) = start(engine, &[(0, 100), (1000, 200), (2000, 100)]);
    hear.recv().unwrap();
    pending.cancel();
    assert!(!pending.is_done());
    let first = pending.wait_some(1, Duration::from_secs(60));
    assert_eq!((first[0].index, count(&first[0].outcome)), (0, 100));
    go_on.send(()).unwrap();
    let outcomes = pending.wait();
    assert_eq!(count(&outcomes[0]), 100);
    check(&outcomes[1], ErrorKind::Cancelled, 1000..1200, 100);
    check(&outcomes[2], ErrorKind::Cancelled, 2000..2100, 0);
    assert_eq!(engine.seen.lock().unwrap().len(), 2);
    assert!(pending.is_done());
    let told: Vec<_> = pending.newly_done().iter().map(|done| done.index).collect();
    assert_eq!(told, [1, 2]);
    assert!(pending.newly_done().is_empty());
}

#[test]
fn a_deadline_that_has_passed_is_every_entrys_error() {
    let engine = Scripted::new(|_, _| (100, None));
    let now = Some(Instant::now());
    let (pending, engine) = start_with(engine, &[(0, 100), (1000, 200)], now, Direction::Read);
    let outcomes = pending.wait();
    check(&outcomes[0], ErrorKind::TimedOut, 0..100, 0);
    check(&outcomes[1], ErrorKind::TimedOut, 1000..1200, 0);
    assert!(engine.seen.lock().unwrap().is_empty());
}

#[test]
fn an_engine_that_panics_is_the_error_of_what_it_had_not_done() {
    let engine = Scripted::new(|_, task| match task.range.start {
        1000 => panic!("as it was told"),
        _ => (100, None),
    });
    let (pending, _) = start(engine, &[(0, 100), (1000, 100), (2000, 100)]);
    let outcomes = pending.wait();
    assert_eq!(count(&outcomes[0]), 100);
    check(&outcomes[1], ErrorKind::Internal, 1000..1100, 0);
    check(&outcomes[2], ErrorKind::Internal, 2000..2100, 0);
}

#[test]
fn the_buffer_of_an_abandoned_entry_is_not_given_back_nor_freed() {
    let engine = Scripted::new(|_, task| match task.range.start {
        1000 => (0, broken().map(Error::abandoned)),
        _ => (100, None),
    });
    let (pending, _) = start(engine, &[(0, 100), (1000, 100)]);
    let [good, kept] = pending.finish().try_into().unwrap();
    assert_filled(&good.into_buffer().unwrap(), 0, 100);
    assert!(kept.buffer.is_none());
    check(&kept.outcome, ErrorKind::Io, 1000..1100, 0);
    assert_eq!(kept.into_buffer().unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn writes_that_fail_are_told_one_by_one() {
    let engine = Scripted::new(|_, task| match task.range.start {
        200 => (7, broken()),
        _ => (task.len() as usize, None),
    });
    let writes = [(0, 150), (200, 50), (300, 10)];
    let (pending, _) = start_with(engine, &writes, None, Direction::Write);
    let outcomes = pending.wait();
    let error = outcomes[1].as_ref().unwrap_err();
    assert_eq!((error.op(), error.done()), (Op::Write, 7));
    assert_eq!((count(&outcomes[0]), count(&outcomes[2])), (150, 10));
}
