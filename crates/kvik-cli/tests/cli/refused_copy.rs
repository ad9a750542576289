//! Copies that must not happen or cannot succeed. What goes wrong in copiers: a file copied onto itself and emptied, a
//! device replaced by a file, a wait for ever at a FIFO, the old destination destroyed when the copy fails.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;

use serde_json::json;

use crate::support::{fifo, folder_with, kvik, names, object, part_of};

#[test]
fn a_file_is_not_copied_onto_itself_by_any_of_its_names() {
    let (folder, source, bytes) = folder_with(1000);
    let (hard, soft) = (folder.path().join("hard"), folder.path().join("soft"));
    fs::hard_link(&source, &hard).unwrap();
    symlink(&source, &soft).unwrap();
    for destination in [source.as_path(), &hard, &soft, folder.path()] {
        let run = kvik()
            .arg("copy")
            .args([source.as_path(), destination])
            .assert()
            .code(2);
        let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
        assert!(said.contains("same file"), "{said}");
        assert_eq!(fs::read(&source).unwrap(), bytes);
    }
    // A part is also a way to lose the only copy there is.
    let part = part_of(&folder.path().join("b"));
    fs::rename(&source, &part).unwrap();
    kvik()
        .arg("copy")
        .args([&part, &folder.path().join("b")])
        .assert()
        .code(2);
    assert_eq!(fs::read(&part).unwrap(), bytes);
}

#[test]
fn a_source_or_another_file_that_has_the_name_of_the_journal_is_not_removed() {
    let (folder, source, bytes) = folder_with(1000);
    let (journal, copy) = (
        folder.path().join("b.kvik-journal"),
        folder.path().join("b"),
    );
    fs::write(part_of(&copy), "an earlier part").unwrap();
    fs::copy(&source, &journal).unwrap();
    for (from, code, why) in [
        (&journal, 2, "the copy's journal"),
        (&source, 1, "no journal"),
    ] {
        let run = kvik().arg("copy").args([from, &copy]).assert().code(code);
        let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
        assert!(said.contains(why), "{said}");
        assert_eq!(names(folder.path()), ["a", "b.kvik-journal", "b.kvik-part"]);
        assert_eq!(fs::read(&journal).unwrap(), bytes);
        assert_eq!(fs::read(part_of(&copy)).unwrap(), b"an earlier part");
    }
    fs::remove_file(&journal).unwrap();
    symlink("b.kvik-part", &journal).unwrap();
    kvik().arg("copy").args([&source, &copy]).assert().code(1);
    assert!(fs::symlink_metadata(&journal).unwrap().is_symlink());
}

#[test]
fn a_fifo_is_refused_on_either_side_and_never_waited_for() {
    let (folder, source, _) = folder_with(10);
    let fifo = fifo(folder.path());
    let run = kvik()
        .args(["copy", "--json"])
        .args([&fifo, &folder.path().join("b")])
        .assert()
        .code(2);
    assert_eq!(
        object(&run.get_output().stdout)["error"]["kind"],
        "NotSeekable"
    );
    kvik().arg("copy").args([&source, &fifo]).assert().code(2);
    assert!(fs::symlink_metadata(&fifo).unwrap().file_type().is_fifo());
    assert_eq!(names(folder.path()), ["a", "fifo"]);
}

#[test]
fn only_files_and_block_devices_are_sources() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let fifo = fifo(folder.path());
    for (source, what, cat_helps) in [
        (Path::new("/dev/zero"), "character device", true),
        (Path::new("/dev/null"), "character device", true),
        (fifo.as_path(), "FIFO", true),
        (socket.as_path(), "socket", false),
    ] {
        let run = kvik()
            .args(["copy", "--json"])
            .arg(source)
            .arg(folder.path().join("b"))
            .assert()
            .code(2);
        let error = object(&run.get_output().stdout)["error"].clone();
        assert_eq!(error["kind"], "NotSeekable", "{error}");
        assert!(error["message"].as_str().unwrap().contains(what), "{error}");
        let hint = error["hint"].as_str().unwrap_or_default();
        assert_eq!(hint.contains("kvik cat"), cat_helps, "{error}");
    }
    let run = kvik().arg("cat").arg(&socket).assert().code(2);
    let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(said.contains("socket") && !said.contains("hint:"), "{said}");
    assert_eq!(names(folder.path()), ["fifo", "socket"]);
}

#[test]
fn standard_streams_are_refused_with_what_to_do_instead() {
    let (_folder, source, _) = folder_with(10);
    for (from, to) in [
        (Path::new("-"), source.as_path()),
        (source.as_path(), Path::new("-")),
    ] {
        let run = kvik().arg("copy").args([from, to]).assert().code(2);
        let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
        assert!(said.contains("kvik cat"), "{said}");
    }
}

#[test]
fn a_url_to_copy_to_is_refused_and_no_file_is_made_of_it() {
    let (folder, source, _) = folder_with(10);
    let run = kvik()
        .current_dir(folder.path())
        .arg("copy")
        .args([
            source.as_path(),
            Path::new("http://me:secret@localhost/data.bin"),
        ])
        .assert()
        .code(7);
    let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(said.contains("copies to URLs are planned"), "{said}");
    assert!(!said.contains("secret"), "{said}");
    assert_eq!(names(folder.path()), ["a"]);
}

#[test]
fn what_is_missing_or_a_directory_has_its_own_code() {
    let (folder, source, _) = folder_with(10);
    let nowhere = folder.path().join("nowhere");
    kvik()
        .arg("copy")
        .args([&nowhere, &source])
        .assert()
        .code(3);
    kvik()
        .arg("copy")
        .args([&source, &nowhere.join("b")])
        .assert()
        .code(3);
    kvik()
        .arg("copy")
        .args([folder.path(), &nowhere])
        .assert()
        .code(2);
    assert_eq!(names(folder.path()), ["a"]);
}

#[test]
fn a_destination_folder_that_may_not_be_written_to_is_denied() {
    // Root may write everywhere, except to a file system that cannot be written to at all.
    let (_folder, source, _) = folder_with(10);
    let run = kvik()
        .args(["copy", "--json"])
        .arg(&source)
        .arg("/proc/kvik")
        .assert()
        .failure();
    let code = run.get_output().status.code().unwrap();
    assert_eq!(
        object(&run.get_output().stdout)["error"]["exit_code"],
        json!(code)
    );
    assert!([3, 4].contains(&code), "{code}");
}

#[test]
fn a_symbolic_link_as_destination_is_followed_unless_it_points_nowhere() {
    let (folder, source, bytes) = folder_with(1000);
    let (real, link, dangling) = (
        folder.path().join("real"),
        folder.path().join("link"),
        folder.path().join("dangling"),
    );
    fs::write(&real, b"old").unwrap();
    symlink("real", &link).unwrap();
    symlink("nowhere", &dangling).unwrap();
    kvik().arg("copy").args([&source, &link]).assert().success();
    assert_eq!(fs::read(&real).unwrap(), bytes);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    kvik()
        .arg("copy")
        .args([&source, &dangling])
        .assert()
        .code(2);
    assert_eq!(names(folder.path()), ["a", "dangling", "link", "real"]);
}
