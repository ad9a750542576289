//! Models of the gate and of busy time under every interleaving that loom finds within its bounds.
//!
//! Run by `cargo xtask loom`. What they are about is not public, so that they stand in the crate and not beside it.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use loom::thread;

use crate::busy::Busy;
use crate::gate::Gate;

#[test]
fn nobody_is_inside_once_the_closer_has_waited() {
    loom::model(|| {
        let gate = Arc::new(Gate::default());
        // What a callback uses: gone as soon as the wait is over.
        let gone = Arc::new(AtomicBool::new(false));
        let visitors: Vec<_> = (0..2)
            .map(|_| {
                let (gate, gone) = (gate.clone(), gone.clone());
                thread::spawn(move || {
                    if let Some(_visit) = gate.enter() {
                        assert!(!gone.load(Ordering::Relaxed), "used after it was gone");
                    }
                })
            })
            .collect();
        gate.close();
        gate.wait_until_empty();
        gone.store(true, Ordering::Relaxed);
        assert!(gate.enter().is_none());
        for visitor in visitors {
            visitor.join().unwrap();
        }
    });
}

#[test]
fn two_who_close_both_come_back() {
    loom::model(|| {
        let gate = Arc::new(Gate::default());
        let closing = {
            let gate = gate.clone();
            thread::spawn(move || {
                gate.close();
                gate.wait_until_empty();
            })
        };
        drop(gate.enter());
        gate.close();
        gate.wait_until_empty();
        closing.join().unwrap();
    });
}

#[test]
fn busy_time_neither_decreases_nor_passes_the_wall() {
    // Readings that try again make it long: three preemptions are seconds, five are a minute.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let busy = Arc::new(Busy::default());
        // A clock that goes on with each look at it.
        let clock = Arc::new(AtomicU64::new(1));
        let tick = |clock: &AtomicU64| clock.fetch_add(1, Ordering::AcqRel);
        let worker = {
            let (busy, clock) = (busy.clone(), clock.clone());
            thread::spawn(move || {
                busy.open(tick(&clock));
                busy.close(tick(&clock));
            })
        };
        busy.open(tick(&clock));
        let first = busy.reading(|| tick(&clock));
        busy.close(tick(&clock));
        let second = busy.reading(|| tick(&clock));
        let wall = tick(&clock);
        assert!(first <= second && second <= wall, "{first} {second} {wall}");
        worker.join().unwrap();
        let last = busy.reading(|| tick(&clock));
        assert!(last >= second && last <= tick(&clock));
    });
}
