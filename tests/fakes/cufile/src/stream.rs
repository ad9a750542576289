//! Transfers in the order of a stream. Unless the stream was registered with flags that fix them, sizes and offsets are read
//! when the stream gets there.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;
use std::thread;

use kvik_fake_common::{In, Out, Verdict};

use crate::cuda;
use crate::entry::{RULES, cufile};
use crate::state::{Registered, state};
use crate::status::{Answer, INVALID_VALUE, Status};
use crate::transfer::{Transfer, Way, usable};

cufile! {
    fn cuFileStreamRegister(stream: usize, flags: c_uint) {
        if flags > ALL {
            return Err(INVALID_VALUE);
        }
        state().streams.insert(stream, flags);
        Ok(())
    }

    fn cuFileStreamDeregister(stream: usize) {
        state().streams.remove(&stream).map(drop).ok_or(INVALID_VALUE)
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuFileReadAsync(
    file: usize,
    base: usize,
    size: In<usize>,
    file_offset: In<i64>,
    offset: In<i64>,
    count: Out<isize>,
    stream: usize,
) -> Status {
    let place = Placed {
        size,
        file_offset,
        offset,
    };
    queue(
        "cuFileReadAsync",
        Way::Read,
        (file, base),
        place,
        count,
        stream,
    )
}

#[unsafe(no_mangle)]
extern "C" fn cuFileWriteAsync(
    file: usize,
    base: usize,
    size: In<usize>,
    file_offset: In<i64>,
    offset: In<i64>,
    count: Out<isize>,
    stream: usize,
) -> Status {
    let place = Placed {
        size,
        file_offset,
        offset,
    };
    queue(
        "cuFileWriteAsync",
        Way::Write,
        (file, base),
        place,
        count,
        stream,
    )
}

const FIXED_OFFSET: u32 = 1;
const FIXED_FILE_OFFSET: u32 = 2;
const FIXED_SIZE: u32 = 4;
const ALL: u32 = 15;

/// Where the caller keeps the numbers of a transfer.
#[derive(Clone, Copy)]
struct Placed {
    size: In<usize>,
    file_offset: In<i64>,
    offset: In<i64>,
}

/// A queued transfer. Numbers that are fixed were read when it was queued.
struct Queued {
    way: Way,
    file: Arc<Registered>,
    base: usize,
    place: Placed,
    size: Option<usize>,
    file_offset: Option<i64>,
    offset: Option<i64>,
    count: Out<isize>,
    verdict: Verdict,
}

fn queue(
    name: &str,
    way: Way,
    (file, base): (usize, usize),
    place: Placed,
    count: Out<isize>,
    stream: usize,
) -> Status {
    let verdict = RULES.verdict(name);
    if let Verdict::Fail(code) = verdict {
        return Status::of_rule(code);
    }
    let mut state_now = state();
    if !state_now.called.insert(stream) {
        state_now.fault(format!("two calls at once for the stream {stream:#x}"));
    }
    drop(state_now);
    // The other one has time to come.
    thread::yield_now();
    let status = queue_alone(way, (file, base), place, count, stream, verdict);
    state().called.remove(&stream);
    status
}

fn queue_alone(
    way: Way,
    (file, base): (usize, usize),
    place: Placed,
    count: Out<isize>,
    stream: usize,
    verdict: Verdict,
) -> Status {
    let queued = || -> Answer {
        let file = usable(file)?;
        let flags = state().streams.get(&stream).copied().unwrap_or(0);
        let fixed = |flag| flags & flag != 0;
        let queued = Queued {
            way,
            file,
            base,
            place,
            size: fixed(FIXED_SIZE).then(|| first(place.size)).transpose()?,
            file_offset: fixed(FIXED_FILE_OFFSET)
                .then(|| first(place.file_offset))
                .transpose()?,
            offset: fixed(FIXED_OFFSET)
                .then(|| first(place.offset))
                .transpose()?,
            count,
            verdict,
        };
        let data = Box::into_raw(Box::new(queued));
        cuda::launch(stream, run, data as usize).inspect_err(|_| {
            // SAFETY: it was made above, and no stream took it.
            drop(unsafe { Box::from_raw(data) });
        })
    };
    queued().err().unwrap_or(crate::status::SUCCESS)
}

extern "C" fn run(data: *mut c_void) {
    // SAFETY: `queue` made it, and a stream calls this once for each.
    let queued = unsafe { Box::from_raw(data.cast::<Queued>()) };
    let count = queued
        .run()
        .unwrap_or_else(|status| -(status.code as isize));
    queued.count.set_if_wanted(count);
}

impl Queued {
    fn run(&self) -> Answer<isize> {
        let number = |fixed: Option<i64>, place| fixed.map_or_else(|| first(place), Ok);
        let transfer = Transfer {
            way: self.way,
            file: self.file.clone(),
            of: (self.base, number(self.offset, self.place.offset)?),
            size: self.size.map_or_else(|| first(self.place.size), Ok)?,
            file_offset: number(self.file_offset, self.place.file_offset)?,
            verdict: self.verdict,
        };
        Ok(transfer.run())
    }
}

fn first<T: Copy>(place: In<T>) -> Answer<T> {
    Ok(place.read(1)?[0])
}
