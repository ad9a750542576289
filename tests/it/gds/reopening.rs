//! The driver that several want open in different modes, or closed. What once could break: a registered buffer that keeps files
//! from their direct path, a file that is registered again after it was given up, a driver that is closed under anybody.

use std::path::Path;
use std::sync::Barrier;
use std::thread;

use kvik::config::{Config, Layer};
use kvik::{ByteSize, CompatMode, DeviceBuffer, FileHandle, driver};
use kvik_tests::fake::cufile;
use kvik_tests::gpu::{Kind, Memory};
use kvik_tests::pattern::{UNTOUCHED, assert_same, file, pattern};

use super::{assert_at_rest, open as open_off, start};

const LEN: usize = 40_000;
const SIGN: Result<&str, &str> = Ok("the test shows one");

fn open(path: &Path, threads: usize) -> FileHandle {
    let settings = Layer::new()
        .num_threads(threads)
        .task_size(ByteSize::new(4096))
        .gds_threshold(ByteSize::new(0));
    FileHandle::options()
        .read(true)
        .compat(CompatMode::Auto)
        .open_with(path, &Config::resolve([settings]).unwrap())
        .unwrap()
}

#[test]
fn a_buffer_that_is_registered_before_any_file_does_not_keep_files_from_their_direct_path() {
    let (_gpu, cuda, cufile) = start();
    driver::for_tests::show_direct_path(SIGN);
    cufile.set_direct(true);
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    // The order that KvikIO's users know: driver, buffer, file.
    let open_driver = driver::initialize().unwrap();
    let mut buffer = DeviceBuffer::new(0, LEN).unwrap().register();
    assert!(buffer.registration().is_registered());
    let auto = open(&path, 1);
    auto.read_exact_at(&mut buffer, 0).unwrap();
    assert!(
        cufile.calls("cuFileRead") > 0,
        "{}",
        auto.device_route().unwrap()
    );
    let mut bytes = vec![0; LEN];
    buffer.copy_to_host(&mut bytes).unwrap();
    assert_same(&bytes, &pattern(1, 0, LEN));
    drop((auto, buffer, open_driver));
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn a_buffer_is_registered_in_the_mode_that_is_open_where_there_is_no_other() {
    let (gpu, cuda, cufile) = start();
    driver::for_tests::show_direct_path(SIGN);
    let folder = tempfile::tempdir().unwrap();
    let off = open_off(&file(folder.path(), "source", 1, LEN), 1, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    off.read_exact_at(memory.target(0..LEN), 0).unwrap();
    let buffer = DeviceBuffer::new(0, LEN).unwrap().register();
    assert_eq!(buffer.registration().why_not(), None);
    assert_eq!(cufile.calls("cuFileDriverOpen"), 1);
    drop((off, buffer));
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn a_file_that_was_given_up_is_not_registered_any_more() {
    let (gpu, cuda, cufile) = start();
    driver::for_tests::show_direct_path(SIGN);
    cufile.set_direct(true);
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    cufile.fail("cuFileRead", "1+", 5044);
    let mut memories: Vec<Memory> = (0..8)
        .map(|_| Memory::new(&gpu, 0, Kind::Plain, LEN))
        .collect();
    for _ in 0..100 {
        let handle = open(&path, 1);
        let begin = Barrier::new(memories.len());
        thread::scope(|scope| {
            for memory in &mut memories {
                let (begin, handle) = (&begin, &handle);
                scope.spawn(move || {
                    memory.set(UNTOUCHED);
                    begin.wait();
                    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
                    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
                });
            }
        });
        // A worker may hold it a moment longer than its caller waits.
        let end = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while cufile.files() > 0 {
            assert!(
                std::time::Instant::now() < end,
                "it is registered while nobody uses it"
            );
            thread::yield_now();
        }
        drop(handle);
    }
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn many_threads_that_want_different_modes_all_get_their_bytes() {
    let (gpu, cuda, fake) = start();
    driver::for_tests::show_direct_path(SIGN);
    fake.set_direct(true);
    let settings = Layer::new().cufile_library(Some(cufile()));
    Config::set_process(settings).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let begin = Barrier::new(8);
    thread::scope(|scope| {
        for number in 0..8 {
            let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
            let (begin, path) = (&begin, &path);
            scope.spawn(move || {
                begin.wait();
                for round in 0..40 {
                    match number % 4 {
                        0 | 1 => {
                            let handle = match number % 2 {
                                0 => open(path, 2),
                                _ => open_off(path, 2, 4096),
                            };
                            memory.set(UNTOUCHED);
                            handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
                            assert_same(&memory.bytes(), &pattern(1, 0, LEN));
                        }
                        2 => drop(DeviceBuffer::new(0, LEN).unwrap().register()),
                        _ => {
                            let _open = driver::initialize().unwrap();
                            driver::properties().unwrap();
                            driver::set_poll_mode(round % 2 == 0).unwrap();
                        }
                    }
                }
            });
        }
    });
    assert_at_rest(&cuda, &fake);
    drop(driver::initialize().unwrap());
    assert_eq!((fake.opened(), fake.buffers()), (0, 0));
    assert_at_rest(&cuda, &fake);
}
