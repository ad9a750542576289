//! Copies of remote objects that end early and are begun again. What goes wrong in downloaders: bytes of two versions in
//! one file, a file that is trusted for its length, holes where a crash lost what was thought to be written.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::server::{AtLimit, Server};
use crate::support::{binary, data, kvik, kvik_std, names, object, part_of, send};

const SIZE: usize = (6 << 20) + 12_345;
// Two requests are under way, neither of which brings a whole piece of a mebibyte; all others do.
const HALF: u64 = 5 << 20;
// What opening an object brings.
const HEAD: u64 = 64 << 10;

fn journal_of(copy: &Path) -> PathBuf {
    PathBuf::from(format!("{}.kvik-journal", copy.display()))
}

/// A server of [`SIZE`] bytes that stops in the middle, and a folder with the place of a copy.
fn server() -> (Server, TempDir, PathBuf) {
    let server = Server::start(data(SIZE));
    server.begin_run(HALF, AtLimit::Waits);
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("b");
    (server, folder, copy)
}

fn start(url: &str, copy: &Path, flags: &[&str]) -> Child {
    let mut command = kvik_std();
    command.args(["copy", "--json", "--task-size", "1MiB"]);
    command.args(["--set", "remote_io_max_concurrent_requests=2"]);
    command.args(flags).arg(url).arg(copy);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Copies, by the same settings, and returns what is reported and what was said besides.
#[track_caller]
fn copy_again(url: &str, copy: &Path, flags: &[&str]) -> (Value, String) {
    let output = start(url, copy, flags).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let report = object(&output.stdout);
    assert!(output.status.success(), "{report} {said}");
    (report, said)
}

/// Waits until the journal has pieces.
fn wait_for_journal(copy: &Path) {
    let begun = Instant::now();
    while lines(&journal_of(copy)) < 4 {
        assert!(begun.elapsed() < Duration::from_secs(40), "no journal");
        sleep(Duration::from_millis(10));
    }
}

fn lines(path: &Path) -> usize {
    fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// Leaves what a copy leaves that is killed in the middle.
fn kill_in_the_middle(server: &Server, url: &str, copy: &Path) {
    let mut child = start(url, copy, &[]);
    server.wait_for_limit();
    wait_for_journal(copy);
    child.kill().unwrap();
    child.wait().unwrap();
    server.begin_run(u64::MAX, AtLimit::Waits);
}

#[test]
fn a_copy_that_was_killed_is_gone_on_with_and_fetches_only_what_is_missing() {
    let (server, folder, copy) = server();
    let url = server.url("/data.bin?token=secret");
    fs::write(&copy, b"what was there").unwrap();
    kill_in_the_middle(&server, &url, &copy);
    assert_eq!(names(folder.path()), ["b", "b.kvik-journal", "b.kvik-part"]);
    assert_eq!(fs::read(&copy).unwrap(), b"what was there");
    let journal = fs::read_to_string(journal_of(&copy)).unwrap();
    assert!(
        !journal.contains("secret") && !journal.contains("127.0.0.1"),
        "{journal}"
    );

    let (report, said) = copy_again(&url, &copy, &["--verify"]);
    assert!(fs::read(&copy).unwrap() == data(SIZE));
    assert_eq!(names(folder.path()), ["b"]);
    let resumed = report["resumed_bytes"].as_u64().unwrap();
    assert!(resumed >= 3 << 20, "{report}");
    assert_eq!(server.sent(), SIZE as u64 - resumed + HEAD);
    assert_eq!(report["begun_anew"], Value::Null);
    assert_eq!(report["verified"], true);
    assert!(
        said.contains("gone on with") && !said.contains("secret"),
        "{said}"
    );
}

#[test]
fn killed_again_and_again_at_any_moment_a_copy_is_whole_in_the_end() {
    let (server, folder, copy) = server();
    let url = server.url("/data.bin");
    for mebibytes in [0, 1, 2, 4, 5] {
        server.begin_run(mebibytes << 20 | 1, AtLimit::Waits);
        let mut child = start(&url, &copy, &[]);
        server.wait_for_limit();
        child.kill().unwrap();
        child.wait().unwrap();
    }
    server.begin_run(u64::MAX, AtLimit::Waits);
    copy_again(&url, &copy, &["--verify"]);
    assert!(fs::read(&copy).unwrap() == data(SIZE));
    assert_eq!(names(folder.path()), ["b"]);
}

#[test]
fn an_interrupted_copy_says_how_to_go_on_and_does() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let (server, folder, copy) = server();
        let url = server.url("/data.bin");
        let child = start(&url, &copy, &[]);
        server.wait_for_limit();
        wait_for_journal(&copy);
        send(signal, &child);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code));
        let error = object(&output.stdout)["error"].clone();
        let hint = error["hint"].as_str().unwrap();
        assert!(
            hint.contains("the same command goes on") && hint.contains("--no-resume"),
            "{hint}"
        );
        assert!(
            error["part"].as_str().unwrap().ends_with("b.kvik-part"),
            "{error}"
        );
        assert_eq!(names(folder.path()), ["b.kvik-journal", "b.kvik-part"]);

        server.begin_run(u64::MAX, AtLimit::Waits);
        let (report, _) = copy_again(&url, &copy, &[]);
        assert!(
            report["resumed_bytes"].as_u64().unwrap() >= 3 << 20,
            "{report}"
        );
        assert!(fs::read(&copy).unwrap() == data(SIZE));
        assert_eq!(names(folder.path()), ["b"]);
    }
}

