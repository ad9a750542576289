//! Engines for the host's memory that fail in the middle, or panic, below the one that stages their bytes for a device.

use std::sync::Arc;
use std::time::Duration;

use kvik::ErrorKind;
use kvik::corridor::{Call, Completion, Engine, Lane, Task, Window};
use kvik::stats::Backend;
use kvik_tests::engine::{Gate, Scripted, Step};
use kvik_tests::gpu::{Kind, Memory};
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, pattern};

use super::{assert_at_rest, start};

const TASK: usize = 3000;
const LEN: usize = 30 * TASK;

/// A call whose slabs have room for a few tasks.
fn call(engine: Scripted, threads: usize, slab: u64) -> Call {
    Call {
        bounce_buffer_size: slab,
        ..engine.call(threads, TASK as u64)
    }
}

#[test]
fn when_a_piece_fails_what_came_before_it_is_on_the_device_and_counted() {
    let (gpu, fake) = start();
    for slab in [4096, 16_384, 4 << 20] {
        for bad in [0, 1, 17, 29] {
            // The staged engine numbers tasks anew, so that they are known by their place in the file.
            let script = move |offset: u64| match offset == (bad * TASK) as u64 {
                true => Step::Fail,
                false => Step::Move,
            };
            let engine = Scripted::new(move |task| script(task.range.start));
            let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
            memory.set(UNTOUCHED);
            let read = call(engine, 1, slab).read(&mut memory.target(0..LEN), 0);
            let error = read.unwrap_err();
            assert_eq!(
                (error.kind(), error.done()),
                (ErrorKind::Io, (bad * TASK) as u64)
            );
            assert!(error.to_string().contains("was told to fail"), "{error}");
            let bytes = memory.bytes();
            assert_same(&bytes[..bad * TASK], &pattern(0, 0, bad * TASK));
            assert_all(&bytes[bad * TASK..][..TASK], UNTOUCHED);
        }
    }
    assert_at_rest(&fake);
}

#[test]
fn an_engine_that_panics_is_an_error_and_leaves_nothing_behind() {
    let (gpu, fake) = start();
    for threads in [1, 4] {
        let engine = Scripted::new(|task| match task.range.start == (9 * TASK) as u64 {
            true => Step::Panic,
            false => Step::Move,
        });
        let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
        let read = call(engine, threads, 16_384).read(&mut memory.target(0..LEN), 0);
        let error = read.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
        assert!(error.to_string().contains("a worker panicked"), "{error}");
        memory.set(UNTOUCHED);
        assert_all(&memory.bytes(), UNTOUCHED);
    }
    assert_at_rest(&fake);
}

#[test]
fn a_read_that_is_cancelled_has_on_the_device_what_it_counts() {
    let (_gpu, fake) = start();
    let gate = Gate::new();
    let wait = Arc::clone(&gate);
    let engine = Scripted::new(move |task| {
        if task.range.start == (5 * TASK) as u64 {
            wait.pass();
        }
        Step::Move
    });
    let call = call(engine, 1, 8192);
    let mut buffer = kvik::DeviceBuffer::new(0, LEN).unwrap();
    buffer.fill(UNTOUCHED).unwrap();
    let pending = call.submit_read(buffer, 0);
    gate.wait_for(1);
    pending.cancel();
    gate.open();
    let (outcome, buffer) = pending.finish();
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    let done = error.done() as usize;
    assert!((6 * TASK..LEN).contains(&done), "{done}");
    let mut bytes = vec![0; LEN];
    buffer.copy_to_host(&mut bytes).unwrap();
    assert_same(&bytes[..done], &pattern(0, 0, done));
    assert_all(&bytes[done..], UNTOUCHED);
    assert_at_rest(&fake);
}

/// An engine that keeps to no rule. Anybody can write one without `unsafe`, and by what it says memory is copied.
#[derive(Clone, Copy, Debug)]
enum Lie {
    /// It fills windows for each other's tasks.
    Swaps,
    /// It says that it has read more than there is room for, into a window of nobody's.
    Exceeds,
    /// It answers to a write twice.
    Repeats,
    /// It forgets what it was given.
    Forgets,
    /// It says that it has tasks, and never answers.
    Withholds,
    /// It panics at its end, with the last copies on their way.
    Breaks,
}

struct Liar(Lie);

