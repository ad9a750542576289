//! Listeners of operations: what they may not do, when they hear of the end, and what they hear of tasks.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use kvik::stats::{Direction, Listener, Operation, Outcome, Task, Wanted, listen, try_listen};
use kvik::{
    Batch, Error, ErrorKind, FileHandle, MmapHandle, ReadAt, ReadPiece, RemoteHandle, WritePiece,
};
use kvik_tests::engine::{Gate, Scripted};
use kvik_tests::pattern::{assert_same, file, pattern};

use crate::{cut, read_write};

/// Calls back into kvik by every door.
struct Caller {
    path: std::path::PathBuf,
    local: FileHandle,
    mapped: MmapHandle,
    remote: RemoteHandle,
    refused: Mutex<Vec<(&'static str, Option<Error>)>>,
}

impl Listener for Caller {
    fn started(&self, _: &Operation) {}

    fn finished(&self, operation: &Operation, _: &Outcome) {
        if !operation.source.ends_with("trigger") {
            return;
        }
        let mut bytes = [0; 8];
        let (local, mapped, remote) = (&self.local, &self.mapped, &self.remote);
        let mut refused = self.refused.lock().unwrap();
        let mut note = |what, error| refused.push((what, error));
        note("open", FileHandle::open(&self.path).err());
        let adopted = FileHandle::options().adopt(tempfile::tempfile().unwrap());
        note("adopt", adopted.err());
        note("read", local.read_at(&mut bytes, 0).err());
        note("read all", local.read_exact_at(&mut bytes, 0).err());
        note("write", local.write_at(&[1; 8], 0).err());
        note(
            "submit a read",
            local.submit_read(vec![0; 8], 0).wait().err(),
        );
        note(
            "submit a write",
            local.submit_write(vec![1; 8], 0).wait().err(),
        );
        let mut pieces = [ReadPiece::new(0, &mut bytes)];
        note("read ranges", local.read_ranges(&mut pieces).err());
        let pieces = [WritePiece::new(0, &[1; 8])];
        note("write ranges", local.write_ranges(&pieces).err());
        let mut batch = Batch::new();
        batch.read(local, 0, vec![0; 8]);
        let outcome = batch.submit().wait().pop().unwrap();
        note("batch", outcome.err());
        note("map", MmapHandle::open(&self.path).err());
        note("read a map", mapped.read_at(&mut bytes, 0).err());
        note(
            "submit to a map",
            mapped.submit_read(vec![0; 8], 0).wait().err(),
        );
        let mut pieces = [ReadPiece::new(0, &mut bytes)];
        note("ranges of a map", mapped.read_ranges(&mut pieces).err());
        let url = "http://127.0.0.1:9/object";
        note("open an object", RemoteHandle::open(url).err());
        note(
            "submit to open",
            RemoteHandle::submit_open(url).wait().err(),
        );
        note("read an object", remote.read_at(&mut bytes, 0).err());
        note(
            "submit to an object",
            remote.submit_read(vec![0; 8], 0).wait().err(),
        );
        let any: &dyn ReadAt = remote;
        note("any door", any.read_at((&mut bytes).into(), 0).err());
    }
}

#[test]
fn every_door_refuses_what_a_listener_asks_inside_its_calls() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "kept", 1, 100);
    let trigger = read_write(&file(folder.path(), "trigger", 2, 100));
    // Of known length, so that nobody is asked: there is no server.
    let remote = RemoteHandle::builder()
        .len(100)
        .open("http://127.0.0.1:9/object")
        .unwrap();
    let caller = Arc::new(Caller {
        local: read_write(&path),
        mapped: MmapHandle::open(&path).unwrap(),
        remote,
        refused: Mutex::default(),
        path: path.clone(),
    });
    let listening = listen(Arc::clone(&caller) as Arc<dyn Listener>);
    trigger.read_at(&mut [0; 8], 0).unwrap();
    drop(listening);
    let refused = caller.refused.lock().unwrap();
    assert_eq!(refused.len(), 19);
    for (what, error) in refused.iter() {
        let error = error.as_ref().unwrap_or_else(|| panic!("{what} was done"));
        assert_eq!(error.kind(), ErrorKind::InListener, "{what}: {error}");
        let text = error.to_string();
        let why = "a listener of statistics must not call back into kvik";
        assert!(text.contains(why), "{what}: {text}");
    }
    assert_same(&std::fs::read(&path).unwrap(), &pattern(1, 0, 100));
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Listener for Flag {
    fn started(&self, _: &Operation) {}

    fn finished(&self, operation: &Operation, _: &Outcome) {
        if &*operation.source == "the end is told first" {
            self.0.store(true, Ordering::Release);
        }
    }
}