#[test]
fn a_long_copy_says_how_far_it_is_how_fast_it_goes_and_how_long_it_takes() {
    let (server, _folder, copy) = server();
    let mut child = start(&server.url("/data.bin"), &copy, &[]);
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let line = stderr
        .lines()
        .map_while(Result::ok)
        .find(|line| line.starts_with("copying: "))
        .unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    // What came of pieces that are not whole yet counts, too.
    for words in ["%, ", " MiB of 6.01 MiB, ", "B/s, ", " left"] {
        assert!(line.contains(words), "{line}");
    }
}

#[test]
fn a_network_that_fails_leaves_what_can_be_gone_on_with() {
    let (server, folder, copy) = server();
    server.begin_run(HALF, AtLimit::HangsUp);
    let url = server.url("/data.bin");
    let once = ["--set", "http_max_attempts=1"];
    let output = start(&url, &copy, &once).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = object(&output.stdout)["error"].clone();
    assert_eq!(error["kind"], "Unreachable", "{error}");
    assert!(
        error["hint"].as_str().unwrap().contains("goes on"),
        "{error}"
    );
    assert_eq!(names(folder.path()), ["b.kvik-journal", "b.kvik-part"]);
    server.begin_run(u64::MAX, AtLimit::Waits);
    let (report, _) = copy_again(&url, &copy, &once);
    let resumed = report["resumed_bytes"].as_u64().unwrap();
    assert!(resumed >= 3 << 20, "{report}");
    assert_eq!(server.sent(), SIZE as u64 - resumed + HEAD);
    assert!(fs::read(&copy).unwrap() == data(SIZE));
    assert_eq!(names(folder.path()), ["b"]);
}

/// What is left of a copy is changed; the next one begins anew, says why, and is right.
#[track_caller]
fn check_anew(change: impl FnOnce(&Server, &Path), flags: &[&str], why: &str) {
    let (server, folder, copy) = server();
    let url = server.url("/data.bin");
    kill_in_the_middle(&server, &url, &copy);
    change(&server, &copy);
    let (report, said) = copy_again(&url, &copy, flags);
    assert_eq!(report["resumed_bytes"], 0, "{report}");
    let told = report["begun_anew"].as_str().unwrap();
    assert!(told.contains(why), "{why}: {told}");
    assert_eq!(said.contains(why), flags.is_empty(), "{said}");
    // Whatever the server has now.
    let output = kvik().args(["cat", &url]).output().unwrap();
    assert!(fs::read(&copy).unwrap() == output.stdout);
    assert_eq!(names(folder.path()), ["b"]);
}

#[test]
fn an_object_that_has_changed_is_copied_anew() {
    let other = || data(SIZE + 1)[1..].to_vec();
    check_anew(
        |server, _| server.replace(other(), "etag: \"two\"\r\n"),
        &[],
        "has changed",
    );
    check_anew(
        |server, _| server.replace(data(SIZE + 7), "etag: \"one\"\r\n"),
        &[],
        "has changed",
    );
    check_anew(
        |server, _| server.replace(other(), "etag: W/\"one\"\r\n"),
        &[],
        "weak",
    );
    check_anew(
        |server, _| server.replace(other(), ""),
        &[],
        "does not name its version",
    );
}

