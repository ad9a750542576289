//! A read or write by cuFile in the order of a stream: [`CuFileOnStream`].
//!
//! cuFile looks at the numbers of such a transfer when the stream is there, and writes the count beside them. Of a read it is asked for
//! nothing beyond the end of the file, where it would write zeros; how long the file is by then, a function of ours looks up
//! that the stream calls just before.

use std::ffi::c_void;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;

use kvik_stats::{Backend, Direction, Span, Start, names};
use kvik_sys::{AsyncArguments, CuFileFailure, DevicePtr, StreamHints};

use super::edges::has_edges;
use super::registered_stream::hints_of;
use super::turns::turn;
use super::{CuFileWay, RegisteredFile};
use crate::corridor::{Call, Plan};
use crate::device::{CallerStream, Mark, RawStream, Spot};
use crate::error::{Error, ErrorKind, Op, Place, Result};
use crate::fork;
use crate::memory::Memory;
use crate::open;
use crate::sync::{Mutex, lock};

/// What a wish for such a transfer comes to.
pub(crate) enum Started {
    ByCuFile(Box<CuFileOnStream>),
    /// cuFile does not do it, and nothing of it is queued. What listeners were told of already goes on.
    Otherwise(Option<Span>),
}

/// A transfer that cuFile moves when its stream is there.
pub(crate) struct CuFileOnStream {
    // Leaked if the stream's context fails: nobody knows whether cuFile still writes to it.
    numbers: NonNull<Numbers>,
    stream: CallerStream,
    mark: Mark,
    plan: Plan,
    direction: Direction,
    place: Place,
    way: CuFileWay,
    generation: u64,
    end: Mutex<End>,
}

struct End {
    span: Option<Span>,
    outcome: Option<Result<usize>>,
}

/// What is touched when the stream is there, by one after the other: `fit`, then cuFile.
struct Numbers {
    arguments: AsyncArguments,
    // How many bytes there is room for, and how many cuFile is asked for.
    room: usize,
    asked: usize,
    file: Arc<RegisteredFile>,
}

// SAFETY: the numbers are in a block of their own, which this value reads only when the stream is past the transfer, and frees
// only once.
unsafe impl Send for CuFileOnStream {}
// SAFETY: as for `Send`; what changes afterwards is behind a lock.
unsafe impl Sync for CuFileOnStream {}

impl CuFileOnStream {
    /// Queues a transfer of all of `memory`, which is on a device and has bytes; `Otherwise` if cuFile does not do that: it does not
    /// take the file and need not, is older than such transfers, was promised whole pages for this stream and these are none or
    /// may come to be none, or there is nothing to read; and where no direct path was proven: in its compatible mode the call
    /// itself waits until the stream is there (1.15). Nor does it write parts of pages in the order of a stream: nobody could hold
    /// back others that write to the same page meanwhile.
    ///
    /// # Errors
    /// Nothing is queued then, or all that was is done: those of [`CuFileWay::registered`]; `Misuse` for a stream that records a
    /// graph or is another device's, or a range beyond 2^63 - 1; `Device` if the driver or cuFile fails.
    ///
    /// # Safety
    /// As for [`OnStream::start`](crate::engine::flagged::OnStream::start).
    pub(crate) unsafe fn start(
        way: &CuFileWay,
        call: &Call,
        direction: Direction,
        memory: Memory,
        spot: &Spot,
        offset: u64,
        stream: RawStream,
    ) -> Result<Started> {
        let plan = Plan::new(offset, memory.len() as u64, u64::MAX)?;
        spot.check()?;
        if direction == Direction::Write && has_edges(&plan.range()) {
            return Ok(Started::Otherwise(None));
        }
        let Some(file) = way.registered()?.filter(|file| file.serves_streams()) else {
            return Ok(Started::Otherwise(None));
        };
        let stream = CallerStream::find(stream, spot.context)?;
        // Before anything is queued or locked: listeners are the program's code.
        let span = kvik_stats::begin(Start {
            backend: Backend::Gds,
            direction,
            memory: kvik_stats::Memory::Device,
            source: &call.name,
            offset,
            size: memory.len() as u64,
        });
        let turn = turn(&stream);
        let _turn = lock(&turn);
        let hints = hints_of(&stream);
        let address = memory.start().addr() as u64;
        let is_read = direction == Direction::Read;
        let is_fixed = hints.contains(StreamHints::FIXED_FILE_SIZE);
        if hints.contains(StreamHints::PAGE_ALIGNED_INPUTS) {
            // How much of it a file has when the stream is there, nobody knows now.
            if is_read && !is_fixed {
                return Ok(Started::Otherwise(Some(span)));
            }
            let mut numbers = vec![offset, memory.len() as u64, address];
            if is_read {
                // Of a file that ends sooner, cuFile is asked for what there is.
                let there = open::size(file.file())?.saturating_sub(offset);
                numbers.push(there.min(memory.len() as u64));
            }
            if numbers.iter().any(|number| number % WHOLE != 0) {
                return Ok(Started::Otherwise(Some(span)));
            }
        }
        let arguments = AsyncArguments {
            bytes: memory.len(),
            // The plan has no offsets beyond those of a file.
            file_offset: offset.cast_signed(),
            // The memory is not registered, so that any of its addresses serves as the base; and with a place behind it, such a
            // transfer comes to nothing but EIO (1.15, in its compatible mode).
            base_offset: 0,
            count: 0,
        };
        let mut numbers = Box::new(Numbers {
            arguments,
            room: memory.len(),
            asked: memory.len(),
            file: Arc::clone(&file),
        });
        if is_read && is_fixed {
            numbers.fit();
            if numbers.asked == 0 {
                return Ok(Started::Otherwise(Some(span)));
            }
        }
        // Until the stream is there, the size is the most that may be asked for then: of more, nothing comes but EIO.
        let fits_later = is_read && !is_fixed;
        let _entered = stream.enter()?;
        let numbers = NonNull::from(Box::leak(numbers));
        // SAFETY: the caller's promise; the numbers are freed only when the stream is past the transfer.
        let queued = unsafe {
            queue(
                &stream,
                spot,
                &file,
                numbers,
                DevicePtr::new(address),
                direction,
                fits_later,
            )
        };
        let queued = queued.and_then(|()| stream.mark().map_err(Refusal::Failed));
        let refused = match queued {
            Ok(mark) => {
                return Ok(Started::ByCuFile(Box::new(CuFileOnStream {
                    numbers,
                    stream,
                    mark,
                    plan,
                    direction,
                    place: call.place.clone(),
                    way: way.clone(),
                    generation: fork::generation(),
                    end: Mutex::new(End {
                        span: Some(span),
                        outcome: None,
                    }),
                })));
            }
            Err(refused) => refused,
        };
        // What was queued before it still uses the numbers, and cuFile perhaps the memory.
        if stream.finish().is_ok() {
            // SAFETY: made above, and nobody uses them any more.
            drop(unsafe { Box::from_raw(numbers.as_ptr()) });
        }
        match refused {
            Refusal::ByCuFile(error) if way.gives_way() => {
                way.give_up(&error);
                Ok(Started::Otherwise(Some(span)))
            }
            Refusal::ByCuFile(error) | Refusal::Failed(error) => Err(error),
        }
    }

