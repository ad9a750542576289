//! What is no ordinary file: content or a typed error, and never a wait.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::Path;
use std::time::{Duration, Instant};

use kvik::{ErrorKind, FileHandle, ReadAtExt, ReadOptions};
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same};
use nix::sys::stat::Mode;

use crate::{child, cut};

#[track_caller]
fn refused(path: &Path, kind: ErrorKind) {
    let options = FileHandle::options;
    for options in [
        options().read(true),
        options().write(true),
        options().read(true).write(true),
        options().append(true),
        options().write(true).create(true),
    ] {
        let error = options.open(path).unwrap_err();
        assert_eq!(error.kind(), kind, "{options:?}: {error}");
        let advice = if kind == ErrorKind::IsADirectory {
            "name a file inside it"
        } else {
            "has no offsets to read or write at"
        };
        assert!(error.to_string().ends_with(advice), "{error}");
    }
}

#[test]
fn files_that_say_they_are_empty_are_read_to_where_their_content_ends() {
    // Small ones, one of several pages, and one of /sys, which says 4096 and has less.
    for path in [
        "/proc/version",
        "/proc/filesystems",
        "/proc/self/cmdline",
        "/proc/self/auxv",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    ] {
        let truth = std::fs::read(path).unwrap();
        let file = FileHandle::open(path).unwrap();
        assert!(matches!(file.len().unwrap(), 0 | 4096), "{path}");
        assert_same(&file.read_to_end(0).unwrap(), &truth);
        assert_same(&file.read_to_end(5).unwrap(), &truth[5..]);
        assert_eq!(file.read_to_end(1 << 20).unwrap(), b"");
        let mut target = vec![UNTOUCHED; 100_000];
        for options in [ReadOptions::new(), cut(3, 100)] {
            assert_eq!(
                file.read_at_with(&mut target, 0, &options).unwrap(),
                truth.len(),
                "{path}"
            );
            assert_same(&target[..truth.len()], &truth);
        }
        assert_eq!(file.submit_read(target, 0).wait().unwrap(), truth.len());
        let error = file
            .read_exact_at(&mut vec![0; truth.len() + 1], 0)
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.done()),
            (ErrorKind::UnexpectedEof, truth.len() as u64)
        );
    }
}

#[test]
fn a_proc_file_of_many_pages_is_read_whole_by_many_threads() {
    // The environment of a process is as long as one makes it, and says 0.
    let long = "x".repeat(100_000);
    let mut sleeper = std::process::Command::new("sleep")
        .arg("60")
        .env_clear()
        .envs((0..12).map(|n| (format!("VARIABLE_{n}"), &long)))
        .spawn()
        .unwrap();
    let path = format!("/proc/{}/environ", sleeper.id());
    // It has its environment shortly after `exec` has closed our end of the pipe that `spawn` waits on.
    let limit = Instant::now() + Duration::from_secs(60);
    let truth = loop {
        let truth = std::fs::read(&path).unwrap();
        if !truth.is_empty() || Instant::now() > limit {
            break truth;
        }
    };
    let file = FileHandle::open(&path).unwrap();
    let read = file.read_to_end(0);
    let mut target = vec![UNTOUCHED; 2_000_000];
    let cut = cut(4, 10_007);
    let count = file.read_at_with(&mut target, 0, &cut);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(truth.len() > 1_200_000, "{} bytes", truth.len());
    assert_same(&read.unwrap(), &truth);
    assert_same(&target[..count.unwrap()], &truth);
}

#[test]
fn a_fifo_is_refused_at_once_with_and_without_somebody_at_the_other_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fifo");
    nix::unistd::mkfifo(&path, Mode::from_bits_truncate(0o600)).unwrap();
    refused(&path, ErrorKind::NotSeekable);
    // Somebody at both ends, and something in it that must still be there afterwards.
    let mut other = File::options().read(true).write(true).open(&path).unwrap();
    other.write_all(b"waiting").unwrap();
    refused(&path, ErrorKind::NotSeekable);
    let mut waiting = [0; 7];
    std::io::Read::read_exact(&mut other, &mut waiting).unwrap();
    assert_eq!(&waiting, b"waiting");
}

#[test]
fn a_socket_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (stream, datagram) = (folder.path().join("stream"), folder.path().join("datagram"));
    let _stream = UnixListener::bind(&stream).unwrap();
    let _datagram = UnixDatagram::bind(&datagram).unwrap();
    refused(&stream, ErrorKind::NotSeekable);
    refused(&datagram, ErrorKind::NotSeekable);
}

#[test]
fn a_directory_is_refused_in_every_mode() {
    let folder = tempfile::tempdir().unwrap();
    refused(folder.path(), ErrorKind::IsADirectory);
    refused(Path::new("/"), ErrorKind::IsADirectory);
    refused(Path::new("/proc"), ErrorKind::IsADirectory);
}

#[test]
fn a_terminal_is_refused_and_does_not_become_the_controlling_one() {
    child("terminals").succeeds();
}

#[test]
fn devices_without_an_end_give_and_take_what_is_asked() {
    let zero = FileHandle::options()
        .read(true)
        .write(true)
        .open("/dev/zero")
        .unwrap();
    let null = FileHandle::options()
        .read(true)
        .write(true)
        .open("/dev/null")
        .unwrap();
    let cut = cut(4, 64 << 10);
    for options in [ReadOptions::new(), cut] {
        let mut target = vec![UNTOUCHED; 3_000_001];
        assert_eq!(null.read_at_with(&mut target, 0, &options).unwrap(), 0);
        assert_all(&target, UNTOUCHED);
        assert_eq!(
            zero.read_at_with(&mut target, 12_345, &options).unwrap(),
            3_000_001
        );
        assert_all(&target, 0);
        assert_eq!(zero.write_at_with(&target, 0, &options).unwrap(), 3_000_001);
        assert_eq!(
            null.write_at_with(&target, 1 << 40, &options).unwrap(),
            3_000_001
        );
    }
    assert_eq!(null.read_to_end(0).unwrap(), b"");
    assert_eq!((zero.len().unwrap(), null.len().unwrap()), (0, 0));
    let random = FileHandle::open("/dev/urandom").unwrap();
    let mut bytes = [0; 64];
    random.read_exact_at(&mut bytes, 0).unwrap();
    assert_ne!(bytes, [0; 64]);
}
