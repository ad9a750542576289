//! System calls that neither std nor nix wraps, each behind a safe function with one unsafe operation a block.
//!
//! Nothing is decided here: an answer is handed on as it came, an error as its [`Errno`].

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use nix::errno::Errno;
use nix::unistd::{SysconfVar, sysconf};

/// Bytes in a page.
pub(crate) fn page_size() -> u64 {
    // Linux always answers; the fallback is the smallest page it has.
    let size = sysconf(SysconfVar::PAGE_SIZE).ok().flatten();
    size.and_then(|size| u64::try_from(size).ok())
        .unwrap_or(4096)
}

/// How many pages of the range are in the page cache, dirty ones and those being written back among them, by `cachestat(2)`
/// (Linux 6.5). A `length` of 0 means to the end.
pub(crate) fn cachestat(fd: BorrowedFd<'_>, offset: u64, length: u64) -> Result<u64, Errno> {
    cachestat_of(fd.as_raw_fd(), offset, length)
}

/// What `cachestat(2)` answers for a descriptor that cannot exist: `EBADF` where the call is there.
pub(crate) fn cachestat_of_nothing() -> Errno {
    cachestat_of(-1, 0, 0).err().unwrap_or(Errno::EBADF)
}

fn cachestat_of(fd: RawFd, offset: u64, length: u64) -> Result<u64, Errno> {
    #[repr(C)]
    struct Range {
        offset: u64,
        length: u64,
    }
    #[repr(C)]
    #[derive(Default)]
    struct Cachestat {
        // Counts every page that is there; dirty and under writeback are parts of it, not additions.
        cached: u64,
        dirty: u64,
        writeback: u64,
        evicted: u64,
        recently_evicted: u64,
    }
    let range = Range { offset, length };
    let mut answer = Cachestat::default();
    // SAFETY: both structures have the layout of linux/mman.h, outlive the call, and the kernel keeps neither. A
    // descriptor that is not open is answered with EBADF, and a kernel without the call touches nothing and answers ENOSYS.
    let code = unsafe {
        libc::syscall(
            SYS_CACHESTAT,
            fd,
            ptr::from_ref(&range),
            ptr::from_mut(&mut answer),
            0,
        )
    };
    Errno::result(code).map(|_| answer.cached)
}

/// How many pages of the range are in the page cache, by `mincore(2)` on a mapping of it. `offset` is a multiple of the page and
/// `length` is not 0.
///
/// The kernel tells the truth only to the owner of the file and to who may write to it; to others every page is resident.
pub(crate) fn mincore(fd: BorrowedFd<'_>, offset: u64, length: usize) -> Result<u64, Errno> {
    let map = Map::new(fd, offset, length)?;
    let page = usize::try_from(page_size()).map_err(|_| Errno::EOVERFLOW)?;
    let mut resident = vec![0u8; length.div_ceil(page)];
    // SAFETY: `map` covers `length` bytes until after the call, and `resident` has a byte for each of its pages, which is all
    // that mincore(2) writes. The pages themselves are not touched, so a file cut short meanwhile cannot fault.
    let code = unsafe { libc::mincore(map.start, map.length, resident.as_mut_ptr()) };
    Errno::result(code)?;
    // Only the lowest bit has a meaning.
    Ok(resident.iter().filter(|&&byte| byte & 1 == 1).count() as u64)
}

/// Reads the byte at `offset` if that takes no waiting for a device, and drops it; at or past the end there is none to wait
/// for. `EAGAIN`: its page is not in the page cache.
pub(crate) fn pread_nowait(fd: BorrowedFd<'_>, offset: u64) -> Result<(), Errno> {
    let offset = libc::off_t::try_from(offset).map_err(|_| Errno::EOVERFLOW)?;
    let mut byte = 0u8;
    let part = libc::iovec {
        iov_base: ptr::from_mut(&mut byte).cast(),
        iov_len: 1,
    };
    // SAFETY: `part` names one byte that outlives the call, and the call writes to no other memory.
    let count = unsafe {
        libc::preadv2(
            fd.as_raw_fd(),
            ptr::from_ref(&part),
            1,
            offset,
            libc::RWF_NOWAIT,
        )
    };
    Errno::result(count).map(drop)
}

/// A private mapping that nobody looks into; unmapped on drop.
struct Map {
    start: *mut libc::c_void,
    length: usize,
}

impl Map {
    fn new(fd: BorrowedFd<'_>, offset: u64, length: usize) -> Result<Map, Errno> {
        let offset = libc::off_t::try_from(offset).map_err(|_| Errno::EOVERFLOW)?;
        // SAFETY: without an address hint and MAP_FIXED the kernel picks unused addresses, so no existing mapping is replaced.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_NORESERVE,
                fd.as_raw_fd(),
                offset,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Errno::last());
        }
        Ok(Map { start, length })
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: `new` is the only maker of `start`, this is the only release, and no reference into the mapping is ever made.
        unsafe { libc::munmap(self.start, self.length) };
    }
}

