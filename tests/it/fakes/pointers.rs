//! What the driver says about a pointer, for each kind of memory.

use kvik_tests::fake::at;

use super::{Cuda, INVALID_CONTEXT, INVALID_VALUE};

const CONTEXT: usize = 1;
const MEMORY_TYPE: usize = 2;
const DEVICE_POINTER: usize = 3;
const HOST_POINTER: usize = 4;
const IS_MANAGED: usize = 8;
const ORDINAL: usize = 9;
const START: usize = 11;
const SIZE: usize = 12;
const POOL: usize = 17;

#[test]
fn each_kind_of_memory_is_told_from_inside_an_allocation() {
    let cuda = Cuda::start();
    let mut plain = vec![0_u8; 64];
    let registered = at(plain.as_mut_slice());
    cuda.ok("cuMemHostRegister_v2", [registered, 64, 0]);
    let memory = cuda.memory(64);
    let managed = cuda.get("cuMemAllocManaged", [64, 1]);
    let pool = cuda.get("cuMemAllocAsync", [64, 0]);
    let pinned = cuda.pinned(64);
    // Type (1 host, 2 device), managed, reached by the CPU.
    for (start, kind, is_managed, on_host) in [
        (memory, 2, 0, false),
        (managed, 2, 1, true),
        (pool, 2, 0, false),
        (pinned, 1, 0, true),
        (registered, 1, 0, true),
    ] {
        let inside = start + 63;
        let ask = |attribute| cuda.attribute(attribute, inside);
        let context = if start == pool { 0 } else { cuda.context };
        assert_eq!(ask(CONTEXT), Ok(context));
        assert_eq!(
            (ask(MEMORY_TYPE), ask(IS_MANAGED)),
            (Ok(kind), Ok(is_managed))
        );
        assert_eq!(
            (ask(START), ask(SIZE), ask(ORDINAL)),
            (Ok(start), Ok(64), Ok(0))
        );
        let host = if on_host {
            Ok(inside)
        } else {
            Err(INVALID_VALUE)
        };
        assert_eq!((ask(HOST_POINTER), ask(DEVICE_POINTER)), (host, Ok(inside)));
        assert_eq!(ask(POOL).map(|handle| handle != 0), Ok(start == pool));
        assert_eq!(cuda.attribute(MEMORY_TYPE, start + 64), Err(INVALID_VALUE));
    }
}

#[test]
fn many_attributes_of_an_unknown_pointer_are_empty_and_one_is_an_error() {
    let cuda = Cuda::start();
    let unknown = at(&mut 0_u64);
    assert_eq!(cuda.attribute(MEMORY_TYPE, unknown), Err(INVALID_VALUE));
    let many = |address: usize| {
        let (mut kind, mut context, mut managed, mut ordinal) = (7_u32, 7_usize, true, 7_i32);
        let mut attributes = [MEMORY_TYPE, CONTEXT, IS_MANAGED, ORDINAL].map(|it| it as i32);
        let mut places = [
            at(&mut kind),
            at(&mut context),
            at(&mut managed),
            at(&mut ordinal),
        ];
        let words = [4, at(&mut attributes), at(&mut places), address];
        cuda.ok("cuPointerGetAttributes", words);
        (kind, context, managed, ordinal)
    };
    assert_eq!(many(unknown), (0, 0, false, -2));
    let memory = cuda.memory(8);
    assert_eq!(many(memory), (2, cuda.context, false, 0));
    cuda.ok("cuMemFree_v2", [memory]);
    assert_eq!(many(memory), (0, 0, false, -2));
}

#[test]
fn attributes_need_no_context_and_addresses_for_a_context_need_one() {
    let cuda = Cuda::start();
    let memory = cuda.memory(8);
    let other = cuda.primary(1);
    cuda.ok("cuCtxSetCurrent", [other]);
    assert_eq!(cuda.attribute(DEVICE_POINTER, memory), Err(INVALID_VALUE));
    cuda.ok("cuCtxSetCurrent", [0]);
    assert_eq!(cuda.attribute(CONTEXT, memory), Ok(cuda.context));
    assert_eq!(cuda.attribute(DEVICE_POINTER, memory), Err(INVALID_CONTEXT));
}

#[test]
fn the_range_of_an_allocation_is_found_from_inside() {
    let cuda = Cuda::start();
    let memory = cuda.memory(100);
    let mut size = 0_usize;
    assert_eq!(
        cuda.get("cuMemGetAddressRange_v2", [at(&mut size), memory + 99]),
        memory
    );
    assert_eq!(size, 100);
    let mut base = 0_usize;
    let words = [at(&mut base), at(&mut size), memory + 100];
    assert_eq!(cuda.call("cuMemGetAddressRange_v2", words), 500);
}
