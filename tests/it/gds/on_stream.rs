//! Transfers in the order of a stream by cuFile, and where it lacks them.

use std::path::Path;
use std::thread;
use std::time::Duration;

use kvik::config::{Config, Layer};
use kvik::{
    ByteSize, CompatMode, DeviceBuffer, ErrorKind, FileHandle, RawStream, RegisteredStream, driver,
};
use kvik_tests::fake::{FakeCuFile, FakeCuda, cuda, cufile, without};
use kvik_tests::gpu::{Gpu, Kind, Memory, OwnContext, Stream};
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, file, pattern};

use super::{assert_at_rest, open, start};

const LEN: usize = 40_000;

/// As `start`, where all files have a direct path and the driver is open for these alone, as long as the handle lives.
fn start_direct(folder: &Path) -> (Gpu, FakeCuda, FakeCuFile, FileHandle) {
    let (gpu, cuda, fake) = start();
    driver::for_tests::show_direct_path(Ok("the test shows one"));
    fake.set_direct(true);
    let options = FileHandle::options().read(true).compat(CompatMode::Auto);
    let handle = options.open(file(folder, "first", 1, 1 << 20)).unwrap();
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, 1 << 20);
    handle.read_exact_at(memory.target(0..1 << 20), 0).unwrap();
    assert!(fake.calls("cuFileRead") > 0);
    (gpu, cuda, fake, handle)
}

#[test]
fn without_a_direct_path_transfers_on_streams_go_our_own_way_and_no_stream_is_registered_for_them()
{
    let (gpu, cuda, fake) = start();
    let folder = tempfile::tempdir().unwrap();
    let stream = Stream::new(&gpu, 0);
    let registered = RegisteredStream::new(stream.raw(), 0).unwrap();
    let why = registered.why_not().unwrap().to_string();
    assert!(why.contains("there is no direct path"), "{why}");
    assert_eq!(fake.calls("*"), 0);
    let handle = open(&file(folder.path(), "source", 1, LEN), 2, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let read = stream.read(&handle, &mut memory, 0..LEN, 0).unwrap();
    let written = stream.write(&handle, &memory, 0..LEN, 1).unwrap();
    assert_eq!(read.check().unwrap(), LEN);
    assert_eq!(written.check().unwrap(), LEN);
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    let stored = std::fs::read(handle.path()).unwrap();
    assert_same(&stored[1..], &pattern(1, 0, LEN));
    assert_eq!(
        fake.calls("cuFileReadAsync") + fake.calls("cuFileWriteAsync"),
        0
    );
    drop((read, written, handle));
    assert_at_rest(&cuda, &fake);
}

#[test]
fn one_thread_at_a_time_calls_cufile_for_a_stream() {
    let folder = tempfile::tempdir().unwrap();
    let (gpu, cuda, fake, direct) = start_direct(folder.path());
    let handle = open(&file(folder.path(), "source", 1, LEN), 2, 4096);
    let stream = Stream::new(&gpu, 0);
    thread::scope(|scope| {
        for number in 0..4_usize {
            let (gpu, handle, stream) = (&gpu, &handle, &stream);
            scope.spawn(move || {
                let mut memory = Memory::new(gpu, 0, Kind::Plain, 5000);
                for turn in 0..20 {
                    let offset = (number * 100 + turn) as u64;
                    let read = stream.read(handle, &mut memory, 0..5000, offset).unwrap();
                    assert_eq!(read.check().unwrap(), 5000);
                    drop(read);
                    assert_same(&memory.bytes(), &pattern(1, offset, 5000));
                }
            });
        }
    });
    assert_eq!(fake.calls("cuFileReadAsync"), 80);
    drop((handle, direct));
    assert_at_rest(&cuda, &fake);
}

#[test]
fn cufile_moves_the_bytes_when_the_stream_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let (gpu, cuda, fake, direct) = start_direct(folder.path());
    let handle = open(&file(folder.path(), "source", 1, LEN), 2, 4096);
    let copy = open(&folder.path().join("copy"), 2, 4096);
    let stream = Stream::new(&gpu, 0);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN + 100);
    let held = stream.hold_before(&memory, 9);
    let read = stream.read(&handle, &mut memory, 50..LEN + 50, 0).unwrap();
    let whole = 8 * 4096;
    let written = stream.write(&copy, &memory, 50..whole + 50, 4096).unwrap();
    thread::sleep(Duration::from_millis(20));
    assert!(!read.is_done() && !written.is_done());
    drop(held);
    assert_eq!(written.check().unwrap(), whole);
    assert!(read.is_done());
    assert_eq!(read.check().unwrap(), LEN);
    assert_same(&memory.bytes()[50..LEN + 50], &pattern(1, 0, LEN));
    assert_all(&memory.bytes()[..50], 9);
    assert_same(
        &std::fs::read(copy.path()).unwrap()[4096..],
        &pattern(1, 0, whole),
    );
    // Parts of pages go our own way.
    let parts = stream.write(&copy, &memory, 50..LEN + 50, 3).unwrap();
    assert_eq!(parts.check().unwrap(), LEN);
    assert_same(
        &std::fs::read(copy.path()).unwrap()[3..],
        &pattern(1, 0, LEN),
    );
    assert_eq!(
        [
            fake.calls("cuFileReadAsync"),
            fake.calls("cuFileWriteAsync")
        ],
        [1, 1]
    );
    drop((read, written, parts, handle, copy, direct));
    assert_at_rest(&cuda, &fake);
}

