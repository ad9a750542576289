//! What all commands have in common: JSON, colors, quiet, exit codes, help, a standard output that fails.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::support::{binary, folder_with, kvik, kvik_json, kvik_std, object};

const ESCAPE: u8 = 0x1b;

#[test]
fn the_help_is_what_was_reviewed() {
    let run = kvik().arg("--help").assert().success().stderr("");
    let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    let golden = include_str!("help.txt");
    assert!(
        text == golden,
        "`kvik --help` changed. If that was meant:\n\
         cargo run -p kvik-cli --bin kvik -- --help > crates/kvik-cli/tests/cli/help.txt\n{text}"
    );
}

#[test]
fn the_help_of_every_command_has_examples_and_exit_codes() {
    let commands: [&[&str]; 13] = [
        &["copy"],
        &["cat"],
        &["stat"],
        &["page-cache", "info"],
        &["page-cache", "drop"],
        &["config"],
        &["doctor"],
        &["bench"],
        &["bench", "file"],
        &["bench", "mmap"],
        &["bench", "remote"],
        &["completions"],
        &[],
    ];
    for words in commands {
        let run = kvik().arg("help").args(words).assert().success();
        let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
        assert!(
            text.contains("Exit codes:") && text.contains("Examples:"),
            "kvik help {words:?}:\n{text}"
        );
    }
    let run = kvik().args(["help", "copy"]).assert().success();
    let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    assert!(
        text.contains("Files:") && text.contains("DST.kvik-part"),
        "{text}"
    );
}

#[test]
fn wrong_arguments_are_code_2_and_json_if_asked_for() {
    kvik().arg("bogus").assert().code(2);
    kvik().assert().code(2);
    for line in [
        &["copy", "--json"][..],
        &["--json", "bogus"],
        &["--json"],
        &["config", "--json", "--bogus"],
    ] {
        let run = kvik().args(line).assert().code(2);
        let error = object(&run.get_output().stdout)["error"].clone();
        assert_eq!(error["kind"], "Misuse", "{line:?}");
        assert_eq!(error["exit_code"], 2);
        assert!(!error["message"].as_str().unwrap().is_empty());
        assert!(run.get_output().stderr.is_empty());
    }
}

#[test]
fn an_error_as_json_says_kind_place_and_number() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing");
    let run = kvik()
        .args(["copy", "--json"])
        .arg(&path)
        .arg("b")
        .assert()
        .code(3)
        .stderr("");
    let error = object(&run.get_output().stdout)["error"].clone();
    assert_eq!(error["kind"], "NotFound");
    assert_eq!(error["os_error"], 2);
    assert_eq!(error["place"], path.to_string_lossy().as_ref());
    assert!(
        error["message"].as_str().unwrap().starts_with("open "),
        "{error}"
    );
    // From `cat` everything but the bytes goes to standard error.
    let run = kvik()
        .args(["cat", "--json"])
        .arg(&path)
        .assert()
        .code(3)
        .stdout("");
    assert_eq!(
        object(&run.get_output().stderr)["error"]["kind"],
        "NotFound"
    );
}

#[test]
fn no_escape_code_leaves_for_a_pipe_and_none_for_no_color() {
    let lines: [&[&str]; 6] = [
        &["--help"],
        &["config"],
        &["doctor", "/"],
        &["stat", "/proc/self/exe"],
        &["cat", "/missing"],
        &["bogus"],
    ];
    for line in lines {
        for (name, value) in [("UNUSED", "1"), ("NO_COLOR", "1")] {
            let output = kvik_std().env(name, value).args(line).output().unwrap();
            assert!(
                !output.stdout.contains(&ESCAPE) && !output.stderr.contains(&ESCAPE),
                "{line:?}"
            );
            assert!(output.stdout.len() + output.stderr.len() > 0);
        }
    }
}

#[test]
fn colors_can_be_forced_and_say_nothing_that_words_do_not() {
    let plain = kvik()
        .args(["config", "--color", "never"])
        .output()
        .unwrap()
        .stdout;
    let colored = kvik()
        .args(["config", "--color=always"])
        .output()
        .unwrap()
        .stdout;
    assert!(colored.contains(&ESCAPE));
    assert_eq!(
        String::from_utf8(without_escapes(&colored)).unwrap(),
        String::from_utf8(plain).unwrap()
    );
    let error = kvik()
        .args(["bogus", "--color=always"])
        .output()
        .unwrap()
        .stderr;
    assert!(error.contains(&ESCAPE));
    let error = kvik()
        .args(["cat", "/missing", "--color=always"])
        .output()
        .unwrap()
        .stderr;
    assert!(error.contains(&ESCAPE));
}

