//! What once could break: a lane with one request at a time, a refusal that is told twice or not at all, a ring that is
//! made for one small read.

use std::fs;
use std::path::Path;

use super::split::Alignment;
use super::*;
use crate::error::ErrorKind;
use crate::target::{Target, filling};

const LEN: usize = 300 * 4096;

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 % 251) as u8).collect()
}

/// A file of `LEN` bytes, where direct I/O is to be had.
fn file() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
    fs::write(file.path(), pattern(LEN)).unwrap();
    file
}

fn open(path: &Path) -> Arc<File> {
    Arc::new(File::options().read(true).write(true).open(path).unwrap())
}

/// Asks for no alignment, so that the kernel is asked for what it refuses.
fn careless(path: &Path, read: Wish) -> DirectEngine {
    let file = open(path);
    let direct = DirectFile::new(Arc::clone(&file));
    let second = Arc::clone(&direct.direct().unwrap().file);
    let direct = Direct {
        file: second,
        alignment: Alignment {
            memory: 1,
            read: 1,
            write: 1,
            boundary: 4096,
        },
    };
    let file = Arc::new(DirectFile::with(file, direct));
    DirectEngine::new(file, read, Wish::Never)
}

/// Runs tasks at these offsets, each of 4 KiB, on one lane; returns the most that were in flight and what came of each,
/// by its index.
fn run<'w>(
    engine: &'w DirectEngine,
    offsets: &[u64],
    memory: &'w mut [u8],
) -> (usize, Vec<Completion<'w>>) {
    let mut lane = engine.lane().unwrap();
    let mut tasks = offsets.iter().zip(memory.chunks_mut(4096)).enumerate();
    let (mut most, mut done) = (0, Vec::new());
    loop {
        while lane.room() > 0
            && let Some((index, (&start, window))) = tasks.next()
        {
            let range = start..start + 4096;
            lane.start(Task { index, range }, Window::Fill(filling(window)));
        }
        most = most.max(lane.in_flight());
        if lane.in_flight() == 0 {
            break;
        }
        lane.poll(&mut done);
    }
    done.sort_by_key(|completion| completion.task.index);
    (most, done)
}

fn aligned(memory: &mut Vec<u8>, skew: usize) -> &mut [u8] {
    memory.resize(LEN + 4096 + skew, 0);
    let start = memory.as_ptr().align_offset(4096) + skew;
    &mut memory[start..][..LEN]
}

#[test]
fn small_tasks_of_a_lane_are_in_flight_together_in_place_and_through_slots() {
    let file = file();
    let engine = DirectEngine::new(
        Arc::new(DirectFile::new(open(file.path()))),
        Wish::Must,
        Wish::Must,
    );
    let offsets: Vec<u64> = (0..300).map(|index| index * 7 % 300 * 4096).collect();
    let stored = pattern(LEN);
    for skew in [0, 16] {
        let mut memory = Vec::new();
        let memory = aligned(&mut memory, skew);
        let (most, done) = run(&engine, &offsets, memory);
        assert!(most >= 32, "{most} in flight");
        assert_eq!(done.len(), 300);
        assert!(
            done.iter()
                .all(|task| task.error.is_none() && task.moved == 4096)
        );
        drop(done);
        for (bytes, &at) in memory.chunks(4096).zip(&offsets) {
            assert!(bytes == &stored[at as usize..][..4096], "{at}");
        }
    }
}

#[test]
fn a_small_task_that_comes_alone_needs_no_ring_and_a_large_one_is_cut_for_one() {
    let file = file();
    let direct = Arc::new(DirectFile::new(open(file.path())));
    let engine = DirectEngine::new(direct, Wish::Must, Wish::Must);
    let mut memory = vec![0; 4096];
    let (_, done) = run(&engine, &[4096], &mut memory);
    assert_eq!((done.len(), done[0].moved), (1, 4096));
    drop(done);
    assert!(engine.uring.get().is_none());

    let mut memory = vec![0; LEN];
    let mut lane = engine.lane().unwrap();
    let task = Task {
        index: 0,
        range: 0..LEN as u64,
    };
    lane.start(task, Window::Fill(filling(&mut memory)));
    let mut done = Vec::new();
    lane.poll(&mut done);
    assert!(engine.uring.get().is_some_and(Option::is_some));
    assert_eq!(done[0].moved, LEN);
    drop((done, lane));
    assert!(memory == pattern(LEN));
}

#[test]
fn a_refusal_of_any_request_demotes_the_file_once_and_the_page_cache_brings_the_rest() {
    let file = file();
    let stored = pattern(LEN);
    for refused in [0, 1, 40, 298] {
        let engine = careless(file.path(), Wish::Prefer);
        let mut offsets: Vec<u64> = (0..299).map(|index| index * 4096).collect();
        offsets[refused] += 13;
        let mut memory = Vec::new();
        let memory = aligned(&mut memory, 0);
        let before = names::FALLBACKS_OF_DIRECT.get();
        let (_, done) = run(&engine, &offsets, memory);
        assert!(
            done.iter()
                .all(|task| task.error.is_none() && task.moved == 4096)
        );
        drop(done);
        for (bytes, &at) in memory.chunks(4096).zip(&offsets) {
            assert!(bytes == &stored[at as usize..][..4096], "{at}");
        }
        let why = engine.file.given_up().unwrap();
        assert_eq!(why, "a direct read was refused (EINVAL)");
        assert_eq!(names::FALLBACKS_OF_DIRECT.get() - before, 1);
    }
}

#[test]
fn a_refusal_is_an_error_that_names_the_flag_for_who_insists() {
    let file = file();
    let engine = careless(file.path(), Wish::Must);
    let mut memory = Vec::new();
    let memory = aligned(&mut memory, 0);
    let (_, done) = run(&engine, &[0, 4096, 8192 + 13, 12_288], memory);
    let error = done[2].error.as_ref().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let text = error.to_string();
    assert!(
        text.contains("(O_DIRECT)") && text.contains("a direct read was refused (EINVAL)"),
        "{text}"
    );
    for index in [0, 1, 3] {
        assert!(done[index].error.is_none());
    }
    drop(done);
    assert!(memory[..8192] == pattern(8192));
    assert_eq!(engine.file.given_up(), None);
}

#[test]
fn a_file_whose_scratch_may_not_hold_a_slot_is_read_by_blocking_calls_and_counted_once() {
    let file = file();
    let direct = Arc::new(DirectFile::new(open(file.path())));
    let engine = DirectEngine::new(direct, Wish::Must, Wish::Must)
        .limited(Edges::Overread, ByteSize::kib(16));
    let before = names::FALLBACKS_OF_RING.get();
    for _ in 0..2 {
        let mut memory = Vec::new();
        let memory = aligned(&mut memory, 16);
        let offsets: Vec<u64> = (0..300).map(|index| index * 4096).collect();
        let (most, done) = run(&engine, &offsets, memory);
        assert!(most <= 2 && done.iter().all(|task| task.moved == 4096));
        drop(done);
        assert!(memory == pattern(LEN));
    }
    assert_eq!(names::FALLBACKS_OF_RING.get() - before, 1);
    let mut target = [0; 100];
    let mut target = Target::from(&mut target);
    let window = Window::Fill(target.window().unwrap());
    assert!(!engine.suits_a_ring(&window));
}
