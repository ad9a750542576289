//! Device memory in processes whose system calls fail, or that end with transfers in flight.

use std::path::Path;
use std::time::Duration;

use kvik::{
    ByteSize, DeviceBuffer, EngineKind, EnginePreference, FileHandle, RawStream, ReadOptions,
    StreamPending,
};
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, pattern};

use crate::transfers::report;

/// `late-pieces-device PATH`: a read that fails fills its buffer no more once it has returned.
pub(crate) fn late_pieces(args: &[String]) {
    let posix = EnginePreference::Only(EngineKind::Posix);
    let options = FileHandle::options().read(true).engine(posix);
    let file = options.open(&args[0]).unwrap();
    let len = file.len().unwrap() as usize;
    let mut buffer = DeviceBuffer::new(0, len).unwrap();
    let options = ReadOptions::new()
        .num_threads(8)
        .task_size(ByteSize::mib(1));
    report(file.read_at_with(&mut buffer, 0, &options));
    buffer.fill(UNTOUCHED).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let mut bytes = vec![0; len];
    buffer.copy_to_host(&mut bytes).unwrap();
    assert_all(&bytes, UNTOUCHED);
}

/// `direct-device PATH`: what is written from a device past the page cache is read back by the same way, whatever the file
/// system does half way.
pub(crate) fn direct(args: &[String]) {
    let path = Path::new(&args[0]);
    for (len, offset) in [(1, 0), (511, 3), (4097, 0), (3_000_003, 3), (3_000_003, 0)] {
        let _ = std::fs::remove_file(path);
        let options = FileHandle::options().read(true).write(true).create(true);
        let file = options.open(path).unwrap();
        let truth = pattern(1, 0, len);
        let mut buffer = DeviceBuffer::new(0, len).unwrap();
        buffer.copy_from_host(&truth).unwrap();
        assert_eq!(file.write_at(&buffer, offset).unwrap(), len);
        let stored = std::fs::read(path).unwrap();
        assert_all(&stored[..offset as usize], 0);
        assert_same(&stored[offset as usize..], &truth);
        buffer.fill(UNTOUCHED).unwrap();
        assert_eq!(file.read_at(&mut buffer, offset).unwrap(), len);
        let mut bytes = vec![0; len];
        buffer.copy_to_host(&mut bytes).unwrap();
        assert_same(&bytes, &truth);
    }
}

/// `on-stream-error PATH`: a read in the order of the default stream that fails, and one behind it.
pub(crate) fn on_stream_error(args: &[String]) {
    let posix = EnginePreference::Only(EngineKind::Posix);
    let options = FileHandle::options().read(true).engine(posix);
    let file = options.open(&args[0]).unwrap();
    let len = file.len().unwrap() as usize;
    let buffer = DeviceBuffer::new(0, len).unwrap();
    let pending = file.read_on_stream(buffer, 0, RawStream::DEFAULT).unwrap();
    let other = DeviceBuffer::new(0, 1000).unwrap();
    let behind = file
        .read_on_stream(other, 5000, RawStream::DEFAULT)
        .unwrap();
    assert_eq!(behind.check().unwrap(), 1000);
    let (outcome, buffer) = pending.finish();
    let done = outcome
        .as_ref()
        .map_or_else(|error| error.done() as usize, |done| *done);
    let mut bytes = vec![0; len];
    buffer.copy_to_host(&mut bytes).unwrap();
    assert_same(&bytes[..done], &pattern(1, 0, done));
    report(outcome);
}

/// `exit-device HOW PATH`: the process ends while transfers are in flight.
pub(crate) fn exit(args: &[String]) {
    let [how, path] = args else {
        panic!("two arguments")
    };
    let file = FileHandle::open(path).unwrap();
    let options = ReadOptions::new()
        .num_threads(4)
        .task_size(ByteSize::kib(64));
    let buffer = || DeviceBuffer::new(0, 8 << 20).unwrap();
    match how.as_str() {
        "main-returns" => {
            // Held by a static, so that nobody drops it.
            static KEPT: std::sync::Mutex<Vec<kvik::Pending<DeviceBuffer>>> =
                std::sync::Mutex::new(Vec::new());
            KEPT.lock()
                .unwrap()
                .push(file.submit_read_with(buffer(), 0, &options));
        }
        "main-exits" => {
            let _pending = file.submit_read_with(buffer(), 0, &options);
            std::process::exit(0);
        }
        "main-leaks" => std::mem::forget(file.submit_read_with(buffer(), 0, &options)),
        "stream-returns" => {
            static KEPT: std::sync::Mutex<Vec<StreamPending<DeviceBuffer>>> =
                std::sync::Mutex::new(Vec::new());
            let pending = file.read_on_stream(buffer(), 0, RawStream::DEFAULT);
            KEPT.lock().unwrap().push(pending.unwrap());
        }
        "stream-exits" => {
            let _pending = file.read_on_stream(buffer(), 0, RawStream::DEFAULT);
            std::process::exit(0);
        }
        "stream-leaks" => {
            let pending = file.read_on_stream(buffer(), 0, RawStream::DEFAULT);
            std::mem::forget(pending.unwrap());
        }
        "thread-reads" => {
            let mut buffer = buffer();
            let (sender, receiver) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                sender.send(()).unwrap();
                file.read_at_with(&mut buffer, 0, &options)
            });
            receiver.recv().unwrap();
        }
        other => panic!("no way to end `{other}`"),
    }
}
