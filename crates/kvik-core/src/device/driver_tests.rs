//! The driver is loaded once, by the process that uses it; whoever cannot have it is told why.

use kvik_config::Layer;

use super::*;
use crate::device::fake::{Fake, numbers, take_slab};
use crate::device::{
    Context, CopyStream, DeviceBuffer, PinnedBuffer, PinnedMemory, free_pinned_memory, locate,
    pinned_memory,
};

#[test]
fn the_driver_is_started_once_and_says_its_version() {
    let fake = Fake::start();
    assert!(ptr::eq(driver().unwrap(), driver().unwrap()));
    assert_eq!(
        (driver().unwrap().version(), fake.calls("cuInit")),
        (13_000, 1)
    );
}

#[test]
fn a_library_that_is_not_there_is_unsupported_and_named() {
    Config::set_process(Layer::new().cuda_library(Some("/no/such/libcuda.so.1".into()))).unwrap();
    let error = DeviceBuffer::new(0, 10).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let text = error.to_string();
    let begin = "allocate: there is no CUDA driver here: no library could be loaded: tried /no/such/libcuda.so.1 (";
    assert!(text.starts_with(begin), "{text}");
    assert_eq!(
        PinnedBuffer::new(10).unwrap_err().kind(),
        ErrorKind::Unsupported
    );
    assert!(started().is_none());
    let address = 4096;
    assert_eq!(
        locate(address, 10).unwrap().context,
        None,
        "all memory is the host's"
    );
    let Some(child) = fork() else {
        // Nothing was started that a child could not use, so it is told the same.
        finish(|| {
            assert_eq!(DeviceBuffer::new(0, 10).unwrap_err().to_string(), text);
            assert_eq!(locate(address, 10).unwrap().context, None);
        })
    };
    check(child);
}

#[test]
fn a_child_of_a_process_that_uses_a_device_is_refused_and_drops_what_it_inherited() {
    let fake = Fake::start();
    let context = Context::primary(0).unwrap();
    let entered = context.enter().unwrap();
    let mut buffer = DeviceBuffer::new(0, 1000).unwrap();
    buffer.copy_from_host(&numbers(1000)).unwrap();
    let pinned = PinnedBuffer::new(1000).unwrap();
    let (slab, stream) = (
        take_slab(4096, 1 << 20).unwrap(),
        CopyStream::lend(context).unwrap(),
    );
    let mark = stream.mark().unwrap();
    let calls = fake.calls("*");
    let Some(child) = fork() else {
        finish(move || {
            let refused = [
                DeviceBuffer::new(0, 1).map(drop),
                DeviceBuffer::on_current(1).map(drop),
                PinnedBuffer::new(1).map(drop),
                buffer.copy_to_host(&mut [0]),
                take_slab(1, 1 << 30).map(drop),
                CopyStream::lend(context).map(drop),
                context.enter().map(drop),
                locate(buffer.address(), 1).map(drop),
                mark.is_done().map(drop),
                mark.wait(),
                stream.synchronize(),
            ];
            for outcome in refused {
                let error = outcome.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Forked);
                let why = "a device cannot be used in a child of the process that used it first; open files and start transfers \
                           after the fork";
                assert!(error.to_string().ends_with(why), "{error}");
            }
            drop((buffer, pinned, slab, stream, mark, entered));
            let none = PinnedMemory::default();
            assert_eq!((pinned_memory(), free_pinned_memory()), (none, 0));
            assert_eq!(
                Fake::choose().calls("*"),
                calls,
                "the driver heard nothing of it"
            );
        })
    };
    check(child);
    mark.wait().unwrap();
    stream.synchronize().unwrap();
    let mut back = [0; 1000];
    buffer.copy_to_host(&mut back).unwrap();
    assert!(back[..] == numbers(1000));
    assert_eq!((slab.len(), fake.faults().as_str()), (4096, ""));
}

#[test]
fn a_child_of_a_process_that_used_no_device_may_use_them() {
    Fake::choose();
    // As a program does that has files open: forks are counted.
    crate::fork::generation();
    let use_it = || {
        let mut buffer = DeviceBuffer::new(1, 1000).unwrap();
        buffer.fill(8).unwrap();
        let mut back = [0; 1000];
        buffer.copy_to_host(&mut back).unwrap();
        assert_eq!(back, [8; 1000]);
    };
    let Some(child) = fork() else { finish(use_it) };
    check(child);
    use_it();
}

/// The number of the child; `None` in it.
fn fork() -> Option<libc::pid_t> {
    // SAFETY: the test has one thread, besides those of the fake, which hold no lock while they are idle.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    (child > 0).then_some(child)
}

/// Ends the child, with success unless `body` panics.
fn finish(body: impl FnOnce()) -> ! {
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    // SAFETY: nothing runs at the exit of the child, which has no business with the test's.
    unsafe { libc::_exit(i32::from(outcome.is_err())) }
}

/// Waits for the child, which is to have succeeded.
#[track_caller]
fn check(child: libc::pid_t) {
    let mut status = 0;
    // SAFETY: `status` is writable for the call.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0));
}
