//! Memory whose pages and whose place within a page are chosen: what decides the speed of a kernel copy on some CPUs.

use std::io;
use std::ptr::NonNull;

/// Anonymous memory that begins at a multiple of 2 MiB, asks for huge pages and has been touched, so that no turn pays for
/// page faults.
pub(crate) struct Pages {
    mapping: NonNull<libc::c_void>,
    mapped: usize,
    /// From the mapping's begin to the first multiple of 2 MiB.
    skip: usize,
    len: usize,
}

// SAFETY: `Pages` is the only owner of its mapping and lends its bytes only through `&mut self`, like a `Box<[u8]>`.
unsafe impl Send for Pages {}

/// Which pages new memory asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageSize {
    /// 4 KiB, even where the kernel would give larger ones unasked.
    Small,
    /// 2 MiB, where there are any.
    Huge,
}

impl Pages {
    /// `len` bytes, all of them written once.
    pub(crate) fn new(len: usize) -> io::Result<Self> {
        let mut pages = Self::untouched(len, PageSize::Huge)?;
        pages.view_mut(0, len).fill(1);
        Ok(pages)
    }

    /// `len` bytes of which no page exists yet.
    pub(crate) fn untouched(len: usize, size: PageSize) -> io::Result<Self> {
        let mapped = len
            .checked_add(HUGE_PAGE)
            .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        // SAFETY: a new private anonymous mapping at an address of the kernel's choice touches no memory that exists.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapping = NonNull::new(at).ok_or_else(|| io::Error::other("mmap gave address zero"))?;
        let skip = at.addr().next_multiple_of(HUGE_PAGE) - at.addr();
        let pages = Self {
            mapping,
            mapped,
            skip,
            len,
        };
        let advice = match size {
            PageSize::Small => libc::MADV_NOHUGEPAGE,
            PageSize::Huge => libc::MADV_HUGEPAGE,
        };
        // Refused where the kernel has no huge pages; 4 KiB pages are slower and still right, so the answer is not needed.
        // SAFETY: the range lies within the mapping just made, and the advice changes no contents.
        unsafe { libc::madvise(pages.begin().cast(), len, advice) };
        Ok(pages)
    }

    /// `len` bytes, the first of them `offset` bytes past a page boundary.
    ///
    /// # Panics
    /// If the view does not fit.
    pub(crate) fn view_mut(&mut self, offset: usize, len: usize) -> &mut [u8] {
        assert!(
            offset.checked_add(len).is_some_and(|end| end <= self.len),
            "a view lies within its pages"
        );
        // SAFETY: within the mapping, by the assertion.
        let begin = unsafe { self.begin().add(offset) };
        // SAFETY: an anonymous mapping is zero from the start, `self` owns it, and the unique borrow keeps all others out.
        unsafe { std::slice::from_raw_parts_mut(begin, len) }
    }

    fn begin(&self) -> *mut u8 {
        // SAFETY: `skip` is less than `HUGE_PAGE`, by which the mapping is longer than `len`.
        unsafe { self.mapping.as_ptr().cast::<u8>().add(self.skip) }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: `new` made this mapping with this length, this is its only release, and all views borrow `self`.
        unsafe { libc::munmap(self.mapping.as_ptr(), self.mapped) };
    }
}

/// Brings all pages under `memory` at once, which costs less than a fault for each.
pub(crate) fn populate(memory: &mut [u8]) {
    let len = memory.len();
    // SAFETY: the range is borrowed for writing; populating it changes no contents. An address that is no multiple of the
    // page is refused.
    let status =
        unsafe { libc::madvise(memory.as_mut_ptr().cast(), len, libc::MADV_POPULATE_WRITE) };
    if status != 0 {
        // A kernel before 5.14: a write to each page does the same, one fault at a time.
        for byte in memory.iter_mut().step_by(4096) {
            *byte = std::hint::black_box(*byte);
        }
    }
}

