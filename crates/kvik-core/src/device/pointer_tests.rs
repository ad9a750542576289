//! Every kind of memory is told, from its first byte to its last, with and without a current context.

use kvik_sys::Stream;

use super::*;
use crate::device::fake::{Fake, cuda, own_context};
use crate::device::{DeviceBuffer, PinnedBuffer};

#[track_caller]
fn space(address: u64, len: usize) -> Space {
    locate(address, len).unwrap().space
}

#[test]
fn memory_of_a_device_is_found_from_any_byte_of_it_and_not_beyond_its_end() {
    let fake = Fake::start();
    let buffer = DeviceBuffer::new(1, 5000).unwrap();
    let start = buffer.address();
    for (at, len) in [(0, 5000), (0, 0), (1, 4999), (4999, 1), (4999, 0)] {
        let found = locate(start + at, len).unwrap();
        assert_eq!(
            found,
            Located {
                space: Space::Device,
                context: Some(Context::primary(1).unwrap()),
                device: 1,
                address: start + at,
                left: Some(5000 - at),
            }
        );
    }
    for (at, len) in [(0, 5001), (1, 5000), (4999, 2), (0, usize::MAX)] {
        let error = locate(start + at, len).unwrap_err();
        let left = 5000 - at;
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert_eq!(
            error.to_string(),
            format!(
                "inspect: {len} bytes from address {:#x} on were named, of which {left} belong to its allocation on device 1",
                start + at
            )
        );
    }
    drop(buffer);
    assert_eq!(
        space(start, 5000),
        Space::Host,
        "the driver has forgotten it"
    );
    assert_eq!(fake.faults(), "");
}

#[test]
fn memory_of_the_host_is_told_whether_it_is_pinned_or_not() {
    let fake = Fake::start();
    let plain = vec![0_u8; 10_000];
    assert_eq!(space(plain.as_ptr().addr() as u64, 10_000), Space::Host);
    let pinned = PinnedBuffer::new(10_000).unwrap();
    let found = locate(pinned.as_ptr().addr() as u64 + 5, 20_000).unwrap();
    assert_eq!(
        (found.space, found.context, found.left),
        (Space::Host, None, None),
        "a program may have pinned a part only"
    );
    let mine = own_context(0);
    let allocated = cuda()
        .mem_host_alloc(100, kvik_sys::HostFlags::PORTABLE)
        .unwrap();
    assert_eq!(space(allocated.as_ptr().addr() as u64, 100), Space::Host);
    assert_eq!(space(0, 1), Space::Host, "null is not ours to judge");
    assert_eq!(Context::current().unwrap(), Some(mine));
    assert_eq!(fake.faults(), "");
}

#[test]
fn managed_memory_is_told_from_both_others() {
    Fake::start();
    let mine = own_context(1);
    let address = cuda().mem_alloc_managed(300).unwrap().address();
    let found = locate(address + 299, 1).unwrap();
    assert_eq!(
        (found.space, found.context, found.device),
        (Space::Managed, Some(mine), 1)
    );
}

#[test]
fn memory_of_a_pool_is_worked_on_in_the_current_context_of_its_device_or_else_the_primary_one() {
    let fake = Fake::start();
    let mine = own_context(1);
    // SAFETY: the default stream is there.
    let address = unsafe { cuda().mem_alloc_async(64, Stream::DEFAULT) }
        .unwrap()
        .address();
    assert_eq!(locate(address, 64).unwrap().context, Some(mine));
    let other = own_context(0);
    assert_eq!(fake.call("fake_cuda_retained", [1]), 0);
    let found = locate(address, 64).unwrap();
    assert_eq!(found.context, Some(Context::primary(1).unwrap()));
    assert_eq!(Context::current().unwrap(), Some(other));
    cuda().ctx_pop_current().unwrap();
    cuda().ctx_pop_current().unwrap();
    assert_eq!(locate(address, 64).unwrap().context, found.context);
    assert_eq!(Context::current().unwrap(), None);
    let held = [0, 1].map(|device| fake.call("fake_cuda_retained", [device]));
    assert_eq!(held, [0, 1], "no context on a device that is not used");
}

#[test]
fn asking_where_memory_is_makes_no_context_and_takes_two_calls() {
    let fake = Fake::start();
    let mine = own_context(0);
    let address = cuda().mem_alloc(10).unwrap();
    cuda().ctx_pop_current().unwrap();
    let before = fake.calls("*");
    assert_eq!(locate(address.address(), 10).unwrap().context, Some(mine));
    // The identity of the context is the second call.
    assert_eq!((fake.calls("*") - before, fake.live()[0]), (2, 1));
}

#[test]
fn where_no_driver_starts_all_memory_is_the_hosts() {
    let fake = Fake::choose();
    fake.ok("fake_cuda_set_init", [100]);
    let error = driver().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Device);
    assert_eq!(
        error.to_string(),
        "inspect: cuInit: CUDA_ERROR_NO_DEVICE (100): no CUDA-capable device is detected"
    );
    fake.ok("fake_cuda_set_init", [0]);
    assert_eq!(
        driver().err().unwrap().to_string(),
        error.to_string(),
        "kept"
    );
    assert_eq!(space(4096, usize::MAX), Space::Host);
    assert_eq!(fake.calls("cuInit"), 1);
}
