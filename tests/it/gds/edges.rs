//! Parts of pages that cuFile writes: it reads the page, changes it and writes it back. What once could break: bytes that another
//! task, piece or thread has put into the same page meanwhile.

use std::fs;
use std::sync::Barrier;
use std::thread;

use kvik::{Batch, ByteSize, DeviceBuffer, WriteOptions, WritePiece};
use kvik_tests::gpu::{Kind, Memory};
use kvik_tests::pattern::{assert_same, file, pattern};

use super::{assert_at_rest, open, start};

const LEN: usize = 40_000;

#[test]
fn tasks_and_pieces_that_share_a_page_are_all_written() {
    let (gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "target", 1, LEN);
    let handle = open(&path, 4, 1000);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
    memory.put(0, &pattern(2, 0, LEN));
    let options = WriteOptions::new().task_size(ByteSize::new(1000));
    let count = handle.write_at_with(memory.source(0..LEN), 0, &options);
    assert_eq!(count.unwrap(), LEN);
    assert_same(&fs::read(&path).unwrap(), &pattern(2, 0, LEN));

    memory.put(0, &pattern(3, 0, LEN));
    let pieces: Vec<_> = (0..LEN / 1000)
        .map(|piece| {
            let at = piece * 1000;
            WritePiece::new(at as u64, memory.source(at..at + 1000))
        })
        .collect();
    assert_eq!(handle.write_ranges(&pieces).unwrap(), LEN);
    drop(pieces);
    assert_same(&fs::read(&path).unwrap(), &pattern(3, 0, LEN));
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn entries_of_a_batch_that_share_a_page_are_all_written() {
    let (_gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "target", 1, LEN);
    let handle = open(&path, 2, 4096);
    let mut batch = Batch::new();
    for piece in 0..LEN / 1000 {
        let mut buffer = DeviceBuffer::new(0, 1000).unwrap();
        buffer
            .copy_from_host(&pattern(2, piece as u64 * 1000, 1000))
            .unwrap();
        batch.write(&handle, piece as u64 * 1000, buffer);
    }
    let pending = batch.submit();
    for outcome in pending.wait() {
        assert_eq!(outcome.unwrap(), 1000);
    }
    drop(pending);
    assert_same(&fs::read(&path).unwrap(), &pattern(2, 0, LEN));
    drop(handle);
    assert_at_rest(&cuda, &cufile);
}

#[test]
fn threads_that_write_to_one_page_by_handles_of_their_own_lose_nothing() {
    let (gpu, cuda, cufile) = start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "target", 1, LEN);
    let begin = Barrier::new(4);
    thread::scope(|scope| {
        for number in 0..4 {
            let (begin, path) = (&begin, &path);
            let mut memory = Memory::new(&gpu, 0, Kind::Plain, LEN);
            memory.put(0, &pattern(2, 0, LEN));
            scope.spawn(move || {
                let handle = open(path, 1, 4096);
                begin.wait();
                for piece in (number..LEN / 100).step_by(4) {
                    let at = piece * 100;
                    let source = memory.source(at..at + 100);
                    handle.write_all_at(source, at as u64).unwrap();
                }
            });
        }
    });
    assert_same(&fs::read(&path).unwrap(), &pattern(2, 0, LEN));
    assert_at_rest(&cuda, &cufile);
}
