//! The engine for targets at which the kernel's own copy is slow: `pread(2)` into a scratch that stays in the cache, and
//! from there past the cache into the window.
//!
//! On some CPUs the copy of the kernel runs at a quarter of its speed when source and destination differ by 1 to 31 bytes
//! modulo the page, which large numpy arrays do. The scratch is filled at the place in its page that the bytes have in
//! theirs, so that this copy is always a good one. Writes go as by [`posix`].

use std::cell::Cell;
use std::fs::File;
use std::sync::Arc;

use kvik_stats::Backend;
use nix::errno::Errno;

use super::posix;
use super::{Engine, Lane};
use crate::corridor::FillWindow;
use crate::error::{Error, Op, Result};
use crate::target::filling;

/// `pread` through a scratch, on one descriptor.
#[derive(Debug)]
pub(crate) struct Scratch {
    file: Arc<File>,
}

impl Scratch {
    pub(crate) fn new(file: Arc<File>) -> Scratch {
        Scratch { file }
    }
}

impl Engine for Scratch {
    fn backend(&self) -> Backend {
        Backend::Posix
    }

    fn lane<'w>(&'w self) -> Result<Box<dyn Lane<'w> + 'w>> {
        let mut scratch = Borrowed::take()?;
        Ok(posix::lane(&self.file, move |window, offset| {
            scratch.fill(&self.file, window, offset)
        }))
    }
}

/// The scratch of a thread while a lane has it; given back on drop.
pub(crate) struct Borrowed(Vec<u8>);

impl Borrowed {
    pub(crate) fn take() -> Result<Borrowed> {
        // A thread that is at its end has no scratch any more, one with a second lane no second one: both get memory of
        // their own.
        let mut memory = KEPT.try_with(Cell::take).unwrap_or_default();
        if memory.is_empty() {
            memory
                .try_reserve_exact(SIZE + PAGE)
                .map_err(|_| Error::os(Op::Read, Errno::ENOMEM))?;
            memory.resize(SIZE + PAGE, 0);
        }
        Ok(Borrowed(memory))
    }

    /// Fills the window from `offset` on; it stays short only where the data ends.
    pub(crate) fn fill(
        &mut self,
        file: &File,
        window: &mut FillWindow<'_>,
        offset: u64,
    ) -> Result<()> {
        while window.remaining() > 0 {
            let at = offset + window.filled() as u64;
            let place = &mut self.place(at)[..];
            let len = place.len().min(window.remaining());
            let place = &mut place[..len];

            let mut landing = filling(&mut *place);
            let outcome = posix::fill(file, &mut landing, at);
            let filled = landing.filled();
            window.put_streaming(&place[..filled]);
            outcome?;
            if filled < len {
                break;
            }
        }
        Ok(())
    }

    /// The scratch for bytes from the file offset `at` on: it begins at the same place in a page, and ends at a page's end.
    fn place(&mut self, at: u64) -> &mut [u8] {
        let to_page = self.0.as_ptr().addr().next_multiple_of(PAGE) - self.0.as_ptr().addr();
        let in_page = (at % PAGE as u64) as usize;
        &mut self.0[to_page + in_page..to_page + SIZE]
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        let memory = std::mem::take(&mut self.0);
        let _ = KEPT.try_with(|kept| kept.set(memory));
    }
}

thread_local! {
    static KEPT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

// As in the loops of the bench: it fits the second-level cache with room for the target's lines.
const SIZE: usize = 256 << 10;
// What alignment means to the copies of the CPUs in question, whatever page size the kernel has.
const PAGE: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    fn numbers(len: usize) -> Vec<u8> {
        (0..len).map(|at| (at * 31 % 251) as u8).collect()
    }

    #[test]
    fn windows_of_every_size_around_the_scratch_are_filled_from_any_offset() {
        let content = numbers(3 * SIZE + 100);
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&content, 0).unwrap();
        let mut scratch = Borrowed::take().unwrap();
        for offset in [
            0,
            1,
            16,
            PAGE - 1,
            PAGE,
            SIZE - 1,
            SIZE + 33,
            3 * SIZE + 99,
            3 * SIZE + 100,
        ] {
            for len in [
                0,
                1,
                PAGE,
                SIZE - 1,
                SIZE,
                SIZE + 1,
                2 * SIZE + 7,
                3 * SIZE + 100,
            ] {
                let mut bytes = vec![0xee; len + 1];
                let mut window = filling(&mut bytes[..len]);
                scratch.fill(&file, &mut window, offset as u64).unwrap();
                let there = len.min(content.len() - offset);
                assert_eq!(window.filled(), there, "{len} bytes at {offset}");
                assert!(
                    bytes[..there] == content[offset..offset + there],
                    "{len} bytes at {offset}"
                );
                assert!(
                    bytes[there..].iter().all(|byte| *byte == 0xee),
                    "{len} bytes at {offset}"
                );
            }
        }
    }

    #[test]
    fn bytes_lie_in_the_scratch_as_in_their_page() {
        let mut scratch = Borrowed::take().unwrap();
        for at in [0, 1, 16, 4095, 4096, 123_457] {
            let place = scratch.place(at);
            assert_eq!(place.as_ptr().addr() % PAGE, at as usize % PAGE);
            assert_eq!(place.len(), SIZE - at as usize % PAGE);
        }
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "a thread whose scratch nobody has used"
    )]
    fn a_thread_keeps_one_scratch_and_lends_it_once() {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let first = Borrowed::take().unwrap();
                let second = Borrowed::take().unwrap();
                let address = first.0.as_ptr();
                assert_ne!(address, second.0.as_ptr());
                drop(second);
                drop(first);
                assert_eq!(Borrowed::take().unwrap().0.as_ptr(), address);
            });
        });
    }

    #[test]
    fn an_error_comes_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::open(folder.path()).unwrap();
        let mut bytes = [0; 10];
        let error = Borrowed::take()
            .unwrap()
            .fill(&file, &mut filling(&mut bytes), 0)
            .unwrap_err();
        assert_eq!(error.os_error(), Some(libc::EISDIR));
    }
}
