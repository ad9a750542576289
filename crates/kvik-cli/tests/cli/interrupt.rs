//! Copies that are stopped, or whose source changes under them. The copies here would take minutes, since their tasks
//! are single bytes, so that a signal or a change always finds them at work.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{folder_with, kvik, kvik_std, names, object, part_of, send};

/// Starts a copy and waits until it is at work, that is, until its part has its length.
fn slow_copy(source: &Path, copy: &Path, flags: &[&str]) -> Child {
    slow_copy_to(source, copy, flags, Stdio::piped())
}

/// The same, with its standard error in this place.
fn slow_copy_to(source: &Path, copy: &Path, flags: &[&str], stderr: Stdio) -> Child {
    let mut command = kvik_std();
    command
        .arg("copy")
        .args([
            "--set",
            "inline_size=0",
            "--task-size",
            "1",
            "--threads",
            "2",
        ])
        .args(flags);
    command
        .args([source, copy])
        .stdout(Stdio::piped())
        .stderr(stderr);
    let child = command.spawn().unwrap();
    let begun = Instant::now();
    while fs::metadata(part_of(copy)).map_or(0, |part| part.len()) == 0 {
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "no part after half a minute"
        );
        sleep(Duration::from_millis(1));
    }
    child
}

fn ended(child: Child) -> Output {
    child.wait_with_output().unwrap()
}

#[test]
fn an_interrupted_copy_keeps_its_part_and_names_it() {
    let (folder, source, bytes) = folder_with(64 << 20);
    let copy = folder.path().join("b");
    fs::write(&copy, b"what was there").unwrap();

    let child = slow_copy(&source, &copy, &[]);
    send("INT", &child);
    let output = ended(child);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(
        said.contains("b.kvik-part") && said.contains("kept"),
        "{said}"
    );
    assert_eq!(fs::read(&copy).unwrap(), b"what was there");
    assert_eq!(names(folder.path()), ["a", "b", "b.kvik-part"]);

    // The next copy takes the place of the part.
    kvik().arg("copy").args([&source, &copy]).assert().success();
    assert!(fs::read(&copy).unwrap() == bytes);
    assert_eq!(names(folder.path()), ["a", "b"]);
}

#[test]
fn sigterm_has_its_own_code_and_says_so_in_json() {
    let (folder, source, _) = folder_with(64 << 20);
    let copy = folder.path().join("b");
    let child = slow_copy(&source, &copy, &["--json"]);
    send("TERM", &child);
    let output = ended(child);
    assert_eq!(output.status.code(), Some(143));
    let error = object(&output.stdout)["error"].clone();
    assert_eq!(error["kind"], "Interrupted");
    assert_eq!(error["exit_code"], 143);
    assert!(error["part"].as_str().unwrap().ends_with("b.kvik-part"));
    assert_eq!(names(folder.path()), ["a", "b.kvik-part"]);
}

#[test]
fn a_second_signal_that_comes_at_once_changes_nothing_and_the_part_is_named_once() {
    // `timeout` sends SIGTERM to the command, and once more to its group.
    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        let (folder, source, _) = folder_with(64 << 20);
        let copy = folder.path().join("b");
        let child = slow_copy(&source, &copy, &["--quiet"]);
        send(signal, &child);
        send(signal, &child);
        let output = ended(child);
        assert_eq!(output.status.code(), Some(code));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(said.matches("b.kvik-part").count(), 1, "{said}");
        assert_eq!(said.matches("stopped by").count(), 1, "{said}");
        assert_eq!(names(folder.path()), ["a", "b.kvik-part"]);
    }
}

/// A pipe without room and without a reader, which makes whoever writes to it wait for ever.
fn full_pipe() -> (io::PipeReader, io::PipeWriter) {
    let (reader, writer) = io::pipe().unwrap();
    let ours = format!("/proc/self/fd/{}", writer.as_raw_fd());
    let mut filler = fs::OpenOptions::new();
    let mut filler = filler.write(true).custom_flags(libc::O_NONBLOCK).open(ours);
    while filler.as_mut().unwrap().write(&[0; 4096]).is_ok() {}
    (reader, writer)
}