    /// Waits until the stream is past it, and gives the count.
    ///
    /// # Errors
    /// What cuFile's count says; what the driver says of the stream's context, if that has failed; `Forked` in a child of the
    /// process that started it.
    pub(crate) fn wait(&self) -> Result<usize> {
        self.check_process()?;
        if let Some(outcome) = &lock(&self.end).outcome {
            return outcome.clone();
        }
        let entered = self.stream.enter();
        let passed = entered.and_then(|_entered| self.mark.wait().or_else(|_| self.mark.wait()));
        self.end(passed)
    }

    /// Whether the stream is past it, or this process is another one than started it.
    pub(crate) fn is_done(&self) -> bool {
        if self.check_process().is_err() || lock(&self.end).outcome.is_some() {
            return true;
        }
        // A context that has failed, or is gone, is done with everything.
        self.has_passed().unwrap_or(true)
    }

    /// Whether the stream is past it. The mark is asked for in its context alone: it is gone with that.
    fn has_passed(&self) -> Result<bool> {
        let _entered = self.stream.enter()?;
        self.mark.is_done()
    }

    /// Notes the outcome, once.
    fn end(&self, passed: Result<()>) -> Result<usize> {
        let mut end = lock(&self.end);
        if let Some(outcome) = &end.outcome {
            return outcome.clone();
        }
        let (moved, error) = match passed {
            Ok(()) => self.moved(),
            Err(error) => (0, Some(error)),
        };
        let outcome = match error {
            Some(error) => {
                let error = error.during(self.op()).at(&self.place);
                Err(error.within(self.plan.range(), moved as u64))
            }
            None => Ok(moved),
        };
        let span = end.span.take();
        end.outcome = Some(outcome.clone());
        drop(end);
        if let Some(span) = span {
            span.finish(moved as u64, outcome.is_ok());
        }
        outcome
    }

