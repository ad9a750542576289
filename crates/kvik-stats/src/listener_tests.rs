//! What once could break: a finish lost by a drop, a panic or a listener that left; a finish told twice or to a newcomer.

use std::collections::BTreeMap;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{LISTENING, Listener, Wanted, in_listener, listen, try_listen};
use crate::names;
use crate::operation::{Backend, Direction, Memory, Operation, Outcome, Start};
use crate::span::{Span, begin};
use crate::task::Task;

/// The list of listeners belongs to the process, so tests that use it take turns.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Default)]
struct Ear {
    heard: Mutex<Vec<String>>,
}

impl Ear {
    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }
}

impl Listener for Ear {
    fn started(&self, op: &Operation) {
        let text = format!(
            "{} {} {} {}+{}",
            op.backend,
            op.direction.name(),
            op.source,
            op.offset,
            op.size
        );
        self.heard.lock().unwrap().push(text);
    }

    fn finished(&self, op: &Operation, outcome: &Outcome) {
        assert!(outcome.end >= op.start);
        let word = if outcome.ok { "ok" } else { "failed" };
        self.heard
            .lock()
            .unwrap()
            .push(format!("{} {word} {}", op.source, outcome.bytes));
    }
}

fn span(source: &str) -> Span {
    begin(Start {
        backend: Backend::Posix,
        direction: Direction::Read,
        memory: Memory::Host,
        source: &Arc::from(source),
        offset: 8,
        size: 16,
    })
}

#[test]
fn a_start_and_a_finish_are_told_once_each() {
    let _turn = alone();
    let ear = Arc::new(Ear::default());
    let _listening = listen(ear.clone());
    span("a").finish(16, true);
    assert_eq!(ear.heard(), ["POSIX READ a 8+16", "a ok 16"]);
}

#[test]
fn a_failure_is_told_with_no_bytes() {
    let _turn = alone();
    let ear = Arc::new(Ear::default());
    let _listening = listen(ear.clone());
    span("a").finish(5, false);
    assert_eq!(ear.heard()[1], "a failed 0");
}

#[test]
fn a_dropped_span_and_an_unwound_one_are_told_as_failures_once() {
    let _turn = alone();
    let ear = Arc::new(Ear::default());
    let _listening = listen(ear.clone());
    drop(span("dropped"));
    let unwound = catch_unwind(|| {
        let _span = span("unwound");
        panic!("on purpose");
    });
    assert!(unwound.is_err());
    assert_eq!(
        ear.heard(),
        [
            "POSIX READ dropped 8+16",
            "dropped failed 0",
            "POSIX READ unwound 8+16",
            "unwound failed 0"
        ]
    );
}

#[test]
fn nothing_is_kept_or_counted_while_nobody_listens() {
    let _turn = alone();
    let source: Arc<str> = Arc::from("quiet");
    let span = begin(Start {
        backend: Backend::Posix,
        direction: Direction::Write,
        memory: Memory::Host,
        source: &source,
        offset: 0,
        size: 1,
    });
    assert!(span.active.is_none(), "an unheard span holds nothing");
    assert_eq!(Arc::strong_count(&source), 1, "and has not kept the name");
    let ear = Arc::new(Ear::default());
    let _listening = listen(ear.clone());
    span.finish(1, true);
    assert!(
        ear.heard().is_empty(),
        "whoever came later hears neither start nor finish"
    );
}

