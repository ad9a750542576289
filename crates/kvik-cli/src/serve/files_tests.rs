//! What paths lead to in a folder that is served, and what is beside it.

use std::os::unix::fs::symlink;

use super::*;

/// A folder that is served, with a file beside it that is not.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let outside = tempfile::tempdir().unwrap();
    let served = outside.path().join("served");
    fs::create_dir_all(served.join("sub")).unwrap();
    fs::write(outside.path().join("secret"), "outside").unwrap();
    fs::write(served.join("a"), "inside").unwrap();
    fs::write(served.join("sub/b"), "deeper").unwrap();
    (outside, served)
}

/// What is read, or a status.
fn read(files: &Files, path: &str) -> Result<String, u16> {
    let names: Vec<OsString> = path.split_terminator('/').map(OsString::from).collect();
    match files.open(&names).map_err(|status| status.code)? {
        Found::File { file, .. } => Ok(io::read_to_string(file).unwrap()),
        Found::Folder(entries) => Ok(format!("{:?}", entries.all)),
    }
}

#[test]
fn files_and_folders_are_found_by_their_names() {
    let (_kept, served) = folder();
    let files = Files::at(&served).unwrap();
    assert_eq!(files.first(), "/");
    assert_eq!(read(&files, "a").unwrap(), "inside");
    assert_eq!(read(&files, "sub/b").unwrap(), "deeper");
    assert_eq!(read(&files, "sub").unwrap(), r#"[("b", File(6))]"#);
    assert_eq!(
        read(&files, "").unwrap(),
        r#"[("a", File(6)), ("sub", Folder)]"#
    );
    let long = "x".repeat(300);
    for missing in ["b", "a/b", "sub/c", "sub/b/c", &long] {
        assert_eq!(read(&files, missing), Err(404), "{missing}");
    }
}

#[test]
fn links_are_followed_as_long_as_they_stay_inside() {
    let (_kept, served) = folder();
    let inside = served.join("sub");
    for (link, to) in [
        ("near", Path::new("sub/b")),
        ("absolute", &inside),
        ("out-and-in", Path::new("../served/a")),
        ("secret", Path::new("../secret")),
        ("above", Path::new("..")),
        ("top", Path::new("/")),
        ("loop", Path::new("loop")),
        ("nowhere", Path::new("../gone")),
        ("magic", Path::new("/proc/self/exe")),
        ("name-alike", Path::new("../served-not")),
    ] {
        symlink(to, served.join(link)).unwrap();
    }
    fs::write(served.with_file_name("served-not"), "outside").unwrap();
    let files = Files::at(&served).unwrap();
    assert_eq!(read(&files, "near").unwrap(), "deeper");
    assert_eq!(read(&files, "absolute/b").unwrap(), "deeper");
    assert_eq!(read(&files, "out-and-in").unwrap(), "inside");
    for outside in [
        "secret",
        "above",
        "above/secret",
        "above/served/a/../../secret",
        "top/etc/passwd",
        "loop",
        "nowhere",
        "magic",
        "name-alike",
    ] {
        assert_eq!(read(&files, outside), Err(404), "{outside}");
    }
    // By way of outside is fine, if it ends inside.
    assert_eq!(read(&files, "above/served/a").unwrap(), "inside");
}

#[test]
fn a_folder_that_is_served_may_be_a_link_and_may_move() {
    let (kept, served) = folder();
    let link = kept.path().join("link");
    symlink(&served, &link).unwrap();
    let files = Files::at(&link).unwrap();
    assert_eq!(read(&files, "a").unwrap(), "inside");
    fs::rename(&served, kept.path().join("moved")).unwrap();
    assert_eq!(read(&files, "a").unwrap(), "inside");
    fs::create_dir(&served).unwrap();
    fs::write(served.join("a"), "another").unwrap();
    assert_eq!(read(&files, "a").unwrap(), "inside");
}

#[test]
fn what_is_no_file_is_refused_without_waiting_for_it() {
    let (_kept, served) = folder();
    let made = std::process::Command::new("mkfifo")
        .arg(served.join("fifo"))
        .status();
    assert!(made.unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(served.join("socket")).unwrap();
    let files = Files::at(&served).unwrap();
    assert_eq!(read(&files, "fifo"), Err(403));
    assert_eq!(read(&files, "socket"), Err(403));
    // Nor are they listed.
    assert!(!read(&files, "").unwrap().contains("fifo"));
    let devices = Files::at(Path::new("/dev")).unwrap();
    assert_eq!(read(&devices, "null"), Err(403));
}

#[test]
fn one_file_is_served_under_its_name_and_nothing_beside_it() {
    let (_kept, served) = folder();
    let path = served.join("a b");
    fs::write(&path, "one").unwrap();
    let files = Files::at(&path).unwrap();
    assert_eq!(files.first(), "/a%20b");
    assert_eq!(read(&files, "a b").unwrap(), "one");
    assert_eq!(read(&files, "").unwrap(), r#"[("a b", File(3))]"#);
    for other in ["a", "sub/b", "a b/a b"] {
        assert_eq!(read(&files, other), Err(404), "{other}");
    }
    // It is what has the name at the time.
    fs::remove_file(&path).unwrap();
    assert_eq!(read(&files, "a b"), Err(404));
    fs::write(&path, "two").unwrap();
    assert_eq!(read(&files, "a b").unwrap(), "two");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(read(&files, "a b"), Err(404));
}

#[test]
fn what_cannot_be_served_is_told_at_once() {
    let (kept, served) = folder();
    let check = |place: &Path, exit: Exit, why: &str| {
        let failure = Files::at(place).err().unwrap();
        assert_eq!(failure.exit(), exit, "{}", failure.message());
        assert!(failure.message().contains(why), "{}", failure.message());
    };
    check(&kept.path().join("gone"), Exit::NotFound, "serve ");
    check(
        Path::new("/dev/null"),
        Exit::Usage,
        "neither a folder nor a file",
    );
    let _socket = std::os::unix::net::UnixListener::bind(served.join("socket")).unwrap();
    check(
        &served.join("socket"),
        Exit::Usage,
        "neither a folder nor a file",
    );
}
