//! Reads and writes under faults, limits and other users; what came of them is printed for the parent to judge.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use kvik::stats::{Backend, SummaryMonitor, names};
use kvik::{ByteSize, EngineKind, EnginePreference, ErrorKind, FileHandle, ReadOptions, Result};
use kvik_tests::pattern::{UNTOUCHED, assert_all, file, pattern};

/// `read PATH OFFSET LEN THREADS TASK_SIZE OUT`: what the target holds afterwards goes to OUT. Without a task size ("-")
/// the call is small enough to be made without the pool, or takes the default.
pub(crate) fn read(args: &[String]) {
    let [path, offset, len, threads, task_size, out] = args else {
        panic!("six arguments")
    };
    let mut target = vec![UNTOUCHED; number(len) as usize];
    let file = FileHandle::open(path).unwrap();
    report(file.read_at_with(&mut target, number(offset), &options(threads, task_size)));
    std::fs::write(out, target).unwrap();
}

/// `write PATH OFFSET LEN THREADS TASK_SIZE`: of the pattern 1, into the file as it is.
pub(crate) fn write(args: &[String]) {
    let [path, offset, len, threads, task_size] = args else {
        panic!("five arguments")
    };
    let source = pattern(1, number(offset), number(len) as usize);
    let file = FileHandle::options()
        .write(true)
        .create(true)
        .open(path)
        .unwrap();
    report(file.write_at_with(&source, number(offset), &options(threads, task_size)));
}

/// `late-pieces PATH`: a read that fails fills its target no more once it has returned.
pub(crate) fn late_pieces(args: &[String]) {
    let file = by_pread(&args[0]);
    let mut target = vec![0; file.len().unwrap() as usize];
    let options = ReadOptions::new()
        .num_threads(8)
        .task_size(ByteSize::mib(1));
    report(file.read_at_with(&mut target, 0, &options));
    target.fill(UNTOUCHED);
    std::thread::sleep(Duration::from_millis(300));
    assert_all(&target, UNTOUCHED);
}

/// The same with a transfer in the background.
pub(crate) fn late_pieces_pending(args: &[String]) {
    let file = by_pread(&args[0]);
    let target = vec![0; file.len().unwrap() as usize];
    let options = ReadOptions::new()
        .num_threads(8)
        .task_size(ByteSize::mib(1));
    let (outcome, mut target) = file.submit_read_with(target, 0, &options).finish();
    report(outcome);
    target.fill(UNTOUCHED);
    std::thread::sleep(Duration::from_millis(300));
    assert_all(&target, UNTOUCHED);
}

/// The file by the engine whose system calls the shim sees.
fn by_pread(path: &str) -> FileHandle {
    let posix = EnginePreference::Only(EngineKind::Posix);
    FileHandle::options()
        .read(true)
        .engine(posix)
        .open(path)
        .unwrap()
}

