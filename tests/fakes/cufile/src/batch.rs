//! Batches: transfers that are submitted together and reported one by one, late. Each entry is counted as `batch-entry`, so
//! that rules can make single ones fail or fall short.

use std::collections::VecDeque;
use std::ffi::c_uint;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use kvik_fake_common::{In, Out};

use crate::entry::{RULES, cufile};
use crate::state::state;
use crate::status::{Answer, BATCH_FULL, INTERNAL_ERROR, INVALID_VALUE};
use crate::transfer::{Transfer, Way, usable};

pub(crate) struct Batch {
    /// How many entries it may have on their way.
    most: usize,
    progress: Mutex<Progress>,
    changed: Condvar,
}

#[derive(Default)]
struct Progress {
    waiting: usize,
    canceled: bool,
    done: VecDeque<Event>,
}

/// A `CUfileIOParams_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Entry {
    mode: i32,
    base: usize,
    file_offset: i64,
    offset: i64,
    size: usize,
    file: usize,
    opcode: i32,
    cookie: usize,
}

/// A `CUfileIOEvents_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Event {
    cookie: usize,
    status: i32,
    count: isize,
}

const CANCELED: i32 = 0x08;
const COMPLETE: i32 = 0x10;
const FAILED: i32 = 0x40;

cufile! {
    fn cuFileBatchIOSetUp(batch: Out<usize>, most: c_uint) {
        let most = usize::try_from(most).map_err(|_| INVALID_VALUE)?;
        let mut state = state();
        if most == 0 || most > state.max_batch {
            return Err(INVALID_VALUE);
        }
        let made = Batch { most, progress: Mutex::default(), changed: Condvar::new() };
        let handle = state.handle();
        state.batches.insert(handle, Arc::new(made));
        Ok(batch.set(handle)?)
    }

    fn cuFileBatchIOSubmit(batch: usize, count: c_uint, entries: In<Entry>, _flags: c_uint) {
        let count = usize::try_from(count).map_err(|_| INVALID_VALUE)?;
        let entries = entries.read(count)?;
        let batch = known(batch)?;
        let transfers = entries.iter().map(transfer).collect::<Answer<Vec<_>>>()?;
        let mut progress = batch.progress();
        if progress.waiting + progress.done.len() + count > batch.most {
            return Err(BATCH_FULL);
        }
        progress.waiting += count;
        progress.canceled = false;
        drop(progress);
        start(batch, transfers)
    }

    fn cuFileBatchIOGetStatus(
        batch: usize,
        least: c_uint,
        count: Out<c_uint>,
        events: Out<Event>,
        timeout: In<libc::timespec>,
    ) {
        let batch = known(batch)?;
        let least = usize::try_from(least).map_err(|_| INVALID_VALUE)?;
        let most = usize::try_from(count.get()?).map_err(|_| INVALID_VALUE)?;
        if least > most {
            return Err(INVALID_VALUE);
        }
        let until = deadline(timeout)?;
        let mut progress = batch.progress();
        while progress.waiting > 0 && progress.done.len() < least {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            progress = match left {
                Some(Duration::ZERO) => break,
                Some(left) => {
                    let waited = batch.changed.wait_timeout(progress, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => batch.changed.wait(progress).unwrap_or_else(PoisonError::into_inner),
            };
        }
        let told = most.min(progress.done.len());
        events.fill(progress.done.drain(..told))?;
        Ok(count.set(c_uint::try_from(told).map_err(|_| INVALID_VALUE)?)?)
    }

    fn cuFileBatchIOCancel(batch: usize) {
        known(batch)?.progress().canceled = true;
        Ok(())
    }
}

#[unsafe(no_mangle)]
extern "C" fn cuFileBatchIODestroy(batch: usize) {
    RULES.verdict("cuFileBatchIODestroy");
    let mut state = state();
    let known = state.batches.remove(&batch);
    let waiting = known.map(|batch| batch.progress().waiting);
    match waiting {
        Some(0) => {}
        Some(left) => state.fault(format!(
            "a batch was destroyed with {left} entries on their way"
        )),
        None => state.fault(format!("{batch:#x}, which is no batch, was destroyed")),
    }
}

impl Batch {
    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn known(batch: usize) -> Answer<Arc<Batch>> {
    state().batches.get(&batch).cloned().ok_or(INVALID_VALUE)
}

fn transfer(entry: &Entry) -> Answer<(usize, Transfer)> {
    let way = match (entry.mode, entry.opcode) {
        (1, 0) => Way::Read,
        (1, 1) => Way::Write,
        _ => return Err(INVALID_VALUE),
    };
    let transfer = Transfer {
        way,
        file: usable(entry.file)?,
        of: (entry.base, entry.offset),
        size: entry.size,
        file_offset: entry.file_offset,
        verdict: RULES.verdict("batch-entry"),
    };
    Ok((entry.cookie, transfer))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the thread stands for those of the real library"
)]
fn start(batch: Arc<Batch>, transfers: Vec<(usize, Transfer)>) -> Answer {
    let work = move || {
        for (cookie, transfer) in transfers {
            let canceled = batch.progress().canceled;
            let count = match canceled {
                true => 0,
                false => told(transfer.run()),
            };
            let status = match count {
                _ if canceled => CANCELED,
                0.. => COMPLETE,
                _ => FAILED,
            };
            // The file is let go before anybody hears that its bytes are there.
            drop(transfer);
            let mut progress = batch.progress();
            progress.waiting -= 1;
            progress.done.push_back(Event {
                cookie,
                status,
                count,
            });
            batch.changed.notify_all();
        }
    };
    let started = thread::Builder::new()
        .name("fake-batch".to_owned())
        .spawn(work);
    started.map(drop).map_err(|_| INTERNAL_ERROR)
}

/// The count as an event has it: in place of -1 the negative errno.
fn told(count: isize) -> isize {
    match (count, std::io::Error::last_os_error().raw_os_error()) {
        (-1, Some(errno)) => -(errno as isize),
        _ => count,
    }
}

/// When to stop waiting; never, where there is no timeout.
fn deadline(timeout: In<libc::timespec>) -> Answer<Option<Instant>> {
    if timeout.is_null() {
        return Ok(None);
    }
    let time = timeout.read(1)?[0];
    let seconds = u64::try_from(time.tv_sec).map_err(|_| INVALID_VALUE)?;
    let nanoseconds = u32::try_from(time.tv_nsec).map_err(|_| INVALID_VALUE)?;
    Ok(Some(Instant::now() + Duration::new(seconds, nanoseconds)))
}