/// A read-only view of a part of a file, filled from the page cache at once (`MAP_POPULATE`), for one window of a loop.
pub(crate) struct FileWindow {
    mapping: NonNull<libc::c_void>,
    len: usize,
}

impl FileWindow {
    /// Maps `len` bytes of `file` from `offset`, a multiple of the page.
    ///
    /// # Safety
    /// The file reaches to `offset + len`, and while the window lives nobody shortens it (reading past the end of a mapped
    /// file ends the process with SIGBUS) or writes to that part of it (the bytes are lent as `&[u8]`).
    pub(crate) unsafe fn populate(
        file: &std::fs::File,
        offset: u64,
        len: usize,
    ) -> io::Result<Self> {
        use std::os::fd::AsRawFd;
        let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
        // SAFETY: a new mapping at an address of the kernel's choice; the descriptor is open as long as `file` is borrowed.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                file.as_raw_fd(),
                offset,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mapping = NonNull::new(at).ok_or_else(|| io::Error::other("mmap gave address zero"))?;
        Ok(Self { mapping, len })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `populate` mapped `len` readable bytes, and its caller answers for their staying there unchanged.
        unsafe { std::slice::from_raw_parts(self.mapping.as_ptr().cast(), self.len) }
    }
}

// SAFETY: `bytes` lends it for reading alone, `populate`'s caller answers for nobody's writing to it, and `drop`, which unmaps it,
// has it to itself; a mapping belongs to the process and not to a thread.
unsafe impl Send for FileWindow {}
// SAFETY: as above: all that a shared one lends is `&[u8]`.
unsafe impl Sync for FileWindow {}

impl Drop for FileWindow {
    fn drop(&mut self) {
        // SAFETY: `populate` made this mapping with this length, this is its only release, and `bytes` borrows `self`.
        unsafe { libc::munmap(self.mapping.as_ptr(), self.len) };
    }
}

const HUGE_PAGE: usize = 2 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_view_starts_where_it_was_asked_for_and_holds_what_was_written() {
        let mut pages = Pages::new(3 * 4096).expect("12 KiB of memory");
        for offset in [0, 1, 16, 4095] {
            let view = pages.view_mut(offset, 8192);
            assert_eq!(view.as_ptr().addr() % HUGE_PAGE, offset);
            view.fill(offset as u8);
            assert!(
                pages
                    .view_mut(offset, 8192)
                    .iter()
                    .all(|&byte| byte == offset as u8)
            );
        }
    }

    #[test]
    #[should_panic(expected = "within its pages")]
    fn a_view_past_the_end_panics() {
        Pages::new(4096)
            .expect("a page of memory")
            .view_mut(1, 4096);
    }

    #[test]
    fn new_memory_is_zero_however_its_pages_come() {
        for size in [PageSize::Small, PageSize::Huge] {
            let mut pages = Pages::untouched(5 * 4096 + 1, size).expect("memory");
            let view = pages.view_mut(0, 5 * 4096 + 1);
            populate(view);
            // At no page: refused by the kernel, and done by hand.
            populate(&mut view[1..4097]);
            assert!(view.iter().all(|&byte| byte == 0), "{size:?}");
        }
    }

    #[test]
    fn a_length_that_cannot_be_had_is_an_error() {
        assert!(Pages::new(usize::MAX - 5).is_err());
        assert!(Pages::new(1 << 60).is_err());
    }

    #[test]
    fn a_window_shows_the_bytes_of_its_part_of_the_file() {
        let mut file = tempfile::tempfile().expect("a temporary file");
        let mut content = vec![0; 3 * 4096];
        crate::pattern::fill(&mut content, 8, 0);
        file.write_all(&content).expect("written");
        // SAFETY: the file is this test's own and nobody changes it meanwhile.
        let window = unsafe { FileWindow::populate(&file, 4096, 8192) }.expect("mapped");
        assert_eq!(window.bytes(), &content[4096..]);
    }
}
