//! What a process finds when it starts: each test starts one, with an environment of its own.
//!
//! What once broke, in KvikIO: what was said after the start had no effect (reported as rapidsai/kvikio#451), and one bad
//! variable broke all.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use kvik_config::{Config, Key, Layer};
use tempfile::TempDir;

/// Run by the other tests in a process of its own.
#[test]
fn all_current_settings_can_be_printed() {
    let config = Config::current();
    for &key in Key::ALL {
        let text = config
            .text(key)
            .unwrap_or_else(|error| format!("error: {error}"));
        println!("{key} | {} | {text}", config.origin(key));
    }
    for problem in config.problems() {
        println!("problem | {problem}");
    }
    // Who asks the sources one by one hears the same.
    if let Ok(file) = Layer::user_file() {
        let asked = Config::resolve([file.unwrap_or_default(), Layer::from_env()]);
        let asked = asked.expect("values of file and environment wait");
        for &key in Key::ALL {
            assert_eq!(asked.text(key), config.text(key));
            assert_eq!(asked.origin(key), config.origin(key));
        }
    }
    // Whatever the environment of this process, a setting has a value or its error is among the problems.
    for &key in Key::ALL {
        if let Err(error) = config.text(key) {
            assert!(config.problems().contains(&error), "{error}");
        }
    }
}

/// The lines printed by a process that was started in `folder` with these variables and no others.
fn lines(folder: &Path, variables: &[(&str, &str)]) -> Vec<String> {
    let output = Command::new(std::env::current_exe().expect("this test"))
        .args([
            "--exact",
            "all_current_settings_can_be_printed",
            "--nocapture",
        ])
        .env_clear()
        .envs(variables.iter().copied())
        .current_dir(folder)
        .output()
        .expect("a process");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines()
        .filter(|line| line.contains(" | "))
        .map(str::to_owned)
        .collect()
}

#[track_caller]
fn says(lines: &[String], line: &str) {
    assert!(
        lines.iter().any(|other| other == line),
        "no line {line:?} in {lines:#?}"
    );
}

fn problems(lines: &[String]) -> Vec<&str> {
    lines
        .iter()
        .filter_map(|line| line.strip_prefix("problem | "))
        .collect()
}

fn folder_with(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("inside")).expect("a folder");
        fs::write(path, text).expect("written");
    }
    folder
}

#[test]
fn nothing_is_read_from_the_working_directory() {
    let line = "num_threads = 3";
    let files = [
        "kvik/config.toml",
        ".config/kvik/config.toml",
        "config.toml",
        "kvik.toml",
        ".kvik.toml",
    ];
    let folder = folder_with(&files.map(|name| (name, line)));
    for variables in [
        &[][..],
        &[("HOME", ""), ("XDG_CONFIG_HOME", "")],
        &[("KVIK_CONFIG", "")],
    ] {
        let lines = lines(folder.path(), variables);
        assert!(
            lines.iter().all(|line| line.contains(" | default | ")),
            "{lines:#?}"
        );
    }
    for (variable, text) in [
        ("HOME", "."),
        ("XDG_CONFIG_HOME", "."),
        ("HOME", ".config/.."),
    ] {
        let lines = lines(folder.path(), &[(variable, text)]);
        assert_eq!(
            problems(&lines),
            [format!(
                "environment {variable}: {text:?} is not an absolute path; no settings file is looked for there"
            )]
        );
        assert!(
            lines
                .iter()
                .any(|line| line.starts_with("num_threads | default | ")),
            "{lines:#?}"
        );
    }
    let lines = lines(
        folder.path(),
        &[("KVIK_CONFIG", "config.toml"), ("KVIK_TASK_SIZE", "1MiB")],
    );
    says(&lines, "task_size | environment KVIK_TASK_SIZE | 1 MiB");
    let error = "environment KVIK_CONFIG: \"config.toml\" is not an absolute path; settings that nothing stronger says are \
                 unknown until it is";
    says(
        &lines,
        &format!("num_threads | environment KVIK_CONFIG | error: {error}"),
    );
    assert_eq!(problems(&lines), [error]);
}