#[test]
fn cufile_is_asked_for_what_the_file_has_when_the_stream_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let (gpu, cuda, fake, direct) = start_direct(folder.path());
    let handle = open(&file(folder.path(), "source", 1, 1000), 2, 4096);
    let stream = Stream::new(&gpu, 0);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    memory.set(UNTOUCHED);
    let held = stream.hold();
    let short = stream.read(&handle, &mut memory, 0..2000, 10).unwrap();
    let behind = stream.read(&handle, &mut memory, 0..9, 1000).unwrap();
    let written = stream.write(&handle, &memory, 0..990, 1000).unwrap();
    let grown = stream.read(&handle, &mut memory, 3000..6000, 1000).unwrap();
    drop(held);
    assert_eq!(short.check().unwrap(), 990);
    assert_eq!(behind.check().unwrap(), 0);
    assert_eq!(written.check().unwrap(), 990);
    assert_eq!(grown.check().unwrap(), 990);
    let bytes = memory.bytes();
    assert_same(&bytes[..990], &pattern(1, 10, 990));
    assert_all(&bytes[990..3000], UNTOUCHED);
    assert_same(&bytes[3000..3990], &pattern(1, 10, 990));
    assert_all(&bytes[3990..], UNTOUCHED);
    drop((short, behind, written, grown, handle, direct));
    assert_at_rest(&cuda, &fake);
}

#[test]
fn what_cufile_says_later_is_told_when_it_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let (gpu, cuda, fake, direct) = start_direct(folder.path());
    let handle = open(&file(folder.path(), "source", 1, LEN), 2, 4096);
    let stream = Stream::new(&gpu, 0);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    fake.fail_late("cuFileReadAsync", "1", 5044);
    let read = stream.read(&handle, &mut memory, 0..LEN, 0).unwrap();
    let error = read.check().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Device, "{error}");
    assert_eq!(read.check().unwrap_err().to_string(), error.to_string());
    drop(read);
    fake.succeed();
    // Refused at the call.
    fake.fail("cuFileReadAsync", "1", 5022);
    let error = stream.read(&handle, &mut memory, 0..LEN, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Device, "{error}");
    fake.succeed();
    fake.fall_short("cuFileReadAsync", "1");
    let read = stream.read(&handle, &mut memory, 0..LEN, 0).unwrap();
    let error = read.check().unwrap_err();
    let found = (error.kind(), error.done());
    assert_eq!(found, (ErrorKind::Io, LEN as u64 / 2), "{error}");
    fake.succeed();
    drop((read, handle, direct));
    assert_at_rest(&cuda, &fake);
}

