//! Files that are not in the page cache, in a process that has read nothing yet: its first cold pieces go past the cache.

use std::path::Path;

use kvik::stats::names;
use kvik::{ByteSize, FileHandle, ReadOptions, Residency};
use kvik_tests::pattern::{assert_same, pattern};

use crate::transfers::report;

/// `cold-read PATH`: in pieces of 1 MiB by one thread, with the route and the bytes that went past the cache.
pub(crate) fn read(args: &[String]) {
    let [path] = args else { panic!("a path") };
    drop_pages(path);
    let file = FileHandle::open(path).unwrap();
    read_all(&file);
    println!("{}", file.route());
    println!(
        "{}: {}",
        names::BYTES_BY_DIRECT.metric().name,
        names::BYTES_BY_DIRECT.get()
    );
}

/// `cold-rounds PATH`: three pieces, which stay out of the cache at first and are in it when they are read again.
pub(crate) fn rounds(args: &[String]) {
    let [path] = args else { panic!("a path") };
    drop_pages(path);
    let file = FileHandle::open(path).unwrap();
    let all = 0..file.len().unwrap();
    assert_eq!(all.end, 3 << 20);
    read_all(&file);
    assert_eq!(names::BYTES_BY_DIRECT.get(), all.end);
    assert_eq!(file.residency(all.clone()), Residency::Cold);
    // By another handle: it is the file that counts.
    let again = FileHandle::open(path).unwrap();
    read_all(&again);
    assert_eq!(file.residency(all.clone()), Residency::Hot);
    read_all(&file);
    assert_eq!(names::BYTES_BY_DIRECT.get(), all.end);
    assert_eq!(names::FALLBACKS.get(), 0);
}

/// `cold-as-nobody SECRET SHARED`: root gives up its rights between opening and reading.
pub(crate) fn as_nobody(args: &[String]) {
    let [secret, shared] = args else {
        panic!("two paths")
    };
    args.iter().for_each(|path| drop_pages(path));
    let secret = FileHandle::open(secret).unwrap();
    assert!(nix::unistd::geteuid().is_root(), "this needs root");
    nix::unistd::setgroups(&[]).unwrap();
    nix::unistd::setgid(65534.into()).unwrap();
    nix::unistd::setuid(65534.into()).unwrap();
    // What can neither be counted nor sampled is read through the cache.
    let all = 0..secret.len().unwrap();
    assert_eq!(secret.residency(all.clone()), Residency::Unknown);
    read_all(&secret);
    assert_eq!(names::BYTES_BY_DIRECT.get(), 0);
    assert_eq!(names::BYTES_BY_PREAD.get(), all.end);
    // What can be sampled is found to be cold.
    let shared = FileHandle::open(shared).unwrap();
    read_all(&shared);
    assert!(names::BYTES_BY_DIRECT.get() > 0);
    assert_eq!(names::FALLBACKS.get(), 0);
}

fn read_all(file: &FileHandle) {
    let len = file.len().unwrap() as usize;
    let mut target = vec![0; len];
    let cut = ReadOptions::new()
        .num_threads(1)
        .task_size(ByteSize::mib(1));
    report(file.read_at_with(&mut target, 0, &cut));
    assert_same(&target, &pattern(1, 0, len));
}

fn drop_pages(path: &str) {
    kvik::drop_file_page_cache(Path::new(path), 0, 0, true).unwrap();
}
