//! What cuFile refuses: an error that says what was refused and with which code, and how far the transfer came.

use std::path::Path;

use kvik::config::{Config, Layer};
use kvik::{CompatMode, ErrorKind, FileHandle, Op};
use kvik_tests::gpu::{Kind, Memory};
use kvik_tests::os::forked;
use kvik_tests::pattern::{assert_same, file, pattern};

use super::{assert_at_rest, open, start};

const LEN: usize = 40_000;

#[test]
fn a_call_that_fails_is_told_by_its_name_or_errno_and_what_came_before_it_is_there() {
    let (gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = open(&path, 1, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    for nth in 1..=LEN.div_ceil(4096) {
        cufile.fail("cuFileRead", &nth.to_string(), 5008);
        let error = handle.read_at(memory.target(0..LEN), 0).unwrap_err();
        assert_eq!((error.kind(), error.op()), (ErrorKind::Device, Op::Read));
        let text = error.to_string();
        assert!(
            text.contains("cuFileRead: CU_FILE_IO_NOT_SUPPORTED (5008)"),
            "{text}"
        );
        let done = error.done() as usize;
        assert_eq!(done, (nth - 1) * 4096);
        assert_same(&memory.bytes()[..done], &pattern(1, 0, done));

        cufile.succeed();
        cufile.fail("cuFileWrite", &nth.to_string(), libc::ENOSPC);
        memory.put(0, &pattern(1, 0, LEN));
        let error = handle.write_at(memory.source(0..LEN), 0).unwrap_err();
        assert_eq!(
            (error.kind(), error.op()),
            (ErrorKind::StorageFull, Op::Write)
        );
        assert_eq!(error.os_error(), Some(libc::ENOSPC));
        assert_eq!(error.done() as usize, (nth - 1) * 4096);
        cufile.succeed();
    }
    // It goes on where nothing fails any more.
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn a_call_that_was_interrupted_is_made_again() {
    let (gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 1, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    cufile.fail("cuFileRead", "*2", libc::EINTR);
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn a_file_that_cufile_does_not_take_is_refused_with_the_code_and_tried_again_at_the_next_call() {
    let (gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let handle = open(&path, 1, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    cufile.fail("cuFileHandleRegister", "1", 5027);
    let error = handle.read_at(memory.target(0..LEN), 0).unwrap_err();
    assert_eq!(
        (error.kind(), error.op()),
        (ErrorKind::GdsUnavailable, Op::Read)
    );
    let text = error.to_string();
    for part in [
        path.to_str().unwrap(),
        "the compat mode OFF requires cuFile, which is not usable ",
        "cuFileHandleRegister: CU_FILE_HANDLE_NOT_REGISTERED (5027)",
        "set `compat_mode` to `auto` or `on`",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    drop(handle);
    assert_eq!(
        (cufile.files(), cufile.calls("cuFileHandleDeregister")),
        (0, 1)
    );
    assert_eq!((cufile.faults(), cuda.faults()), (Vec::new(), Vec::new()));
}

#[test]
fn a_driver_that_does_not_open_is_told_and_tried_again_at_the_next_call() {
    let (gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 1, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    cufile.fail("cuFileDriverOpen", "1", 5001);
    let error = handle.read_at(memory.target(0..LEN), 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::GdsUnavailable);
    let text = error.to_string();
    let part = "cuFileDriverOpen: CU_FILE_DRIVER_NOT_INITIALIZED (5001)";
    assert!(text.contains(part), "{text}");
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn off_without_the_library_names_it_when_a_device_is_first_used_and_the_host_is_served() {
    let (gpu, cuda, _) = start();
    let nowhere = Some("/nowhere/libcufile.so.0".into());
    Config::set_process(Layer::new().cufile_library(nowhere)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let options = FileHandle::options().read(true).compat(CompatMode::Off);
    let handle = options.open(&path).unwrap();
    let mut bytes = vec![0; LEN];
    handle.read_exact_at(&mut bytes, 0).unwrap();
    assert_same(&bytes, &pattern(1, 0, LEN));

    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let error = handle.read_at(memory.target(0..LEN), 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::GdsUnavailable);
    let text = error.to_string();
    let part = "the compat mode OFF requires cuFile, which is not installed: no library could be loaded: tried /nowhere/libcufile.so.0";
    assert!(text.contains(part), "{text}");
    assert_eq!(cuda.faults(), Vec::<String>::new());
}

#[test]
fn a_child_is_refused_and_leaves_the_file_of_its_parent_registered() {
    let (gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 1, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    let (mut handle, mut target) = (Some(handle), memory.target(0..LEN));
    let before = cufile.calls("cuFileHandleDeregister");
    forked(|| {
        let error = handle
            .as_ref()
            .unwrap()
            .read_at(target.reborrow(), 0)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Forked, "{error}");
        handle = None;
        let after = cufile.calls("cuFileHandleDeregister");
        assert_eq!(after, before, "it is the parent's");
    })
    .succeeded();
    let handle = handle.unwrap();
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn the_log_of_cufile_stays_out_of_the_working_directory() {
    let (gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 1, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    let told = cufile.parameters();
    // Settings that are installed with cuFile do not say where it goes; somebody may have added that.
    if !Path::new("/etc/cufile.json").exists() {
        assert!(
            told.len() == 1 && told[0].contains("kvik-cufile-"),
            "{told:?}"
        );
    }
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}
