//! Initialising, failing on demand, counting, and versions.

use kvik_tests::fake::{self, FakeCuda, at};

use super::{Cuda, ILLEGAL_ADDRESS, INVALID_VALUE, NO_DEVICE, NOT_INITIALIZED, NOT_SUPPORTED};

#[test]
fn calls_before_cu_init_fail_and_the_version_does_not() {
    let cuda = FakeCuda::here();
    let mut word = 0_usize;
    assert_eq!(
        cuda.call("cuDeviceGetCount", [at(&mut word)]),
        NOT_INITIALIZED
    );
    assert_eq!(
        cuda.call("cuMemAlloc_v2", [at(&mut word), 1]),
        NOT_INITIALIZED
    );
    assert_eq!(cuda.call("cuDriverGetVersion", [at(&mut word)]), 0);
    assert_eq!(word, 13000);
}

#[test]
fn cu_init_fails_as_told_and_without_devices() {
    let cuda = FakeCuda::here();
    cuda.set_init(999);
    assert_eq!(cuda.call("cuInit", [0]), 999);
    cuda.set_init(0);
    cuda.set_devices(0);
    assert_eq!(cuda.call("cuInit", [0]), NO_DEVICE);
    cuda.set_devices(3);
    assert_eq!(cuda.call("cuInit", [1]), INVALID_VALUE);
    assert_eq!(cuda.call("cuInit", [0]), 0);
    let mut count = 0_usize;
    assert_eq!(cuda.call("cuDeviceGetCount", [at(&mut count)]), 0);
    assert_eq!(count, 3);
}

#[test]
fn the_chosen_call_fails_and_no_other() {
    let cuda = Cuda::start();
    cuda.memory(1);
    cuda.fail("cuMemAlloc_v2", "2", 2);
    cuda.fail("cuStreamCreate", "*2", 999);
    let mut word = 0_usize;
    let codes: Vec<i32> = (0..3)
        .map(|_| cuda.call("cuMemAlloc_v2", [at(&mut word), 1]))
        .collect();
    assert_eq!(codes, [0, 2, 0]);
    let codes: Vec<i32> = (0..4)
        .map(|_| cuda.call("cuStreamCreate", [at(&mut word), 1]))
        .collect();
    assert_eq!(codes, [0, 999, 0, 999]);
    cuda.fail("*", "1+", 46);
    assert_eq!(cuda.call("cuCtxGetCurrent", [at(&mut word)]), 46);
    cuda.succeed();
    assert_eq!(cuda.call("cuStreamCreate", [at(&mut word), 1]), 0);
    assert_eq!((cuda.calls("cuMemAlloc_v2"), cuda.streams()), (4, 3));
}

#[test]
fn a_late_failure_comes_when_the_work_runs_and_spoils_the_context() {
    let cuda = Cuda::start();
    let (memory, pinned, stream) = (cuda.memory(64), cuda.pinned(64), cuda.stream());
    cuda.fail_late("cuMemcpyHtoDAsync_v2", "1", ILLEGAL_ADDRESS);
    cuda.ok("cuMemcpyHtoDAsync_v2", [memory, pinned, 64, stream]);
    assert_eq!(cuda.call("cuStreamSynchronize", [stream]), ILLEGAL_ADDRESS);
    assert_eq!(cuda.call("cuStreamQuery", [stream]), ILLEGAL_ADDRESS);
    let mut word = 0_usize;
    assert_eq!(
        cuda.call("cuMemAlloc_v2", [at(&mut word), 1]),
        ILLEGAL_ADDRESS
    );
    // The other device goes on.
    let other = cuda.primary(1);
    cuda.ok("cuCtxSetCurrent", [other]);
    cuda.memory(1);
}

#[test]
fn the_log_has_the_calls_in_order() {
    let cuda = Cuda::start();
    cuda.start_log();
    cuda.memory(1);
    cuda.stream();
    let names: Vec<String> = cuda
        .log()
        .iter()
        .map(|line| line.split(' ').next_back().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["cuMemAlloc_v2", "cuStreamCreate"]);
}

