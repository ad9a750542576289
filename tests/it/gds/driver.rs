//! The driver that a program opens, closes, asks and sets. What once could break: a driver that is closed under a registered file,
//! one that never opens and takes its caller along, properties that are zeros after a failure.

use std::thread;
use std::time::{Duration, Instant};

use kvik::config::{Config, Layer};
use kvik::{ErrorKind, Op, driver};
use kvik_tests::fake::{cufile, without};
use kvik_tests::gpu::{Kind, Memory};
use kvik_tests::os::forked;
use kvik_tests::pattern::{assert_same, file, pattern};

use super::{assert_at_rest, open, start};

const LEN: usize = 40_000;

#[test]
fn openings_are_counted_and_the_last_close_closes_the_driver() {
    let (_gpu, cuda, cufile) = start();
    driver::open().unwrap();
    driver::open().unwrap();
    assert_eq!(cufile.opened(), 1);
    driver::close().unwrap();
    assert_eq!(cufile.opened(), 1);
    driver::close().unwrap();
    assert_eq!(cufile.opened(), 0);
    let error = driver::close().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert!(error.to_string().contains("closed as often"), "{error}");

    let open = driver::initialize().unwrap();
    assert_eq!(cufile.opened(), 1);
    drop(open);
    assert_eq!((cufile.opened(), cufile.calls("cuFileDriverOpen")), (0, 2));
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn a_driver_is_not_closed_under_a_file_and_closes_when_that_goes() {
    let (gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 1, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    driver::open().unwrap();
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    driver::close().unwrap();
    assert_eq!(cufile.opened(), 1, "a file is registered");
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    drop(handle);
    assert_at_rest(&cuda, &cufile);
    // The thread that closes it is waited for by nobody but the next one who needs the driver.
    driver::open().unwrap();
    assert_eq!((cufile.opened(), cufile.calls("cuFileDriverOpen")), (1, 2));
    driver::close().unwrap();
    assert_eq!(cufile.opened(), 0);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn a_transfer_opens_again_what_the_program_has_closed() {
    let (gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    drop(driver::initialize().unwrap());
    assert_eq!(cufile.opened(), 0);
    let handle = open(&path, 1, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    assert_eq!(cufile.opened(), 1);
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn a_driver_that_does_not_come_back_is_given_up_in_time_and_used_once_it_does() {
    let (gpu, cuda, cufile) = start();
    driver::for_tests::wait_for_driver(Duration::from_millis(200));
    cufile.hold_opening();
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 1, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let told = "has neither opened nor failed within 200ms";
    let error = handle.read_at(memory.target(0..LEN), 0).unwrap_err();
    assert_eq!(
        (error.kind(), error.op()),
        (ErrorKind::GdsUnavailable, Op::Read)
    );
    assert!(error.to_string().contains(told), "{error}");
    // From then on nobody waits.
    driver::for_tests::wait_for_driver(Duration::from_secs(3600));
    let error = driver::open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::GdsUnavailable);
    let error = driver::properties().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::GdsUnavailable);
    assert_eq!(cufile.calls("cuFileDriverOpen"), 1);
    let mut bytes = vec![0; LEN];
    handle.read_exact_at(&mut bytes, 0).unwrap();
    assert_same(&bytes, &pattern(1, 0, LEN));

    cufile.release_opening();
    let end = Instant::now() + Duration::from_secs(60);
    while handle.read_exact_at(memory.target(0..LEN), 0).is_err() {
        assert!(Instant::now() < end, "it opened long ago");
        thread::sleep(Duration::from_millis(1));
    }
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    assert_eq!(cufile.calls("cuFileDriverOpen"), 1);
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn properties_are_told_with_what_was_set_and_a_failure_is_an_error_each_time() {
    let (_gpu, cuda, cufile) = start();
    cufile.fail("cuFileDriverGetProperties", "1", 5002);
    let error = driver::properties().unwrap_err();
    assert_eq!((error.kind(), error.op()), (ErrorKind::Device, Op::Inspect));
    assert!(error.to_string().contains("(5002)"), "{error}");
    let first = driver::properties().unwrap();
    assert_eq!(first.nvidia_fs_version, (0, 0));
    assert!(first.allow_compat_mode && !first.poll_mode && !first.p2pdma);
    assert_eq!(
        (first.poll_thresh_size_kib, first.max_direct_io_size_kib),
        (4, 16_384)
    );
    assert_eq!(
        (
            first.max_device_cache_size_kib,
            first.per_buffer_cache_size_kib
        ),
        (131_072, 1024)
    );
    assert_eq!(
        (first.max_pinned_memory_size_kib, first.max_batch_io_size),
        (33_554_432, 128)
    );

    driver::set_poll_mode(true).unwrap();
    driver::set_poll_thresh_size_kib(8).unwrap();
    driver::set_max_device_cache_size_kib(1024).unwrap();
    driver::set_max_pinned_memory_size_kib(2048).unwrap();
    let set = driver::properties().unwrap();
    assert!(set.poll_mode);
    assert_eq!(
        (
            set.poll_thresh_size_kib,
            set.max_device_cache_size_kib,
            set.max_pinned_memory_size_kib
        ),
        (8, 1024, 2048)
    );
    let error = driver::set_max_device_cache_size_kib(1 << 40).unwrap_err();
    assert_eq!(
        (error.kind(), error.op()),
        (ErrorKind::Misuse, Op::Configure)
    );
    assert!(error.to_string().contains("(5003)"), "{error}");
    // A driver that is opened anew is told again.
    drop(driver::initialize().unwrap());
    assert_eq!(cufile.opened(), 0);
    assert_eq!(driver::properties().unwrap(), set);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn the_version_is_told_without_a_driver_and_an_older_library_tells_none() {
    let (_gpu, _, fake) = start();
    assert_eq!(driver::version().unwrap(), (1, 15));
    assert_eq!(fake.opened(), 0);
    let (_folder, old) = without(&cufile(), &["cuFileGetVersion"]);
    Config::set_process(Layer::new().cufile_library(Some(old))).unwrap();
    let error = driver::version().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("1.8"), "{error}");
    let nowhere = Some("/nowhere/libcufile.so.0".into());
    Config::set_process(Layer::new().cufile_library(nowhere)).unwrap();
    for error in [driver::version().unwrap_err(), driver::open().unwrap_err()] {
        assert_eq!(error.kind(), ErrorKind::GdsUnavailable);
        let told = "cuFile is not installed: no library could be loaded: tried /nowhere";
        assert!(error.to_string().contains(told), "{error}");
    }
}

#[test]
fn a_child_may_not_open_ask_or_close_the_driver_of_its_parent() {
    let (_gpu, cuda, cufile) = start();
    let open = driver::initialize().unwrap();
    let mut open = Some(open);
    forked(|| {
        let errors = [
            driver::open().unwrap_err(),
            driver::close().unwrap_err(),
            driver::properties().unwrap_err(),
            driver::set_poll_mode(true).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Forked, "{error}");
        }
        open = None;
        assert_eq!(cufile.calls("cuFileDriverClose_v2"), 0);
    })
    .succeeded();
    drop(open);
    assert_eq!(cufile.opened(), 0);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn closing_that_fails_is_told_and_the_driver_stays_open() {
    let (_gpu, cuda, cufile) = start();
    driver::open().unwrap();
    cufile.fail("cuFileDriverClose_v2", "1", 5006);
    let error = driver::close().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::GdsUnavailable);
    let told = "cuFileDriverClose: CU_FILE_DRIVER_CLOSING (5006)";
    assert!(error.to_string().contains(told), "{error}");
    driver::open().unwrap();
    driver::close().unwrap();
    assert_eq!((cufile.opened(), cufile.calls("cuFileDriverOpen")), (0, 1));
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn closing_that_does_not_come_back_is_given_up_in_time_and_says_so() {
    let (_gpu, cuda, cufile) = start();
    driver::open().unwrap();
    driver::for_tests::wait_for_driver(Duration::from_millis(100));
    cufile.hold_closing();
    let error = driver::close().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::GdsUnavailable);
    let told = "its driver (cuFileDriverClose) has neither closed nor failed within 100ms";
    assert!(error.to_string().contains(told), "{error}");
    let error = driver::open().unwrap_err();
    assert!(error.to_string().contains(told), "{error}");
    cufile.release_closing();
    let end = Instant::now() + Duration::from_secs(60);
    while driver::open().is_err() {
        assert!(Instant::now() < end, "it closed long ago");
        thread::sleep(Duration::from_millis(1));
    }
    driver::close().unwrap();
    assert_eq!((cufile.opened(), cufile.calls("cuFileDriverOpen")), (0, 2));
    assert_at_rest(&cuda, &cufile);
}
