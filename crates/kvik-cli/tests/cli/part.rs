//! The part of a copy against what others may put in its place: hard links, files of other users, leftovers that somebody
//! still holds open, a second kvik. What goes wrong in copiers: an unrelated file overwritten, another user's file adopted.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{binary, data, folder_with, kvik, kvik_std, names, object, part_of};

/// Who is not root, where the tests run as root.
const SOMEBODY: u32 = 65534;

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_hard_link_in_the_place_of_the_part_loses_its_name_and_no_byte() {
    let (folder, source, bytes) = folder_with(3 << 20);
    let (victim, copy) = (folder.path().join("victim"), folder.path().join("w"));
    fs::write(&victim, b"precious").unwrap();
    set_mode(&victim, 0o640);
    fs::hard_link(&victim, part_of(&copy)).unwrap();
    let before = fs::metadata(&victim).unwrap();
    kvik().arg("copy").args([&source, &copy]).assert().success();
    assert!(fs::read(&copy).unwrap() == bytes);
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    let after = fs::metadata(&victim).unwrap();
    assert_eq!((after.mode(), after.uid()), (before.mode(), before.uid()));
    assert_eq!(
        (after.mtime(), after.mtime_nsec()),
        (before.mtime(), before.mtime_nsec())
    );
    assert_ne!(fs::metadata(&copy).unwrap().ino(), after.ino());
    assert_eq!(names(folder.path()), ["a", "victim", "w"]);
}

#[test]
fn a_failed_copy_does_not_touch_it_either() {
    let (folder, source, _) = folder_with(3 << 20);
    let (victim, copy) = (folder.path().join("victim"), folder.path().join("w"));
    fs::write(&victim, b"precious").unwrap();
    fs::hard_link(&victim, part_of(&copy)).unwrap();
    let output = Command::new("bash")
        .args(["-c", "ulimit -f 100; exec \"$@\"", "bash"])
        .arg(binary())
        .args(["copy", "--json"])
        .args([&source, &copy])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(6));
    assert_eq!(object(&output.stdout)["error"]["kind"], "StorageFull");
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(names(folder.path()), ["a", "victim"]);
}

#[test]
fn a_leftover_that_somebody_holds_open_is_not_the_copy() {
    let (folder, source, bytes) = folder_with(1 << 20);
    let copy = folder.path().join("w");
    let mut held = File::create(part_of(&copy)).unwrap();
    held.write_all(b"of somebody else").unwrap();
    set_mode(&part_of(&copy), 0o666);
    // In a folder where everybody may do everything, even another user's file makes room.
    set_mode(folder.path(), 0o777);
    if is_root() {
        chown(part_of(&copy), Some(SOMEBODY), Some(SOMEBODY)).unwrap();
    }
    kvik()
        .args(["copy", "--verify"])
        .args([&source, &copy])
        .assert()
        .success();
    held.write_all(b"later").unwrap();
    assert!(fs::read(&copy).unwrap() == bytes);
    let (copied, left) = (fs::metadata(&copy).unwrap(), held.metadata().unwrap());
    assert_ne!(copied.ino(), left.ino());
    assert_eq!(copied.uid(), fs::metadata("/proc/self").unwrap().uid());
    assert_eq!(
        copied.mode() & 0o777,
        fs::metadata(&source).unwrap().mode() & 0o777
    );
    // What it was stays as it was.
    assert_eq!(left.mode() & 0o777, 0o666);
}

/// Copies as a user who may not remove the part that is there.
#[test]
fn a_part_that_may_not_be_removed_is_refused_and_left_alone() {
    let (folder, source, _) = folder_with(1000);
    let inner = folder.path().join("shared");
    fs::create_dir(&inner).unwrap();
    let copy = inner.join("w");
    fs::write(part_of(&copy), b"of somebody else").unwrap();
    let mut command = kvik_std();
    if is_root() {
        // A sticky folder, as /tmp is: only its owner may remove a file.
        let program = folder.path().join("kvik");
        fs::copy(binary(), &program).unwrap();
        set_mode(&program, 0o755);
        set_mode(folder.path(), 0o755);
        set_mode(&source, 0o644);
        set_mode(&part_of(&copy), 0o666);
        set_mode(&inner, 0o1777);
        command = Command::new(program);
        command.env_clear().uid(SOMEBODY).gid(SOMEBODY);
    } else {
        set_mode(&inner, 0o555);
    }
    let output = command
        .args(["copy", "--json"])
        .args([&source, &copy])
        .output()
        .unwrap();
    set_mode(&inner, 0o755);
    assert_eq!(output.status.code(), Some(4));
    let error = object(&output.stdout)["error"].clone();
    assert!(
        error["message"].as_str().unwrap().contains("w.kvik-part"),
        "{error}"
    );
    assert_eq!(fs::read(part_of(&copy)).unwrap(), b"of somebody else");
    assert_eq!(names(&inner), ["w.kvik-part"]);
}

#[test]
fn a_leftover_that_is_locked_is_in_use_and_one_that_is_not_is_not() {
    let (folder, source, bytes) = folder_with(1000);
    let copy = folder.path().join("w");
    fs::write(part_of(&copy), b"at work").unwrap();
    let owner = OpenOptions::new().write(true).open(part_of(&copy)).unwrap();
    owner.lock().unwrap();
    kvik().arg("copy").args([&source, &copy]).assert().code(1);
    assert_eq!(fs::read(part_of(&copy)).unwrap(), b"at work");
    assert!(!copy.exists());
    drop(owner);
    kvik().arg("copy").args([&source, &copy]).assert().success();
    assert_eq!(fs::read(&copy).unwrap(), bytes);
}

#[test]
fn many_copies_to_one_place_at_once_leave_one_of_their_sources_whole() {
    let (folder, _, _) = folder_with(0);
    let copy = folder.path().join("w");
    let sources: Vec<_> = (1..=6)
        .map(|number| {
            let path = folder.path().join(format!("source-{number}"));
            fs::write(&path, data(number * 100_000)).unwrap();
            path
        })
        .collect();
    for _ in 0..5 {
        fs::write(part_of(&copy), b"left over").unwrap();
        let copies: Vec<Child> = sources
            .iter()
            .map(|source| {
                let mut command = kvik_std();
                command.args(["copy", "--json", "--no-sync"]);
                command.args([source, &copy]).stdout(Stdio::piped());
                command.stderr(Stdio::null()).spawn().unwrap()
            })
            .collect();
        let mut done = 0;
        for child in copies {
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            match output.status.code() {
                Some(0) => done += 1,
                code => assert!(code == Some(1) && said.contains("another kvik"), "{said}"),
            }
        }
        assert!(done > 0);
        let copied = fs::read(&copy).unwrap();
        assert!(
            sources
                .iter()
                .any(|source| fs::read(source).unwrap() == copied),
            "{} bytes are no source",
            copied.len()
        );
        assert!(!part_of(&copy).exists());
    }
}
