//! cuFile: the real one in its compatible mode, at least, where the device is real.

mod batches;

use std::fs;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use kvik::{
    ByteSize, CompatMode, Config, DeviceBuffer, ErrorKind, FileHandle, Layer, RegisteredStream,
    driver, stats,
};
use kvik_tests::gpu::{Gpu, Kind, Memory, Stream, deregister, register};
use kvik_tests::need;
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, file, pattern};
use tempfile::TempDir;

const LEN: usize = 3_000_000;

/// A file, and a handle on it whose device transfers all go by cuFile.
fn setup(name: &str) -> (Gpu, TempDir, FileHandle) {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), name, 1, LEN);
    need::cufile(&gpu, &path);
    let settings = Layer::new()
        .num_threads(4)
        .task_size(ByteSize::kib(256))
        .gds_threshold(ByteSize::new(0));
    let options = FileHandle::options().read(true).write(true);
    let handle = options
        .compat(CompatMode::Off)
        .open_with(&path, &Config::resolve([settings]).unwrap())
        .unwrap();
    (gpu, folder, handle)
}

#[test]
fn cufile_moves_the_bytes_of_every_offset_length_and_address() {
    let (gpu, _folder, handle) = setup("both");
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN + 100);
    let mut truth = pattern(1, 0, LEN);
    for len in [1, 511, 4096, 4097, 65_536, 1_000_001] {
        for (offset, at) in [(0, 0), (1, 0), (4096, 1), (5000, 64), (LEN - len, 99)] {
            memory.set(UNTOUCHED);
            let target = memory.target(at..at + len);
            handle.read_exact_at(target, offset as u64).unwrap();
            let bytes = memory.bytes();
            assert_all(&bytes[..at], UNTOUCHED);
            assert_same(&bytes[at..at + len], &truth[offset..offset + len]);
            assert_all(&bytes[at + len..], UNTOUCHED);
            // And back, elsewhere.
            let to = (offset + 8191) % (LEN - len + 1);
            let source = memory.source(at..at + len);
            handle.write_all_at(source, to as u64).unwrap();
            truth.copy_within(offset..offset + len, to);
            assert_same(&fs::read(handle.path()).unwrap(), &truth);
        }
    }
}

#[test]
fn cufile_reads_up_to_the_end_of_the_file_and_unsplit_too() {
    let (gpu, _folder, handle) = setup("end");
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    memory.set(UNTOUCHED);
    let count = handle.read_at(memory.target(0..LEN), 1_000_003).unwrap();
    assert_eq!(count, LEN - 1_000_003);
    let bytes = memory.bytes();
    assert_same(&bytes[..count], &pattern(1, 1_000_003, count));
    assert_all(&bytes[count..], UNTOUCHED);
    assert_eq!(handle.read_at(memory.target(0..9), LEN as u64).unwrap(), 0);
    let count = handle.read_unsplit(memory.target(0..LEN), 7).unwrap();
    assert_same(&memory.bytes()[..count], &pattern(1, 7, LEN - 7));
}

#[test]
fn cufile_waits_for_what_was_queued_before_and_serves_many_threads() {
    let (gpu, _folder, handle) = setup("threads");
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let stream = Stream::new(&gpu, 0);
    drop(stream.hold_before(&memory, 7));
    let target = memory.target(0..LEN).behind(stream.raw());
    handle.read_exact_at(target, 0).unwrap();
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    thread::scope(|scope| {
        for number in 0..8_u64 {
            let (gpu, handle) = (&gpu, &handle);
            scope.spawn(move || {
                let mut memory = Memory::new(gpu, 0, Kind::Plain, 500_000);
                let offset = number * 100_001;
                handle
                    .read_exact_at(memory.target(0..500_000), offset)
                    .unwrap();
                assert_same(&memory.bytes(), &pattern(1, offset, 500_000));
            });
        }
    });
}

#[test]
fn statistics_tell_what_went_by_cufile() {
    #[derive(Default)]
    struct Seen(Mutex<Vec<(stats::Backend, u64)>>);
    impl stats::Listener for Seen {
        fn started(&self, _: &stats::Operation) {}

        fn finished(&self, operation: &stats::Operation, outcome: &stats::Outcome) {
            let seen = (operation.backend, outcome.bytes);
            self.0.lock().unwrap().push(seen);
        }
    }
    let (gpu, _folder, handle) = setup("counted");
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let seen = Arc::new(Seen::default());
    let listening = stats::listen(Arc::clone(&seen) as Arc<dyn stats::Listener>);
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    handle.write_all_at(memory.source(0..10), 0).unwrap();
    handle.read_exact_at(&mut [0; 10], 0).unwrap();
    drop(listening);
    let expected = [
        (stats::Backend::Gds, LEN as u64),
        (stats::Backend::Gds, 10),
        (stats::Backend::Posix, 10),
    ];
    assert_eq!(*seen.0.lock().unwrap(), expected);
}

