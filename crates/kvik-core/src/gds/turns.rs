//! One call of cuFile's at a time on each stream: two at once ended the process (an assertion of 1.15, in its compatible mode).
//!
//! Each stream has a lock of its own, since such a call may wait for its stream, which may wait for another one.

use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::{Arc, Weak};

use crate::device::CallerStream;
use crate::pool::shared_value;
use crate::sync::{Mutex, lock};

/// The lock of a stream, for as long as anybody has it.
pub(super) fn turn(stream: &CallerStream) -> Arc<Mutex<()>> {
    let mut turns = lock(shared_value(&TURNS, Mutex::default));
    if let Some(turn) = turns.get(stream).and_then(Weak::upgrade) {
        return turn;
    }
    turns.retain(|_, turn| turn.strong_count() > 0);
    let turn = Arc::default();
    turns.insert(stream.clone(), Arc::downgrade(&turn));
    turn
}

type Turns = Mutex<HashMap<CallerStream, Weak<Mutex<()>>>>;

static TURNS: AtomicPtr<Turns> = AtomicPtr::new(ptr::null_mut());
