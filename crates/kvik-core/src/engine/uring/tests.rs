//! What once could break: bytes in the wrong place when pieces are answered in any order, memory touched behind the
//! count, neighbours of a direct write.

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;
use crate::corridor::Call;
use crate::error::{ErrorKind, Place};
use crate::pool::ThreadPool;
use crate::target::{Source, Target};

pub(super) const UNTOUCHED: u8 = 0xEE;
const GUARD: usize = 4096;
pub(super) const LEN: usize = (3 << 20) + 777;
pub(super) const BLOCKS: Alignment = Alignment {
    memory: 512,
    read: 512,
    write: 512,
    boundary: 4096,
};

pub(super) fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8)
        .collect()
}

pub(super) fn buffered(path: &Path) -> Arc<File> {
    Arc::new(File::options().read(true).write(true).open(path).unwrap())
}

pub(super) fn unbuffered(path: &Path) -> Arc<File> {
    let mut options = File::options();
    let options = options.read(true).write(true).custom_flags(libc::O_DIRECT);
    let file = options.open(path).unwrap_or_else(|error| {
        panic!("this test needs a temporary folder with direct I/O (set TMPDIR): {error}")
    });
    Arc::new(file)
}

pub(super) fn direct(path: &Path, alignment: Alignment) -> Uring {
    let second = (unbuffered(path), alignment);
    Uring::direct(buffered(path), second, Edges::Overread, ByteSize::mib(16)).unwrap()
}

pub(super) fn engines(path: &Path) -> [Arc<dyn Engine>; 2] {
    [
        Arc::new(Uring::buffered(buffered(path))),
        Arc::new(direct(path, BLOCKS)),
    ]
}

pub(super) fn call(engine: Arc<dyn Engine>, threads: usize, task_size: u64) -> Call {
    Call {
        for_device: Arc::clone(&engine),
        cufile: None,
        bounce_buffer_size: 16 << 20,
        engine,
        pool: ThreadPool::new("uring"),
        threads,
        task_size,
        deadline: None,
        place: Place::from(Path::new("file")),
        name: "file".into(),
    }
}

/// A place in the file: near its start, its end, or a block.
fn offsets() -> impl Strategy<Value = usize> {
    prop_oneof![
        0..2 * LEN,
        0usize..5000,
        LEN - 5000..LEN + 5000,
        (0usize..800).prop_map(|block| block * 4096)
    ]
}

fn lengths() -> impl Strategy<Value = usize> {
    prop_oneof![
        0usize..9000,
        Just(4096),
        (0usize..200).prop_map(|block| block * 4096),
        0..LEN
    ]
}

fn skews() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0usize), Just(16), Just(512), 0usize..4096]
}

#[test]
fn reads_land_where_they_belong_and_touch_nothing_else() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let stored = pattern(LEN);
    fs::write(file.path(), &stored).unwrap();
    let [plain, past_the_cache] = engines(file.path());
    let mut runner = TestRunner::new(Config {
        cases: 300,
        failure_persistence: None,
        ..Config::default()
    });
    let memory = RefCell::new(vec![0; 3 * LEN]);
    let address = memory.borrow().as_ptr().addr();
    let base = address.next_multiple_of(4096) - address;
    let paper = (offsets(), lengths(), skews(), any::<bool>(), any::<bool>());
    let outcome = runner.run(&paper, |(offset, len, skew, is_direct, is_cut)| {
        let engine = if is_direct { &past_the_cache } else { &plain };
        let call = call(Arc::clone(engine), 1, if is_cut { 65_536 } else { 4 << 20 });
        let mut memory = memory.borrow_mut();
        let start = base + GUARD + skew;
        let around = start - GUARD..start + len + GUARD;
        memory[around.clone()].fill(UNTOUCHED);
        let count = call
            .read(
                &mut Target::from(&mut memory[start..start + len]),
                offset as u64,
            )
            .unwrap();
        let expected = &stored[offset.min(LEN)..(offset + len).min(LEN)];
        prop_assert_eq!(count, expected.len());
        prop_assert!(memory[start..start + count] == *expected, "other bytes");
        let mut rest = memory[around.start..start]
            .iter()
            .chain(&memory[start + count..around.end]);
        prop_assert!(
            rest.all(|byte| *byte == UNTOUCHED),
            "memory around was touched"
        );
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn writes_leave_their_neighbours_alone_and_the_file_as_long_as_it_must_be() {
    let stored = RefCell::new(pattern(LEN));
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), &*stored.borrow()).unwrap();
    let engines = engines(file.path());
    let mut runner = TestRunner::new(Config {
        cases: 100,
        failure_persistence: None,
        ..Config::default()
    });
    let paper = (
        offsets(),
        lengths(),
        skews(),
        any::<bool>(),
        any::<u8>(),
        any::<bool>(),
    );
    let outcome = runner.run(&paper, |(offset, len, skew, is_direct, seed, is_cut)| {
        let source: Vec<u8> = pattern(skew + len).iter().map(|byte| byte ^ seed).collect();
        let source = &source[skew..];
        let call = call(
            Arc::clone(&engines[usize::from(is_direct)]),
            2,
            if is_cut { 65_536 } else { 4 << 20 },
        );
        prop_assert_eq!(
            call.write(Source::from(source), offset as u64).unwrap(),
            len
        );
        let mut stored = stored.borrow_mut();
        if len > 0 && stored.len() < offset + len {
            stored.resize(offset + len, 0);
        }
        if len > 0 {
            stored[offset..offset + len].copy_from_slice(source);
        }
        prop_assert!(
            fs::read(file.path()).unwrap() == *stored,
            "the file differs"
        );
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn a_file_that_refuses_writes_says_why_and_how_far() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), pattern(LEN)).unwrap();
    let readable = Arc::new(File::open(file.path()).unwrap());
    let call = call(Arc::new(Uring::buffered(readable)), 1, 4 << 20);
    let error = call.write(Source::from(&[1u8; 5000]), 0).unwrap_err();
    assert_eq!(
        (error.kind(), error.done()),
        (ErrorKind::PermissionDenied, 0)
    );
}

#[test]
fn a_read_in_a_file_that_changes_under_it_is_a_read_of_one_of_its_lengths() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let stored = pattern(1 << 20);
    let other = buffered(file.path());
    for engine in engines(file.path()) {
        let call = call(engine, 2, 65_536);
        for round in 0..20u64 {
            other.set_len(0).unwrap();
            other.write_all_at(&stored, 0).unwrap();
            let mut bytes = vec![UNTOUCHED; 2 << 20];
            let cut = round * 40_001;
            let pending = call.submit_read(std::mem::take(&mut bytes), 0);
            other.set_len(cut).unwrap();
            let (count, bytes) = pending.finish();
            let count = count.unwrap();
            assert!(count <= 1 << 20 && count >= cut as usize);
            assert!(bytes[..cut as usize] == stored[..cut as usize]);
        }
    }
}