#[test]
fn both_forms_of_the_batched_copy_answer_by_version() {
    let cuda = Cuda::start();
    let (memory, pinned, stream) = (cuda.memory(64), cuda.pinned(64), cuda.stream());
    cuda.poke(pinned, &[7; 64]);
    let mut tos = [memory, memory + 32];
    let mut froms = [pinned, pinned + 32];
    let mut sizes = [32_usize, 16];
    // Source order "stream", hints about places, flags; for all elements from 0 on.
    let mut attributes = [1_i32, 0, 0, 0, 0, 0];
    let mut indexes = [0_usize];
    let (tos, froms, sizes) = (at(&mut tos), at(&mut froms), at(&mut sizes));
    let (attributes, indexes) = (at(&mut attributes), at(&mut indexes));
    let mut failed = 0_usize;
    let old = [
        tos,
        froms,
        sizes,
        2,
        attributes,
        indexes,
        1,
        at(&mut failed),
        stream,
    ];
    let new = [tos, froms, sizes, 2, attributes, indexes, 1, stream];
    let codes = |version| {
        cuda.set_version(version);
        [
            cuda.call("cuMemcpyBatchAsync", old),
            cuda.call("cuMemcpyBatchAsync_v2", new),
        ]
    };
    assert_eq!(codes(12040), [NOT_SUPPORTED; 2]);
    assert_eq!(codes(12080), [0, NOT_SUPPORTED]);
    assert_eq!(codes(13000), [0, 0]);
    cuda.ok("cuStreamSynchronize", [stream]);
    assert_eq!(cuda.peek(memory, 48), [7; 48]);
    // The default stream of all threads is not taken.
    let with_default = [tos, froms, sizes, 2, attributes, indexes, 1, 0];
    assert_eq!(
        cuda.call("cuMemcpyBatchAsync_v2", with_default),
        INVALID_VALUE
    );
    // The element that is wrong is named.
    let mut froms = [pinned, pinned + 60];
    let wrong = [
        tos,
        at(&mut froms),
        sizes,
        2,
        attributes,
        indexes,
        1,
        at(&mut failed),
        stream,
    ];
    assert_eq!(
        (cuda.call("cuMemcpyBatchAsync", wrong), failed),
        (INVALID_VALUE, 1)
    );
}

#[test]
fn a_copy_without_a_symbol_is_another_library() {
    let (_folder, path) = fake::without(&fake::cuda(), &["cuMemcpyBatchAsync_v2"]);
    let copy = FakeCuda::at(&path);
    assert!(!copy.has("cuMemcpyBatchAsync_v2") && copy.has("cuMemcpyBatchAsync"));
    assert!(FakeCuda::here().has("cuMemcpyBatchAsync_v2"));
    assert_eq!(copy.call("cuInit", [0]), 0);
    let mut count = 0_usize;
    assert_eq!(
        FakeCuda::here().call("cuDeviceGetCount", [at(&mut count)]),
        NOT_INITIALIZED
    );
}

#[test]
fn addresses_of_calls_are_found_by_version() {
    let cuda = FakeCuda::here();
    let mut name = *b"cuMemcpyBatchAsync\0";
    let name = at(&mut name);
    let ask = |version| {
        let (mut address, mut status) = (0_usize, 0_i32);
        let words = [name, at(&mut address), version, 0, at(&mut status)];
        let code = cuda.call("cuGetProcAddress_v2", words);
        (code, address, status)
    };
    let (old, new) = (ask(12080), ask(13000));
    assert!(old.0 == 0 && new.0 == 0 && old.1 != new.1);
    assert_eq!(ask(12000), (500, 0, 1));
}

#[test]
fn a_process_finds_the_fakes_by_the_names_of_the_real_ones_and_tells_them_by_its_environment() {
    let folder = fake::folder();
    crate::child("fakes")
        .env("LD_LIBRARY_PATH", folder.path())
        .env("FAKE_CUDA_DEVICES", "3")
        .env("FAKE_CUDA_VERSION", "12040")
        .env("FAKE_CUDA_MEMORY", "100")
        .env("FAKE_CUDA_FAIL", "cuStreamCreate:2:999")
        .env("FAKE_CUFILE_VERSION", "1140")
        .succeeds();
}

#[test]
fn a_forked_child_must_initialise_anew() {
    let cuda = Cuda::start();
    kvik_tests::os::forked(|| {
        let mut count = 0_usize;
        assert_eq!(
            cuda.call("cuDeviceGetCount", [at(&mut count)]),
            NOT_INITIALIZED
        );
    })
    .succeeded();
}
