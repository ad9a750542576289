//! Buffers are zeroed or as their last user left them, aligned, usable wherever a buffer is; pools keep to their limit.

use std::sync::mpsc;
use std::time::Duration;

use super::*;
use crate::FileHandle;

const MIB: usize = 1 << 20;

#[test]
fn a_buffer_is_zeroed_aligned_and_as_long_as_asked() {
    for (len, align) in [
        (0, 1),
        (1, 4096),
        (4096, 4096),
        (2 * MIB, 2 * MIB),
        (37 * MIB + 1, 2 * MIB),
    ] {
        for threads in [0, 1, 3] {
            let mut buffer = HostBuffer::new_with(len, &ThreadPool::new("fetch"), threads).unwrap();
            assert_eq!(buffer.len(), len);
            assert_eq!(buffer.as_ptr().addr() % align, 0);
            assert!(buffer.iter().all(|byte| *byte == 0));
            buffer.fill(1);
            assert_eq!(
                buffer.iter().map(|byte| usize::from(*byte)).sum::<usize>(),
                len
            );
        }
    }
}

#[test]
fn all_pages_of_a_buffer_are_there_before_it_is_used() {
    let buffer = HostBuffer::new(8 * MIB).unwrap();
    let pages = 8 * MIB / os_page();
    let mut resident = vec![0u8; pages];
    // SAFETY: the range is the buffer's, and `resident` has a byte for each of its pages.
    let code = unsafe {
        libc::mincore(
            buffer.as_ptr().cast_mut().cast(),
            buffer.len(),
            resident.as_mut_ptr(),
        )
    };
    assert_eq!(code, 0);
    assert_eq!(
        resident.iter().filter(|byte| **byte & 1 == 1).count(),
        pages
    );
}

fn os_page() -> usize {
    crate::os::page_size() as usize
}

#[test]
fn making_a_buffer_is_no_operation_that_statistics_hear_of() {
    let monitor = kvik_stats::SummaryMonitor::start();
    drop(HostBuffer::new(40 * MIB).unwrap());
    // Other tests read files meanwhile, none of them so much.
    assert!(monitor.get().bytes_read < 40 * MIB as u64);
}

#[test]
fn a_buffer_is_read_into_and_written_from_in_every_way() {
    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    let file = FileHandle::options()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let mut buffer = HostBuffer::new(5000).unwrap();
    (0..5000).for_each(|i| buffer[i] = i as u8);
    file.write_all_at(&buffer, 0).unwrap();
    let (outcome, buffer) = file.submit_write(buffer, 5000).finish();
    assert_eq!(outcome.unwrap(), 5000);
    let mut other = HostBuffer::new(5000).unwrap();
    file.read_exact_at(&mut other, 5000).unwrap();
    assert_eq!(other[..], buffer[..]);
    let (outcome, again) = file
        .submit_read(HostBuffer::new(6000).unwrap(), 5000)
        .finish();
    assert_eq!(outcome.unwrap(), 5000);
    assert_eq!(again[..5000], buffer[..]);
    assert_eq!(again[5000..], [0; 1000]);
}

#[test]
fn more_than_there_is_is_out_of_memory() {
    let error = HostBuffer::new(1 << 60).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
}

#[test]
fn a_pool_lends_the_same_memory_again_and_to_sizes_that_are_not_much_smaller() {
    let pool = HostBufferPool::new(ByteSize::mib(8));
    let mut first = pool.take(4 * MIB).unwrap();
    first.fill(3);
    let place = first.as_ptr();
    drop(first);
    assert_eq!((pool.lent(), pool.kept()), (0, 4 << 20));
    let second = pool.take(3 * MIB).unwrap();
    assert_eq!(
        (second.as_ptr(), second.len(), second[0]),
        (place, 3 * MIB, 3)
    );
    let small = pool.take(MIB).unwrap();
    assert_ne!(small.as_ptr(), place);
    assert_eq!((pool.lent(), pool.kept()), (5 << 20, 0));
}

#[test]
fn a_pool_lends_no_more_than_its_limit_and_what_is_kept_makes_room() {
    let pool = HostBufferPool::new(ByteSize::mib(4));
    let one = pool.try_take(3 * MIB).unwrap().unwrap();
    assert!(pool.try_take(2 * MIB).unwrap().is_none());
    let two = pool.try_take(MIB).unwrap().unwrap();
    drop((one, two));
    assert_eq!(pool.kept(), 4 << 20);
    let all = pool.try_take(4 * MIB).unwrap().unwrap();
    assert_eq!((pool.lent(), pool.kept(), all.len()), (4 << 20, 0, 4 * MIB));
    let error = pool.take(4 * MIB + 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    let absurd = pool.take(usize::MAX).unwrap_err();
    assert_eq!(absurd.kind(), ErrorKind::Misuse);
    assert_eq!(
        error.to_string(),
        "allocate memory: 4194305 bytes are more than the limit of the pool, 4194304"
    );
}

#[test]
fn a_pool_can_be_emptied_and_a_buffer_outlives_it() {
    let pool = HostBufferPool::new(ByteSize::mib(4));
    drop(pool.take(MIB).unwrap());
    assert_eq!((pool.free(), pool.kept(), pool.free()), (1 << 20, 0, 0));
    let mut buffer = pool.take(MIB).unwrap();
    drop(pool);
    buffer.fill(5);
    assert_eq!(buffer.len(), MIB);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "somebody else waits")]
fn whoever_waits_for_a_buffer_gets_it_when_one_comes_back() {
    let pool = HostBufferPool::new(ByteSize::mib(4));
    let held = pool.take(4 * MIB).unwrap();
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| sender.send(pool.take(2 * MIB).unwrap().len()));
        assert!(receiver.recv_timeout(Duration::from_millis(50)).is_err());
        drop(held);
        assert_eq!(
            receiver.recv_timeout(Duration::from_secs(60)).unwrap(),
            2 * MIB
        );
    });
}

/// A thread of the parent may hold the pool's lock at the fork; a child that took it would wait for ever.
#[test]
fn a_forked_child_has_a_pool_of_its_own_and_leaves_the_parents_alone() {
    let pool = HostBufferPool::new(ByteSize::kib(8));
    let (_lent, inherited) = (pool.take(4096).unwrap(), pool.take(4096).unwrap());
    let check = move || {
        let nothing = pool.lent() == 0 && pool.kept() == 0;
        drop(inherited);
        let own = pool.try_take(8192).is_ok_and(|buffer| buffer.is_some());
        nothing && own && (pool.lent(), pool.kept()) == (0, 8192)
    };
    // SAFETY: the child allocates, which glibc, for which this test is written, makes possible after a fork; that it waits
    // for no lock of the parent is the subject of the test.
    match unsafe { nix::unistd::fork() }.unwrap() {
        nix::unistd::ForkResult::Child => {
            let code = i32::from(!check());
            // SAFETY: it ends the process.
            unsafe { libc::_exit(code) }
        }
        nix::unistd::ForkResult::Parent { child } => {
            let status = nix::sys::wait::waitpid(child, None).unwrap();
            assert_eq!(status, nix::sys::wait::WaitStatus::Exited(child, 0));
        }
    }
}