/// `as-nobody UNREADABLE READABLE`: root gives up its rights first.
pub(crate) fn as_nobody(args: &[String]) {
    let [unreadable, readable] = args else {
        panic!("two arguments")
    };
    if nix::unistd::geteuid().is_root() {
        nix::unistd::setgroups(&[]).unwrap();
        nix::unistd::setgid(65534.into()).unwrap();
        nix::unistd::setuid(65534.into()).unwrap();
    }
    let error = FileHandle::open(unreadable).unwrap_err();
    assert_eq!(
        (error.kind(), error.os_error()),
        (ErrorKind::PermissionDenied, Some(13)),
        "{error}"
    );
    let error = FileHandle::options()
        .read(true)
        .write(true)
        .open(unreadable)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    let error = FileHandle::create(Path::new(readable).with_file_name("new")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");

    let file = FileHandle::open(readable).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes, std::fs::read(readable).unwrap());
    let error = file.write_at(b"x", 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
}

/// `bytes-by-backend FOLDER`: what the statistics count is what the kernel counts.
pub(crate) fn bytes_by_backend(args: &[String]) {
    let folder = Path::new(&args[0]);
    let source = pattern(1, 0, 9_000_001);
    std::fs::write(folder.join("read"), &source).unwrap();
    let monitor = SummaryMonitor::start();
    // The number of cores is looked up in files, once.
    kvik::Config::current().num_threads().unwrap();
    let before = kernel();

    let file = FileHandle::open(folder.join("read")).unwrap();
    let cut = ReadOptions::new()
        .num_threads(4)
        .task_size(ByteSize::kib(100));
    let mut target = vec![0; 10_000_000];
    let mut read = file.read_at(&mut target[..100], 17).unwrap();
    read += file.read_at(&mut target, 0).unwrap();
    read += file
        .read_at_with(&mut target[..5_000_000], 123, &cut)
        .unwrap();
    read += file.submit_read(target, 8_000_001).wait().unwrap();
    read += file.read_at(&mut [0; 10], 20_000_000).unwrap();
    assert_eq!(read, 100 + 9_000_001 + 5_000_000 + 1_000_000);

    let file = FileHandle::create(folder.join("write")).unwrap();
    let mut written = file.write_at(&source[..77], 5).unwrap();
    written += file.write_at_with(&source, 1_000, &cut).unwrap();
    written += file.submit_write(source, 0).wait().unwrap();
    assert_eq!(written, 77 + 2 * 9_000_001);

    let kernel = kernel().since(&before);
    let totals = monitor.get();
    let posix = totals.backend(Backend::Posix);
    assert_eq!(kernel.read, read as u64, "rchar of /proc/self/io");
    assert_eq!(kernel.written, written as u64, "wchar of /proc/self/io");
    assert_eq!(
        (totals.bytes_read, totals.bytes_written),
        (read as u64, written as u64)
    );
    assert_eq!(posix.bytes, (read + written) as u64);
    assert_eq!(
        (totals.reads, totals.writes, totals.errors, posix.operations),
        (5, 3, 0, 8)
    );
    let sum: u64 = totals.by_backend().map(|(_, share)| share.bytes).sum();
    assert_eq!(sum, totals.bytes_transferred());
    assert_eq!(names::FALLBACKS.get(), 0);
}

/// `totals FOLDER`: the sums of a monitor.
pub(crate) fn totals(args: &[String]) {
    let path = file(Path::new(&args[0]), "counted", 1, 1_000_000);
    let handle = FileHandle::options()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let monitor = SummaryMonitor::start();
    let read = handle.read_at(&mut vec![0; 2_000_000], 400_000).unwrap();
    let written = handle.write_at(&vec![1; 700_000], 3).unwrap();
    handle.submit_read(vec![0; 17], 1).wait().unwrap();
    let totals = monitor.get();
    assert_eq!(
        (totals.bytes_read, totals.bytes_written),
        (read as u64 + 17, written as u64)
    );
    assert_eq!(totals.bytes_requested, 2_000_000 + 700_000 + 17);
    assert_eq!(
        (
            totals.operations,
            totals.reads,
            totals.writes,
            totals.errors
        ),
        (3, 2, 1, 0)
    );
    assert_eq!(
        totals.backend(Backend::Posix).bytes,
        totals.bytes_transferred()
    );
    assert_eq!(
        totals
            .by_backend()
            .map(|(_, share)| share.bytes)
            .sum::<u64>(),
        totals.bytes_transferred()
    );
    assert!(totals.busy_ns <= totals.wall_ns());
}

/// `every-call FOLDER`: one of each, right and wrong; the parent looks whether anything was printed.
pub(crate) fn every_call(args: &[String]) {
    let folder = Path::new(&args[0]);
    let path = folder.join("every-call");
    FileHandle::open(&path).unwrap_err();
    FileHandle::open(folder).unwrap_err();
    let file = FileHandle::options()
        .read(true)
        .write(true)
        .create(true)
        .open(&path)
        .unwrap();
    file.write_all_at(&pattern(1, 0, 2_000_000), 0).unwrap();
    file.submit_write(pattern(1, 0, 2_000_000), 2_000_000)
        .wait()
        .unwrap();
    file.read_exact_at(&mut [0; 10], 3_999_995).unwrap_err();
    file.submit_read(vec![0; 4_000_000], 0).wait().unwrap();
    file.submit_read(vec![0; 4_000_000], 0).cancel();
    file.write_at(&[0; 10], u64::MAX).unwrap_err();
    file.sync().unwrap();
    file.sync_data().unwrap();
    file.set_len(5).unwrap();
    file.data_extents(0..5).unwrap();
    let _ = kvik::page_cache_info(&path, 0, 0);
    let _ = kvik::drop_file_page_cache(&path, 0, 0, true);
    let _ = kvik::block_device_of(&path);
    let _ = kvik::FileProbe::of(&path);
    let _ = kvik::Probe::collect();
    kvik::ThreadPool::global().grow(3).unwrap();
}

fn options(threads: &str, task_size: &str) -> ReadOptions {
    let options = ReadOptions::new().num_threads(number(threads) as usize);
    match task_size {
        "-" => options,
        size => options.task_size(ByteSize::new(number(size))),
    }
}

pub(crate) fn report(outcome: Result<usize>) {
    match outcome {
        Ok(count) => println!("ok {count}"),
        Err(error) => {
            println!("{:?} after {}", error.kind(), error.done());
            println!("text: {error}");
        }
    }
    let counters = [
        &names::IO_SHORT,
        &names::IO_INTERRUPTED,
        &names::IO_AGAIN,
        &names::FALLBACKS,
    ];
    counters
        .iter()
        .for_each(|counter| println!("{}: {}", counter.metric().name, counter.get()));
}

fn number(text: &str) -> u64 {
    text.parse().unwrap()
}

/// Bytes that the kernel has moved for this process by read and write calls of all kinds.
struct Moved {
    read: u64,
    written: u64,
    /// The length of the answer itself, which the next one counts as read.
    look: u64,
}

impl Moved {
    fn since(&self, before: &Moved) -> Moved {
        Moved {
            read: self.read - before.read - before.look,
            written: self.written - before.written,
            look: self.look,
        }
    }
}

fn kernel() -> Moved {
    let text = std::fs::read_to_string("/proc/self/io").unwrap();
    let rows: HashMap<_, _> = text
        .lines()
        .filter_map(|line| line.split_once(": "))
        .collect();
    Moved {
        read: number(rows["rchar"]),
        written: number(rows["wchar"]),
        look: text.len() as u64,
    }
}
