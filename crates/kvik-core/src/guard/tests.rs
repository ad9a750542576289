//! Faults of our own: copies out of, and into, files that were cut.
#![expect(
    clippy::disallowed_methods,
    reason = "faults of many threads, and a thread that blocks a signal"
)]

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, mpsc};

use nix::sys::signal::{SigSet, Signal};

use super::{Lanes, Unguarded, copy};
use crate::pool::{Job, ThreadPool};

/// A mapped file that a test may cut, mapped for good.
pub(super) struct Cuttable {
    file: File,
    start: *mut u8,
}

impl Cuttable {
    fn new(content: &[u8]) -> Cuttable {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(content, 0).unwrap();
        // SAFETY: a new mapping at unused addresses.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                content.len(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        assert_ne!(start, libc::MAP_FAILED);
        Cuttable {
            file,
            start: start.cast(),
        }
    }

    /// Copies `len` bytes from `at` on to the place `to_at` of fresh memory; the count, and all of the memory. Done by all
    /// lanes that there are, which must not differ.
    fn copy(&self, at: usize, len: usize, to_at: usize) -> Result<(usize, Vec<u8>), Unguarded> {
        let narrow = self.copy_by(at, len, to_at, Lanes::Narrow)?;
        assert_eq!(narrow, self.copy_by(at, len, to_at, Lanes::best())?);
        Ok(narrow)
    }

    fn copy_by(
        &self,
        at: usize,
        len: usize,
        to_at: usize,
        lanes: Lanes,
    ) -> Result<(usize, Vec<u8>), Unguarded> {
        let mut memory = vec![MaybeUninit::new(0xee); to_at + len + 128];
        // From a line's begin on, so that it is the caller who says how the copy lies in its lines.
        let skip = memory.as_ptr().addr().next_multiple_of(64) - memory.as_ptr().addr();
        let memory = &mut memory[skip..skip + to_at + len + 64];
        // SAFETY: the tests stay within the mapping.
        let from = unsafe { self.start.add(at) };
        // SAFETY: 1. the same, and the mapping stays for good; 2. narrow, or what the processor has.
        let count = unsafe { copy(&mut memory[to_at..to_at + len], from, lanes) }?;
        let byte = |byte: MaybeUninit<u8>| {
            // SAFETY: initialised above.
            unsafe { byte.assume_init() }
        };
        Ok((count, memory.iter().copied().map(byte).collect()))
    }

    /// Reads without a guard.
    pub(super) fn touch(&self) -> u8 {
        // SAFETY: mapped for good; the fault that this is about ends the child.
        unsafe { self.start.read_volatile() }
    }
}

/// One page, gone.
pub(super) fn gone() -> Cuttable {
    let cuttable = Cuttable::new(&[1; 4096]);
    cuttable.file.set_len(0).unwrap();
    cuttable
}

fn numbers(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 % 251) as u8).collect()
}

#[test]
fn every_alignment_and_length_copies_exactly_its_bytes() {
    let content = numbers(8192);
    let cuttable = Cuttable::new(&content);
    for to_at in 0..64 {
        for len in (0..=300).step_by(3).chain([4096, 5001]) {
            let at = (to_at * 7 + len) % 64;
            let (count, memory) = cuttable.copy(at, len, to_at).unwrap();
            assert_eq!(count, len);
            assert_eq!(memory[to_at..to_at + len], content[at..at + len]);
            let around = memory[..to_at].iter().chain(&memory[to_at + len..]);
            assert!(
                around.copied().all(|byte| byte == 0xee),
                "{len} bytes to {to_at}"
            );
        }
    }
}

#[test]
fn a_copy_stops_at_the_first_missing_page_and_counts_what_it_has() {
    let content = numbers(16 * 4096);
    for pages in [0usize, 1, 7, 15] {
        let cuttable = Cuttable::new(&content);
        let end = pages * 4096;
        cuttable.file.set_len(end as u64).unwrap();
        for from_end in [0, 1, 17, 63, 64, 65, 129, 4096] {
            let Some(at) = end.checked_sub(from_end) else {
                continue;
            };
            for to_at in [0, 1, 16, 63] {
                let (count, memory) = cuttable.copy(at, content.len() - at, to_at).unwrap();
                // A line is copied whole or not at all.
                assert!(
                    count <= from_end && from_end < count + 64,
                    "{count} of {from_end}"
                );
                assert_eq!(memory[to_at..to_at + count], content[at..at + count]);
            }
        }
    }
}

#[test]
fn a_target_that_is_gone_ends_the_copy_as_well() {
    let target = Cuttable::new(&[0; 8192]);
    target.file.set_len(4096).unwrap();
    let source = Cuttable::new(&numbers(8192));
    // SAFETY: mapped for good, and only this test writes to it.
    let to = unsafe { std::slice::from_raw_parts_mut(target.start.cast(), 8192) };
    // SAFETY: the mapping is that long, and stays.
    let count = unsafe { copy(to, source.start, Lanes::Narrow) };
    assert_eq!(count, Ok(4096));
}

#[test]
fn threads_that_fault_at_the_same_time_all_go_on() {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    assert_eq!(gone_copies(&gone()), Ok(0));
                }
            });
        }
    });
}

#[test]
fn a_thread_that_blocks_the_signal_is_refused() {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut set = SigSet::empty();
            set.add(Signal::SIGBUS);
            set.thread_block().unwrap();
            assert_eq!(gone_copies(&gone()), Err(Unguarded::Blocked));
            set.thread_unblock().unwrap();
            assert_eq!(gone_copies(&gone()), Ok(0));
        });
    });
}

/// A program that takes its signals by signalfd(2) blocks all of them first, and its threads inherit that.
#[test]
fn a_worker_that_such_a_thread_starts_is_guarded_all_the_same() {
    struct Copy(mpsc::Sender<Result<usize, Unguarded>>);
    impl Job for Copy {
        fn turn(&self, _: &dyn Fn() -> bool) -> bool {
            self.0.send(gone_copies(&gone())).unwrap();
            false
        }
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            SigSet::all().thread_block().unwrap();
            let (sender, outcome) = mpsc::channel();
            let job: Arc<dyn Job> = Arc::new(Copy(sender));
            let pool = ThreadPool::new("blocked");
            assert_eq!(pool.offer(&job, 1, 1), 1);
            assert_eq!(outcome.recv().unwrap(), Ok(0));
            assert_eq!(gone_copies(&gone()), Err(Unguarded::Blocked));
        });
    });
}

pub(super) fn gone_copies(gone: &Cuttable) -> Result<usize, Unguarded> {
    gone.copy(0, 4096, 0).map(|(count, _)| count)
}