#[test]
fn bytes_that_are_not_those_that_were_written_are_no_use() {
    let spoil = |_: &Server, copy: &Path| {
        let journal = fs::read_to_string(journal_of(copy)).unwrap();
        let piece = journal.lines().nth(1).unwrap();
        let offset = piece.split(' ').nth(1).unwrap().parse().unwrap();
        let part = fs::OpenOptions::new()
            .write(true)
            .open(part_of(copy))
            .unwrap();
        let byte = data(SIZE)[offset as usize] ^ 1;
        part.write_all_at(&[byte], offset).unwrap();
    };
    check_anew(spoil, &[], "not those that were written");
    let cut = |_: &Server, copy: &Path| {
        let part = fs::OpenOptions::new()
            .write(true)
            .open(part_of(copy))
            .unwrap();
        part.set_len(SIZE as u64 - 1).unwrap();
    };
    check_anew(cut, &[], "bytes instead of");
}

#[test]
fn a_part_that_others_may_have_written_to_is_no_use() {
    let open = |_: &Server, copy: &Path| {
        fs::set_permissions(part_of(copy), fs::Permissions::from_mode(0o660)).unwrap();
    };
    check_anew(open, &[], "others may have written");
    let journal = |_: &Server, copy: &Path| {
        fs::set_permissions(journal_of(copy), fs::Permissions::from_mode(0o660)).unwrap();
    };
    check_anew(journal, &[], "others may have written");
    let none = |_: &Server, copy: &Path| fs::remove_file(journal_of(copy)).unwrap();
    check_anew(none, &[], "no journal");
    let garbage = |_: &Server, copy: &Path| {
        let mut journal = fs::OpenOptions::new()
            .append(true)
            .open(journal_of(copy))
            .unwrap();
        // A line that is one, and can be none of a journal.
        writeln!(journal, "{:08x} garbage", crc32fast::hash(b"garbage")).unwrap();
    };
    check_anew(garbage, &[], "cannot be read");
}

#[test]
fn what_is_no_journal_is_neither_believed_nor_removed_and_the_part_stays() {
    let (server, folder, copy) = server();
    let url = server.url("/data.bin");
    kill_in_the_middle(&server, &url, &copy);
    fs::write(journal_of(&copy), "a diary").unwrap();
    let part = fs::read(part_of(&copy)).unwrap();
    for flags in [&[][..], &["--no-resume"]] {
        let output = start(&url, &copy, flags).wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let error = object(&output.stdout)["error"].clone();
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("no journal of kvik's"), "{message}");
        assert_eq!(names(folder.path()), ["b.kvik-journal", "b.kvik-part"]);
        assert_eq!(fs::read(journal_of(&copy)).unwrap(), b"a diary");
        assert!(fs::read(part_of(&copy)).unwrap() == part);
    }
}

#[test]
fn what_is_left_outlives_a_copy_that_may_open_too_few_files() {
    let (server, folder, copy) = server();
    let url = server.url("/data.bin");
    kill_in_the_middle(&server, &url, &copy);
    let left = [part_of(&copy), journal_of(&copy)].map(|path| (fs::read(&path).unwrap(), path));
    let mut done = false;
    for most in 3..64 {
        let limited = format!("ulimit -n {most} && exec \"$@\"");
        let mut command = Command::new("sh");
        command
            .env_clear()
            .args(["-c", &limited, "sh"])
            .arg(binary());
        command.args(["copy", "--json", "--task-size", "1MiB", "--threads", "1"]);
        command.args(["--set", "http_max_attempts=1"]);
        let output = command.arg(&url).arg(&copy).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        if output.status.success() {
            assert!(fs::read(&copy).unwrap() == data(SIZE), "{most}: {said}");
            assert!(!said.contains("\"resumed_bytes\":0"), "{most}: {said}");
            done = true;
            break;
        }
        assert_eq!(
            names(folder.path()),
            ["b.kvik-journal", "b.kvik-part"],
            "{most}: {said}"
        );
        for (bytes, path) in &left {
            fs::write(path, bytes).unwrap();
        }
    }
    assert!(done);
}

#[test]
fn whoever_wants_a_new_beginning_gets_it() {
    check_anew(|_, _| {}, &["--no-resume"], "--no-resume");
}

