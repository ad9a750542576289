//! Copies that are stopped, or whose source changes under them. The copies here would take minutes, since their tasks
//! are single bytes, so that a signal or a change always finds them at work.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{folder_with, kvik, kvik_std, names, object, part_of};

/// Starts a copy and waits until it is at work, that is, until its part has its length.
fn slow_copy(source: &Path, copy: &Path, flags: &[&str]) -> Child {
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
        .stderr(Stdio::piped());
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

fn send(signal: &str, child: &Child) {
    let status = Command::new("sh")
        .args(["-c", &format!("kill -{signal} {}", child.id())])
        .status()
        .unwrap();
    assert!(status.success());
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
