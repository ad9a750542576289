//! Processes that may have no more descriptors or threads, and one that holds a lease.

use std::fs::File;
use std::path::Path;

use kvik::{ByteSize, ErrorKind, FileHandle, ReadOptions, ThreadPool};
use kvik_tests::pattern::{assert_same, pattern};

/// `lease PATH`: holds a lease on it until somebody opens it.
pub(crate) fn lease(args: &[String]) {
    let file = File::options()
        .read(true)
        .write(true)
        .open(&args[0])
        .unwrap();
    kvik_tests::os::lease(&file);
    println!("held");
    std::thread::sleep(std::time::Duration::from_secs(60));
}

/// `few-descriptors PATH`, with a limit of some dozens.
pub(crate) fn few_descriptors(args: &[String]) {
    let mut handles = Vec::new();
    let error = loop {
        match FileHandle::open(&args[0]) {
            Ok(handle) => handles.push(handle),
            Err(error) => break error,
        }
    };
    assert_eq!(
        (error.kind(), error.os_error()),
        (ErrorKind::TooManyOpenFiles, Some(libc::EMFILE))
    );
    let text = format!(
        "open {}: Too many open files (EMFILE); close files or raise the limit (ulimit -n)",
        args[0]
    );
    assert_eq!(error.to_string(), text);
    assert!(handles.len() > 20, "{} handles", handles.len());
    // Those that are open work on.
    let options = ReadOptions::new()
        .num_threads(3)
        .task_size(ByteSize::kib(64));
    let mut target = vec![0; 1_000_000];
    assert_eq!(
        handles[0].read_at_with(&mut target, 0, &options).unwrap(),
        1_000_000
    );
    assert_same(&target, &pattern(1, 0, 1_000_000));
    handles.pop();
    FileHandle::open(&args[0]).unwrap();
}

/// `no-threads PATH`, with a limit of one process, which root must lose its rights for to be held by.
pub(crate) fn no_threads(args: &[String]) {
    if nix::unistd::geteuid().is_root() {
        nix::unistd::setuid(65534.into()).unwrap();
    }
    let error = ThreadPool::global().grow(3).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory, "{error}");
    let path = Path::new(&args[0]);
    let file = FileHandle::open(path).unwrap();
    let options = ReadOptions::new()
        .num_threads(4)
        .task_size(ByteSize::kib(64));
    let mut target = vec![0; 1_000_000];
    assert_eq!(
        file.read_at_with(&mut target, 0, &options).unwrap(),
        1_000_000
    );
    assert_same(&target, &pattern(1, 0, 1_000_000));
    let pending = file.submit_read_with(target, 500_000, &options);
    assert_eq!(pending.wait().unwrap(), 500_000);
    assert_same(
        &pending.into_buf()[..500_000],
        &pattern(1, 500_000, 500_000),
    );
    drop(file.submit_read_with(vec![0; 1_000_000], 0, &options));
}
