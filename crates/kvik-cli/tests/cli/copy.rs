//! `kvik copy`. What goes wrong in copiers: holes filled, modes lost, the destination destroyed when the copy fails, a
//! device replaced by a file, a file copied onto itself and emptied.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::support::{binary, data, folder_with, kvik, names, object, part_of};

#[test]
fn a_copy_has_the_same_bytes_for_every_size_and_task_size() {
    for len in [0, 1, 4095, 4096, 4097, 1 << 20, (3 << 20) + 17] {
        for task_size in ["1000", "64KiB", "4MiB"] {
            let (folder, source, bytes) = folder_with(len);
            let copy = folder.path().join("b");
            let mut command = kvik();
            command
                .arg("copy")
                .args(["--task-size", task_size, "--threads", "3"])
                .args([&source, &copy]);
            command.assert().success().stdout("");
            assert!(
                fs::read(&copy).unwrap() == bytes,
                "{len} bytes by tasks of {task_size}"
            );
            assert_eq!(names(folder.path()), ["a", "b"]);
        }
    }
}

#[test]
fn verify_passes_a_faithful_copy_and_says_so() {
    let (folder, source, bytes) = folder_with((5 << 20) + 3);
    let copy = folder.path().join("b");
    let run = kvik()
        .arg("copy")
        .arg("--verify")
        .arg("--json")
        .args([&source, &copy])
        .assert()
        .success();
    let report = object(&run.get_output().stdout);
    assert_eq!(report["bytes"], bytes.len());
    assert_eq!(report["verified"], true);
    assert_eq!(report["synced"], true);
    assert!(fs::read(&copy).unwrap() == bytes);
}

#[test]
fn a_sparse_file_stays_sparse() {
    let folder = tempfile::tempdir().unwrap();
    let (source, copy) = (folder.path().join("a"), folder.path().join("b"));
    let mut bytes = vec![0; 16 << 20];
    let file = fs::File::create(&source).unwrap();
    file.set_len(bytes.len() as u64).unwrap();
    for (offset, len) in [(1 << 20, 70_000), ((9 << 20) + 123, 5)] {
        let piece = data(len);
        std::os::unix::fs::FileExt::write_all_at(&file, &piece, offset as u64).unwrap();
        bytes[offset..offset + len].copy_from_slice(&piece);
    }
    file.sync_all().unwrap();

    let run = kvik()
        .args(["copy", "--verify", "--json"])
        .args([&source, &copy])
        .assert()
        .success();
    assert!(fs::read(&copy).unwrap() == bytes);
    let (before, after) = (
        fs::metadata(&source).unwrap().blocks(),
        fs::metadata(&copy).unwrap().blocks(),
    );
    assert!(
        before * 512 < 1 << 20,
        "the file system under the tests keeps no holes"
    );
    assert!(
        after * 512 < 1 << 20,
        "the copy has {after} blocks, the source {before}"
    );
    let report = object(&run.get_output().stdout);
    assert_eq!(
        report["data_bytes"].as_u64().unwrap() + report["hole_bytes"].as_u64().unwrap(),
        16 << 20
    );
    assert!(report["hole_bytes"].as_u64().unwrap() > 15 << 20);
}

#[test]
fn a_file_that_is_one_hole_is_copied_as_one() {
    for len in [4096, 3 << 20] {
        let folder = tempfile::tempdir().unwrap();
        let (source, copy) = (folder.path().join("a"), folder.path().join("b"));
        fs::File::create(&source).unwrap().set_len(len).unwrap();
        kvik()
            .args(["copy", "--verify"])
            .args([&source, &copy])
            .assert()
            .success();
        assert_eq!(fs::metadata(&copy).unwrap().len(), len);
        assert_eq!(fs::metadata(&copy).unwrap().blocks(), 0);
    }
}

#[test]
fn permission_bits_travel_and_set_user_id_does_not() {
    for (mode, expected) in [(0o640, 0o640), (0o400, 0o400), (0o4755, 0o755)] {
        let (folder, source, _) = folder_with(10);
        let copy = folder.path().join("b");
        fs::set_permissions(&source, fs::Permissions::from_mode(mode)).unwrap();
        kvik()
            .args(["copy", "--verify"])
            .args([&source, &copy])
            .assert()
            .success();
        assert_eq!(
            fs::metadata(&copy).unwrap().permissions().mode() & 0o7777,
            expected
        );
    }
}