#[test]
fn a_cufile_without_such_calls_leaves_them_to_our_own_way() {
    let (gpu, driver, _) = start();
    let symbols = [
        "cuFileReadAsync",
        "cuFileWriteAsync",
        "cuFileStreamRegister",
    ];
    let (beside, old) = without(&cufile(), &symbols);
    // Where it looks for the driver.
    std::os::unix::fs::symlink(cuda(), beside.path().join("libcuda_fake.so")).unwrap();
    let settings = Layer::new().cufile_library(Some(old));
    Config::set_process(settings.compat_mode(CompatMode::Off)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 2, 4096);
    let stream = Stream::new(&gpu, 0);
    let registered = RegisteredStream::new(stream.raw(), 0).unwrap();
    let why = registered.why_not().unwrap();
    assert_eq!(why.kind(), ErrorKind::Unsupported, "{why}");
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let read = stream.read(&handle, &mut memory, 0..LEN, 0).unwrap();
    assert_eq!(read.check().unwrap(), LEN);
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    let written = stream.write(&handle, &memory, 0..LEN, 5).unwrap();
    assert_eq!(written.check().unwrap(), LEN);
    assert_same(
        &std::fs::read(handle.path()).unwrap()[5..],
        &pattern(1, 0, LEN),
    );
    assert_eq!(driver.faults(), Vec::<String>::new());
    assert_eq!(kvik::pinned_memory().lent, 0);
}

#[test]
fn a_cufile_without_such_calls_makes_no_call_wait_for_a_stream_that_is_held() {
    let (gpu, driver, _) = start();
    let (beside, old) = without(&cufile(), &["cuFileReadAsync", "cuFileWriteAsync"]);
    std::os::unix::fs::symlink(cuda(), beside.path().join("libcuda_fake.so")).unwrap();
    FakeCuFile::at(&old).set_direct(true);
    kvik::driver::for_tests::show_direct_path(Ok("the test shows one"));
    Config::set_process(Layer::new().cufile_library(Some(old))).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let settings = Layer::new().gds_threshold(ByteSize::new(0));
    let handle = FileHandle::options()
        .read(true)
        .compat(CompatMode::Auto)
        .open_with(
            file(folder.path(), "source", 1, LEN),
            &Config::resolve([settings]).unwrap(),
        )
        .unwrap();
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    let route = handle.device_route().unwrap().to_string();
    assert!(route.contains("a direct path was proven"), "{route}");
    let stream = Stream::new(&gpu, 0);
    let held = stream.hold_before(&memory, 9);
    // It would wait for ever: only this thread lets the stream go on.
    let read = stream.read(&handle, &mut memory, 0..LEN, 0).unwrap();
    drop(held);
    assert_eq!(read.check().unwrap(), LEN);
    drop(read);
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    drop(handle);
    assert_eq!(driver.faults(), Vec::<String>::new());
}

#[test]
fn streams_are_registered_until_the_value_is_dropped_and_their_hints_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (gpu, cuda, fake, direct) = start_direct(folder.path());
    let handle = open(&file(folder.path(), "source", 1, LEN), 2, 4096);
    let stream = Stream::new(&gpu, 0);
    for hints in [0x10, 0x1F, u32::MAX] {
        let error = RegisteredStream::new(stream.raw(), hints).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    }
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    for hints in 0..=0xF {
        let registered = RegisteredStream::new(stream.raw(), hints).unwrap();
        assert!(registered.why_not().is_none());
        assert_eq!(fake.streams(), 1);
        let before = fake.calls("cuFileReadAsync");
        memory.set(UNTOUCHED);
        let odd = stream.read(&handle, &mut memory, 1..5000, 7).unwrap();
        assert_eq!(odd.check().unwrap(), 4999);
        assert_same(&memory.bytes()[1..5000], &pattern(1, 7, 4999));
        // What is promised to be whole pages and is not goes another way.
        let by_cufile = usize::from(hints & 8 == 0);
        assert_eq!(fake.calls("cuFileReadAsync") - before, by_cufile);
        let page = memory.address().next_multiple_of(4096) - memory.address();
        let pages = page as usize..page as usize + 8192;
        let whole = stream.read(&handle, &mut memory, pages.clone(), 4096);
        assert_eq!(whole.unwrap().check().unwrap(), 8192);
        assert_same(&memory.bytes()[pages], &pattern(1, 4096, 8192));
        // They may come to be none, unless the size is that of the call.
        let whole_by_cufile = usize::from(hints & 8 == 0 || hints & 4 != 0);
        let so_far = by_cufile + whole_by_cufile;
        assert_eq!(fake.calls("cuFileReadAsync") - before, so_far);
        // Nor are these whole pages: the file ends within the last one.
        let pages = page as usize..page as usize + 8192;
        let last = stream.read(&handle, &mut memory, pages.clone(), 36_864);
        assert_eq!(last.unwrap().check().unwrap(), LEN - 36_864);
        let there = pages.start..pages.start + LEN - 36_864;
        assert_same(&memory.bytes()[there], &pattern(1, 36_864, LEN - 36_864));
        let so_far = so_far + by_cufile;
        assert_eq!(fake.calls("cuFileReadAsync") - before, so_far);
        // Where the size is that of the call, nothing is asked for behind the end.
        let nothing = stream.read(&handle, &mut memory, pages.clone(), 40_960);
        assert_eq!(nothing.unwrap().check().unwrap(), 0);
        let asked = usize::from(hints & 12 == 0);
        assert_eq!(fake.calls("cuFileReadAsync") - before, so_far + asked);
        drop(registered);
        assert_eq!(fake.streams(), 0);
    }
    drop((handle, direct));
    assert_at_rest(&cuda, &fake);
}

