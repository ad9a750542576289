//! Copies that succeed, or have no room to. What goes wrong in copiers: holes filled, modes lost, the old destination appended to or shining
//! through.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use crate::support::{binary, data, folder_with, kvik, kvik_json, names, object, part_of};

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
    let report = kvik_json(&["copy", "--verify"], [source.as_path(), &copy]);
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

    let report = kvik_json(&["copy", "--verify"], [source.as_path(), &copy]);
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
    // And by which way they went.
    let by = |way: &str| stats["counters"][way].as_u64().unwrap();
    let read =
        ["pread", "scratch", "map", "direct", "ring"].map(|way| by(&format!("bytes_by_{way}")));
    assert_eq!(read.iter().sum::<u64>(), bytes.len() as u64, "{stats}");
    assert_eq!(by("bytes_by_pwrite"), bytes.len() as u64, "{stats}");
    let run = kvik()
        .args(["copy", "--stats"])
        .args([&source, &copy])
        .assert()
        .success();
    let table = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    let line = format!("  bytes by pwrite      {}", bytes.len());
    assert!(table.lines().any(|found| found == line), "{table}");

    assert!(table.contains("POSIX READ           p50 "), "{table}");
    let run = kvik()
        .args(["copy", "--stats=prometheus", "--quiet"])
        .args([&source, &copy])
        .assert()
        .success();
    let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    let line = format!(
        "kvik_transferred_bytes_total{{direction=\"WRITE\"}} {}",
        bytes.len()
    );
    assert!(text.lines().any(|found| found == line), "{text}");
    assert!(text.contains("# TYPE kvik_operation_duration_seconds histogram"));

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
fn a_part_left_by_an_earlier_copy_makes_room() {
    let (folder, source, bytes) = folder_with(1 << 20);
    let copy = folder.path().join("b");
    let mut left = fs::File::create(part_of(&copy)).unwrap();
    left.write_all(&data(2 << 20)).unwrap();
    drop(left);
    kvik().arg("copy").args([&source, &copy]).assert().success();
    assert!(fs::read(&copy).unwrap() == bytes);
    assert_eq!(names(folder.path()), ["a", "b"]);
}

#[test]
fn a_full_disk_has_its_own_code_and_leaves_nothing_behind() {
    let (folder, source, _) = folder_with(3 << 20);
    let copy = folder.path().join("b");
    // A limit on the size of files, in blocks of 1024 bytes, is a full disk that needs no root.
    // SIGXFSZ, which comes with it, would end the process if kvik did not ignore it.
    let script = "ulimit -f 1024; exec \"$@\"";
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