#[test]
fn the_settings_file_is_the_named_one_else_the_users() {
    let folder = folder_with(&[
        ("named.toml", "num_threads = 1"),
        ("xdg/kvik/config.toml", "num_threads = 2"),
        ("home/.config/kvik/config.toml", "num_threads = 3"),
    ]);
    let path = |name: &str| {
        folder
            .path()
            .join(name)
            .into_os_string()
            .into_string()
            .expect("UTF-8")
    };
    let (named, xdg, home) = (path("named.toml"), path("xdg"), path("home"));
    let check = |variables: &[(&str, &str)], file: &str, threads| {
        let lines = lines(folder.path(), variables);
        says(
            &lines,
            &format!("num_threads | file {} | {threads}", path(file)),
        );
        assert_eq!(problems(&lines), [""; 0]);
    };
    check(
        &[
            ("KVIK_CONFIG", &named),
            ("XDG_CONFIG_HOME", &xdg),
            ("HOME", &home),
        ],
        "named.toml",
        1,
    );
    check(
        &[("XDG_CONFIG_HOME", &xdg), ("HOME", &home)],
        "xdg/kvik/config.toml",
        2,
    );
    check(&[("HOME", &home)], "home/.config/kvik/config.toml", 3);
    // The environment is stronger than any file.
    let stronger = lines(folder.path(), &[("HOME", &home), ("KVIKIO_NTHREADS", "4")]);
    says(&stronger, "num_threads | environment KVIKIO_NTHREADS | 4");
    // An empty name means no file at all.
    let none = lines(folder.path(), &[("KVIK_CONFIG", ""), ("HOME", &home)]);
    assert!(
        none.iter()
            .any(|line| line.starts_with("num_threads | default | ")),
        "{none:#?}"
    );
}

#[test]
fn a_usual_file_need_not_exist_but_a_named_one_must() {
    let folder = folder_with(&[("file", "")]);
    for home in [
        "/no such folder",
        "/dev/null",
        folder.path().to_str().expect("UTF-8"),
    ] {
        let lines = lines(folder.path(), &[("HOME", home)]);
        assert!(
            lines.iter().all(|line| line.contains(" | default | ")),
            "{home}: {lines:#?}"
        );
    }
    let missing = folder
        .path()
        .join("none.toml")
        .into_os_string()
        .into_string()
        .expect("UTF-8");
    let lines = lines(
        folder.path(),
        &[("KVIK_CONFIG", &missing), ("KVIK_NUM_THREADS", "2")],
    );
    says(&lines, "num_threads | environment KVIK_NUM_THREADS | 2");
    let error = format!(
        "settings file {missing} cannot be used: No such file or directory (os error 2); settings that nothing stronger \
         says are unknown until it is mended, or left out by an empty KVIK_CONFIG"
    );
    says(
        &lines,
        &format!("task_size | file {missing} | error: {error}"),
    );
    // Once, though it is the error of all keys but one.
    assert_eq!(problems(&lines), [error]);
}

#[test]
fn a_bad_usual_file_is_an_error_but_a_strangers_is_passed_over() {
    let folder = folder_with(&[("kvik/config.toml", "num_threads = 3\noops")]);
    let home = folder.path().to_str().expect("UTF-8");
    let bad = lines(folder.path(), &[("XDG_CONFIG_HOME", home)]);
    assert!(
        problems(&bad)[0].contains("cannot be used: line 2 is not TOML"),
        "{bad:#?}"
    );
    assert!(
        bad.iter()
            .any(|line| line.starts_with("num_threads | file ") && line.contains(" | error: ")),
        "{bad:#?}"
    );

    // Root gives the file away, which nobody else can; everybody else may not read the file, which root always can.
    let file = folder.path().join("kvik/config.toml");
    let why = if nix::unistd::geteuid().is_root() {
        chown(&file, Some(12_345), None).expect("given away");
        "it belongs to user 12345, who is neither the user of this process (0) nor root"
    } else {
        fs::set_permissions(&file, Permissions::from_mode(0o000)).expect("a mode");
        "Permission denied (os error 13)"
    };
    let passed = lines(folder.path(), &[("XDG_CONFIG_HOME", home)]);
    assert_eq!(
        problems(&passed),
        [format!(
            "settings file {} is passed over: {why}",
            file.display()
        )]
    );
    assert!(
        passed
            .iter()
            .any(|line| line.starts_with("num_threads | default | ")),
        "{passed:#?}"
    );
}

#[test]
fn a_bad_variable_breaks_its_own_setting_only() {
    let folder = folder_with(&[]);
    let lines = lines(
        folder.path(),
        &[("KVIKIO_TASK_SIZE", "4abc"), ("KVIKIO_COMPAT_MODE", "ON")],
    );
    assert_eq!(
        lines.iter().filter(|line| line.contains("error:")).count(),
        1
    );
    assert!(lines.iter().any(|line| {
        line.starts_with("task_size | environment KVIKIO_TASK_SIZE | error: setting task_size")
    }));
    says(&lines, "compat_mode | environment KVIKIO_COMPAT_MODE | on");
    assert_eq!(problems(&lines).len(), 1);
}