#[test]
fn a_copy_that_cannot_look_for_signals_ends_by_itself_and_still_names_its_part() {
    let (folder, source, _) = folder_with(64 << 20);
    let copy = folder.path().join("b");
    let (reader, writer) = full_pipe();
    let mut child = slow_copy_to(&source, &copy, &["--json"], writer.into());
    // Progress is told after two seconds, to nobody, which is as good a place to be stuck at as any.
    sleep(Duration::from_secs(3));
    let asked = Instant::now();
    send("TERM", &child);
    let mut said = Vec::new();
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_to_end(&mut said).unwrap();
    let output = ended(child);
    assert!(asked.elapsed() < Duration::from_secs(20));
    drop(reader);
    assert_eq!(output.status.code(), Some(143));
    let error = object(&said)["error"].clone();
    assert_eq!(error["kind"], "Interrupted");
    assert!(error["part"].as_str().unwrap().ends_with("b.kvik-part"));
    assert_eq!(names(folder.path()), ["a", "b.kvik-part"]);
}

#[test]
fn last_words_that_nobody_reads_do_not_keep_a_second_signal_from_ending_it() {
    let (folder, source, _) = folder_with(64 << 20);
    let copy = folder.path().join("b");
    let (reader, writer) = full_pipe();
    let mut child = slow_copy_to(&source, &copy, &["--quiet"], writer.into());
    send("INT", &child);
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "it does not end");
        sleep(Duration::from_millis(100));
        send("INT", &child);
    };
    drop(reader);
    assert_eq!(status.code(), Some(130));
    assert_eq!(names(folder.path()), ["a", "b.kvik-part"]);
}

#[test]
fn a_bench_that_is_stuck_ends_at_a_second_signal_and_names_what_it_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let (reader, writer) = full_pipe();
    let mut command = kvik_std();
    command
        .args(["bench", "--json", "--size", "64MiB", "--dir"])
        .arg(folder.path());
    // Its first word is one too many.
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(writer)
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while names(folder.path()).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(30), "no files");
        sleep(Duration::from_millis(1));
    }
    sleep(Duration::from_millis(500));
    send("INT", &child);
    sleep(Duration::from_millis(1500));
    assert!(child.try_wait().unwrap().is_none(), "it may be tidying up");
    send("TERM", &child);
    let output = ended(child);
    drop(reader);
    // The code is that of the first.
    assert_eq!(output.status.code(), Some(130));
    let error = object(&output.stdout)["error"].clone();
    let left = Path::new(error["left"].as_str().unwrap());
    assert_eq!(left.parent(), Some(folder.path()));
    assert!(left.is_dir());
}

#[test]
fn a_part_is_readable_by_its_owner_alone_until_it_is_complete() {
    let (folder, source, _) = folder_with(64 << 20);
    let copy = folder.path().join("b");
    fs::set_permissions(&source, fs::Permissions::from_mode(0o666)).unwrap();
    let child = slow_copy(&source, &copy, &[]);
    assert_eq!(fs::metadata(part_of(&copy)).unwrap().mode() & 0o777, 0o600);
    send("INT", &child);
    ended(child);
    assert_eq!(fs::metadata(part_of(&copy)).unwrap().mode() & 0o777, 0o600);
}

#[test]
fn a_second_copy_to_the_same_place_is_refused_while_the_first_is_at_work() {
    let (folder, source, _) = folder_with(64 << 20);
    let copy = folder.path().join("b");
    let child = slow_copy(&source, &copy, &[]);
    let run = kvik().arg("copy").args([&source, &copy]).assert().code(1);
    let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(said.contains("another kvik"), "{said}");
    assert!(part_of(&copy).exists());
    send("INT", &child);
    assert_eq!(ended(child).status.code(), Some(130));
}

#[test]
fn a_source_that_becomes_shorter_is_an_integrity_error_and_leaves_nothing() {
    let (folder, source, _) = folder_with(4 << 20);
    let copy = folder.path().join("b");
    fs::write(&copy, b"what was there").unwrap();
    let child = slow_copy(&source, &copy, &["--json"]);
    fs::OpenOptions::new()
        .write(true)
        .open(&source)
        .unwrap()
        .set_len(1)
        .unwrap();
    let output = ended(child);
    assert_eq!(
        output.status.code(),
        Some(5),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert_eq!(object(&output.stdout)["error"]["kind"], "Changed");
    assert_eq!(fs::read(&copy).unwrap(), b"what was there");
    assert_eq!(names(folder.path()), ["a", "b"]);
}

#[test]
fn an_interrupted_bench_removes_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = kvik_std();
    command
        .args(["bench", "--quiet", "--size", "64MiB", "--dir"])
        .arg(folder.path());
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while names(folder.path()).is_empty() {
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "no files after half a minute"
        );
        sleep(Duration::from_millis(1));
    }
    send("INT", &child);
    let output = ended(child);
    assert_eq!(
        output.status.code(),
        Some(130),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.stdout.is_empty());
    assert!(names(folder.path()).is_empty());
}
