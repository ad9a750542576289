//! The log against what its setting may name: FIFOs, devices, the file that is copied. What goes wrong elsewhere: a wait
//! for ever at a FIFO, and a source that is emptied to make a log.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use crate::support::{fifo, folder_with, kvik, kvik_std, names};

/// What `kvik` says with this log, if it says it soon.
#[track_caller]
fn logged(log: &Path, words: &[&str], places: &[&Path]) -> (Option<i32>, String) {
    let run = kvik()
        .args(words)
        .args(places)
        .env("KVIK_LOG_LEVEL", "trace")
        .env("KVIK_LOG_FILE", log)
        .assert();
    let Output { status, stderr, .. } = run.get_output();
    (status.code(), String::from_utf8_lossy(stderr).into_owned())
}

#[test]
fn what_cannot_be_a_log_is_told_and_standard_error_serves() {
    let (folder, path, _) = folder_with(10);
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for log in [
        fifo(folder.path()),
        socket,
        folder.path().to_owned(),
        PathBuf::from("/dev/zero"),
        PathBuf::from("/missing/log"),
    ] {
        let (code, said) = logged(&log, &["stat"], &[&path]);
        assert_eq!(code, Some(0), "{said}");
        let warning = format!("kvik: warning: open the log file {}: ", log.display());
        assert!(said.starts_with(&warning), "{said}");
        assert!(said.contains("standard error"), "{said}");
    }
}

#[test]
fn a_fifo_with_a_reader_is_no_log_either_and_the_reader_sees_nobody_come() {
    let (folder, path, _) = folder_with(10);
    let fifo = fifo(folder.path());
    // Opened for both, so that it has a reader all the time.
    let _reader = File::options().read(true).write(true).open(&fifo).unwrap();
    let (code, said) = logged(&fifo, &["stat"], &[&path]);
    assert_eq!(code, Some(0));
    assert!(said.contains("warning"), "{said}");
}

#[test]
fn the_null_device_and_standard_error_are_logs_without_a_warning() {
    let (_folder, path, _) = folder_with(10);
    for log in ["/dev/null", "/dev/stderr"] {
        let (code, said) = logged(Path::new(log), &["stat"], &[&path]);
        assert_eq!(code, Some(0));
        assert!(!said.contains("warning"), "{log}: {said}");
    }
}

#[test]
fn a_log_is_appended_to() {
    let (folder, path, _) = folder_with(10);
    let log = folder.path().join("log");
    fs::write(&log, "what was there\n").unwrap();
    logged(&log, &["stat"], &[&path]);
    assert!(
        fs::read_to_string(&log)
            .unwrap()
            .starts_with("what was there\n")
    );
}

#[test]
fn a_log_into_a_file_that_the_command_reads_or_writes_is_refused_before_anything_happens() {
    let (folder, source, bytes) = folder_with(5 << 20);
    let (copy, hard) = (folder.path().join("b"), folder.path().join("hard"));
    let part = folder.path().join("b.kvik-part");
    let inside = folder.path().join("into/a");
    fs::create_dir(folder.path().join("into")).unwrap();
    fs::hard_link(&source, &hard).unwrap();
    let into = folder.path().join("into");
    for (log, words, places) in [
        (&source, &["copy"][..], &[&source, &copy][..]),
        (&hard, &["copy"], &[&source, &copy]),
        (&copy, &["copy"], &[&source, &copy]),
        (&part, &["copy"], &[&source, &copy]),
        (&inside, &["copy"], &[&source, &into]),
        (&source, &["cat"], &[&source]),
        (&source, &["bench", "file"], &[&source]),
        (&source, &["bench", "mmap"], &[&source]),
    ] {
        let places: Vec<&Path> = places.iter().map(|path| path.as_path()).collect();
        let (code, said) = logged(log, words, &places);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("KVIK_LOG_FILE"), "{said}");
        assert!(fs::read(&source).unwrap() == bytes);
        assert_eq!(names(folder.path()), ["a", "hard", "into"]);
        assert!(names(&into).is_empty());
    }
    // Without a log nothing stands against it.
    kvik()
        .arg("copy")
        .args([&source, &copy])
        .env("KVIK_LOG_FILE", &source)
        .assert()
        .success();
}

#[test]
fn a_log_into_what_cat_prints_to_is_refused() {
    let (folder, path, _) = folder_with(10);
    let log = folder.path().join("log");
    let output = kvik_std()
        .arg("cat")
        .arg(&path)
        .env("KVIK_LOG_LEVEL", "trace")
        .env("KVIK_LOG_FILE", &log)
        .stdout(File::create(&log).unwrap())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read(&log).unwrap(), b"");
}

#[test]
fn each_operation_and_each_task_is_a_line_of_the_log_that_kvikios_variables_ask_for() {
    let (folder, path, _) = folder_with(100);
    let lines = |level: &str| {
        let log = folder.path().join(level);
        kvik()
            .args(["cat"])
            .arg(&path)
            .env("KVIKIO_LOG_LEVEL", level)
            .env("KVIKIO_LOG_FILE", &log)
            .assert()
            .code(0);
        fs::read_to_string(log).unwrap()
    };
    let log = lines("DEBUG");
    let source = format!("source=\"{}\"", path.display());
    let is_read = |line: &&str| {
        line.contains("operation{id=1 backend=\"POSIX\" direction=\"READ\" memory=\"HOST\"")
            && line.contains(&source)
            && line.contains("bytes=100 ok=true")
    };
    assert_eq!(log.lines().filter(is_read).count(), 1, "{log}");
    assert!(!log.contains("task{"), "{log}");
    assert!(!lines("warn").contains("operation{"));
    // Larger, so that it is cut into tasks.
    fs::write(&path, vec![7; 9 << 20]).unwrap();
    let log = lines("trace");
    let is_task = |line: &&str| line.contains("task{operation=") && line.contains(" ok=true");
    assert!(log.lines().filter(is_task).count() > 0, "{log}");
}