#[test]
fn those_who_heard_the_start_hear_the_finish_and_those_who_left_hear_nothing_more() {
    let _turn = alone();
    let (stays, leaves, comes) = (
        Arc::new(Ear::default()),
        Arc::new(Ear::default()),
        Arc::new(Ear::default()),
    );
    let _stays = listen(stays.clone());
    let leaving = listen(leaves.clone());
    let operation = span("x");
    drop(leaving);
    let _comes = listen(comes.clone());
    operation.finish(1, true);
    assert_eq!(stays.heard(), ["POSIX READ x 8+16", "x ok 1"]);
    assert_eq!(leaves.heard(), ["POSIX READ x 8+16"]);
    assert!(comes.heard().is_empty());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test of several threads")]
fn a_span_finishes_on_another_thread() {
    let _turn = alone();
    let ear = Arc::new(Ear::default());
    let _listening = listen(ear.clone());
    let operation = span("moved");
    std::thread::scope(|scope| {
        scope.spawn(move || operation.finish(2, true));
    });
    assert_eq!(ear.heard()[1], "moved ok 2");
}

/// Panics in both calls, even while another panic unwinds.
struct Grumpy;

impl Listener for Grumpy {
    fn started(&self, _: &Operation) {
        panic!("on purpose");
    }

    fn finished(&self, _: &Operation, _: &Outcome) {
        panic!("on purpose");
    }
}

#[test]
fn a_panicking_listener_disturbs_neither_the_caller_nor_the_other_listeners() {
    let _turn = alone();
    let before = names::LISTENER_PANICS.get();
    let _grumpy = listen(Arc::new(Grumpy));
    let ear = Arc::new(Ear::default());
    let _listening = listen(ear.clone());
    span("a").finish(1, true);
    let unwound = catch_unwind(|| {
        let _span = span("b");
        panic!("on purpose");
    });
    assert!(
        unwound.is_err(),
        "a panic told of during another one does not abort"
    );
    assert_eq!(
        ear.heard(),
        [
            "POSIX READ a 8+16",
            "a ok 1",
            "POSIX READ b 8+16",
            "b failed 0"
        ]
    );
    assert_eq!(names::LISTENER_PANICS.get(), before + 4);
    assert!(!in_listener(), "the mark is taken away again");
}

/// Starts an operation of its own in each call.
#[derive(Default)]
struct Meddler {
    calls: Mutex<u32>,
}

impl Listener for Meddler {
    fn started(&self, _: &Operation) {
        assert!(in_listener());
        *self.calls.lock().unwrap() += 1;
        span("inner").finish(1, true);
    }

    fn finished(&self, _: &Operation, _: &Outcome) {
        *self.calls.lock().unwrap() += 1;
    }
}

#[test]
fn operations_of_a_listener_are_not_reported() {
    let _turn = alone();
    let meddler = Arc::new(Meddler::default());
    let _listening = listen(meddler.clone());
    span("outer").finish(1, true);
    assert_eq!(*meddler.calls.lock().unwrap(), 2);
    assert!(!in_listener());
}

/// Remembers how often each operation was told of.
#[derive(Default)]
struct Tally {
    by_id: Mutex<BTreeMap<u64, (u32, u32)>>,
}

impl Listener for Tally {
    fn started(&self, op: &Operation) {
        self.by_id.lock().unwrap().entry(op.id).or_default().0 += 1;
    }

    fn finished(&self, op: &Operation, _: &Outcome) {
        self.by_id.lock().unwrap().entry(op.id).or_default().1 += 1;
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test of several threads")]
fn listeners_that_come_and_go_while_threads_work_leave_every_start_with_one_finish() {
    let _turn = alone();
    let constant = Arc::new(Tally::default());
    let listening = listen(constant.clone());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for round in 0..2_000 {
                    let operation = span("t");
                    if round % 3 == 0 {
                        drop(operation)
                    } else {
                        operation.finish(1, true)
                    }
                }
            });
        }
        for _ in 0..200 {
            let passing = Arc::new(Tally::default());
            let guard = listen(passing.clone());
            std::thread::yield_now();
            drop(guard);
            for (id, &(starts, finishes)) in passing.by_id.lock().unwrap().iter() {
                assert!(
                    starts == 1 && finishes <= 1,
                    "operation {id}: {starts} starts, {finishes} finishes"
                );
            }
        }
    });
    drop(listening);
    let by_id = constant.by_id.lock().unwrap();
    assert_eq!(by_id.len(), 3 * 2_000);
    assert!(by_id.values().all(|&told| told == (1, 1)));
    assert_eq!(LISTENING.load(Ordering::Relaxed), 0);
    assert!(
        super::LIST.load().is_none(),
        "the last one to leave leaves nothing behind"
    );
}

