//! Words in memory by which a stream of the program's and threads of ours tell each other how far they are: [`Words`].
//!
//! There are two for a transfer, and each has one writer: the stream counts in one what it has done, and waits until the
//! processor has counted far enough in the other. So nobody has to call the driver for the two to go on.

use std::mem;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use kvik_sys::{DevicePtr, HostFlags};

use super::context::Context;
use super::driver::{driver, failed};
use super::store::Store;
use crate::error::{Op, Result};
use crate::pages::Pages;
use crate::pool::shared_value;

/// Both words of a transfer, which begin at 0. They stay where they are for ever, so that neither a stream nor a thread can be
/// left with words that are gone.
pub(crate) struct Words {
    cell: Cell,
    context: Context,
}

/// Where the device finds them.
#[derive(Clone, Copy)]
pub(crate) struct Addresses {
    /// The word that the stream waits for.
    pub(super) host: DevicePtr,
    /// The word that it counts in.
    pub(super) stream: DevicePtr,
}

/// A place for them, on two lines of the cache.
struct Cell {
    host: NonNull<AtomicU32>,
    stream: NonNull<AtomicU32>,
    addresses: Addresses,
}

// SAFETY: both point to memory that is never unmapped, and is touched as atomics only.
unsafe impl Send for Cell {}
// SAFETY: as for `Send`.
unsafe impl Sync for Cell {}

impl Words {
    /// Two words for a stream of `context`, which the caller has entered.
    ///
    /// # Errors
    /// `OutOfMemory` or `Device` if no more memory can be mapped for the device.
    pub(crate) fn lend(context: Context) -> Result<Words> {
        let cell = match cells().take(context) {
            Some(cell) => cell,
            None => make(context)?,
        };
        let words = Words { cell, context };
        // Who had them before is done with both, on either side.
        words.host().store(0, Ordering::Relaxed);
        words.stream().store(0, Ordering::Release);
        Ok(words)
    }

    /// How far the stream has come. What it did until then, to memory of the host too, is to be seen.
    pub(crate) fn reached(&self) -> u32 {
        self.stream().load(Ordering::Acquire)
    }

    /// Lets the stream come as far as this. It sees what the calling thread, and those that it knows of, have done.
    pub(crate) fn allow(&self, count: u32) {
        self.host().store(count, Ordering::SeqCst);
    }

    /// Keeps them for another transfer: the stream is past its last look at them.
    pub(crate) fn put_back(self) {
        cells().put(self.context, self.cell);
    }

    /// For what is queued.
    pub(crate) fn addresses(&self) -> Addresses {
        self.cell.addresses
    }

    fn host(&self) -> &AtomicU32 {
        // SAFETY: it is aligned, part of memory that stays for ever, and all of our accesses to it are atomic.
        unsafe { self.cell.host.as_ref() }
    }

    fn stream(&self) -> &AtomicU32 {
        // SAFETY: as for the other word.
        unsafe { self.cell.stream.as_ref() }
    }
}

/// Makes a block of cells, keeps all but one of them, and returns that.
fn make(context: Context) -> Result<Cell> {
    let cuda = driver()?.cuda();
    // Not memory of the driver's, which it may unmap at exit while a thread still looks at it.
    let pages = Pages::new(BLOCK)?;
    let start = NonNull::from(&pages[..]).cast::<u8>();
    let flags = HostFlags::PORTABLE | HostFlags::DEVICEMAP;
    // SAFETY: the pages are ours, and stay for ever if this succeeds.
    unsafe { cuda.mem_host_register(start, BLOCK, flags) }
        .map_err(|status| failed(Op::Allocate, "cuMemHostRegister", status))?;
    mem::forget(pages);
    let device = cuda
        .mem_host_get_device_pointer(start.as_ptr())
        .map_err(|status| failed(Op::Allocate, "cuMemHostGetDevicePointer", status))?;
    let cell = |at: usize| {
        let word = |at: usize| {
            // SAFETY: `at` lies within the block.
            let host = unsafe { start.add(at) }.cast();
            (host, DevicePtr::new(device.address() + at as u64))
        };
        let (host, host_address) = word(at);
        let (stream, stream_address) = word(at + CELL / 2);
        Cell {
            host,
            stream,
            addresses: Addresses {
                host: host_address,
                stream: stream_address,
            },
        }
    };
    for at in (CELL..BLOCK).step_by(CELL) {
        cells().put(context, cell(at));
    }
    Ok(cell(0))
}

// A line of the cache and the one that is fetched along with it, for each word.
const CELL: usize = 256;
// A block of a small page serves sixteen transfers at a time; few programs have more.
const BLOCK: usize = 4096;

static CELLS: AtomicPtr<Store<Cell>> = AtomicPtr::new(ptr::null_mut());

fn cells() -> &'static Store<Cell> {
    shared_value(&CELLS, Store::new)
}
