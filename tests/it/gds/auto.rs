//! The compat mode `auto`: cuFile where a direct path was proven for the file, and nothing of it elsewhere. What once could break:
//! cuFile that copies through the host unasked, a call of it that fails where another way would not have, bytes that are missing
//! after that.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use kvik::config::{Config, Layer};
use kvik::stats::{Listener, Operation, Outcome, listen};
use kvik::{
    Batch, ByteSize, CompatMode, DeviceBuffer, DeviceWay, ErrorKind, FileHandle, WriteOptions,
    driver, stats,
};
use kvik_tests::fake::{FakeCuFile, cuda as cuda_library, cufile, without};
use kvik_tests::gpu::{Kind, Memory, Stream};
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, file, pattern};

use super::{assert_at_rest, open as open_off, start};

const LEN: usize = 40_000;
const SIGN: Result<&str, &str> = Ok("the test shows one");

/// A handle that takes cuFile where it may.
fn open(path: &Path, threads: usize, task_size: u64) -> FileHandle {
    let settings = Layer::new()
        .num_threads(threads)
        .task_size(ByteSize::new(task_size))
        .gds_threshold(ByteSize::new(4096));
    FileHandle::options()
        .read(true)
        .write(true)
        .create(true)
        .compat(CompatMode::Auto)
        .open_with(path, &Config::resolve([settings]).unwrap())
        .unwrap()
}

fn fallbacks() -> u64 {
    stats::names::FALLBACKS.get()
}

/// Why the way of cuFile may be taken, or why not.
#[track_caller]
fn told(handle: &FileHandle) -> Result<String, String> {
    let route = handle.device_route().unwrap();
    let allowed = route
        .allowed
        .iter()
        .find(|way| way.way == DeviceWay::CuFile);
    if let Some(allowed) = allowed {
        return Ok(allowed.why.to_string());
    }
    let out = route.ruled_out.iter().find(|out| out.engine == "cuFile");
    Err(out.unwrap().why.to_string())
}