#[test]
fn the_driver_opens_is_asked_and_set_and_closes_when_nothing_is_registered() {
    let (gpu, folder, handle) = setup("driver");
    let (major, minor) = driver::version().unwrap();
    assert!((1, 8) <= (major, minor), "{major}.{minor}");
    driver::open().unwrap();
    let open = driver::initialize().unwrap();
    let told = driver::properties().unwrap();
    // Where nvidia-fs is missing, only the compatible mode registers files.
    assert!(told.allow_compat_mode || told.nvidia_fs_version != (0, 0) || told.p2pdma);
    assert!(
        told.max_device_cache_size_kib > 0 && told.max_batch_io_size > 0,
        "{told:?}"
    );
    driver::set_max_device_cache_size_kib(told.max_device_cache_size_kib / 2).unwrap();
    let set = driver::properties().unwrap().max_device_cache_size_kib;
    // Without nvidia-fs, 1.15 takes the value and goes on telling the old one.
    let known = [1, 2].map(|part| told.max_device_cache_size_kib / part);
    assert!(known.contains(&set), "{set} of {told:?}");
    driver::set_max_device_cache_size_kib(told.max_device_cache_size_kib).unwrap();

    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    drop(open);
    driver::close().unwrap();
    assert_eq!(driver::close().unwrap_err().kind(), ErrorKind::Misuse);
    // Closed under no file; and opened once more for the next one.
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
    drop(handle);
    drop(driver::initialize().unwrap());
    let path = folder.path().join("driver");
    let options = FileHandle::options()
        .read(true)
        .compat(CompatMode::Off)
        .open(path);
    options
        .unwrap()
        .read_exact_at(memory.target(0..LEN), 0)
        .unwrap();
    assert_same(&memory.bytes(), &pattern(1, 0, LEN));
}

/// fastsafetensors#28, ai-dynamo/nixl#2146: registering a buffer twice, or a part of it, ends the load with a bare number.
#[test]
fn g3_a_buffer_is_registered_twice_in_parts_and_not_at_all_and_all_transfers_are_right() {
    let (gpu, _folder, handle) = setup("registered");
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    // The driver is open now, so that each is asked for.
    for at in [0, 5_000, 5_000] {
        let registration = register(memory.address() + at).unwrap();
        assert!(registration.is_registered(), "{registration:?}");
    }
    memory.set(UNTOUCHED);
    handle.read_exact_at(memory.target(5_000..LEN), 7).unwrap();
    assert_same(&memory.bytes()[5_000..], &pattern(1, 7, LEN - 5_000));
    memory.set(UNTOUCHED);
    let stream = Stream::new(&gpu, 0);
    let read = stream.read(&handle, &mut memory, 5_000..LEN, 7).unwrap();
    assert_eq!(read.check().unwrap(), LEN - 5_000);
    drop(read);
    assert_same(&memory.bytes()[5_000..], &pattern(1, 7, LEN - 5_000));
    for at in [9, 5_000, 0] {
        deregister(memory.address() + at).unwrap();
    }
    let error = deregister(memory.address()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);

    // Larger than any window through which others see the device's memory, where there is so much: registered or not, it is used.
    let mut large = DeviceBuffer::new(0, 1 << 30).unwrap().register();
    eprintln!("a gigabyte: {:?}", large.registration());
    handle.read_at(&mut large, 0).unwrap();
    let mut bytes = vec![0; LEN];
    large.copy_to_host(&mut bytes).unwrap();
    assert_same(&bytes, &pattern(1, 0, LEN));
    handle.write_all_at(memory.source(0..LEN), 0).unwrap();
    for kind in [Kind::Managed, Kind::Pinned] {
        let mut other = Memory::new(&gpu, 0, kind, LEN);
        assert!(!register(other.address()).unwrap().is_registered());
        handle.read_exact_at(other.target(0..LEN), 0).unwrap();
        assert_same(&other.bytes(), &memory.bytes());
        deregister(other.address()).unwrap();
    }
}