#[test]
fn what_is_left_of_another_url_is_no_use_and_a_file_takes_its_place_as_well() {
    let (server, folder, copy) = server();
    kill_in_the_middle(&server, &server.url("/data.bin?id=1"), &copy);
    let (report, _) = copy_again(&server.url("/data.bin?id=2"), &copy, &[]);
    assert!(
        report["begun_anew"]
            .as_str()
            .unwrap()
            .contains("another URL"),
        "{report}"
    );
    assert!(fs::read(&copy).unwrap() == data(SIZE));

    server.begin_run(HALF, AtLimit::Waits);
    kill_in_the_middle(&server, &server.url("/data.bin"), &copy);
    let source = folder.path().join("a");
    fs::write(&source, b"a file").unwrap();
    kvik().arg("copy").args([&source, &copy]).assert().success();
    assert_eq!(fs::read(&copy).unwrap(), b"a file");
    assert_eq!(names(folder.path()), ["a", "b"]);
}

#[test]
fn a_time_of_change_tells_a_version_once_it_is_a_minute_old() {
    let old = "last-modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n";
    let (server, _folder, copy) = server();
    server.replace(data(SIZE), old);
    let url = server.url("/data.bin");
    kill_in_the_middle(&server, &url, &copy);
    let (report, _) = copy_again(&url, &copy, &[]);
    assert!(
        report["resumed_bytes"].as_u64().unwrap() >= 3 << 20,
        "{report}"
    );
    assert!(fs::read(&copy).unwrap() == data(SIZE));
}

#[test]
fn without_a_version_nothing_is_promised_and_nothing_is_gone_on_with() {
    let (server, folder, copy) = server();
    server.replace(data(SIZE), "etag: W/\"one\"\r\n");
    let url = server.url("/data.bin");
    let child = start(&url, &copy, &[]);
    server.wait_for_limit();
    let script = format!("kill -INT {}", child.id());
    assert!(
        Command::new("sh")
            .args(["-c", &script])
            .status()
            .unwrap()
            .success()
    );
    let output = child.wait_with_output().unwrap();
    let error = object(&output.stdout)["error"].clone();
    let hint = error["hint"].as_str().unwrap();
    assert!(
        hint.contains("begins anew") && hint.contains("weak ETag"),
        "{hint}"
    );
    assert_eq!(names(folder.path()), ["b.kvik-part"]);
    server.begin_run(u64::MAX, AtLimit::Waits);
    let (report, _) = copy_again(&url, &copy, &[]);
    assert!(
        report["begun_anew"].as_str().unwrap().contains("weak ETag"),
        "{report}"
    );
    assert!(fs::read(&copy).unwrap() == data(SIZE));
}

#[test]
fn a_second_copy_to_the_same_place_is_refused_while_the_first_goes_on() {
    let (server, folder, copy) = server();
    let url = server.url("/data.bin");
    let first = start(&url, &copy, &[]);
    server.wait_for_limit();
    wait_for_journal(&copy);
    for flags in [&[][..], &["--no-resume"]] {
        // The server has room for the second one's first bytes: it counts what it sent before it waits.
        let second = Server::start(data(SIZE));
        let output = start(&second.url("/data.bin"), &copy, flags)
            .wait_with_output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        let error = object(&output.stdout)["error"].clone();
        assert!(
            error["message"].as_str().unwrap().contains("another kvik"),
            "{error}"
        );
    }
    assert!(lines(&journal_of(&copy)) >= 4);
    // The first one's connections go on.
    server.raise_limit();
    let output = first.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(fs::read(&copy).unwrap() == data(SIZE));
    assert_eq!(names(folder.path()), ["b"]);
}

#[test]
fn a_full_disk_leaves_nothing_of_a_remote_object() {
    let server = Server::start(data(3 << 20));
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("b");
    let script = "ulimit -f 1024; exec \"$@\"";
    let mut command = Command::new("bash");
    command.args(["-c", script, "bash"]).arg(binary());
    command
        .args(["copy", "--json", &server.url("/data.bin")])
        .arg(&copy);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(6));
    let error = object(&output.stdout)["error"].clone();
    assert_eq!(error["kind"], "StorageFull", "{error}");
    assert!(
        error["hint"].as_str().unwrap().contains("removed"),
        "{error}"
    );
    assert_eq!(names(folder.path()), Vec::<String>::new());
}