#[test]
fn without_a_sign_of_a_direct_path_nothing_of_cufile_is_loaded_or_called() {
    let (gpu, cuda, cufile) = start();
    driver::for_tests::show_direct_path(Err("the test shows none"));
    // It would be there, and the fake would say so.
    cufile.set_nvfs(2);
    let nowhere = Some("/nowhere/libcufile.so.0".into());
    Config::set_process(Layer::new().cufile_library(nowhere)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 2, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let before = fallbacks();
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    handle.write_all_at(memory.source(0..LEN), 7).unwrap();
    assert_eq!((cufile.calls("*"), fallbacks()), (0, before));
    let why = told(&handle).unwrap_err();
    assert!(why.contains("not installed"), "{why}");
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn a_file_that_registers_without_the_compatible_mode_goes_by_cufile() {
    let (gpu, cuda, cufile) = start();
    driver::for_tests::show_direct_path(SIGN);
    cufile.set_direct(true);
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = open(&path, 2, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    handle.read_exact_at(memory.target(0..4095), 1).unwrap();
    assert_eq!(cufile.calls("*"), 0, "smaller than the threshold");
    let why = told(&handle).unwrap();
    assert!(
        why.contains("which the first transfer tries") && why.contains(SIGN.unwrap()),
        "{why}"
    );

    let before = stats::names::BYTES_BY_CUFILE.get();
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    memory.put(0, &pattern(2, 0, LEN));
    handle.write_all_at(memory.source(0..LEN), 9).unwrap();
    assert_same(&fs::read(&path).unwrap()[9..], &pattern(2, 0, LEN));
    assert_eq!(stats::names::BYTES_BY_CUFILE.get() - before, 2 * LEN as u64);
    assert!(cufile.parameters().contains(&"bool:1=false".to_owned()));
    assert!(!driver::properties().unwrap().allow_compat_mode);
    let proof = "a direct path was proven for this file: cuFile has registered it with its compatible mode off";
    assert_eq!(told(&handle).unwrap(), proof);
    // Unsplit: one call.
    let calls = cufile.calls("cuFileRead");
    handle.read_unsplit(memory.target(0..LEN), 0).unwrap();
    assert_eq!(cufile.calls("cuFileRead"), calls + 1);
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn a_file_that_does_not_register_without_the_compatible_mode_is_staged_and_the_next_one_tried() {
    let (gpu, cuda, cufile) = start();
    driver::for_tests::show_direct_path(SIGN);
    cufile.set_nvfs(2);
    cufile.set_direct(false);
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 2, 4096);
    let other = open(&file(folder.path(), "other", 2, LEN), 2, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let before = fallbacks();
    for _ in 0..3 {
        memory.set(UNTOUCHED);
        handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
        assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    }
    assert_eq!(cufile.calls("cuFileHandleRegister"), 1, "asked once");
    assert_eq!((cufile.calls("cuFileRead"), fallbacks()), (0, before + 1));
    let why = told(&handle).unwrap_err();
    assert!(why.contains("CU_FILE_IO_NOT_SUPPORTED (5008)"), "{why}");
    // The path of another file is its own.
    cufile.set_direct(true);
    other.read_exact_at(memory.target(0..LEN), 0).unwrap();
    assert_same(&memory.bytes(), &pattern(2, 0, LEN));
    assert!(cufile.calls("cuFileRead") > 0);
    drop((handle, other));
    assert_eq!(cufile.files(), 0);
    assert_eq!((cufile.faults(), cuda.faults()), (Vec::new(), Vec::new()));
}

#[test]
fn a_driver_that_does_not_open_without_the_compatible_mode_is_asked_once_and_off_gets_the_other() {
    let (gpu, cuda, cufile) = start();
    driver::for_tests::show_direct_path(SIGN);
    cufile.fail("cuFileDriverOpen", "1", 5001);
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handles = [open(&path, 2, 4096), open(&path, 2, 4096)];
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    for handle in &handles {
        memory.set(UNTOUCHED);
        handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
        assert_same(&memory.bytes(), &pattern(1, 0, LEN));
        let why = told(handle).unwrap_err();
        assert!(
            why.contains("CU_FILE_DRIVER_NOT_INITIALIZED (5001)"),
            "{why}"
        );
    }
    assert_eq!(cufile.calls("cuFileDriverOpen"), 1);
    let off = open_off(&path, 2, 4096);
    off.read_exact_at(memory.target(0..LEN), 0).unwrap();
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    assert_eq!(cufile.parameters().last().unwrap(), "bool:1=true");
    assert!(cufile.calls("cuFileRead") > 0);
    drop((handles, off));
    assert_at_rest(&cuda, &cufile);
}

/// Reads by a handle that must not take cuFile, for a reason with `part` in it.
#[track_caller]
fn check_staged(prepare: impl FnOnce(&FakeCuFile), part: &str) {
    let (gpu, cuda, cufile) = start();
    driver::for_tests::show_direct_path(SIGN);
    cufile.set_direct(true);
    prepare(&cufile);
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 1, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    let why = told(&handle).unwrap_err();
    assert!(why.contains(part), "{why}");
    assert_eq!(cufile.calls("cuFileHandleRegister"), 0);
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn a_driver_that_somebody_else_in_the_process_has_open_is_not_used() {
    check_staged(
        |cufile| assert_eq!(cufile.call("cuFileDriverOpen", []), 0),
        "in which somebody else in this process has its driver open",
    );
}

#[test]
fn a_driver_that_says_nothing_of_its_mode_is_closed_and_not_used() {
    check_staged(
        |cufile| cufile.fail("cuFileDriverGetProperties", "1", 5030),
        "cuFileDriverGetProperties: CU_FILE_INTERNAL_ERROR (5030)",
    );
    assert_eq!(FakeCuFile::here().opened(), 0);
}

#[test]
fn the_driver_is_opened_anew_for_the_other_mode_unless_something_is_registered() {
    let (gpu, cuda, cufile) = start();
    driver::for_tests::show_direct_path(SIGN);
    cufile.set_direct(true);
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let mut read = |handle: &FileHandle| {
        memory.set(UNTOUCHED);
        let outcome = handle.read_exact_at(memory.target(0..LEN), 0);
        outcome.map(|()| assert_same(&memory.bytes(), &pattern(1, 0, LEN)))
    };
    // The program has it open, in the mode that cuFile has without being told.
    let open_driver = driver::initialize().unwrap();
    driver::set_max_device_cache_size_kib(1024).unwrap();
    let auto = open(&path, 1, 4096);
    read(&auto).unwrap();
    assert_eq!((cufile.opened(), cufile.calls("cuFileDriverOpen")), (1, 2));
    let properties = driver::properties().unwrap();
    assert!(!properties.allow_compat_mode);
    assert_eq!(properties.max_device_cache_size_kib, 1024);

    // A file with a direct path does not need the other mode. One without it does.
    let off = open_off(&path, 1, 4096);
    read(&off).unwrap();
    drop(off);
    cufile.set_direct(false);
    let off = open_off(&path, 1, 4096);
    let error = read(&off).unwrap_err();
    let told = "open without its compatible mode, for what is registered with it";
    assert!(error.to_string().contains(told), "{error}");
    drop(auto);
    while cufile.files() > 0 {
        thread::yield_now();
    }
    read(&off).unwrap();
    assert_eq!(cufile.calls("cuFileDriverOpen"), 3);
    assert!(driver::properties().unwrap().allow_compat_mode);

    // And while that is registered, `auto` is staged, and tries again later.
    cufile.set_direct(true);
    let auto = open(&path, 1, 4096);
    let calls = cufile.calls("cuFileRead");
    read(&auto).unwrap();
    assert_eq!(cufile.calls("cuFileRead"), calls);
    drop(off);
    while cufile.files() > 0 {
        thread::yield_now();
    }
    read(&auto).unwrap();
    assert!(cufile.calls("cuFileRead") > calls);
    drop(auto);
    drop(open_driver);
    assert_eq!(cufile.opened(), 0);
    assert_eq!((cufile.faults(), cuda.faults()), (Vec::new(), Vec::new()));
}

#[test]
fn a_call_that_fails_demotes_the_handle_once_and_the_caller_sees_all_bytes() {
    let (gpu, cuda, cufile) = start();
    driver::for_tests::show_direct_path(SIGN);
    cufile.set_direct(true);
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    for threads in [1, 3] {
        for nth in 1..=LEN.div_ceil(4096) {
            for code in [5008, 5011, 5999, libc::EIO, libc::EINVAL] {
                let handle = open(&path, threads, 4096);
                let before = fallbacks();
                fs::write(&path, pattern(1, 0, LEN)).unwrap();
                memory.set(UNTOUCHED);
                cufile.fail("cuFileRead", &nth.to_string(), code);
                handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
                assert_same(&memory.bytes(), &pattern(1, 0, LEN));
                assert_eq!(fallbacks(), before + 1);
                let why = told(&handle).unwrap_err();
                assert!(why.contains("a call of it failed: read: "), "{why}");
                // Staged for good, the other direction included.
                let calls = cufile.calls("cuFileWrite");
                memory.put(0, &pattern(3, 0, LEN));
                handle.write_all_at(memory.source(0..LEN), 0).unwrap();
                assert_same(&fs::read(&path).unwrap(), &pattern(3, 0, LEN));
                assert_eq!(cufile.calls("cuFileWrite"), calls);
                cufile.succeed();

                let handle = open(&path, threads, 4096);
                memory.put(0, &pattern(2, 0, LEN));
                cufile.fail("cuFileWrite", &nth.to_string(), code);
                handle.write_all_at(memory.source(0..LEN), 0).unwrap();
                assert_same(&fs::read(&path).unwrap(), &pattern(2, 0, LEN));
                assert_eq!(fallbacks(), before + 2);
                cufile.succeed();
            }
        }
    }
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn a_batch_goes_by_cufile_until_an_entry_fails_and_all_entries_get_their_bytes() {
    let (_gpu, cuda, cufile) = start();
    driver::for_tests::show_direct_path(SIGN);
    cufile.set_direct(true);
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    for code in [5008, libc::EIO] {
        let handle = open(&path, 1, 1 << 20);
        for fails in [false, true] {
            if fails {
                // Asked alone, it fails again.
                cufile.fail("batch-entry", "3", code);
                cufile.fail("cuFileRead", "1", code);
            }
            let mut batch = Batch::new();
            for number in 0..7 {
                let buffer = DeviceBuffer::new(0, 5000).unwrap();
                batch.read(&handle, number * 5001, buffer);
            }
            let before = cufile.calls("cuFileBatchIOSubmit");
            for (number, entry) in batch.submit().finish().into_iter().enumerate() {
                assert_eq!(entry.outcome.unwrap(), 5000, "{number} {code} {fails}");
                let mut bytes = vec![0; 5000];
                entry.buffer.unwrap().copy_to_host(&mut bytes).unwrap();
                assert_same(&bytes, &pattern(1, number as u64 * 5001, 5000));
            }
            assert_eq!(cufile.calls("cuFileBatchIOSubmit"), before + 1);
        }
        let why = told(&handle).unwrap_err();
        assert!(why.contains("a call of it failed: read: "), "{why}");
        cufile.succeed();
    }
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn a_transfer_on_a_stream_that_cufile_fails_at_is_an_error_and_the_next_one_goes_another_way() {
    let (gpu, cuda, cufile) = start();
    driver::for_tests::show_direct_path(SIGN);
    cufile.set_direct(true);
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let stream = Stream::new(&gpu, 0);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    // The call itself is refused, or what it has queued comes to nothing.
    for at_once in [true, false] {
        let handle = open(&path, 1, 1 << 20);
        let read = stream.read(&handle, &mut memory, 0..LEN, 0).unwrap();
        assert_eq!(read.check().unwrap(), LEN);
        drop(read);
        let before = (cufile.calls("cuFileReadAsync"), fallbacks());
        match at_once {
            true => cufile.fail("cuFileReadAsync", "1", 5008),
            false => cufile.fail_late("cuFileReadAsync", "1", 5008),
        }
        let read = stream.read(&handle, &mut memory, 0..LEN, 0).unwrap();
        match at_once {
            true => assert_eq!(read.check().unwrap(), LEN),
            false => assert_eq!(read.check().unwrap_err().kind(), ErrorKind::Device),
        }
        drop(read);
        cufile.succeed();
        memory.set(UNTOUCHED);
        let read = stream.read(&handle, &mut memory, 0..LEN, 0).unwrap();
        assert_eq!(read.check().unwrap(), LEN);
        drop(read);
        assert_same(&memory.bytes(), &pattern(1, 0, LEN));
        let after = (cufile.calls("cuFileReadAsync"), fallbacks());
        assert_eq!(after, (before.0 + 1, before.1 + 1));
    }
    assert_at_rest(&cuda, &cufile);
}

/// Whatever becomes of it, a transfer is one operation.
#[test]
fn listeners_hear_once_of_a_transfer_on_a_stream_that_cufile_refuses() {
    #[derive(Default)]
    struct Heard(Mutex<Vec<Option<(u64, bool)>>>);
    impl Listener for Heard {
        fn started(&self, _: &Operation) {
            self.0.lock().unwrap().push(None);
        }
        fn finished(&self, _: &Operation, outcome: &Outcome) {
            let ended = Some((outcome.bytes, outcome.ok));
            self.0.lock().unwrap().push(ended);
        }
    }
    let (gpu, cuda, cufile) = start();
    driver::for_tests::show_direct_path(SIGN);
    cufile.set_direct(true);
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 1, 1 << 20);
    let stream = Stream::new(&gpu, 0);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    memory.set(UNTOUCHED);
    let heard = Arc::new(Heard::default());
    let listening = listen(Arc::clone(&heard) as Arc<dyn Listener>);
    cufile.fail("cuFileReadAsync", "1", 5008);
    let read = stream.read(&handle, &mut memory, 0..LEN, 0).unwrap();
    assert_eq!(read.check().unwrap(), LEN);
    drop((read, listening));
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    let expected = [None, Some((LEN as u64, true))];
    assert_eq!(*heard.0.lock().unwrap(), expected);
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn what_is_staged_of_a_write_is_not_written_over_by_what_cufile_writes_to_the_same_page() {
    let (gpu, cuda, cufile) = start();
    driver::for_tests::show_direct_path(SIGN);
    cufile.set_direct(true);
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "target", 1, LEN);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    memory.put(0, &pattern(2, 0, LEN));
    let options = WriteOptions::new().task_size(ByteSize::new(1000));
    for nth in 1..=LEN / 1000 {
        fs::write(&path, pattern(1, 0, LEN)).unwrap();
        let handle = open(&path, 4, 1000);
        cufile.fail("cuFileWrite", &nth.to_string(), 5008);
        let count = handle.write_at_with(memory.source(0..LEN), 0, &options);
        assert_eq!(count.unwrap(), LEN);
        assert_same(&fs::read(&path).unwrap(), &pattern(2, 0, LEN));
        cufile.succeed();
    }
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn what_is_staged_instead_may_be_larger_than_a_slab_end_early_and_fall_short() {
    let (gpu, cuda, cufile) = start();
    driver::for_tests::show_direct_path(SIGN);
    cufile.set_direct(true);
    let folder = tempfile::tempdir().unwrap();
    let len = (9 << 20) + 77;
    let path = file(folder.path(), "source", 1, len);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, len + 100);
    memory.set(UNTOUCHED);
    let handle = open(&path, 1, 4096);
    cufile.rules("cuFileRead:1:short,cuFileRead:2+:5044");
    let count = handle.read_unsplit(memory.target(0..len + 100), 0).unwrap();
    assert_eq!((count, cufile.calls("cuFileRead")), (len, 2));
    let bytes = memory.bytes();
    assert_same(&bytes[..len], &pattern(1, 0, len));
    assert_all(&bytes[len..], UNTOUCHED);
    cufile.succeed();

    let handle = open(&path, 1, 4096);
    memory.put(0, &pattern(2, 0, len));
    cufile.rules("cuFileWrite:1:short,cuFileWrite:2+:zero");
    handle.write_unsplit(memory.source(0..len), 3).unwrap();
    let written = fs::read(&path).unwrap();
    assert_same(&written[..3], &pattern(1, 0, 3));
    assert_same(&written[3..], &pattern(2, 0, len));
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn what_the_other_way_cannot_do_either_is_its_error() {
    let (gpu, cuda, cufile) = start();
    driver::for_tests::show_direct_path(SIGN);
    cufile.set_direct(true);
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 1, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    cufile.fail("cuFileRead", "3", 5008);
    cuda.fail("cuMemcpyHtoDAsync_v2", "1+", 1);
    cuda.fail("cuMemcpyBatchAsync", "1+", 1);
    cuda.fail("cuMemcpyBatchAsync_v2", "1+", 1);
    let error = handle.read_at(memory.target(0..LEN), 0).unwrap_err();
    assert_eq!(error.done(), 8192, "{error}");
    assert!(error.to_string().contains("cuMemcpy"), "{error}");
    cuda.succeed();
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn many_threads_meet_the_first_failure_and_all_read_the_right_bytes() {
    let (gpu, cuda, cufile) = start();
    driver::for_tests::show_direct_path(SIGN);
    cufile.set_direct(true);
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 3, 4096);
    let before = fallbacks();
    cufile.fail("cuFileRead", "20+", 5044);
    let begin = Barrier::new(8);
    thread::scope(|scope| {
        for _ in 0..8 {
            let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
            let (begin, handle) = (&begin, handle.clone());
            scope.spawn(move || {
                begin.wait();
                for _ in 0..10 {
                    memory.set(UNTOUCHED);
                    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
                    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
                }
            });
        }
    });
    assert_eq!(fallbacks(), before + 1);
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn managed_memory_is_staged_and_pinned_memory_is_the_hosts_by_off_too() {
    let (gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = open_off(&path, 2, 4096);
    for kind in [Kind::Managed, Kind::Pinned] {
        let mut memory = Memory::new(&gpu, 0, kind, LEN);
        memory.set(UNTOUCHED);
        handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
        assert_same(&memory.bytes(), &pattern(1, 0, LEN));
        handle.write_all_at(memory.source(0..LEN), 0).unwrap();
        assert_same(&fs::read(&path).unwrap(), &pattern(1, 0, LEN));
    }
    assert_eq!(cufile.calls("*"), 0);
    let mut memory = Memory::new(&gpu, 0, Kind::Pool, LEN);
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    assert!(cufile.calls("cuFileRead") > 0);
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn a_cufile_that_cannot_be_told_to_do_without_its_compatible_mode_proves_little_and_is_not_used() {
    let (gpu, cuda, _) = start();
    driver::for_tests::show_direct_path(SIGN);
    let (folder, old) = without(&cufile(), &["cuFileSetParameterBool"]);
    // It looks for the fake libcuda beside itself.
    symlink(cuda_library(), folder.path().join("libcuda_fake.so")).unwrap();
    Config::set_process(Layer::new().cufile_library(Some(old))).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = open(&path, 1, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    let why = told(&handle).unwrap_err();
    let expected = "older than 1.14, before which it does not tell for which files it has a direct path: nvidia-fs serves no NVMe";
    assert!(why.contains(expected), "{why}");
    drop(handle);
    assert_eq!(cuda.faults(), Vec::<String>::new());
}

#[test]
fn a_threshold_that_cannot_be_used_is_an_error_of_transfers_of_a_device_alone() {
    let (gpu, _cuda, cufile) = start();
    driver::for_tests::show_direct_path(SIGN);
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let settings = Layer::from_vars([("KVIK_GDS_THRESHOLD", "many")]);
    let config = Config::resolve([settings]).unwrap();
    let handle = FileHandle::options().read(true).open_with(&path, &config);
    let handle = handle.unwrap();
    let mut bytes = vec![0; LEN];
    handle.read_exact_at(&mut bytes, 0).unwrap();
    assert_same(&bytes, &pattern(1, 0, LEN));
    handle.read_unsplit(&mut bytes, 0).unwrap();
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    for len in [10, LEN] {
        let error = handle.read_at(memory.target(0..len), 0).unwrap_err();
        assert_eq!(error.kind(), kvik::ErrorKind::Config);
    }
    assert_eq!(cufile.calls("*"), 0);
}
