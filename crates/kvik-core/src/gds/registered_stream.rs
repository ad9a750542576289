//! Streams that cuFile knows: [`RegisteredStream`].

use std::ptr;
use std::sync::atomic::AtomicPtr;

use kvik_sys::{CallError, StreamHints};

use super::buffers;
use super::driver::{self, Use};
use super::turns::turn;
use crate::device::{self, CallerStream, RawStream};
use crate::error::{Error, ErrorKind, Op, Result};
use crate::pool::shared_value;
use crate::sync::{Mutex, lock};

/// A stream that cuFile has prepared for reads and writes in its order; dropping it ends that, once the stream is done with
/// what was queued.
///
/// It makes such transfers quicker where cuFile moves the bytes, and changes nothing elsewhere.
#[derive(Debug)]
pub struct RegisteredStream {
    registered: std::result::Result<(Use, CallerStream), Error>,
}

impl RegisteredStream {
    /// Registers `stream` with cuFile. `hints` are bits of cuFile's that promise things of all transfers of the stream: 0x1, the
    /// place in the buffer is known at the call; 0x2, the place in the file; 0x4, the size; 0x8, all of them are multiples of
    /// 4096. The first three hold for all calls of kvik. A transfer that does not keep the last one goes another way than
    /// cuFile's, and so does a read without 0x4 then: of which size it will be, hangs on the file. With 0x4, a read asks for no
    /// more than the file has when it is queued.
    ///
    /// Where the compat mode of the process leaves cuFile alone and no file uses it yet, where it cannot be used, and where it is older
    /// than such streams, nothing is registered, which is no error: [`why_not`](RegisteredStream::why_not) says so.
    ///
    /// # Errors
    /// `Config` for a bad setting; `Misuse` for other bits, for a stream that records a graph, and for a default stream where no context is current; `Device`
    /// if cuFile refuses; `Forked` in a child of the process that used a device.
    pub fn new(stream: RawStream, hints: u32) -> Result<RegisteredStream> {
        let Some(hints) = StreamHints::from_bits(hints) else {
            let why =
                format!("the hints {hints:#x} have bits beyond 0xF, which cuFile does not know");
            return Err(Error::new(ErrorKind::Misuse, Op::Inspect, why));
        };
        let none = |why| {
            Ok(RegisteredStream {
                registered: Err(why),
            })
        };
        device::check_process()?;
        let wanted = match buffers::wanted()? {
            Ok(wanted) => wanted,
            Err(why) => return none(Error::new(ErrorKind::GdsUnavailable, Op::Inspect, why)),
        };
        let acquired = driver::acquire(wanted).map_err(|why| why.of_driver(Op::Inspect));
        let driver = match acquired {
            Ok(driver) => driver,
            Err(why) if why.kind() == ErrorKind::GdsUnavailable => return none(why),
            Err(error) => return Err(error),
        };
        let of = CallerStream::of(stream)?;
        let _entered = of.enter()?;
        let turn = turn(&of);
        let _turn = lock(&turn);
        // SAFETY: `RawStream::from_raw` was promised that the stream is there. `CuFileOnStream` keeps what the hints say.
        match unsafe { driver.cufile().stream_register(of.stream(), hints) } {
            Ok(()) => {}
            Err(CallError::Unsupported(lack)) => {
                let why = lack.to_string();
                return none(Error::new(ErrorKind::Unsupported, Op::Inspect, why).because(lack));
            }
            Err(CallError::Status(status)) => {
                let why = format!("cuFileStreamRegister: {status}");
                return Err(Error::new(ErrorKind::Device, Op::Inspect, why).because(status));
            }
        }
        lock(known()).push((of.clone(), hints));
        Ok(RegisteredStream {
            registered: Ok((driver, of)),
        })
    }

    /// Why cuFile does not know the stream; `None` if it does.
    #[must_use]
    pub fn why_not(&self) -> Option<&Error> {
        self.registered.as_ref().err()
    }
}

impl Drop for RegisteredStream {
    fn drop(&mut self) {
        // What a child inherited is its parent's.
        let (Ok((driver, of)), true) = (&self.registered, device::is_started()) else {
            return;
        };
        // What is queued by cuFile needs it. If that cannot be waited for, the context has failed.
        let _ = of.finish();
        let turn = turn(of);
        let _turn = lock(&turn);
        // Nor may another thread have queued anything since.
        let _ = of.finish();
        let mut known = lock(known());
        if let Some(at) = known.iter().position(|(stream, _)| stream == of) {
            known.swap_remove(at);
        }
        drop(known);
        let Ok(_entered) = of.enter() else { return };
        // SAFETY: the stream is there by the promise made to `RawStream::from_raw`, and nothing of cuFile's is in it.
        let _ = unsafe { driver.cufile().stream_deregister(of.stream()) };
    }
}

/// What was promised of a stream. That stays so as long as the caller has its turn.
pub(super) fn hints_of(stream: &CallerStream) -> StreamHints {
    let known = lock(known());
    let found = known.iter().find(|(other, _)| other == stream);
    found.map_or(StreamHints::NONE, |(_, hints)| *hints)
}

type Known = Mutex<Vec<(CallerStream, StreamHints)>>;

static KNOWN: AtomicPtr<Known> = AtomicPtr::new(ptr::null_mut());

fn known() -> &'static Known {
    shared_value(&KNOWN, Mutex::default)
}