#[test]
fn a_terminal_gets_colors_unless_no_color_is_set() {
    // `script` gives the command a terminal.
    let on_a_terminal = |variable: &str| {
        let line = format!("{} config", binary().display());
        let mut command = Command::new("script");
        command
            .args(["-qec", &line, "/dev/null"])
            .env_remove("NO_COLOR")
            .env("TERM", "xterm")
            .env(variable, "1");
        command.stdin(Stdio::null()).output().unwrap().stdout
    };
    assert!(on_a_terminal("UNUSED").contains(&ESCAPE));
    assert!(!on_a_terminal("NO_COLOR").contains(&ESCAPE));
}

/// Drops `ESC [ ... m`.
fn without_escapes(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut inside = false;
    for &byte in bytes {
        match byte {
            ESCAPE => inside = true,
            b'm' if inside => inside = false,
            _ if inside => {}
            _ => plain.push(byte),
        }
    }
    plain
}

#[test]
fn quiet_reports_print_nothing_and_still_end_with_their_code() {
    kvik()
        .args(["config", "--quiet"])
        .assert()
        .code(0)
        .stdout("")
        .stderr("");
    kvik()
        .args(["config", "--quiet"])
        .env("KVIK_TASK_SIZE", "4abc")
        .assert()
        .code(2)
        .stdout("")
        .stderr("");
    assert!(kvik_json(&["config", "--quiet"], [])["settings"].is_array());
    let run = kvik().args(["cat", "--quiet", "/missing"]).assert().code(3);
    assert!(!run.get_output().stderr.is_empty());
}

#[test]
fn a_full_standard_output_is_code_6_and_a_closed_one_is_not_an_error() {
    for line in [
        &["config"][..],
        &["config", "--json"],
        &["--help"],
        &["completions", "bash"],
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = kvik_std()
            .args(line)
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(6), "{line:?}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("standard output"),
            "{line:?}"
        );
    }
    let mut child = kvik_std()
        .arg("config")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
}

#[test]
fn permission_denied_is_code_4() {
    let (folder, path, _) = folder_with(10);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    let mut command;
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        // Root may read everything, so somebody else has to ask, with a copy of the program that he may run.
        let program = folder.path().join("kvik");
        fs::copy(binary(), &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        command = Command::new(program);
        command.env_clear().uid(65534).gid(65534);
    } else {
        command = kvik_std();
    }
    let output = command
        .args(["copy", "--json"])
        .arg(&path)
        .arg(folder.path().join("b"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4));
    let error = object(&output.stdout)["error"].clone();
    assert_eq!(error["kind"], "PermissionDenied");
    assert_eq!(error["os_error"], 13);
}

#[test]
fn completions_are_scripts() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = kvik()
            .args(["completions", shell])
            .assert()
            .success()
            .stderr("");
        let script = String::from_utf8(run.get_output().stdout.clone()).unwrap();
        assert!(
            script.contains("page-cache") && script.contains("verify"),
            "{shell}"
        );
        if shell == "bash" {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("kvik.bash");
            fs::write(&path, &script).unwrap();
            let output = Command::new("bash").arg("-n").arg(&path).output().unwrap();
            assert!(output.status.success() && output.stderr.is_empty());
        }
    }
    let report = kvik_json(&["completions", "bash"], []);
    assert_eq!(report["shell"], "bash");
    kvik().args(["completions", "tcsh"]).assert().code(2);
}

#[test]
fn the_log_is_off_by_default_and_goes_where_it_is_told_to() {
    let (folder, path, bytes) = folder_with(100);
    let log = folder.path().join("log");
    kvik().arg("cat").arg(&path).assert().success().stderr("");
    let run = kvik()
        .arg("cat")
        .arg(&path)
        .env("KVIK_LOG_LEVEL", "trace")
        .env("KVIK_LOG_FILE", &log)
        .assert();
    run.success().stdout(bytes).stderr("");
    assert!(log.exists());
}
