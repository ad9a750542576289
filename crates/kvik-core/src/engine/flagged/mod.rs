//! Reads and writes in the order of a stream of the program's: what is queued there, and who moves the bytes.
//!
//! ```text
//! the call:  slabs, words -> crew -> all that the stream has to do is queued: count, wait for a word, copy
//! later:     the stream and the threads of the crew, by words in memory; nobody calls the driver
//! the end:   a thread gives slabs and words back; whoever waits is told
//! ```
//! While a stream waits for a word, calls of the driver may wait for the stream: those that free or unpin memory, and those that
//! load a kernel, and with them all others of the context (seen with driver 580). So nobody who is needed for the stream to go
//! on makes any. Slabs are taken before anything is queued, and never waited for: they might come back only when the program
//! has gone on.

mod crew;
mod cut;
mod flight;
mod slabs;

use std::sync::Arc;
use std::time::{Duration, Instant};

use kvik_stats::{Direction, Span, Start};

use crate::corridor::{Call, Plan};
use crate::device::{Addresses, CallerStream, RawStream, Slab, Spot, Words};
use crate::error::{Error, ErrorKind, Op, Result};
use crate::memory::Memory;
use crate::sync::{Mutex, lock};
use crew::crew;
use cut::Cut;
use flight::{Flight, Order};
use slabs::Slabs;

/// A transfer in the order of a stream.
pub(crate) struct OnStream {
    flight: Arc<Flight>,
    stream: CallerStream,
    // When `is_done` is to ask the driver.
    ask: Mutex<Instant>,
}

impl OnStream {
    /// Queues a transfer of all of `memory`, which is on a device and has bytes. It has `begun` if listeners have heard of it.
    ///
    /// # Errors
    /// Nothing is queued then: `Misuse` for a stream that records a graph or is another device's, or a range beyond 2^63 - 1;
    /// `Unsupported` where streams cannot wait for words; `OutOfMemory` if no memory can be pinned or no thread started;
    /// `Device` if the driver fails.
    ///
    /// # Safety
    /// When the stream comes to the transfer, and until it is past it or has failed, the memory is valid, and nobody else touches
    /// it if it is read into, or writes to it if it is written from.
    pub(crate) unsafe fn start(
        call: &Call,
        direction: Direction,
        memory: Memory,
        spot: &Spot,
        offset: u64,
        stream: RawStream,
        begun: Option<Span>,
    ) -> Result<OnStream> {
        let range = Plan::new(offset, memory.len() as u64, u64::MAX)?.range();
        spot.check()?;
        let stream = CallerStream::find(stream, spot.context)?;
        // Before anything is held or set apart: listeners are the program's code.
        let begin = || {
            kvik_stats::begin(Start {
                backend: call.for_device.backend(),
                direction,
                memory: kvik_stats::Memory::Device,
                source: &call.name,
                offset,
                size: memory.len() as u64,
            })
        };
        let span = begun.unwrap_or_else(begin);
        let threads = match direction {
            Direction::Read => call.threads,
            Direction::Write => call.threads.min(call.for_device.writers()),
        };
        let order = Order {
            engine: Arc::clone(&call.for_device),
            direction,
            place: call.place.clone(),
            threads: threads.max(1),
            stream: stream.clone(),
            span,
        };
        let cut = Cut::new(offset, range.end - range.start, call.bounce_buffer_size);
        let device = memory.start().addr() as u64;
        let entered = stream.enter()?;
        let (cut, slabs) = take_slabs(&stream, cut, order.threads)?;
        if cut.pieces() > MOST_PIECES {
            slabs.disclaim();
            let why =
                "the transfer has more pieces than a stream can count; raise `bounce_buffer_size`";
            return Err(Error::new(ErrorKind::Misuse, Op::Start, why));
        }
        let words = Words::lend(stream.context()).inspect_err(|_| slabs.disclaim())?;
        let queue = Queue {
            stream: &stream,
            words: words.addresses(),
            slabs: Arc::clone(&slabs),
            device,
            counted: 0,
            loose: false,
        };
        let flight = Arc::new(Flight::new(order, cut, Arc::clone(&slabs), words));
        let queued = crew().enlist(&flight).map_err(Refusal::OfAll);
        // SAFETY: the caller's promise about the memory; slabs and words are the flight's until it lands.
        let queued = queued.and_then(|()| unsafe { queue.fill(&flight, &cut, direction, spot) });
        drop(entered);
        match queued {
            Ok(()) => slabs.disclaim(),
            Err(Refusal::Behind) => {}
            Err(Refusal::OfAll(error)) => {
                crew().dismiss(&flight);
                flight.cut_short(0, error.clone(), None);
                flight.land(None);
                // Nothing of it is queued through them.
                slabs.disclaim();
                return Err(error);
            }
        }
        Ok(OnStream {
            flight,
            stream,
            ask: Mutex::new(Instant::now() + LATE),
        })
    }

