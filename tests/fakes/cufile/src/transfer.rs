//! Reads and writes: `pread` and `pwrite` where the fake libcuda keeps the bytes.

use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use kvik_fake_common::Verdict;

use crate::cuda;
use crate::entry::RULES;
use crate::handle::registered;
use crate::state::{Registered, changed, state, wait};
use crate::status::{Answer, BASE, DRIVER_NOT_INITIALIZED, INVALID_VALUE};

#[unsafe(no_mangle)]
extern "C" fn cuFileRead(
    file: usize,
    base: usize,
    size: usize,
    file_offset: i64,
    offset: i64,
) -> isize {
    let of = (base, offset);
    now("cuFileRead", Way::Read, file, of, (size, file_offset))
}

#[unsafe(no_mangle)]
extern "C" fn cuFileWrite(
    file: usize,
    base: usize,
    size: usize,
    file_offset: i64,
    offset: i64,
) -> isize {
    let of = (base, offset);
    now("cuFileWrite", Way::Write, file, of, (size, file_offset))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Read,
    Write,
}

/// A transfer whose arguments were found good. It holds the file.
pub(crate) struct Transfer {
    pub(crate) way: Way,
    pub(crate) file: Arc<Registered>,
    /// First address of the buffer, and how far behind it the bytes begin.
    pub(crate) of: (usize, i64),
    pub(crate) size: usize,
    pub(crate) file_offset: i64,
    pub(crate) verdict: Verdict,
}

fn now(
    name: &str,
    way: Way,
    file: usize,
    of: (usize, i64),
    (size, file_offset): (usize, i64),
) -> isize {
    let verdict = RULES.verdict(name);
    if let Verdict::Fail(code) = verdict {
        return negative(code);
    }
    let file = match usable(file) {
        Ok(file) => file,
        Err(status) => return negative(status.code),
    };
    let transfer = Transfer {
        way,
        file,
        of,
        size,
        file_offset,
        verdict,
    };
    transfer.run()
}

/// The file of a handle, while the driver is open.
pub(crate) fn usable(file: usize) -> Answer<Arc<Registered>> {
    let mut state = state();
    if state.opened == 0 {
        state.fault("bytes were to be moved after the driver was closed".to_owned());
        return Err(DRIVER_NOT_INITIALIZED);
    }
    registered(&mut state, file)
}

impl Transfer {
    /// Moves the bytes; the count, or what stands for an error (see `negative`).
    pub(crate) fn run(&self) -> isize {
        let delay = {
            let mut state = state();
            state.moving += 1;
            state.most_moving = state.most_moving.max(state.moving);
            while state.held {
                state = wait(state);
            }
            state.delay
        };
        thread::sleep(delay);
        let moved = self.moved();
        state().moving -= 1;
        changed();
        moved
    }

    fn moved(&self) -> isize {
        let size = match self.verdict {
            Verdict::Late(code) | Verdict::Fail(code) => return negative(code),
            Verdict::Zero => return 0,
            Verdict::Short => self.size / 2,
            Verdict::Pass => self.size,
        };
        match self.alias() {
            Ok(alias) => self.copy(alias, size),
            Err(status) => negative(status.code),
        }
    }

    /// Where the CPU finds the bytes. All that was asked for must be there, also when less is moved.
    fn alias(&self) -> Answer<usize> {
        let (base, offset) = self.of;
        let offset = usize::try_from(offset).map_err(|_| INVALID_VALUE)?;
        let at = base.checked_add(offset).ok_or(INVALID_VALUE)?;
        if self.size == 0 {
            return Ok(0);
        }
        cuda::refuse_managed(at)?;
        let alias = cuda::translate(at, self.size)?;
        let mut state = state();
        if state.buffers.contains_key(&base) {
            state.hits += 1;
        }
        Ok(alias)
    }

    /// Goes on after short counts, up to the end of the file.
    fn copy(&self, alias: usize, size: usize) -> isize {
        let fd = self.file.file.as_raw_fd();
        if self.way == Way::Write
            && let Some(count) = self.write_pages(alias, size)
        {
            return count;
        }
        let mut done = 0;
        while done < size {
            let (at, left) = (alias + done, size - done);
            let offset = self.file_offset + done as i64;
            let count = match self.way {
                // SAFETY: the fake libcuda, or the caller for memory of the host, vouches for `size` bytes at `alias`, and the
                // caller that nobody else uses or frees them meanwhile.
                Way::Read => unsafe { libc::pread(fd, at as *mut _, left, offset) },
                // SAFETY: as above.
                Way::Write => unsafe { libc::pwrite(fd, at as *const _, left, offset) },
            };
            match usize::try_from(count) {
                Ok(0) => {
                    if matches!(self.way, Way::Read) {
                        // As the real one was seen to do with what it was asked for beyond the end.
                        // SAFETY: as for the read.
                        unsafe { std::ptr::write_bytes(at as *mut u8, 0, left) };
                    }
                    break;
                }
                Ok(count) => done += count,
                // The errno is the answer, as it is for the call beneath.
                Err(_) => return -1,
            }
        }
        isize::try_from(done).unwrap_or(isize::MAX)
    }
}

impl Transfer {
    /// Parts of pages are written as the real one does it: read whole, changed, and written whole, so that what others write to the
    /// same page meanwhile is lost. Nothing where all pages are whole, or cannot be read.
    fn write_pages(&self, alias: usize, size: usize) -> Option<isize> {
        let start = u64::try_from(self.file_offset).ok()?;
        let end = start + size as u64;
        let (first, last) = (start / PAGE * PAGE, end.next_multiple_of(PAGE));
        if size == 0 || (first, last) == (start, end) {
            return None;
        }
        let file = &self.file.file;
        let mut pages = vec![0; (last - first) as usize];
        let mut there = 0;
        while there < pages.len() {
            match file
                .read_at(&mut pages[there..], first + there as u64)
                .ok()?
            {
                0 => break,
                count => there += count,
            }
        }
        thread::sleep(Duration::from_millis(1));
        let at = (start - first) as usize;
        // SAFETY: the fake libcuda, or the caller for memory of the host, vouches for `size` bytes at `alias`, which nobody changes.
        let bytes = unsafe { std::slice::from_raw_parts(alias as *const u8, size) };
        pages[at..at + size].copy_from_slice(bytes);
        let all = &pages[..there.max(at + size)];
        Some(match file.write_all_at(all, first) {
            Ok(()) => isize::try_from(size).unwrap_or(isize::MAX),
            Err(error) => negative(error.raw_os_error().unwrap_or(libc::EIO)),
        })
    }
}

const PAGE: u64 = 4096;

/// What stands for an error in place of a count: the negative status, or -1 and `errno`.
fn negative(code: i32) -> isize {
    if code > BASE {
        return -(code as isize);
    }
    // SAFETY: it takes nothing.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the place of this thread's errno is good as long as the thread lives.
    unsafe { *errno = code };
    -1
}
