//! What comes first: cuFile's calls are ordered with no stream, so that kvik has to wait.

use std::thread;
use std::time::Duration;

use kvik_tests::gpu::{Kind, Memory, Stream};
use kvik_tests::pattern::{assert_all, assert_same, file, pattern};

use super::{assert_at_rest, open, start};

const LEN: usize = 40_000;

#[test]
fn a_read_comes_after_what_was_queued_on_the_default_stream() {
    let (gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let handle = open(&file(folder.path(), "source", 1, LEN), 2, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
    let before = cufile.calls("cuFileRead");
    let held = Stream::default_of(&gpu, 0).hold_before(&memory, 7);
    thread::scope(|scope| {
        let (handle, memory) = (&handle, &mut memory);
        let read = scope.spawn(move || {
            handle.read_exact_at(memory.target(0..LEN), 0).unwrap();
            assert_same(&memory.bytes(), &pattern(1, 0, LEN));
        });
        thread::sleep(Duration::from_millis(30));
        assert_eq!(
            cufile.calls("cuFileRead"),
            before,
            "the stream is not there yet"
        );
        drop(held);
        read.join().unwrap();
    });
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn a_write_takes_what_a_named_stream_has_put_there_before() {
    let (gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "target", 1, LEN);
    let handle = open(&path, 2, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    memory.set(1);
    let stream = Stream::new(&gpu, 0);
    let held = stream.hold_before(&memory, 7);
    thread::scope(|scope| {
        let source = memory.source(0..LEN).behind(stream.raw());
        let handle = &handle;
        let write = scope.spawn(move || handle.write_all_at(source, 0).unwrap());
        thread::sleep(Duration::from_millis(30));
        assert_eq!(
            cufile.calls("cuFileWrite"),
            0,
            "the stream is not there yet"
        );
        drop(held);
        write.join().unwrap();
    });
    assert_all(&std::fs::read(&path).unwrap(), 7);
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}
