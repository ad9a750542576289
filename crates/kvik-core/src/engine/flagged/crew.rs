//! The threads that work on flights, and which of them does what next: [`Crew`].
//!
//! All of them work on all flights: whoever is free takes a piece that can be moved now, whichever flight's it is, so that one
//! that has to wait for its stream holds up no other. Of those that find nothing to do, one watches the words of the streams,
//! and the others sleep until it has found something. None calls the driver.

use std::hint;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;
use std::thread;
use std::time::Duration;

use super::flight::{Flight, Next, Work};
use super::slabs::Slabs;
use crate::device::CallerStream;
use crate::error::{Error, ErrorKind, Op, Result};
use crate::pool::{Job, ThreadPool, shared_value};
use crate::sync::{Condvar, Mutex, lock, wait};

#[derive(Default)]
pub(super) struct Crew {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    flights: Vec<Arc<Flight>>,
    // Whose turn it is to be looked at first.
    turn: usize,
    // Threads that have come, or will.
    hands: usize,
    asleep: usize,
    watched: bool,
}

enum Found {
    Work(Arc<Flight>, Work),
    Over(Arc<Flight>),
    Nothing,
}

impl Crew {
    /// Has a flight worked on until it is over. Nothing of it is queued yet.
    ///
    /// # Errors
    /// `OutOfMemory` if there is no thread for it, and none can be started.
    pub(super) fn enlist(&self, flight: &Arc<Flight>) -> Result<()> {
        let wanted = flight.threads().min(MOST);
        let mut state = lock(&self.state);
        // First of all, so that those who are there stay.
        state.flights.push(Arc::clone(flight));
        let missing = wanted.saturating_sub(state.hands);
        state.hands += missing;
        drop(state);
        let job: Arc<dyn Job> = Arc::new(Hand);
        let coming = ThreadPool::for_streams().offer(&job, missing, wanted);
        let mut state = lock(&self.state);
        state.hands -= missing - coming;
        if state.hands > 0 {
            return Ok(());
        }
        state.flights.retain(|other| !Arc::ptr_eq(other, flight));
        let why = "no thread could be started that serves the stream";
        Err(Error::new(ErrorKind::OutOfMemory, Op::Start, why))
    }

    /// The largest slabs of a transfer that is under way on this stream.
    pub(super) fn slabs_on(&self, stream: &CallerStream) -> Option<Arc<Slabs>> {
        let state = lock(&self.state);
        let flights = state.flights.iter();
        let theirs: Vec<_> = flights
            .filter_map(|flight| flight.slabs_for(stream))
            .collect();
        // Those that are over meanwhile go back from here, and whoever takes them back must not hold up the crew.
        drop(state);
        let theirs = theirs.into_iter();
        theirs.max_by_key(|slabs| slabs.size() * slabs.count())
    }

    /// Leaves a flight that is not to be worked on any more.
    pub(super) fn dismiss(&self, flight: &Arc<Flight>) {
        let mut state = lock(&self.state);
        state.flights.retain(|other| !Arc::ptr_eq(other, flight));
    }

    /// Works until there are no flights.
    fn work(&self) {
        let mut patience = Patience::default();
        let mut state = lock(&self.state);
        while !state.flights.is_empty() {
            match state.find() {
                Found::Work(flight, work) => {
                    // There may be more, and somebody has to watch while this thread does not.
                    self.wake_one(&state);
                    drop(state);
                    flight.run(work);
                    patience = Patience::default();
                }
                Found::Over(flight) => {
                    self.wake_one(&state);
                    drop(state);
                    flight.land(None);
                    patience = Patience::default();
                }
                Found::Nothing if state.watched => {
                    state.asleep += 1;
                    state = wait(&self.changed, state);
                    state.asleep -= 1;
                    patience = Patience::default();
                    continue;
                }
                Found::Nothing => {
                    state.watched = true;
                    drop(state);
                    patience.pause();
                    state = lock(&self.state);
                    state.watched = false;
                    continue;
                }
            }
            state = lock(&self.state);
        }
        state.hands -= 1;
        drop(state);
        self.changed.notify_all();
    }

    fn wake_one(&self, state: &State) {
        if state.asleep > 0 {
            self.changed.notify_one();
        }
    }
}

impl State {
    /// The next thing that can be done now. A flight that is over is left.
    fn find(&mut self) -> Found {
        for _ in 0..self.flights.len() {
            self.turn = (self.turn + 1) % self.flights.len();
            let flight = &self.flights[self.turn];
            match flight.next() {
                Next::Work(work) => return Found::Work(Arc::clone(flight), work),
                Next::Over => return Found::Over(self.flights.swap_remove(self.turn)),
                Next::Nothing => {}
            }
        }
        Found::Nothing
    }
}

/// A thread of the pool's that joins the crew.
struct Hand;

impl Job for Hand {
    fn turn(&self, _: &dyn Fn() -> bool) -> bool {
        crew().work();
        false
    }
}

/// How long the thread that watches lets pass between two looks: next to nothing at first, since a stream that is under way has
/// news soon, and more and more while there are none.
#[derive(Default)]
struct Patience {
    looks: u32,
}

impl Patience {
    fn pause(&mut self) {
        self.looks = self.looks.saturating_add(1);
        match self.looks.checked_sub(SPINS) {
            None => (0..32).for_each(|_| hint::spin_loop()),
            Some(naps) => thread::sleep(NAP * (1 + naps).min(LONGEST)),
        }
    }
}

// The looks without a nap take some 70 us.
const SPINS: u32 = 50;
const NAP: Duration = Duration::from_micros(20);
// In naps: a stream that is held for long costs no processor, and none is served later than after 200 us.
const LONGEST: u32 = 10;
// With eight threads the bus is full; more are for storage that is slow to answer.
const MOST: usize = 32;

static CREW: AtomicPtr<Crew> = AtomicPtr::new(ptr::null_mut());

pub(super) fn crew() -> &'static Crew {
    shared_value(&CREW, Crew::default)
}
