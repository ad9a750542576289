//! Handles of files that somebody else opened: a name says nothing about them any more, and their flags are shared.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use kvik::{EngineKind, EnginePreference, ErrorKind, FileHandle};
use kvik_tests::pattern::{assert_same, file, pattern};
use nix::fcntl::{FcntlArg, fcntl};

const LEN: usize = 3 << 20 | 5;

#[test]
fn an_open_file_is_read_and_written_by_any_engine_as_one_that_was_opened() {
    // On a disk: `/tmp` may be a tmpfs.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let engines = EngineKind::ALL.iter().copied().map(EnginePreference::Only);
    for engine in engines.chain([EnginePreference::Auto]) {
        let open = File::options().read(true).write(true).open(&path).unwrap();
        let handle = FileHandle::options().engine(engine).adopt(open).unwrap();
        assert_eq!(handle.path(), path);
        let mut bytes = vec![0; LEN];
        handle.read_exact_at(&mut bytes, 0).unwrap();
        assert_same(&bytes, &pattern(1, 0, LEN));
        handle.write_all_at(&bytes[..100], 7).unwrap();
        assert_same(&fs::read(&path).unwrap()[7..107], &bytes[..100]);
        handle.write_all_at(&bytes, 0).unwrap();
    }
}

#[test]
fn a_handle_may_do_what_the_descriptor_may_or_less() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 10);
    let adopt = |read, write, options: kvik::OpenOptions| {
        options.adopt(File::options().read(read).write(write).open(&path).unwrap())
    };
    let may = |handle: &FileHandle| {
        let reads = handle.read_at(&mut [0; 1], 0).is_ok();
        (reads, handle.write_at(b"x", 0).is_ok())
    };
    for (read, write) in [(true, false), (false, true), (true, true)] {
        let handle = adopt(read, write, FileHandle::options()).unwrap();
        assert_eq!(may(&handle), (read, write));
    }
    let handle = adopt(true, true, FileHandle::options().read(true)).unwrap();
    assert_eq!(may(&handle), (true, false));
    for (read, write, wish) in [
        (true, false, FileHandle::options().write(true)),
        (false, true, FileHandle::options().read(true)),
        (true, false, FileHandle::options().read(true).write(true)),
    ] {
        let error = adopt(read, write, wish).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    }
}

#[test]
fn neither_flags_nor_cursor_change_and_dropping_the_handle_closes_the_descriptor() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 100);
    let mut open = OpenOptions::new();
    open.read(true).custom_flags(libc::O_NONBLOCK);
    let mut ours = open.open(&path).unwrap();
    ours.seek(SeekFrom::Start(40)).unwrap();
    let flags = fcntl(&ours, FcntlArg::F_GETFL).unwrap();
    let theirs = ours.try_clone().unwrap();
    let number = theirs.as_raw_fd();
    let handle = FileHandle::options().adopt(theirs).unwrap();
    handle.read_exact_at(&mut [0; 100], 0).unwrap();
    assert_eq!(fcntl(&ours, FcntlArg::F_GETFL).unwrap(), flags);
    let mut rest = Vec::new();
    ours.read_to_end(&mut rest).unwrap();
    assert_same(&rest, &pattern(1, 40, 60));
    drop(handle);
    assert!(fs::read_link(format!("/proc/self/fd/{number}")).is_err());
}

#[test]
fn a_file_without_a_name_is_found_by_its_descriptor() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 100);
    let open = File::options().read(true).write(true).open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let handle = FileHandle::options().adopt(open).unwrap();
    let gone = format!("{} (deleted)", path.display());
    assert_eq!(handle.path().display().to_string(), gone);
    let mut bytes = [0; 100];
    handle.read_exact_at(&mut bytes, 0).unwrap();
    assert_same(&bytes, &pattern(1, 0, 100));
    let error = handle.read_exact_at(&mut [0; 2], 99).unwrap_err();
    assert!(error.to_string().contains(&gone), "{error}");
}

#[test]
fn what_cannot_be_read_at_offsets_or_was_opened_for_something_else_is_refused_and_says_why() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = file(folder.path(), "source", 1, 100);
    let flagged = |flag| {
        let mut open = OpenOptions::new();
        OwnedFd::from(
            open.read(true)
                .write(true)
                .custom_flags(flag)
                .open(&path)
                .unwrap(),
        )
    };
    let (reader, _writer) = nix::unistd::pipe().unwrap();
    let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
    for (fd, kind, why) in [
        (
            OwnedFd::from(File::open(folder.path()).unwrap()),
            ErrorKind::IsADirectory,
            "it is a directory",
        ),
        (reader, ErrorKind::NotSeekable, "it is a FIFO"),
        (socket.into(), ErrorKind::NotSeekable, "it is a socket"),
        (flagged(libc::O_APPEND), ErrorKind::Misuse, "O_APPEND"),
        (flagged(libc::O_DIRECT), ErrorKind::Misuse, "O_DIRECT"),
        (flagged(libc::O_PATH), ErrorKind::Misuse, "O_PATH"),
    ] {
        let number = fd.as_raw_fd();
        let error = FileHandle::options().adopt(fd).unwrap_err();
        let text = error.to_string();
        assert_eq!(error.kind(), kind, "{text}");
        assert!(
            text.starts_with(&format!("open descriptor {number}: ")),
            "{text}"
        );
        assert!(text.contains(why), "{text}");
    }
    for options in [
        FileHandle::options().write(true).truncate(true),
        FileHandle::options().append(true),
        FileHandle::options().write(true).create(true),
        FileHandle::options().write(true).create_new(true),
        FileHandle::options().mode(0o600),
    ] {
        let error = options.adopt(flagged(0)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    }
    assert_same(&fs::read(&path).unwrap(), &pattern(1, 0, 100));
}
