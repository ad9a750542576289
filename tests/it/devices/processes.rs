//! Processes: forks, exits, and system calls that fail below a transfer.

use kvik::{DeviceBuffer, ErrorKind, FileHandle};
use kvik_tests::fake;
use kvik_tests::faults::Shim;
use kvik_tests::os::forked;
use kvik_tests::pattern::file;

use super::start;
use crate::child;

#[test]
fn a_forked_child_is_refused_devices_and_the_parent_goes_on() {
    let (_gpu, _fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 10_000);
    let handle = FileHandle::open(&path).unwrap();
    let mut buffer = DeviceBuffer::new(0, 10_000).unwrap();
    handle.read_exact_at(&mut buffer, 0).unwrap();
    forked(|| {
        let error = handle.read_at(&mut buffer, 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forked, "{error}");
        let error = handle.write_at(&buffer, 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
        let (outcome, buffer) = handle.submit_read(buffer, 0).finish();
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Forked);
        drop(buffer);
        assert_eq!(kvik::free_pinned_memory(), 0);
        // The host's memory is the child's own.
        handle.read_exact_at(&mut [0; 100], 0).unwrap();
    })
    .succeeded();
    let mut again = DeviceBuffer::new(0, 10_000).unwrap();
    handle.read_exact_at(&mut again, 0).unwrap();
}

/// s3fs-fuse/s3fs-fuse#2870, antgroup/vsag#2281, KvikIO: other pieces still write into the buffer of a call that failed.
#[test]
fn l3_when_a_piece_for_a_device_fails_the_others_have_stopped_before_the_error_comes() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "64 MiB", 1, 64 << 20);
    let shim = Shim::build();
    // The piece at the offset fails at once; all others take their time, and so do their copies.
    for (offset, task) in [((64_u64 << 20) - 1, 63_u64), (32 << 20, 32), (0, 0)] {
        let rules = format!("pread:EIO:@{offset},pread:delay:1+");
        let said = child("late-pieces-device")
            .arg(&path)
            .env("KVIK_CUDA_LIBRARY", fake::cuda())
            .env("FAKE_CUDA_DELAY_US", "20000")
            .faults(&shim, &rules)
            .succeeds();
        let expected = format!(
            "Io after {}\ntext: read {} 0..67108864",
            task << 20,
            path.display()
        );
        assert!(said.starts_with(&expected), "{said}\ninstead of {expected}");
        assert!(said.contains("I/O error (EIO)"), "{said}");
    }
}

/// DeepSpeed#1070, with a file system that gives up direct I/O in the middle.
#[test]
fn d1_transfers_of_a_device_are_exact_when_direct_io_is_refused_half_way() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = folder.path().join("direct");
    let shim = Shim::build();
    for rules in [
        "direct-pread:EINVAL:1+,direct-pwrite:EINVAL:1+",
        "direct-pread:EINVAL:3+,direct-pwrite:EINVAL:2+",
        "direct-pread:short:*2,direct-pwrite:short:*3",
        "direct-pread:EINTR:*3,direct-pwrite:EAGAIN:*2",
    ] {
        for slab in ["4096", "65536", "16777216"] {
            child("direct-device")
                .arg(&path)
                .env("KVIK_CUDA_LIBRARY", fake::cuda())
                .env("KVIK_BOUNCE_BUFFER_SIZE", slab)
                .env("KVIK_AUTO_DIRECT_IO_READ", "on")
                .env("KVIK_AUTO_DIRECT_IO_WRITE", "on")
                .faults(&shim, rules)
                .succeeds();
        }
    }
}

/// A process that ends with transfers of a device in flight.
#[test]
fn l4_a_process_that_ends_with_transfers_of_a_device_in_flight_ends_well() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "8 MiB", 1, 8 << 20);
    for _ in 0..10 {
        for how in ["main-returns", "main-exits", "main-leaks", "thread-reads"] {
            let said = child("exit-device")
                .arg(how)
                .arg(&path)
                .env("KVIK_CUDA_LIBRARY", fake::cuda())
                .env("FAKE_CUDA_DELAY_US", "300")
                .succeeds();
            assert_eq!(said, "", "{how}");
        }
    }
}
