//! What a lane has of each slab: the tasks in it, where they lie, and the copies between them and the device.

use std::ptr::NonNull;

use kvik_stats::Direction;

use super::places::Places;
use crate::corridor::{Completion, DeviceWindow, Task, Window};
use crate::device::{Copy, Mark, Slab};
use crate::error::Error;
use crate::os;

/// A slab and what is in it.
pub(super) struct Stage {
    pub(super) slab: Slab,
    pub(super) places: Places,
    pub(super) copies: Vec<Copy>,
    // Where the allocation ends to which the last of the copies belongs.
    pub(super) reach: u64,
    pub(super) tasks: Vec<usize>,
    // Tasks that the host's engine has.
    pub(super) moving: usize,
    pub(super) mark: Option<Mark>,
    pub(super) busy: bool,
}

/// A task in a slab.
pub(super) struct Staging<'w> {
    pub(super) task: Task,
    pub(super) window: DeviceWindow<'w>,
    pub(super) stage: usize,
    // Where its bytes lie in the slab.
    pub(super) place: NonNull<u8>,
    // Whether the host's engine has it.
    pub(super) moving: bool,
    pub(super) moved: usize,
    pub(super) error: Option<Error>,
}

impl Stage {
    pub(super) fn new(slab: Slab) -> Stage {
        Stage {
            places: Places::new(slab.len(), os::page_size() as usize),
            slab,
            copies: Vec::new(),
            reach: 0,
            tasks: Vec::new(),
            moving: 0,
            mark: None,
            busy: false,
        }
    }

    /// Adds a copy between `place` and the first `len` bytes of a window. One that goes on where the last one ends, in the
    /// same allocation, makes that one longer: the driver takes no copy across the end of an allocation.
    pub(super) fn copy(&mut self, place: NonNull<u8>, window: &DeviceWindow<'_>, len: usize) {
        let device = window.address();
        match self.copies.last_mut() {
            Some(last)
                if last.device + last.len as u64 == device
                    && device < self.reach
                    && last.host.addr().get() + last.len == place.addr().get() =>
            {
                last.len += len;
            }
            _ => self.copies.push(Copy {
                device,
                host: place,
                len,
            }),
        }
        self.reach = window.allocation_end();
    }
}

impl<'w> Staging<'w> {
    /// Whether this is the host's engine's answer to this task: to one that it has, with the window that it was given.
    pub(super) fn is_answered_by(&self, answer: &Completion<'_>) -> bool {
        self.moving
            && answer.window.direction() == self.window.direction()
            && answer.window.memory() == (self.place.as_ptr().cast_const(), self.window.len())
    }

    pub(super) fn complete(self) -> Completion<'w> {
        let Staging {
            task,
            mut window,
            moved,
            error,
            ..
        } = self;
        if window.direction() == Direction::Read {
            window.fill_to(moved);
        }
        Completion {
            task,
            window: Window::Device(window),
            moved,
            error,
        }
    }
}