/// A call that ends only after the listener has left the list.
#[derive(Default)]
struct Slow {
    begun: AtomicBool,
    done: AtomicBool,
}

impl Listener for Slow {
    fn started(&self, _: &Operation) {
        self.begun.store(true, Ordering::Release);
        while LISTENING.load(Ordering::Acquire) > 0 {
            std::thread::yield_now();
        }
        self.done.store(true, Ordering::Release);
    }

    fn finished(&self, _: &Operation, _: &Outcome) {}
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test of several threads")]
fn whoever_stops_a_listener_waits_for_its_calls() {
    let _turn = alone();
    let slow = Arc::new(Slow::default());
    let listening = listen(slow.clone());
    std::thread::scope(|scope| {
        scope.spawn(|| span("a").finish(1, true));
        while !slow.begun.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        drop(listening);
        assert!(slow.done.load(Ordering::Acquire), "the call ran still");
    });
}

/// Stops itself, and tries to register another, in its own call.
#[derive(Default)]
struct Leaver {
    own: Mutex<Option<super::Listening>>,
    refused: Mutex<Vec<String>>,
    calls: AtomicUsize,
}

impl Listener for Leaver {
    fn started(&self, _: &Operation) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let refused = try_listen(Arc::new(Ear::default()), Wanted::Operations).unwrap_err();
        self.refused.lock().unwrap().push(refused.to_string());
        drop(self.own.lock().unwrap().take());
    }

    fn finished(&self, _: &Operation, _: &Outcome) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_listener_can_leave_in_its_own_call_and_cannot_register_another() {
    let _turn = alone();
    let leaver = Arc::new(Leaver::default());
    *leaver.own.lock().unwrap() = Some(listen(leaver.clone()));
    span("a").finish(1, true);
    assert_eq!(leaver.calls.load(Ordering::Relaxed), 1, "nothing after it");
    assert_eq!(
        *leaver.refused.lock().unwrap(),
        ["a listener of statistics must not call back into kvik"]
    );
    assert_eq!(LISTENING.load(Ordering::Relaxed), 0);
}

/// Hears of tasks.
#[derive(Default)]
struct Foreman(Mutex<Vec<String>>);

impl Listener for Foreman {
    fn started(&self, _: &Operation) {
        self.0.lock().unwrap().push("started".into());
    }

    fn finished(&self, _: &Operation, _: &Outcome) {
        self.0.lock().unwrap().push("finished".into());
    }

    fn task_started(&self, task: &Task) {
        assert!(in_listener() && task.start >= task.operation.start);
        let text = format!("{} {}+{}", task.engine, task.offset, task.size);
        self.0.lock().unwrap().push(text);
    }

    fn task_finished(&self, task: &Task, outcome: &Outcome) {
        assert!(outcome.end >= task.start);
        let word = if outcome.ok { "ok" } else { "failed" };
        let text = format!("{} {}: {word} {}", task.engine, task.offset, outcome.bytes);
        self.0.lock().unwrap().push(text);
    }
}

#[test]
fn tasks_are_told_to_those_who_ask_for_them_and_to_nobody_else() {
    let _turn = alone();
    let plain = Arc::new(Foreman::default());
    let _plain = listen(plain.clone());
    assert!(span("a").tasks().is_none(), "nobody has asked");
    let foreman = Arc::new(Foreman::default());
    let _foreman = try_listen(foreman.clone(), Wanted::Tasks).unwrap();
    let operation = span("b");
    let tasks = operation.tasks().unwrap();
    let one = tasks.begin("uring", 8, 10);
    drop(tasks.begin("uring", 18, 6));
    one.finish("posix", 10, true);
    operation.finish(10, false);
    assert_eq!(
        *foreman.0.lock().unwrap(),
        [
            "started",
            "uring 8+10",
            "uring 18+6",
            "uring 18: failed 0",
            "posix 8: ok 10",
            "finished"
        ]
    );
    assert_eq!(
        *plain.0.lock().unwrap(),
        ["started", "finished", "started", "finished"]
    );
}