/// Notes whether the end was told when it is woken.
struct Woken {
    told: Arc<Flag>,
    in_time: AtomicUsize,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        let told = usize::from(self.told.0.load(Ordering::Acquire));
        self.in_time.fetch_add(1 + told, Ordering::Release);
    }
}

#[test]
fn listeners_hear_of_the_end_before_whoever_waits_for_it() {
    let told = Arc::new(Flag::default());
    let _listening = listen(Arc::clone(&told) as Arc<dyn Listener>);
    let gate = Gate::new();
    let mut call = Scripted::behind(&gate).call(1, 4096);
    call.name = "the end is told first".into();
    let mut pending = call.submit_read(vec![0; 4096], 0);
    let woken = Arc::new(Woken {
        told: Arc::clone(&told),
        in_time: AtomicUsize::new(0),
    });
    let waker = Waker::from(Arc::clone(&woken));
    let polled = Pin::new(&mut pending).poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    gate.open();
    pending.wait().unwrap();
    assert!(told.0.load(Ordering::Acquire), "told after the wait");
    // It is woken behind the outcome, perhaps a moment after the wait has returned.
    while woken.in_time.load(Ordering::Acquire) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(
        woken.in_time.load(Ordering::Acquire),
        2,
        "told after the waker"
    );
}

/// Offset, bytes asked for and moved, and by which engine.
type Told = (Direction, u64, u64, u64, &'static str);

#[derive(Default)]
struct Foreman(Mutex<Vec<Told>>);

impl Listener for Foreman {
    fn started(&self, _: &Operation) {}

    fn finished(&self, _: &Operation, _: &Outcome) {}

    fn task_finished(&self, task: &Task, outcome: &Outcome) {
        if task.operation.source.ends_with("cut") {
            assert!(outcome.ok && outcome.end >= task.start);
            let direction = task.operation.direction;
            let told = (
                direction,
                task.offset,
                task.size,
                outcome.bytes,
                task.engine,
            );
            self.0.lock().unwrap().push(told);
        }
    }
}

#[test]
fn each_piece_that_an_engine_moves_is_told_to_those_who_ask_for_tasks() {
    let folder = tempfile::tempdir().unwrap();
    let handle = read_write(&file(folder.path(), "cut", 1, 100_000));
    let foreman = Arc::new(Foreman::default());
    let listener = Arc::clone(&foreman) as Arc<dyn Listener>;
    let listening = try_listen(listener, Wanted::Tasks).unwrap();
    let cut = cut(3, 16 << 10);
    let mut bytes = vec![0; 110_000];
    assert_eq!(handle.read_at_with(&mut bytes, 0, &cut).unwrap(), 100_000);
    let written = handle.write_at_with(&bytes[..50_000], 0, &cut).unwrap();
    assert_eq!(written, 50_000);
    drop(listening);
    let told = foreman.0.lock().unwrap();
    for (wanted, len, moved) in [
        (Direction::Read, 110_000, 100_000),
        (Direction::Write, 50_000, 50_000),
    ] {
        let mut told: Vec<Told> = told.clone();
        told.retain(|(direction, ..)| *direction == wanted);
        told.sort_unstable_by_key(|(_, offset, ..)| *offset);
        let mut next = 0;
        for (_, offset, size, bytes, engine) in told {
            assert_eq!(offset, next, "no gap and no overlap");
            assert_eq!(bytes, size.min(moved - offset));
            assert!(
                ["auto", "posix", "uring", "direct"].contains(&engine),
                "{engine}"
            );
            next = offset + size;
        }
        assert_eq!(next, len);
    }
}
