//! A ring belongs to one thread, one lane at a time, and to whoever owns its descriptor.

use std::fs::File;
use std::sync::Arc;

use super::*;
use crate::corridor::{Task, Window};
use crate::engine::uring::Uring;
use crate::engine::{Engine, EngineKind, for_kind};
use crate::target::{Target, filling};

#[test]
fn a_thread_keeps_its_ring_and_a_lane_inside_a_lane_gets_another() {
    let first = Ring::of_this_thread().unwrap();
    let number = first.number();
    let second = Ring::of_this_thread().unwrap();
    assert_ne!(second.number(), number);
    drop(second);
    first.give_back();
    assert_eq!(Ring::of_this_thread().unwrap().number(), number);
}

#[test]
fn a_ring_whose_descriptor_was_replaced_is_given_up_and_leaves_the_descriptor_alone() {
    let ring = Ring::of_this_thread().unwrap();
    let number = ring.number();
    ring.give_back();
    let null = File::open("/dev/null").unwrap();
    // SAFETY: `dup2` touches no memory; the descriptor is this thread's ring, which the test is about.
    assert_eq!(unsafe { libc::dup2(null.as_raw_fd(), number) }, number);

    let file = tempfile::tempfile().unwrap();
    file.set_len(10_000).unwrap();
    let file = Arc::new(file);
    let engine = Uring::buffered(Arc::clone(&file));
    let mut bytes = [7; 10_000];
    let mut lane = engine.lane().unwrap();
    let mut done = Vec::new();
    let task = Task {
        index: 0,
        range: 0..10_000,
    };
    lane.start(task, Window::Fill(filling(&mut bytes)));
    lane.poll(&mut done);
    let error = done[0].error.take().unwrap();
    assert!(error.is_refusal(), "{error}");
    drop((done, lane));
    // SAFETY: `fcntl` with F_GETFD touches no memory.
    assert!(unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0, "closed");

    // The next lane has a ring of its own.
    let engine = for_kind(EngineKind::Uring, &file).unwrap().unwrap();
    let mut lane = engine.lane().unwrap();
    let task = Task {
        index: 0,
        range: 0..10_000,
    };
    let mut target = Target::from(&mut bytes);
    lane.start(task, Window::Fill(target.window().unwrap()));
    let mut done = Vec::new();
    lane.poll(&mut done);
    assert!(done[0].error.is_none());
    drop((done, lane));
    assert_eq!(bytes, [0; 10_000]);
}
