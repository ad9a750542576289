//! The engine for targets at which the kernel's own copy is slow: `pread(2)` into a scratch that stays in the cache, and
//! from there past the cache into the window.
//!
//! On some CPUs the copy of the kernel runs at a quarter of its speed when source and destination differ by 1 to 31 bytes
//! modulo the page, which large numpy arrays do. The scratch is filled at the place in its page that the bytes have in
//! theirs, so that this copy is always a good one. Writes go as by [`posix`].

use std::fs::File;
use std::sync::Arc;

use kvik_config::ByteSize;
use kvik_stats::{Backend, names};

use super::posix;
use super::{Engine, Lane};
use crate::budget::Scratch as Memory;
use crate::corridor::FillWindow;
use crate::error::Result;
use crate::target::filling;

/// `pread` through a scratch, on one descriptor.
#[derive(Debug)]
pub(crate) struct Scratch {
    file: Arc<File>,
    bounce_buffer_size: ByteSize,
}

impl Scratch {
    /// With blocks no larger than `bounce_buffer_size`.
    pub(crate) fn new(file: Arc<File>, bounce_buffer_size: ByteSize) -> Scratch {
        Scratch {
            file,
            bounce_buffer_size,
        }
    }
}

impl Engine for Scratch {
    fn backend(&self) -> Backend {
        Backend::Posix
    }

    fn lane<'w>(&'w self) -> Result<Box<dyn Lane<'w> + 'w>> {
        let mut scratch = Borrowed::take(self.bounce_buffer_size);
        Ok(posix::lane("scratch", &self.file, move |window, offset| {
            scratch.fill(&self.file, window, offset)
        }))
    }
}

/// The scratch of a lane, lent by the process; given back on drop.
pub(crate) struct Borrowed(Option<Memory>);

impl Borrowed {
    /// A block no larger than `bounce_buffer_size`, the setting, allows. Where the process has lent all it may, the system has
    /// no more, or a block is so small that there is nothing in it, there is none, and bytes go straight to their target.
    pub(crate) fn take(bounce_buffer_size: ByteSize) -> Borrowed {
        let memory = Memory::take(SIZE, bounce_buffer_size);
        Borrowed(memory.filter(|memory| memory.len() >= SMALLEST))
    }

    /// Fills the window from `offset` on; it stays short only where the data ends.
    pub(crate) fn fill(
        &mut self,
        file: &File,
        window: &mut FillWindow<'_>,
        offset: u64,
    ) -> Result<()> {
        let Some(memory) = &mut self.0 else {
            return posix::fill(file, window, offset);
        };
        while window.remaining() > 0 {
            let at = offset + window.filled() as u64;
            let place = &mut place(memory, at)[..];
            let len = place.len().min(window.remaining());
            let place = &mut place[..len];

            let mut landing = filling(&mut *place);
            let outcome = posix::fill_uncounted(file, &mut landing, at);
            let filled = landing.filled();
            window.put_streaming(&place[..filled]);
            names::BYTES_BY_SCRATCH.add(filled as u64);
            outcome?;
            if filled < len {
                break;
            }
        }
        Ok(())
    }
}

/// The scratch for bytes from the file offset `at` on: it begins at the same place in a page. The memory starts at one.
fn place(memory: &mut [u8], at: u64) -> &mut [u8] {
    let in_page = (at % PAGE as u64) as usize;
    &mut memory[in_page..]
}

// As in the loops of the bench: it fits the second-level cache with room for the target's lines.
const SIZE: usize = 256 << 10;
// With less, a read from the end of a page on would find hardly any room behind it.
const SMALLEST: usize = 2 * PAGE;
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
        let mut scratch = Borrowed::take(ByteSize::mib(16));
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
        let mut scratch = Borrowed::take(ByteSize::mib(16));
        let memory = scratch.0.as_deref_mut().unwrap();
        for at in [0, 1, 16, 4095, 4096, 123_457] {
            let place = place(memory, at);
            assert_eq!(place.as_ptr().addr() % PAGE, at as usize % PAGE);
            assert_eq!(place.len(), SIZE - at as usize % PAGE);
        }
    }

    #[test]
    fn a_block_is_no_larger_than_the_setting_and_without_one_the_bytes_come_all_the_same() {
        let content = numbers(100_000);
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&content, 0).unwrap();
        for (cap, block) in [
            (ByteSize::kib(8), Some(8192)),
            (ByteSize::kib(7), None),
            (ByteSize::new(1), None),
        ] {
            let mut scratch = Borrowed::take(cap);
            assert_eq!(scratch.0.as_deref().map(<[u8]>::len), block);
            let mut bytes = vec![0; 90_000];
            let mut window = filling(&mut bytes);
            scratch.fill(&file, &mut window, 4095).unwrap();
            assert_eq!(window.filled(), 90_000);
            assert!(bytes == content[4095..94_095], "{cap}");
        }
    }

    #[test]
    fn an_error_comes_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::open(folder.path()).unwrap();
        let mut bytes = [0; 10];
        let error = Borrowed::take(ByteSize::mib(16))
            .fill(&file, &mut filling(&mut bytes), 0)
            .unwrap_err();
        assert_eq!(error.os_error(), Some(libc::EISDIR));
    }
}