    /// How many bytes cuFile says that it has moved, and what stopped it. The stream is past it.
    fn moved(&self) -> (usize, Option<Error>) {
        // SAFETY: the numbers are there until `drop`, and nobody writes to them any more.
        let numbers = unsafe { self.numbers.as_ref() };
        let asked = numbers.asked;
        if asked == 0 {
            return (0, None);
        }
        match CuFileFailure::split(numbers.arguments.count, None) {
            Ok(count) if count > asked => {
                let why = format!("cuFile moved {count} bytes where {asked} were asked for");
                (0, Some(Error::new(ErrorKind::Internal, self.op(), why)))
            }
            Ok(count) => {
                names::BYTES_BY_CUFILE.add(count as u64);
                // What is behind it on the stream has seen the bytes as they are, so the rest cannot be made good.
                let fell_short = (count < asked).then(|| {
                    let why = format!("cuFile moved {count} of {asked} bytes, without saying why");
                    Error::new(ErrorKind::Io, self.op(), why)
                });
                (count, fell_short)
            }
            Err(failure) => {
                let kind = match failure {
                    CuFileFailure::System(_) => ErrorKind::Io,
                    CuFileFailure::Status(_) => ErrorKind::Device,
                };
                let why = format!("cuFile in the order of a stream: {failure}");
                let error = Error::new(kind, self.op(), why).because(failure);
                // This one cannot be made good, but the next one goes another way, where there is one.
                if self.way.gives_way() {
                    self.way.give_up(&error);
                }
                (0, Some(error))
            }
        }
    }

    fn op(&self) -> Op {
        self.direction.into()
    }

    fn check_process(&self) -> Result<()> {
        if self.generation == fork::generation() {
            return Ok(());
        }
        let why = "the transfer belongs to the parent process";
        Err(Error::new(ErrorKind::Forked, self.op(), why).at(&self.place))
    }
}

impl Drop for CuFileOnStream {
    fn drop(&mut self) {
        // In a child the numbers are a copy that nobody uses, and the file in them is the parent's.
        if self.check_process().is_err() {
            return;
        }
        let outcome = self.wait();
        if outcome.is_ok() || self.has_passed().is_ok_and(|passed| passed) {
            // SAFETY: made by `start`, and freed here alone; the stream is past the transfer.
            drop(unsafe { Box::from_raw(self.numbers.as_ptr()) });
        }
    }
}

impl fmt::Debug for CuFileOnStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = self.plan.range();
        let (op, place) = (self.op(), &self.place);
        write!(f, "{op} {place} {}..{} by cuFile", range.start, range.end)
    }
}

impl Numbers {
    /// Asks for no byte beyond the end of the file.
    fn fit(&mut self) {
        let offset = self.arguments.file_offset.cast_unsigned();
        // A file whose size cannot be told is left to cuFile.
        let size = open::size(self.file.file()).unwrap_or(u64::MAX);
        let there = usize::try_from(size.saturating_sub(offset)).unwrap_or(usize::MAX);
        self.asked = self.room.min(there);
        self.arguments.bytes = self.asked;
    }
}

/// Queues a transfer.
///
/// # Safety
/// As for [`CuFileOnStream::start`]; the numbers stay until the stream is past all that this has queued, and keep `file`.
unsafe fn queue(
    stream: &CallerStream,
    spot: &Spot,
    file: &RegisteredFile,
    numbers: NonNull<Numbers>,
    base: DevicePtr,
    direction: Direction,
    fits_later: bool,
) -> std::result::Result<(), Refusal> {
    for before in spot.streams.into_iter().flatten() {
        stream.go_behind(before)?;
    }
    if fits_later {
        // SAFETY: the caller's promise; the function makes no call of the driver and does not unwind.
        unsafe { stream.call(fit, numbers.as_ptr().cast()) }?;
    }
    let (cufile, handle) = (file.cufile(), file.handle());
    // SAFETY: the numbers are there, and this is a field of theirs.
    let arguments = unsafe { &raw mut (*numbers.as_ptr()).arguments };
    let Some(arguments) = NonNull::new(arguments) else {
        return Ok(()); // A field of what is there is never null.
    };
    let stream = stream.stream();
    let queued = match direction {
        // SAFETY: the file is registered as long as the numbers are there, which keep it; the rest is the caller's promise.
        Direction::Read => unsafe { cufile.read_async(handle, base, arguments, stream) },
        // SAFETY: as above.
        Direction::Write => unsafe { cufile.write_async(handle, base, arguments, stream) },
    };
    queued.map_err(|status| {
        let why = format!("cuFile in the order of a stream: {status}");
        Refusal::ByCuFile(Error::new(ErrorKind::Device, Op::Copy, why).because(status))
    })
}

/// What a stream calls before cuFile's turn.
unsafe extern "C" fn fit(numbers: *mut c_void) {
    // SAFETY: `queue` gave it the numbers, which stay until the stream is past this; cuFile looks at them later.
    let numbers = unsafe { &mut *numbers.cast::<Numbers>() };
    // An unwinding would end in the driver. Without the size, what was found at the call stays.
    let _ = catch_unwind(AssertUnwindSafe(|| numbers.fit()));
}

/// Why a transfer was not queued.
enum Refusal {
    /// A call of cuFile's failed: another way may be open.
    ByCuFile(Error),
    Failed(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Failed(error)
    }
}

// What cuFile calls a page.
const WHOLE: u64 = 4096;
