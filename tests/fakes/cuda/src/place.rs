//! What a copy reads and writes: an address of the caller, found in the registry and turned into bytes that the CPU can reach.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::abi::{Answer, ILLEGAL_ADDRESS, INVALID_VALUE};
use crate::space;
use crate::world::{Allocation, World};

/// `size` bytes somewhere.
pub(crate) struct Place {
    bytes: Bytes,
    size: usize,
}

enum Bytes {
    /// Memory that the fake knows, from `at` on, which is an address of its alias.
    Known { of: Arc<Allocation>, at: usize },
    /// Host memory of the caller that was never registered.
    Pageable(usize),
    /// A copy of such memory, made when the call was.
    Staged(Vec<u8>),
}

/// What an argument of a call must be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Memory that a device can reach by this address.
    Device,
    Anything,
}

impl Place {
    /// Finds `size` bytes at `at`. Bytes past the end of an allocation, and addresses of ours that nothing holds, are faults.
    pub(crate) fn find(
        world: &mut World,
        at: usize,
        size: usize,
        expected: Expected,
    ) -> Answer<Place> {
        if let Some(of) = world.holding(at).cloned() {
            let end = at.checked_add(size).filter(|end| *end <= of.end());
            if end.is_none() {
                let left = of.end() - at;
                world.fault(format!(
                    "{size} bytes at {at:#x}, where an allocation ends after {left}"
                ));
                return Err(INVALID_VALUE);
            }
            let at = of.alias + (at - of.start);
            let bytes = Bytes::Known { of, at };
            return Ok(Place { bytes, size });
        }
        if at == 0 {
            return Err(INVALID_VALUE);
        }
        if space::contains(at) {
            world.fault(format!(
                "{size} bytes at {at:#x}, where nothing is allocated (any more)"
            ));
            return Err(INVALID_VALUE);
        }
        if expected == Expected::Device {
            world.fault(format!(
                "{at:#x} is plain host memory, where memory of a device was expected"
            ));
            return Err(INVALID_VALUE);
        }
        let bytes = Bytes::Pageable(at);
        Ok(Place { bytes, size })
    }

    pub(crate) fn is_pageable(&self) -> bool {
        matches!(self.bytes, Bytes::Pageable(_))
    }

    /// The device whose memory this is.
    pub(crate) fn device(&self) -> Option<i32> {
        match &self.bytes {
            Bytes::Known { of, .. } if of.is_device() => Some(of.device),
            _ => None,
        }
    }

    /// Where the CPU finds the bytes, for as long as the allocation lives.
    pub(crate) fn alias(&self) -> usize {
        match &self.bytes {
            Bytes::Known { at, .. } | Bytes::Pageable(at) => *at,
            Bytes::Staged(bytes) => bytes.as_ptr() as usize,
        }
    }

    /// Reads pageable memory now, as the driver does before an asynchronous copy from it returns.
    pub(crate) fn staged(self) -> Place {
        if !self.is_pageable() {
            return self;
        }
        let mut bytes = vec![0; self.size];
        // SAFETY: the caller of the copy vouches for `size` readable bytes at an address that is none of ours, and the
        // vector is new and as long.
        unsafe { std::ptr::copy(self.alias() as *const u8, bytes.as_mut_ptr(), self.size) };
        Place {
            bytes: Bytes::Staged(bytes),
            size: self.size,
        }
    }

    /// Copies this onto `to`, which is as long.
    pub(crate) fn copy_to(&self, to: &Place) -> Answer {
        let from = self.usable()?;
        let to = to.usable()?;
        // SAFETY: an allocation that is known stays mapped while its place is held, and `find` checked that the bytes lie
        // in it; for pageable memory the caller of the copy vouches, until the stream has passed the copy. Both are `size` long.
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, self.size) };
        Ok(())
    }

    /// Fills it.
    pub(crate) fn fill(&self, byte: u8) -> Answer {
        let at = self.usable()?;
        // SAFETY: as in `copy_to`.
        unsafe { std::ptr::write_bytes(at as *mut u8, byte, self.size) };
        Ok(())
    }

    /// How many bytes are not those of `other`, which is as long.
    pub(crate) fn differences(&self, other: &Place) -> Answer<u32> {
        let (one, other) = (self.usable()?, other.usable()?);
        let differs = |at: &usize| {
            // SAFETY: as in `copy_to`, for one byte within.
            let one = unsafe { ((one + at) as *const u8).read_volatile() };
            // SAFETY: as above.
            let other = unsafe { ((other + at) as *const u8).read_volatile() };
            one != other
        };
        Ok((0..self.size).filter(differs).count() as u32)
    }

    /// Reads its first four bytes as a word that others write to.
    pub(crate) fn load(&self) -> Answer<u32> {
        Ok(self.word()?.load(Ordering::Acquire))
    }

    /// Writes them.
    pub(crate) fn store(&self, value: u32) -> Answer {
        self.word()?.store(value, Ordering::Release);
        Ok(())
    }

    fn word(&self) -> Answer<&AtomicU32> {
        let at = self.usable()?;
        // SAFETY: as in `copy_to`; whoever queues an operation on a word has checked its alignment, and passed four bytes.
        Ok(unsafe { AtomicU32::from_ptr(at as *mut u32) })
    }

    /// The alias, unless the memory was freed since it was found: the device then runs into nothing.
    fn usable(&self) -> Answer<usize> {
        match &self.bytes {
            Bytes::Known { of, .. } if !of.alive.load(Ordering::Acquire) => Err(ILLEGAL_ADDRESS),
            _ => Ok(self.alias()),
        }
    }
}
