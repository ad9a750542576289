//! Opening, length, and the handle.

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;

use kvik::{ErrorKind, FileHandle, ReadOptions};
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, file, pattern};

use super::{LEN, cut, fixture};

/// "A path with a zero byte in it is refused. KvikIO opens the part before it."
#[test]
fn a_path_with_a_zero_byte_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "part", 1, 10);
    let mut longer = path.into_os_string().into_string().unwrap();
    longer.push_str("\0.bin");
    for options in [
        FileHandle::options().read(true),
        FileHandle::options()
            .write(true)
            .create(true)
            .truncate(true),
    ] {
        assert_eq!(options.open(&longer).unwrap_err().kind(), ErrorKind::Misuse);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(
        std::fs::metadata(folder.path().join("part")).unwrap().len(),
        10
    );
}

/// "`create` makes or empties the file; `create_new` fails with `AlreadyExists` where it exists; `mode` holds for new files,
/// less the umask."
#[test]
fn create_empties_create_new_refuses_and_mode_holds_for_new_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let old = file(folder.path(), "old", 1, 1000);
    FileHandle::create(&old).unwrap();
    assert_eq!(std::fs::metadata(&old).unwrap().len(), 0);
    FileHandle::create(path("new")).unwrap();
    assert!(path("new").exists());

    let old = file(folder.path(), "old", 1, 1000);
    let new = |mode| {
        FileHandle::options()
            .write(true)
            .create_new(true)
            .mode(mode)
    };
    assert_eq!(
        new(0o600).open(&old).unwrap_err().kind(),
        ErrorKind::AlreadyExists
    );
    assert_same(&std::fs::read(&old).unwrap(), &pattern(1, 0, 1000));

    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let umask = status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))
        .unwrap();
    let umask = u32::from_str_radix(umask.trim(), 8).unwrap();
    let bits = |name: &str| std::fs::metadata(path(name)).unwrap().mode() & 0o7777;
    for mode in [0o600, 0o666, 0o777, 0o640] {
        let name = format!("{mode:o}");
        new(mode).open(path(&name)).unwrap();
        assert_eq!(bits(&name), mode & !umask);
    }
    assert_eq!(bits("new"), 0o644 & !umask, "the default");
    FileHandle::options()
        .write(true)
        .create(true)
        .mode(0o777)
        .open(path("600"))
        .unwrap();
    assert_eq!(bits("600"), 0o600 & !umask, "an old file keeps its mode");
}

/// "`len` is asked from the kernel each time, so it is right after any write and `set_len` of anybody."
#[test]
fn len_is_right_after_writes_and_cuts_of_anybody() {
    let (_folder, path, handle) = fixture();
    let other = std::fs::File::options().write(true).open(&path).unwrap();
    assert_eq!(handle.len().unwrap(), LEN as u64);
    handle.write_at(b"x", 2 * LEN as u64).unwrap();
    assert_eq!(handle.len().unwrap(), 2 * LEN as u64 + 1);
    other.set_len(17).unwrap();
    assert_eq!(handle.len().unwrap(), 17);
    handle.set_len(5).unwrap();
    assert_eq!(handle.len().unwrap(), 5);
    assert_eq!(handle.read_at(&mut [0; 10], 0).unwrap(), 5);
    assert!(!handle.is_empty().unwrap());
    other.set_len(0).unwrap();
    assert!(handle.is_empty().unwrap());
}

/// "A handle is one descriptor, closed on `exec`."
#[test]
fn a_handle_is_one_descriptor_that_is_closed_on_exec_and_with_its_last_clone() {
    let (_folder, path, handle) = fixture();
    let ours = || {
        let links = std::fs::read_dir("/proc/self/fd").unwrap();
        links
            .filter(|link| {
                std::fs::read_link(link.as_ref().unwrap().path()).is_ok_and(|to| to == path)
            })
            .count()
    };
    assert_eq!(ours(), 1);
    let clone = handle.clone();
    clone
        .read_at_with(&mut vec![0; LEN], 0, &cut(4, 4096))
        .unwrap();
    drop(handle);
    assert_eq!(ours(), 1);
    let number = clone.as_fd().as_raw_fd();
    let seen = std::process::Command::new("readlink")
        .arg(format!("/proc/self/fd/{number}"))
        .output()
        .unwrap();
    assert_ne!(
        String::from_utf8_lossy(&seen.stdout).trim_end(),
        path.to_str().unwrap()
    );
    let flags = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap();
    let flags = flags
        .lines()
        .find_map(|line| line.strip_prefix("flags:"))
        .unwrap()
        .trim()
        .to_owned();
    let flags = i32::from_str_radix(&flags, 8).unwrap();
    assert_eq!(flags & libc::O_CLOEXEC, libc::O_CLOEXEC);
    assert_eq!(
        flags & libc::O_NONBLOCK,
        0,
        "others who get the descriptor expect an ordinary one"
    );
    drop(clone);
    assert_eq!(ours(), 0);
}

/// "Reading through a handle that was opened for writing only is `PermissionDenied`, and says so."
#[test]
fn the_wrong_direction_is_permission_denied_and_says_so() {
    let (_folder, path, _) = fixture();
    let writes = FileHandle::options().write(true).open(&path).unwrap();
    let reads = FileHandle::open(&path).unwrap();
    for options in [ReadOptions::new(), cut(3, 4096)] {
        let mut target = vec![UNTOUCHED; 300_000];
        let error = writes.read_at_with(&mut target, 0, &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert_eq!(
            error.to_string(),
            format!(
                "read {}: the handle was opened for writing only",
                path.display()
            )
        );
        let error = reads.write_at_with(&target, 0, &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert_eq!(
            error.to_string(),
            format!(
                "write {}: the handle was opened for reading only",
                path.display()
            )
        );
        let (outcome, target) = writes.submit_read_with(target, 0, &options).finish();
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::PermissionDenied);
        assert_all(&target, UNTOUCHED);
        assert_eq!(
            reads
                .submit_write_with(target, 0, &options)
                .wait()
                .unwrap_err()
                .kind(),
            ErrorKind::PermissionDenied
        );
    }
    assert_eq!(
        reads.set_len(0).unwrap_err().kind(),
        ErrorKind::PermissionDenied
    );
    assert_same(&std::fs::read(&path).unwrap(), &pattern(1, 0, LEN));
}