#[test]
fn without_cufile_registering_a_stream_does_nothing_and_says_why() {
    let (gpu, _, _) = start();
    let nowhere = Some("/nowhere/libcufile.so.0".into());
    let settings = Layer::new().cufile_library(nowhere);
    Config::set_process(settings.compat_mode(CompatMode::Off)).unwrap();
    let registered = RegisteredStream::new(Stream::new(&gpu, 0).raw(), 0xF).unwrap();
    let why = registered.why_not().unwrap();
    assert_eq!(why.kind(), ErrorKind::GdsUnavailable);
    assert!(why.to_string().contains("/nowhere/libcufile.so.0"), "{why}");
}

/// The default stream of a context has several names, and is one stream.
#[test]
fn a_stream_keeps_the_hints_that_it_was_registered_with_whichever_way_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (gpu, cuda, fake, direct) = start_direct(folder.path());
    let handle = open(&file(folder.path(), "source", 1, 1000), 2, 4096);
    let mine = OwnContext::new(&gpu, 0);
    let names = mine.names_of_default();
    // A size that is read at the call, and whole pages, which none of these transfers has.
    for (hints, by_cufile) in [(4, 3), (8, 0)] {
        for registered in names {
            let registered = mine.within(|| RegisteredStream::new(registered, hints).unwrap());
            assert!(registered.why_not().is_none());
            let before = fake.calls("cuFileReadAsync");
            for named in names {
                let buffer = mine.within(|| DeviceBuffer::on_current(5000)).unwrap();
                let read = mine.within(|| handle.read_on_stream(buffer, 1, named));
                let (outcome, buffer) = read.unwrap().finish();
                assert_eq!(outcome.unwrap(), 999);
                let mut bytes = vec![0; 5000];
                buffer.copy_to_host(&mut bytes).unwrap();
                assert_same(&bytes[..999], &pattern(1, 1, 999));
            }
            assert_eq!(fake.calls("cuFileReadAsync") - before, by_cufile);
            drop(registered);
            assert_eq!(fake.streams(), 0);
        }
    }
    drop((handle, direct));
    assert_at_rest(&cuda, &fake);
}

/// The mark of a transfer dies with its context, and nobody may ask the driver for it then.
#[test]
fn a_transfer_whose_context_is_destroyed_is_done_and_its_mark_is_not_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (gpu, cuda, fake, direct) = start_direct(folder.path());
    let handle = open(&file(folder.path(), "source", 1, LEN), 2, 4096);
    for checked in [false, true] {
        let mine = OwnContext::new(&gpu, 0);
        let buffer = mine.within(|| DeviceBuffer::on_current(LEN)).unwrap();
        let read = mine.within(|| handle.read_on_stream(buffer, 0, RawStream::DEFAULT));
        let read = read.unwrap();
        if checked {
            assert_eq!(read.check().unwrap(), LEN);
        }
        while fake.moving() > 0 {
            thread::yield_now();
        }
        drop(mine);
        cuda.start_log();
        assert!(read.is_done());
        assert_eq!(read.check().is_ok(), checked);
        drop(read);
        let asked = cuda.log().join(" ");
        assert!(!asked.contains("cuEvent"), "{asked}");
    }
    drop((handle, direct));
    assert_eq!(cuda.faults(), Vec::<String>::new());
}