/// kvikio#437, cudf#21094, kvikio#818: a write to a file starts before the work that fills the buffer has ended.
#[test]
fn g2_a_write_by_cufile_waits_for_the_work_that_fills_its_buffer() {
    let (gpu, _folder, handle) = setup("written");
    for (turn, named) in [(1, false), (2, true)] {
        let stream = match named {
            true => Stream::new(&gpu, 0),
            false => Stream::default_of(&gpu, 0),
        };
        let memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
        let held = stream.hold_before(&memory, turn);
        let source = match named {
            true => memory.source(0..LEN).behind(stream.raw()),
            false => memory.source(0..LEN),
        };
        thread::scope(|scope| {
            let write = scope.spawn(|| handle.write_at(source, 0));
            // It has time to go wrong, and none to end.
            thread::sleep(Duration::from_millis(30));
            assert!(!write.is_finished(), "the stream is held");
            drop(held);
            assert_eq!(write.join().unwrap().unwrap(), LEN);
        });
        assert_all(&fs::read(handle.path()).unwrap(), turn);
    }
}

/// In cuFile's compatible mode they go kvik's own way: there its calls wait until the stream is there, and end the process if two
/// threads make one at a time (1.15).
#[test]
fn transfers_in_the_order_of_a_stream_are_right_on_a_handle_of_cufiles() {
    let (gpu, _folder, handle) = setup("on stream");
    let stream = Stream::new(&gpu, 0);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    for (offset, at, len) in [(0, 0, LEN), (4097, 3, 1_000_001), (7, 0, 1)] {
        memory.set(UNTOUCHED);
        let read = stream.read(&handle, &mut memory, at..at + len, offset);
        let written = stream.write(&handle, &memory, at..at + len, LEN as u64);
        assert_eq!(read.unwrap().check().unwrap(), len);
        assert_eq!(written.unwrap().check().unwrap(), len);
        let truth = pattern(1, offset, len);
        let bytes = memory.bytes();
        assert_all(&bytes[..at], UNTOUCHED);
        assert_same(&bytes[at..at + len], &truth);
        assert_all(&bytes[at + len..], UNTOUCHED);
        let stored = fs::read(handle.path()).unwrap();
        assert_same(&stored[LEN..LEN + len], &truth);
        handle.set_len(LEN as u64).unwrap();
    }
}

#[test]
fn transfers_in_the_order_of_a_stream_find_the_file_of_cufiles_as_it_is_then() {
    let (gpu, _folder, handle) = setup("behind");
    let stream = Stream::new(&gpu, 0);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    let end = LEN as u64;
    let held = stream.hold_before(&memory, 9);
    let short = stream.read(&handle, &mut memory, 1000..9000, end - 500);
    let written = stream.write(&handle, &memory, 0..1000, end);
    let behind = stream.read(&handle, &mut memory, 20_000..29_000, end + 1000);
    let grown = stream.read(&handle, &mut memory, 40_000..49_000, end - 500);
    thread::sleep(Duration::from_millis(20));
    assert!(!short.as_ref().unwrap().is_done());
    drop(held);
    assert_eq!(short.unwrap().check().unwrap(), 500);
    assert_eq!(written.unwrap().check().unwrap(), 1000);
    assert_eq!(behind.unwrap().check().unwrap(), 0);
    assert_eq!(grown.unwrap().check().unwrap(), 1500);
    let bytes = memory.bytes();
    assert_same(&bytes[1000..1500], &pattern(1, end - 500, 500));
    assert_all(&bytes[9000..20_000], 9);
    assert_same(&bytes[40_000..40_500], &pattern(1, end - 500, 500));
    assert_all(&bytes[40_500..41_500], 9);
    assert_all(&bytes[49_000..], 9);
    assert_all(&fs::read(handle.path()).unwrap()[LEN..], 9);
}

#[test]
fn streams_that_cufile_knows_move_the_same_bytes_by_whatever_hints() {
    let (gpu, _folder, handle) = setup("registered");
    let stream = Stream::new(&gpu, 0);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    // From here on its driver is open.
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    for hints in [0, 1, 2, 4, 8, 15] {
        let registered = RegisteredStream::new(stream.raw(), hints).unwrap();
        assert!(registered.why_not().is_none());
        memory.set(UNTOUCHED);
        let odd = stream.read(&handle, &mut memory, 1..5000, 7).unwrap();
        let whole = stream.read(&handle, &mut memory, 8192..65_536, 4096);
        assert_eq!(odd.check().unwrap(), 4999);
        assert_eq!(whole.unwrap().check().unwrap(), 57_344);
        let bytes = memory.bytes();
        assert_same(&bytes[1..5000], &pattern(1, 7, 4999));
        assert_all(&bytes[5000..8192], UNTOUCHED);
        assert_same(&bytes[8192..65_536], &pattern(1, 4096, 57_344));
        assert_all(&bytes[65_536..], UNTOUCHED);
    }
}