    /// Waits until the stream is past it, and gives the count.
    ///
    /// # Errors
    /// What stopped it; what the driver says of the stream's context, if that has failed; `Forked` in a child of the process
    /// that started it.
    pub(crate) fn wait(&self) -> Result<usize> {
        self.flight.check_process()?;
        let mut limit = SOON;
        loop {
            if let Some(outcome) = self.flight.outcome_within(limit) {
                return outcome;
            }
            limit = LATER;
            match self.flight.is_loose() {
                true => self.ask(|stream| stream.finish().map(|()| true)),
                false => self.ask(CallerStream::look),
            }
        }
    }

    /// Whether the stream is past it, or its context has failed, or this process is another one than started it.
    pub(crate) fn is_done(&self) -> bool {
        if self.flight.check_process().is_err() {
            return true;
        }
        let is_over = || self.flight.outcome_within(Duration::ZERO).is_some();
        if is_over() {
            return true;
        }
        // Whoever never waits would not hear of it else.
        let mut ask = lock(&self.ask);
        let now = Instant::now();
        if now < *ask {
            return false;
        }
        *ask = now + LATER;
        drop(ask);
        self.ask(CallerStream::look);
        is_over()
    }

    /// Asks the driver, in this way, whether the stream has done all that is queued; ends the transfer if its context has failed.
    fn ask(&self, how: fn(&CallerStream) -> Result<bool>) {
        let is_loose = self.flight.is_loose();
        // The driver may answer with what went wrong before, once.
        match how(&self.stream).or_else(|_| how(&self.stream)) {
            Ok(is_past) if is_past && is_loose => self.flight.passed(),
            Ok(_) => {}
            Err(failure) => {
                crew().dismiss(&self.flight);
                self.flight.land(Some(failure));
            }
        }
    }
}

impl std::fmt::Debug for OnStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OnStream({:?})", self.flight)
    }
}

/// Slabs for a transfer, and how it is cut to go through these.
fn take_slabs(stream: &CallerStream, cut: Cut, threads: usize) -> Result<(Cut, Arc<Slabs>)> {
    let context = stream.context();
    // Any number of transfers may be queued on a stream, which comes to one of them at a time.
    let before = crew().slabs_on(stream);
    let wanted = cut.slabs(threads);
    let serve =
        |slabs: &Arc<Slabs>| slabs.size() >= cut.slab() && slabs.count() >= wanted.div_ceil(2);
    if let Some(slabs) = before.clone().filter(serve)
        && slabs.claim()
    {
        return Ok((cut, slabs));
    }
    let slabs = Slab::take_for_stream(context, cut.slab(), wanted, LIMIT)?;
    if !slabs.is_empty() {
        return Ok((cut, Slabs::new(slabs)));
    }
    let least = cut.least();
    if let Some(slabs) = before
        && slabs.size() >= least.slab()
        && slabs.claim()
    {
        return Ok((cut.within(slabs.size()), slabs));
    }
    // One for each transfer, so that any number may be under way, and no larger than it must be.
    let cut = least;
    let slab = Slab::take_beyond(context, cut.slab())?;
    Ok((cut, Slabs::new(vec![slab])))
}

/// What is queued on a stream for one transfer.
struct Queue<'s> {
    stream: &'s CallerStream,
    words: Addresses,
    slabs: Arc<Slabs>,
    device: u64,
    // What the stream counts last, of what is queued so far, and whether more is queued behind that.
    counted: u32,
    loose: bool,
}