struct LyingLane<'w>(Lie, Vec<(Task, Window<'w>)>);

impl Engine for Liar {
    fn backend(&self) -> Backend {
        Backend::Posix
    }

    fn lane<'w>(&'w self) -> kvik::Result<Box<dyn Lane<'w> + 'w>> {
        Ok(Box::new(LyingLane(self.0, Vec::new())))
    }

    fn writers(&self) -> usize {
        0
    }
}

impl<'w> Lane<'w> for LyingLane<'w> {
    fn room(&self) -> usize {
        2 - self.in_flight().min(1)
    }

    fn in_flight(&self) -> usize {
        match self.0 {
            Lie::Forgets => 0,
            _ => self.1.len(),
        }
    }

    fn start(&mut self, task: Task, window: Window<'w>) {
        self.1.push((task, window));
    }

    fn poll(&mut self, done: &mut Vec<Completion<'w>>) {
        if matches!(self.0, Lie::Withholds) {
            return;
        }
        let mut given = std::mem::take(&mut self.1);
        if let (Lie::Swaps, [(one, _), (two, _), ..]) = (self.0, &mut given[..]) {
            std::mem::swap(one, two);
        }
        for (task, mut window) in given {
            let mut moved = task.len() as usize;
            match (self.0, &mut window) {
                (Lie::Exceeds, Window::Fill(_)) => {
                    window = Window::Drain(&[0; 9]);
                    moved = usize::MAX;
                }
                (Lie::Repeats, Window::Drain(bytes)) => done.push(Completion {
                    task: task.clone(),
                    window: Window::Drain(bytes),
                    moved,
                    error: None,
                }),
                (_, Window::Fill(window)) => drop(window.put(&vec![1; moved])),
                _ => {}
            }
            done.push(Completion {
                task,
                window,
                moved,
                error: None,
            });
        }
    }
}

impl Drop for LyingLane<'_> {
    fn drop(&mut self) {
        if matches!(self.0, Lie::Breaks) && !std::thread::panicking() {
            panic!("a lane was told to break");
        }
    }
}

#[test]
fn a_lane_that_panics_at_its_end_is_an_error_and_its_slabs_go_to_nobody() {
    let (gpu, fake) = start();
    fake.set_delay(Duration::from_millis(1));
    let engine: Arc<dyn Engine> = Arc::new(Liar(Lie::Breaks));
    let broken = Call {
        for_device: Arc::clone(&engine),
        engine,
        ..call(Scripted::new(|_| Step::Move), 1, 16_384)
    };
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let error = broken.read(&mut memory.target(0..LEN), 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
    assert!(error.to_string().contains("told to break"), "{error}");
    memory.set(UNTOUCHED);
    assert_all(&memory.bytes(), UNTOUCHED);
    let pinned = kvik::pinned_memory();
    assert_eq!((pinned.lent, pinned.kept), (0, 0));
    assert_eq!(fake.faults(), Vec::<String>::new());
}

#[test]
fn an_engine_that_answers_for_other_tasks_than_it_was_given_is_an_error_and_copies_nothing_astray()
{
    let (gpu, fake) = start();
    let call = |lie| {
        let engine: Arc<dyn Engine> = Arc::new(Liar(lie));
        Call {
            for_device: Arc::clone(&engine),
            engine,
            ..call(Scripted::new(|_| Step::Move), 2, 16_384)
        }
    };
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN + 200);
    for lie in [Lie::Swaps, Lie::Exceeds, Lie::Forgets, Lie::Withholds] {
        memory.set(UNTOUCHED);
        // A first task that is shorter than the others.
        let read = call(lie).read(&mut memory.target(100..LEN + 100), 4000);
        let error = read.unwrap_err();
        assert_eq!(
            (error.kind(), error.done()),
            (ErrorKind::Internal, 0),
            "{lie:?}: {error}"
        );
        let bytes = memory.bytes();
        assert_all(&bytes[..100], UNTOUCHED);
        assert_all(&bytes[LEN + 100..], UNTOUCHED);
    }
    for lie in [Lie::Swaps, Lie::Repeats, Lie::Forgets, Lie::Withholds] {
        let written = call(lie).write(memory.source(0..LEN), 4000);
        let error = written.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal, "{lie:?}: {error}");
    }
    assert_at_rest(&fake);
}