/// Size of a block device in bytes; `fstat` says 0 for these.
pub(crate) fn block_device_size(fd: BorrowedFd<'_>) -> Result<u64, Errno> {
    let mut size = 0u64;
    // SAFETY: BLKGETSIZE64 stores one u64 through its argument (linux/fs.h), and `size` is one.
    let code = unsafe { libc::ioctl(fd.as_raw_fd(), BLKGETSIZE64, ptr::from_mut(&mut size)) };
    Errno::result(code).map(|_| size)
}

/// The parts of `statx(2)` that `fstat` lacks. A field is `None` where kernel or file system does not fill it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Statx {
    /// Memory and offset alignment of direct I/O; both 0 where the file cannot do it.
    pub(crate) direct: Option<(u32, u32)>,
    /// Offset alignment of direct reads alone, where it differs (Linux 6.16).
    pub(crate) direct_read: Option<u32>,
    /// First column of the file's line in `/proc/self/mountinfo`.
    pub(crate) mount: Option<u64>,
}

/// Asks `statx(2)` about an open file.
pub(crate) fn statx(fd: BorrowedFd<'_>) -> Result<Statx, Errno> {
    let mut buffer = MaybeUninit::<libc::statx>::zeroed();
    let asked = libc::STATX_MNT_ID | libc::STATX_DIOALIGN | libc::STATX_DIO_READ_ALIGN;
    // SAFETY: the path is a constant that ends in NUL, and `buffer` is the structure the call fills; the kernel keeps neither.
    let code = unsafe {
        libc::statx(
            fd.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            asked,
            buffer.as_mut_ptr(),
        )
    };
    Errno::result(code)?;
    // SAFETY: it was zeroed, which is a valid value of a structure of integers, and then filled by the kernel.
    let facts = unsafe { buffer.assume_init() };
    let filled = |bit| facts.stx_mask & bit != 0;
    Ok(Statx {
        direct: filled(libc::STATX_DIOALIGN)
            .then_some((facts.stx_dio_mem_align, facts.stx_dio_offset_align)),
        // 0 stands for "as for writes".
        direct_read: (filled(libc::STATX_DIO_READ_ALIGN) && facts.stx_dio_read_offset_align != 0)
            .then_some(facts.stx_dio_read_offset_align),
        mount: filled(libc::STATX_MNT_ID).then_some(facts.stx_mnt_id),
    })
}

/// The features of the kernel's io_uring (the `IORING_FEAT_*` bits), learnt by making a small ring and closing it again.
pub(crate) fn io_uring_features() -> Result<u32, Errno> {
    // `struct io_uring_params` is 120 bytes of 32-bit words; the sixth holds the features.
    let mut params = [0u32; 30];
    // SAFETY: `params` has the size and alignment of the structure, is zeroed as the call demands, and outlives it.
    let code = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, params.as_mut_ptr()) };
    let fd = libc::c_int::try_from(Errno::result(code)?).map_err(|_| Errno::EOVERFLOW)?;
    // SAFETY: the call returned this descriptor, freshly made and owned by nobody else.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(params[5])
}

/// A resource limit, soft and hard; `None` means unlimited.
pub(crate) fn limit(resource: Resource) -> Result<(Option<u64>, Option<u64>), Errno> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    let number = match resource {
        Resource::LockedMemory => libc::RLIMIT_MEMLOCK,
        Resource::OpenFiles => libc::RLIMIT_NOFILE,
        Resource::FileSize => libc::RLIMIT_FSIZE,
    };
    // SAFETY: `limit` is the structure that the call fills, and outlives it.
    let code = unsafe { libc::getrlimit(number, ptr::from_mut(&mut limit)) };
    Errno::result(code)?;
    let finite = |value| (value != libc::RLIM_INFINITY).then_some(value);
    Ok((finite(limit.rlim_cur), finite(limit.rlim_max)))
}

/// What a limit is on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Resource {
    /// Bytes that may be locked into memory.
    LockedMemory,
    /// Open descriptors.
    OpenFiles,
    /// Bytes of a file that is written to.
    FileSize,
}

// The same number on x86-64 and aarch64; libc has no name for it with glibc yet.
const SYS_CACHESTAT: libc::c_long = 451;
// `_IOR(0x12, 114, size_t)` of linux/fs.h, on machines with 64 bits.
const BLKGETSIZE64: libc::Ioctl = 0x8008_1272;

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::{Resource, block_device_size, limit, page_size, statx};

    #[test]
    fn a_page_is_a_power_of_two() {
        assert!(page_size().is_power_of_two() && page_size() >= 4096);
    }

    #[test]
    fn the_limit_of_open_files_is_at_least_what_a_process_starts_with() {
        let (soft, hard) = limit(Resource::OpenFiles).unwrap();
        assert!(soft.is_none_or(|soft| soft > 3));
        assert!(hard.is_none_or(|hard| soft.is_some_and(|soft| soft <= hard)));
    }

    #[test]
    fn a_regular_file_is_no_block_device_and_stands_in_a_mount() {
        let file = File::open("/proc/self/mountinfo").unwrap();
        assert_eq!(
            block_device_size(file.as_fd()),
            Err(nix::errno::Errno::ENOTTY)
        );
        assert!(statx(file.as_fd()).unwrap().mount.is_some());
    }
}
