//! Memory of every kind, of which a test hands out parts.
#![expect(unsafe_code, reason = "each call has its argument beside it")]

use std::ops::Range;
use std::ptr::NonNull;

use kvik::{Source, Target};
use kvik_sys::{Context, DevicePtr, HostFlags, Stream};

use super::context::{OwnContext, primary, within};
use super::{Gpu, cuda};

/// Where memory comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `cuMemAlloc`.
    Plain,
    /// `cuMemAllocAsync`: of the device's pool, in no context.
    Pool,
    /// `cuMemAllocManaged`.
    Managed,
    /// `cuMemHostAlloc`: the host's, pinned.
    Pinned,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 4] = [Kind::Plain, Kind::Pool, Kind::Managed, Kind::Pinned];
}

/// One allocation; freed on drop, for which nothing may be under way.
#[derive(Debug)]
pub struct Memory {
    context: Context,
    kind: Kind,
    address: u64,
    len: usize,
}

impl Memory {
    /// `len` bytes, more than 0, of a device, in its primary context.
    #[track_caller]
    #[must_use]
    pub fn new(_: &Gpu, device: i32, kind: Kind, len: usize) -> Memory {
        Memory::allocate(primary(device), kind, len)
    }

    /// The same in a context of the test's own, which outlives it.
    #[track_caller]
    #[must_use]
    pub fn within(context: &OwnContext, kind: Kind, len: usize) -> Memory {
        let handle = Context::from_raw(context.address() as *mut _);
        Memory::allocate(handle.unwrap(), kind, len)
    }

    #[track_caller]
    fn allocate(context: Context, kind: Kind, len: usize) -> Memory {
        let address = within(context, || match kind {
            Kind::Plain => cuda().mem_alloc(len).unwrap().address(),
            Kind::Managed => cuda().mem_alloc_managed(len).unwrap().address(),
            Kind::Pinned => {
                let made = cuda().mem_host_alloc(len, HostFlags::PORTABLE);
                made.unwrap().as_ptr().expose_provenance() as u64
            }
            Kind::Pool => {
                // SAFETY: the default stream is there.
                let made = unsafe { cuda().mem_alloc_async(len, Stream::DEFAULT) };
                cuda().ctx_synchronize().unwrap();
                made.unwrap().address()
            }
        });
        Memory {
            context,
            kind,
            address,
            len,
        }
    }

    /// Where it starts.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A part of it, to be read into.
    #[track_caller]
    pub fn target(&mut self, range: Range<usize>) -> Target<'_> {
        self.targets(&[range]).remove(0)
    }

    /// Several parts, which do not overlap.
    #[track_caller]
    pub fn targets(&mut self, ranges: &[Range<usize>]) -> Vec<Target<'_>> {
        let mut sorted: Vec<_> = ranges.iter().filter(|range| !range.is_empty()).collect();
        sorted.sort_unstable_by_key(|range| range.start);
        assert!(sorted.windows(2).all(|two| two[0].end <= two[1].start));
        let target = |range: &Range<usize>| {
            let (start, len) = self.part(range);
            // SAFETY: the part is valid and, for as long as the memory is borrowed, the target's alone: parts do not overlap.
            unsafe { Target::from_raw(start, len) }.unwrap()
        };
        ranges.iter().map(target).collect()
    }

    /// A part of it, to be written from.
    #[track_caller]
    #[must_use]
    pub fn source(&self, range: Range<usize>) -> Source<'_> {
        let (start, len) = self.part(&range);
        // SAFETY: the part is valid and, while the memory is borrowed, nobody writes to it. Its bytes are whatever is there.
        unsafe { Source::from_raw(start, len) }.unwrap()
    }

    /// What kvik says to `len` bytes from `at` on, which may be more than there are.
    pub fn claim(&mut self, at: usize, len: usize) -> kvik::Result<Target<'_>> {
        let start = std::ptr::without_provenance_mut(self.address as usize + at);
        // SAFETY: where this is accepted although it is too long, the test has failed and reads nothing.
        unsafe { Target::from_raw(start, len) }
    }

    /// The same for bytes to be written from.
    pub fn lend(&self, at: usize, len: usize) -> kvik::Result<Source<'_>> {
        let start = std::ptr::without_provenance(self.address as usize + at);
        // SAFETY: as for `claim`.
        unsafe { Source::from_raw(start, len) }
    }

    /// All its bytes.
    #[track_caller]
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len];
        if self.kind == Kind::Pinned {
            let from = std::ptr::with_exposed_provenance::<u8>(self.address as usize);
            // SAFETY: the driver gave out so many bytes of the host's memory, and nobody writes to them meanwhile.
            unsafe { from.copy_to_nonoverlapping(bytes.as_mut_ptr(), self.len) };
            return bytes;
        }
        let from = DevicePtr::new(self.address);
        within(self.context, || {
            // SAFETY: both are as long, and the call waits.
            unsafe { cuda().memcpy_dtoh(bytes.as_mut_ptr(), from, self.len) }
        })
        .unwrap();
        bytes
    }

    /// Puts bytes at `at`.
    #[track_caller]
    pub fn put(&mut self, at: usize, bytes: &[u8]) {
        let (start, len) = self.part(&(at..at + bytes.len()));
        if self.kind == Kind::Pinned {
            let from = NonNull::from(bytes).cast::<u8>().as_ptr();
            // SAFETY: the part lies in the host's memory that the driver gave out, which is borrowed by this call alone.
            return unsafe { start.copy_from_nonoverlapping(from, len) };
        }
        let to = DevicePtr::new(start.addr() as u64);
        within(self.context, || {
            // SAFETY: both are as long, and the call waits until the bytes are taken.
            unsafe { cuda().memcpy_htod(to, bytes.as_ptr(), len) }.unwrap();
            // They may still be on their way from a place of the driver's.
            cuda().ctx_synchronize()
        })
        .unwrap();
    }

    /// Sets every byte.
    #[track_caller]
    pub fn set(&mut self, byte: u8) {
        self.put(0, &vec![byte; self.len]);
    }

    #[track_caller]
    fn part(&self, range: &Range<usize>) -> (*mut u8, usize) {
        assert!(range.start <= range.end && range.end <= self.len);
        let start = self.address as usize + range.start;
        (std::ptr::with_exposed_provenance_mut(start), range.len())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let address = DevicePtr::new(self.address);
        within(self.context, || {
            match (self.kind, NonNull::new(address.as_mut_ptr().cast())) {
                // SAFETY: `allocate` allocated it so, and it is freed here alone.
                (Kind::Pinned, Some(start)) => drop(unsafe { cuda().mem_free_host(start) }),
                // SAFETY: as above; `cuMemFree` takes memory of a pool, too, and waits for what uses it.
                _ => drop(unsafe { cuda().mem_free(address) }),
            }
        });
    }
}
