//! Names that are no text, names that forge, files that may not be opened, and the modes that get crossed.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use kvik::{ErrorKind, FileHandle, ReadAtExt};
use kvik_tests::child::Child;
use kvik_tests::pattern::{assert_same, file, pattern};

use crate::{BINARY, child};

#[test]
fn any_name_that_the_file_system_takes_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let names: [&[u8]; 7] = [
        b"\xff\xfe not text \x80",
        b"two\nlines",
        b"\x1b[31mred\x1b[0m",
        b" ",
        b"-rf",
        "\u{202e}gnp.umlaut \u{fc}".as_bytes(),
        &[b'n'; 255],
    ];
    for name in names {
        let path = folder.path().join(OsStr::from_bytes(name));
        let handle = FileHandle::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path)
            .unwrap();
        handle.write_all_at(&pattern(1, 0, 1000), 0).unwrap();
        assert_eq!(handle.path(), path);
        assert_same(
            &FileHandle::open(&path).unwrap().read_to_end(0).unwrap(),
            &pattern(1, 0, 1000),
        );
        let error = FileHandle::options()
            .write(true)
            .create_new(true)
            .open(&path)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        let text = error.to_string();
        assert!(
            !text.chars().any(char::is_control),
            "{text:?} can forge a line or a colour"
        );
    }
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        names.len()
    );
    let error = FileHandle::open(folder.path().join("n".repeat(256))).unwrap_err();
    assert_eq!(
        (error.kind(), error.os_error()),
        (ErrorKind::Misuse, Some(libc::ENAMETOOLONG)),
        "{error}"
    );
}

#[test]
fn links_are_followed_and_those_that_lead_nowhere_are_typed_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "file", 1, 1000);
    let at = |name: &str| folder.path().join(name);
    symlink(&path, at("link")).unwrap();
    symlink(at("link"), at("link to link")).unwrap();
    symlink(at("missing"), at("dangling")).unwrap();
    symlink(at("loop"), at("loop")).unwrap();
    symlink(folder.path(), at("folder")).unwrap();
    assert_same(
        &FileHandle::open(at("link to link"))
            .unwrap()
            .read_to_end(0)
            .unwrap(),
        &pattern(1, 0, 1000),
    );
    FileHandle::options()
        .write(true)
        .open(at("link"))
        .unwrap()
        .write_all_at(b"through", 0)
        .unwrap();
    assert_eq!(std::fs::read(&path).unwrap()[..7], *b"through");
    let kind = |name: &str| FileHandle::open(at(name)).unwrap_err().kind();
    assert_eq!(kind("dangling"), ErrorKind::NotFound);
    assert_eq!(kind("loop"), ErrorKind::Misuse);
    assert_eq!(kind("folder"), ErrorKind::IsADirectory);
    assert_eq!(kind("file/below"), ErrorKind::NotFound);
    assert_eq!(kind("missing/below"), ErrorKind::NotFound);
    FileHandle::create(at("dangling")).unwrap();
    assert!(at("missing").exists());
}

#[test]
fn files_of_somebody_else_are_permission_denied() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o555)).unwrap();
    let path = |name: &str| folder.path().join(name);
    // Root may write where nobody may; anybody else makes the files first.
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let unreadable = file(folder.path(), "unreadable", 1, 100);
    let readable = file(folder.path(), "readable", 1, 100_000);
    std::fs::set_permissions(&unreadable, PermissionsExt::from_mode(0o000)).unwrap();
    std::fs::set_permissions(&readable, PermissionsExt::from_mode(0o444)).unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o555)).unwrap();
    child("as-nobody")
        .arg(&unreadable)
        .arg(&readable)
        .succeeds();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    assert!(!path("new").exists());
}

#[test]
fn options_that_contradict_each_other_are_misuse_and_touch_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "file", 1, 100);
    let missing = folder.path().join("missing");
    let options = FileHandle::options;
    for options in [
        options(),
        options().create(true),
        options().read(true).create(true),
        options().read(true).create_new(true),
        options().read(true).truncate(true),
        options().append(true).truncate(true),
        options().write(true).append(true).truncate(true),
    ] {
        for path in [&path, &missing] {
            let error = options.open(path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misuse, "{options:?}: {error}");
        }
    }
    assert!(!missing.exists());
    assert_same(&std::fs::read(&path).unwrap(), &pattern(1, 0, 100));
}

#[test]
fn a_process_out_of_descriptors_is_told_so_and_its_handles_work_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "file", 1, 1_000_000);
    let limited = "exec prlimit --nofile=64 \"$@\"";
    Child::new_by(limited, BINARY, "few-descriptors")
        .arg(&path)
        .succeeds();
}
