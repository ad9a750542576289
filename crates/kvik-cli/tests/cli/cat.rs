//! `kvik cat`: exactly the bytes, in order, whatever the source is; and a quiet end when nobody reads any more.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{binary, data, fifo, folder_with, kvik, kvik_std, object};

#[track_caller]
fn check(path: &Path, range: &str, expected: &[u8]) {
    for settings in [
        ["--task-size", "4KiB", "--threads", "3"],
        ["--task-size", "4MiB", "--threads", "1"],
    ] {
        let run = kvik()
            .arg("cat")
            .args(settings)
            .arg(format!("--range={range}"))
            .arg(path)
            .assert()
            .success();
        assert!(
            run.get_output().stdout == expected,
            "{range} by {settings:?}"
        );
        assert!(run.get_output().stderr.is_empty());
    }
}

#[test]
fn a_file_is_printed_whole_and_in_order() {
    for len in [0, 1, 5000, (9 << 20) + 5] {
        let (_folder, path, bytes) = folder_with(len);
        let run = kvik()
            .args(["cat", "--task-size", "1MiB", "--threads", "4"])
            .arg(&path)
            .assert()
            .success();
        assert!(run.get_output().stdout == bytes, "{len}");
    }
}

#[test]
fn ranges_are_exact_at_every_corner() {
    let len = (3 << 20) + 100;
    let (_folder, path, bytes) = folder_with(len);
    check(&path, "0..0", b"");
    check(&path, "0..1", &bytes[..1]);
    check(&path, "0-0", &bytes[..1]);
    check(&path, "4095..4097", &bytes[4095..4097]);
    check(&path, "1MiB+1MiB", &bytes[1 << 20..2 << 20]);
    check(&path, "1000..", &bytes[1000..]);
    check(&path, "..1000", &bytes[..1000]);
    check(&path, "100-", &bytes[100..]);
    // Up to the end, over it, at it, past it.
    check(&path, &format!("{}..{len}", len - 1), &bytes[len - 1..]);
    check(&path, &format!("{}+4096", len - 10), &bytes[len - 10..]);
    check(&path, &format!("{len}+1"), b"");
    check(&path, &format!("{}..", len + 5000), b"");
    check(&path, "0-18446744073709551615", &bytes);
}

#[test]
fn a_range_that_cannot_be_is_a_wrong_argument() {
    let (_folder, path, _) = folder_with(10);
    for range in ["9..3", "abc", "-5", ""] {
        let run = kvik()
            .arg("cat")
            .arg(format!("--range={range}"))
            .arg(&path)
            .assert()
            .code(2);
        assert!(String::from_utf8_lossy(&run.get_output().stderr).contains("A..B"));
        assert!(run.get_output().stdout.is_empty());
    }
}

#[test]
fn files_of_proc_and_sys_have_their_bytes_though_not_their_size() {
    let run = kvik().args(["cat", "/proc/self/status"]).assert().success();
    let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    assert!(text.starts_with("Name:\tkvik\n"), "{text}");
    kvik()
        .args(["cat", "--range", "6..10", "/proc/self/status"])
        .assert()
        .success()
        .stdout("kvik");
    let online = fs::read("/sys/devices/system/cpu/online").unwrap();
    kvik()
        .args(["cat", "/sys/devices/system/cpu/online"])
        .assert()
        .success()
        .stdout(online);
    let zeros = vec![0; 3_000_000];
    kvik()
        .args(["cat", "--range", "5+3000000", "/dev/zero"])
        .assert()
        .success()
        .stdout(zeros);
    kvik()
        .args(["cat", "/dev/null"])
        .assert()
        .success()
        .stdout("");
}

#[test]
fn standard_input_and_fifos_are_read_front_to_back() {
    let bytes = data(1_000_000);
    kvik()
        .args(["cat", "-"])
        .write_stdin(bytes.clone())
        .assert()
        .success()
        .stdout(bytes.clone());
    let range = ["cat", "-", "--range", "300000..300010"];
    kvik()
        .args(range)
        .write_stdin(bytes.clone())
        .assert()
        .success()
        .stdout(bytes[300_000..300_010].to_vec());

    let folder = tempfile::tempdir().unwrap();
    let fifo = fifo(folder.path());
    let mut writer = Command::new("sh")
        .args(["-c", "printf hello > \"$0\""])
        .arg(&fifo)
        .spawn()
        .unwrap();
    kvik()
        .arg("cat")
        .arg(&fifo)
        .assert()
        .success()
        .stdout("hello");
    assert!(writer.wait().unwrap().success());
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let (_folder, path, bytes) = folder_with(8 << 20);
    let mut child = kvik_std()
        .arg("cat")
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut first = [0; 10];
    stdout.read_exact(&mut first).unwrap();
    assert_eq!(first, bytes[..10]);
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn standard_output_that_reaches_a_limit_on_file_sizes_is_an_error_and_no_signal() {
    let (folder, path, bytes) = folder_with(10_000);
    let out = folder.path().join("out");
    for words in [&["cat", path.to_str().unwrap()][..], &["--help"]] {
        // In blocks of 1024 bytes.
        let script = "ulimit -f 1; exec \"$@\" > \"$OUT\"";
        let output = Command::new("bash")
            .args(["-c", script, "bash"])
            .arg(binary())
            .args(words)
            .env("OUT", &out)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(6), "{said}");
        assert!(said.contains("EFBIG"), "{said}");
        let written = fs::read(&out).unwrap();
        assert_eq!(written.len(), 1024);
        assert_eq!(written == bytes[..1024], words[0] == "cat");
    }
}

#[test]
fn standard_output_on_a_full_disk_is_an_error() {
    let (_folder, path, _) = folder_with(10_000);
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = kvik_std()
        .arg("cat")
        .arg(&path)
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(6));
    assert!(String::from_utf8_lossy(&output.stderr).contains("standard output"));
}

#[test]
fn the_report_goes_to_standard_error_since_standard_output_carries_the_bytes() {
    let (_folder, path, bytes) = folder_with(2 << 20);
    let run = kvik()
        .args(["cat", "--json", "--stats"])
        .arg(&path)
        .assert()
        .success();
    assert!(run.get_output().stdout == bytes);
    let report = object(&run.get_output().stderr);
    assert_eq!(report["bytes"], bytes.len());
    assert_eq!(report["stats"]["bytes_read"], bytes.len());
}

#[test]
fn directories_and_missing_files_have_their_codes() {
    let folder = tempfile::tempdir().unwrap();
    kvik().arg("cat").arg(folder.path()).assert().code(2);
    let run = kvik()
        .arg("cat")
        .arg(folder.path().join("missing"))
        .assert()
        .code(3);
    let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(
        said.starts_with("kvik: open ") && said.contains("ENOENT"),
        "{said}"
    );
}