/// Why the driver did not take all.
enum Refusal {
    /// It took nothing.
    OfAll(Error),
    /// It took a part, and the flight knows of which piece on it did not.
    Behind,
}

impl Queue<'_> {
    /// Queues all of a flight.
    ///
    /// # Safety
    /// As for [`OnStream::start`]; slabs and words are the flight's.
    unsafe fn fill(
        mut self,
        flight: &Flight,
        cut: &Cut,
        direction: Direction,
        spot: &Spot,
    ) -> std::result::Result<(), Refusal> {
        let mut before = spot.streams.into_iter().flatten();
        before
            .try_for_each(|before| self.stream.go_behind(before))
            .map_err(Refusal::OfAll)?;
        match direction {
            Direction::Read => {
                self.stream.count(self.words, 1).map_err(Refusal::OfAll)?;
                self.counted = 1;
            }
            // A wait for nothing: a driver that lacks them is found out before anything is queued.
            Direction::Write => self
                .stream
                .wait_for(self.words, 0)
                .map_err(Refusal::OfAll)?,
        }
        for index in 0..cut.pieces() {
            // SAFETY: the caller's promise.
            let queued = unsafe { self.piece(flight, cut, direction, index) };
            queued.map_err(|error| self.refused(flight, index, error))?;
        }
        if direction == Direction::Write {
            let end = cut.pieces();
            let queued = self.stream.wait_for(self.words, end as u32).and_then(|()| {
                self.loose = true;
                self.stream.count(self.words, end as u32 + 1)
            });
            queued.map_err(|error| self.refused(flight, end, error))?;
        }
        Ok(())
    }

    /// # Safety
    /// As for `fill`.
    unsafe fn piece(
        &mut self,
        flight: &Flight,
        cut: &Cut,
        direction: Direction,
        index: usize,
    ) -> Result<()> {
        let bytes = cut.piece(index);
        let slab = self.slabs.start(index % self.slabs.count());
        // SAFETY: a piece lies in its slab.
        let host = unsafe { slab.add(cut.place(index)) };
        let (device, len) = (
            self.device + bytes.start,
            (bytes.end - bytes.start) as usize,
        );
        let allowed = flight.allowed(index);
        if allowed > 0 {
            self.stream.wait_for(self.words, allowed)?;
            self.loose = true;
        }
        match direction {
            // SAFETY: the caller's promise. The stream waits until the piece is in its slab, and nobody writes to that before
            // it has counted.
            Direction::Read => unsafe { self.stream.to_device(device, host, len) }?,
            // SAFETY: the caller's promise. The stream waits until nobody needs what was in the slab, and nobody reads it
            // before it has counted.
            Direction::Write => unsafe { self.stream.to_host(host, device, len) }?,
        }
        self.loose = true;
        let count = flight.counted(index);
        self.stream.count(self.words, count)?;
        self.counted = count;
        self.loose = false;
        Ok(())
    }

    /// What a refusal on the way comes to: the stream counts once more, if it can be told to, so that it is known when it is past
    /// all of it.
    fn refused(&self, flight: &Flight, index: usize, error: Error) -> Refusal {
        if self.counted == 0 && !self.loose {
            return Refusal::OfAll(error);
        }
        if !self.loose {
            flight.cut_short(index, error, Some(self.counted));
            return Refusal::Behind;
        }
        // Before the stream can count: what it counts then must not be taken for a piece that it has moved, or for all of them.
        flight.cut_short(index, error, None);
        let next = self.counted + 1;
        if self.stream.count(self.words, next).is_ok() {
            flight.ends_with(next);
        }
        Refusal::Behind
    }
}

// What transfers in streams have of pinned memory together, but for one slab each.
const LIMIT: u64 = 64 * (4 << 20);
// The words are compared as signed numbers.
const MOST_PIECES: usize = 1 << 30;
// When whoever waits asks the driver whether the context still works, and how often from then on.
const SOON: Duration = Duration::from_millis(20);
const LATER: Duration = Duration::from_millis(50);
// When whoever only asks whether it is done does so, too: the driver's answer may have to wait for other streams.
const LATE: Duration = Duration::from_secs(1);