#[test]
fn a_directory_takes_the_file_under_its_own_name() {
    let (folder, source, bytes) = folder_with(100);
    let directory = folder.path().join("into");
    fs::create_dir(&directory).unwrap();
    kvik()
        .arg("copy")
        .args([&source, &directory])
        .assert()
        .success();
    assert_eq!(fs::read(directory.join("a")).unwrap(), bytes);
    // With a slash it must be a directory, as for cp.
    let missing = format!("{}/missing/", folder.path().display());
    kvik()
        .arg("copy")
        .arg(&source)
        .arg(missing)
        .assert()
        .code(3);
    assert_eq!(names(folder.path()), ["a", "into"]);
}

#[test]
fn an_existing_destination_is_replaced_whole() {
    let (folder, source, bytes) = folder_with(1000);
    let copy = folder.path().join("b");
    fs::write(&copy, data(5000)).unwrap();
    kvik().arg("copy").args([&source, &copy]).assert().success();
    assert_eq!(fs::read(&copy).unwrap(), bytes);
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
fn a_fifo_is_refused_on_either_side_and_never_waited_for() {
    let (folder, source, _) = folder_with(10);
    let fifo = folder.path().join("fifo");
    assert!(
        Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
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
fn files_that_tell_no_size_or_a_wrong_one_are_copied_as_they_read() {
    for source in ["/proc/sys/kernel/ostype", "/sys/devices/system/cpu/online"] {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("b");
        kvik().arg("copy").arg(source).arg(&copy).assert().success();
        let expected = fs::read(source).unwrap();
        assert!(!expected.is_empty());
        assert_eq!(fs::read(&copy).unwrap(), expected);
    }
}

#[test]
fn statistics_alone_are_one_object_on_standard_output() {
    let (folder, source, bytes) = folder_with(3 << 20);
    let copy = folder.path().join("b");
    let run = kvik()
        .args(["copy", "--stats=json"])
        .args([&source, &copy])
        .assert()
        .success();
    let stats = object(&run.get_output().stdout);
    assert_eq!(stats["bytes_read"], bytes.len());
    assert_eq!(stats["bytes_written"], bytes.len());
    let (busy, wall) = (
        stats["busy_ns"].as_u64().unwrap(),
        stats["wall_ns"].as_u64().unwrap(),
    );
    assert!(0 < busy && busy <= wall, "{busy} of {wall}");

    let run = kvik()
        .args(["copy", "--stats=json", "--json", "--quiet"])
        .args([&source, &copy])
        .assert()
        .success();
    let report = object(&run.get_output().stdout);
    assert_eq!(report["bytes"], bytes.len());
    assert_eq!(report["stats"]["bytes_written"], bytes.len());
    assert!(run.get_output().stderr.is_empty());
}

#[test]
fn a_full_disk_has_its_own_code_and_leaves_nothing_behind() {
    let (folder, source, _) = folder_with(3 << 20);
    let copy = folder.path().join("b");
    // A limit on the size of files, in blocks of 1024 bytes, is a full disk that needs no root.
    let script = "ulimit -f 1024; trap '' XFSZ; exec \"$@\"";
    let run = Command::new("bash")
        .args(["-c", script, "bash"])
        .arg(binary())
        .args(["copy", "--json"])
        .args([&source, &copy])
        .output()
        .unwrap();
    assert_eq!(
        run.status.code(),
        Some(6),
        "{}",
        String::from_utf8_lossy(&run.stdout)
    );
    let error = object(&run.stdout)["error"].clone();
    assert_eq!(error["kind"], "StorageFull");
    assert!(
        error["message"].as_str().unwrap().contains("b.kvik-part"),
        "{error}"
    );
    assert!(
        error["hint"].as_str().unwrap().contains("removed"),
        "{error}"
    );
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
fn the_summary_goes_to_standard_error_and_quiet_silences_it() {
    let (folder, source, _) = folder_with(2 << 20);
    let copy = folder.path().join("b");
    let run = kvik()
        .arg("copy")
        .args([&source, &copy])
        .assert()
        .success()
        .stdout("");
    let said = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(
        said.starts_with("copied ") && said.contains("2.00 MiB"),
        "{said}"
    );
    kvik()
        .args(["copy", "-q"])
        .args([&source, &copy])
        .assert()
        .success()
        .stdout("")
        .stderr("");
}

#[test]
fn a_part_left_by_an_earlier_copy_is_taken_over() {
    let (folder, source, bytes) = folder_with(1 << 20);
    let copy = folder.path().join("b");
    let mut left = fs::File::create(part_of(&copy)).unwrap();
    left.write_all(&data(2 << 20)).unwrap();
    drop(left);
    kvik().arg("copy").args([&source, &copy]).assert().success();
    assert!(fs::read(&copy).unwrap() == bytes);
    assert_eq!(names(folder.path()), ["a", "b"]);
}
