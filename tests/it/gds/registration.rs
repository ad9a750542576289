//! Buffers that are registered with cuFile. What once could break: a load that dies because a buffer was registered already or
//! cuFile could not pin it, memory that is freed while it is registered.

use kvik::config::{Config, Layer};
use kvik::{CompatMode, DeviceBuffer, ErrorKind, driver, stats};
use kvik_tests::fake::{FakeCuFile, FakeCuda};
use kvik_tests::gpu::{Gpu, Kind, Memory, deregister, register};
use kvik_tests::os::forked;
use kvik_tests::pattern::{assert_same, file, pattern};

use super::{assert_at_rest, open, start};

const LEN: usize = 40_000;

fn start_with(mode: CompatMode) -> (Gpu, FakeCuda, FakeCuFile) {
    let started = start();
    let file = kvik_tests::fake::cufile();
    let settings = Layer::new().cufile_library(Some(file)).compat_mode(mode);
    Config::set_process(settings).unwrap();
    started
}

#[test]
fn a_buffer_is_registered_whole_and_once_and_transfers_of_its_parts_find_it() {
    let (gpu, cuda, cufile) = start_with(CompatMode::Off);
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 2, 4096);
    let mut buffer = DeviceBuffer::new(0, LEN).unwrap().register();
    assert!(buffer.registration().is_registered());
    assert_eq!((cufile.buffers(), cufile.buffer_bytes()), (1, LEN));
    let before = cufile.hits();
    handle.read_exact_at(&mut buffer, 0).unwrap();
    let calls = cufile.calls("cuFileRead");
    assert_eq!(cufile.hits() - before, calls, "each named the allocation");
    let mut bytes = vec![0; LEN];
    buffer.copy_to_host(&mut bytes).unwrap();
    assert_same(&bytes, &pattern(1, 0, LEN));
    handle.write_all_at(&buffer, 5).unwrap();
    let pending = handle.submit_read(buffer, 0);
    assert_eq!(pending.wait().unwrap(), LEN);
    let mut buffer = pending.into_buf();
    buffer.fill(7).unwrap();
    buffer.copy_from_host(&[1, 2]).unwrap();
    // The buffer alone again.
    let buffer = buffer.into_buffer();
    assert_eq!((cufile.buffers(), buffer.len()), (0, LEN));
    drop(buffer.register());
    assert_eq!(cufile.buffers(), 0);
    let calls = ["cuFileBufRegister", "cuFileBufDeregister"].map(|name| cufile.calls(name));
    assert_eq!(calls, [2, 2]);
    let _ = gpu;
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn registrations_of_one_allocation_are_counted_and_the_last_one_ends_it() {
    let (gpu, cuda, cufile) = start_with(CompatMode::Off);
    let memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let at = |offset: usize| memory.address() + offset as u64;
    for offset in [0, 1, LEN - 1] {
        let registration = register(at(offset)).unwrap();
        assert!(registration.is_registered());
    }
    assert_eq!((cufile.buffers(), cufile.buffer_bytes()), (1, LEN));
    assert_eq!(cufile.calls("cuFileBufRegister"), 1);
    for left in [1, 1, 0] {
        deregister(at(9)).unwrap();
        assert_eq!(cufile.buffers(), left);
    }
    for offset in [0, LEN - 1, LEN] {
        let error = deregister(at(offset)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert!(error.to_string().contains("is not registered"), "{error}");
    }
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn a_buffer_that_cufile_refuses_is_used_unregistered_and_tried_again_when_asked_again() {
    let (_gpu, cuda, cufile) = start_with(CompatMode::Off);
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 2, 4096);
    for code in [5023, 5036, 5011, 5999] {
        let before = stats::names::REGISTRATIONS_REFUSED.get();
        cufile.fail("cuFileBufRegister", "1", code);
        let mut buffer = DeviceBuffer::new(0, LEN).unwrap().register();
        let why = buffer.registration().why_not().unwrap().to_owned();
        assert!(why.starts_with("cuFileBufRegister: "), "{why}");
        assert!(why.contains(&code.to_string()), "{why}");
        assert_eq!(stats::names::REGISTRATIONS_REFUSED.get(), before + 1);
        handle.read_exact_at(&mut buffer, 0).unwrap();
        let mut bytes = vec![0; LEN];
        buffer.copy_to_host(&mut bytes).unwrap();
        assert_same(&bytes, &pattern(1, 0, LEN));
        let buffer = buffer.into_buffer().register();
        assert!(buffer.registration().is_registered());
        drop(buffer);
        cufile.succeed();
    }
    assert_eq!(cufile.buffers(), 0);
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn where_cufile_is_not_used_nothing_is_registered_or_loaded_and_the_answer_says_why() {
    for (mode, part) in [
        (CompatMode::On, "the compat mode ON leaves cuFile alone"),
        (
            CompatMode::Auto,
            "there is no direct path: the test shows none",
        ),
    ] {
        let (gpu, cuda, cufile) = start_with(mode);
        driver::for_tests::show_direct_path(Err("the test shows none"));
        let buffer = DeviceBuffer::new(0, LEN).unwrap().register();
        let why = buffer.registration().why_not().unwrap();
        assert!(why.contains(part), "{why}");
        drop(buffer);
        let host = [0_u8; 10].as_ptr().addr() as u64;
        let registration = register(host).unwrap();
        assert!(!registration.is_registered());
        deregister(host).unwrap();
        let error = deregister(host).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert_eq!(cufile.calls("*"), 0);
        assert_at_rest(&cuda, &cufile);
        drop(gpu);
    }
    // Without a library.
    let (_gpu, cuda, cufile) = start_with(CompatMode::Off);
    let nowhere = Some("/nowhere/libcufile.so.0".into());
    let settings = Layer::new().compat_mode(CompatMode::Off);
    Config::set_process(settings.cufile_library(nowhere)).unwrap();
    let buffer = DeviceBuffer::new(0, LEN).unwrap().register();
    let why = buffer.registration().why_not().unwrap();
    assert!(why.contains("cuFile is not installed: "), "{why}");
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn auto_registers_where_there_is_a_sign_of_a_direct_path_or_the_driver_is_open() {
    let (_gpu, cuda, cufile) = start_with(CompatMode::On);
    let open_driver = driver::initialize().unwrap();
    let buffer = DeviceBuffer::new(0, LEN).unwrap().register();
    assert!(buffer.registration().is_registered());
    // The driver stays open under it.
    drop(open_driver);
    assert_eq!((cufile.opened(), cufile.buffers()), (1, 1));
    drop(buffer);
    driver::for_tests::show_direct_path(Ok("the test shows one"));
    let settings = Layer::new().compat_mode(CompatMode::Auto);
    let library = kvik_tests::fake::cufile();
    Config::set_process(settings.cufile_library(Some(library))).unwrap();
    cufile.set_direct(true);
    let buffer = DeviceBuffer::new(0, LEN).unwrap().register();
    assert!(buffer.registration().is_registered());
    drop(buffer);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn memory_that_is_managed_pinned_or_empty_is_not_registered_and_memory_of_a_pool_is() {
    let (gpu, cuda, cufile) = start_with(CompatMode::Off);
    for (kind, expected) in [
        (Kind::Managed, Some("it is managed memory")),
        (Kind::Pinned, Some("it is memory of the host")),
        (Kind::Pool, None),
    ] {
        let memory = Memory::new(&gpu, 0, kind, LEN);
        let at = memory.address() + 1;
        let registration = register(at).unwrap();
        assert_eq!(registration.why_not(), expected, "{kind:?}");
        deregister(at).unwrap();
    }
    let empty = DeviceBuffer::new(0, 0).unwrap().register();
    assert_eq!(empty.registration().why_not(), Some("it has no bytes"));
    assert_eq!(cufile.buffers(), 0);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn a_child_neither_registers_nor_ends_what_its_parent_has_registered() {
    let (_gpu, cuda, cufile) = start_with(CompatMode::Off);
    let mut buffer = Some(DeviceBuffer::new(0, LEN).unwrap().register());
    forked(|| {
        let address = buffer.as_ref().unwrap().address();
        let error = register(address).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forked);
        let error = deregister(address).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forked);
        buffer = None;
        assert_eq!(cufile.calls("cuFileBufDeregister"), 0);
    })
    .succeeded();
    drop(buffer);
    assert_eq!(
        (cufile.buffers(), cufile.calls("cuFileBufDeregister")),
        (0, 1)
    );
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn what_was_not_registered_is_ended_for_itself_and_leaves_what_is_registered_later() {
    let (gpu, cuda, cufile) = start_with(CompatMode::On);
    let memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let at = |offset: usize| memory.address() + offset as u64;
    assert!(!register(at(100)).unwrap().is_registered());
    let open_driver = driver::initialize().unwrap();
    assert!(register(at(0)).unwrap().is_registered());
    deregister(at(100)).unwrap();
    assert_eq!(cufile.buffers(), 1, "somebody else's");
    deregister(at(0)).unwrap();
    assert_eq!(cufile.buffers(), 0);
    drop(open_driver);
    assert_at_rest(&cuda, &cufile);
}
