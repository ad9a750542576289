//! Settings files: what they say, which are believed, and what an unusable one does.
//!
//! What once broke, elsewhere: a program that read its settings from whatever folder it was started in.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kvik_config::{ByteSize, Config, ConfigError, Key, Layer, Origin};
use nix::sys::stat::Mode;
use tempfile::TempDir;

fn write(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("config.toml");
    fs::write(&path, text).expect("written");
    fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("a mode");
    (folder, path)
}

#[track_caller]
fn config(text: &str) -> (TempDir, PathBuf, Config) {
    let (folder, path) = write(text);
    let layer = Layer::from_file(&path).expect("a settings file");
    (
        folder,
        path,
        Config::resolve([layer]).expect("values of a file wait"),
    )
}

#[track_caller]
fn refused(path: &Path, why: &str) {
    let error = Layer::from_file(path).expect_err("not to be used");
    assert_eq!(error.origin(), Origin::UserFile(path.into()));
    assert_eq!(
        error.to_string(),
        format!(
            "settings file {} cannot be used: {why}; settings that nothing stronger says are unknown until it is mended, \
             or left out by an empty KVIK_CONFIG",
            path.display()
        )
    );
}

#[test]
fn a_file_says_settings_in_the_types_of_toml() {
    let (_folder, path, config) = config(
        "num_threads = 8\ntask_size = '8 MiB'\ngds_threshold = 1_000_000\nauto_direct_io_read = true\ncompat_mode = 'off'\n\
         http_timeout = 0.5\nhttp_status_codes = [429, 503]\nlog_file = '/tmp/log'\nremote_verbose = 1\n",
    );
    assert_eq!(config.problems(), []);
    assert_eq!(config.num_threads(), Ok(8));
    assert_eq!(
        config.origin(Key::NumThreads),
        Origin::UserFile(path.into())
    );
    assert_eq!(config.task_size(), Ok(ByteSize::mib(8)));
    assert_eq!(config.gds_threshold(), Ok(ByteSize::new(1_000_000)));
    assert_eq!(
        (config.auto_direct_io_read(), config.remote_verbose()),
        (Ok(true), Ok(true))
    );
    assert_eq!(config.http_timeout(), Ok(Duration::from_millis(500)));
    assert_eq!(config.http_status_codes(), Ok(vec![429, 503]));
    assert_eq!(config.log_file(), Ok(Some("/tmp/log".into())));
    assert_eq!(config.origin(Key::BounceBufferSize), Origin::Default);
}

#[test]
fn an_empty_list_is_no_code_and_an_empty_file_says_nothing() {
    let (_folder, _, config) = config("http_status_codes = []");
    assert_eq!(config.http_status_codes(), Ok(vec![]));
    let (_folder, path) = write("# nothing\n");
    assert!(Layer::from_file(path).expect("a settings file").is_empty());
}

#[test]
fn a_value_of_a_wrong_type_is_the_error_of_its_key() {
    #[track_caller]
    fn check(line: &str, key: Key, text: &str) {
        let (_folder, path, config) = config(&format!("{line}\nhttp_max_attempts = 9\n"));
        let error = config.text(key).expect_err(line);
        assert_eq!(
            (error.key(), error.text()),
            (Some(key), Some(text)),
            "{line}"
        );
        assert_eq!(error.origin(), Origin::UserFile(path.into()));
        assert_eq!(config.problems(), [error]);
        assert_eq!(config.http_max_attempts(), Ok(9));
    }
    check("num_threads = true", Key::NumThreads, "true");
    check("num_threads = 4.0", Key::NumThreads, "4.0");
    check("num_threads = [4]", Key::NumThreads, "[4]");
    check("num_threads = -1", Key::NumThreads, "-1");
    check("task_size = '4abc'", Key::TaskSize, "4abc");
    check("task_size = { mib = 4 }", Key::TaskSize, "{...}");
    check("task_size = 2026-01-01", Key::TaskSize, "2026-01-01");
    check(
        "http_status_codes = ['a', 500]",
        Key::HttpStatusCodes,
        "[a, 500]",
    );
    check(
        "http_status_codes = [[500]]",
        Key::HttpStatusCodes,
        "[[500]]",
    );
    check("log_file = true", Key::LogFile, "true");
    check("webhdfs_username = 5", Key::WebhdfsUsername, "5");
}

#[test]
fn unknown_keys_are_listed_with_the_nearest_name_and_break_nothing() {
    let (_folder, path, config) =
        config("num_thread = 3\ncolour = 'red'\ntask_size = '1 MiB'\n[remote]\nhttp_timeout = 1\n");
    let problems: Vec<_> = config.problems().iter().map(ToString::to_string).collect();
    let file = path.display();
    assert_eq!(
        problems,
        [
            format!(
                "settings file {file}: no setting \"colour\"; `kvik config` lists all settings"
            ),
            format!(
                "settings file {file}: no setting \"num_thread\"; did you mean \"num_threads\"?"
            ),
            format!(
                "settings file {file}: no setting \"remote\"; `kvik config` lists all settings"
            ),
        ]
    );
    assert_eq!(config.task_size(), Ok(ByteSize::mib(1)));
    assert_eq!(config.origin(Key::NumThreads), Origin::Default);
}

#[test]
fn what_is_not_toml_is_refused_with_its_line() {
    let (_folder, path) = write("num_threads = 1\n\ntask_size = 8MiB\n");
    let error = Layer::from_file(&path).expect_err("not TOML").to_string();
    assert!(
        error.contains(" cannot be used: line 3 is not TOML, "),
        "{error}"
    );
    let (_folder, path) = write("num_threads = 1\nnum_threads = 2\n");
    let error = Layer::from_file(&path).expect_err("said twice").to_string();
    assert!(
        error.contains(" cannot be used: line 2 is not TOML, duplicate key"),
        "{error}"
    );
    fs::write(&path, b"log_file = '\xff'").expect("written");
    refused(&path, "it is not UTF-8");
}

#[test]
fn what_is_no_file_of_settings_is_refused_without_waiting_for_it() {
    let (folder, path) = write("");
    refused(
        &folder.path().join("none"),
        "No such file or directory (os error 2)",
    );
    refused(folder.path(), "it is not a regular file");
    let fifo = folder.path().join("fifo");
    nix::unistd::mkfifo(&fifo, Mode::S_IRWXU).expect("a fifo");
    refused(&fifo, "it is not a regular file");
    fs::write(&path, vec![b'#'; (1 << 20) + 1]).expect("written");
    refused(&path, "it is larger than 1 MiB");
    fs::write(&path, vec![b'#'; 1 << 20]).expect("written");
    Layer::from_file(&path).expect("of the largest size");
}

#[test]
fn a_file_that_others_may_write_is_refused() {
    let (_folder, path) = write("num_threads = 3");
    for (mode, why) in [(0o646, "everybody"), (0o777, "everybody")] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("a mode");
        refused(
            &path,
            &format!("{why} may write to it (mode {mode:o}), `chmod go-w` mends this"),
        );
    }
    for mode in [0o644, 0o600, 0o400] {
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("a mode");
        Layer::from_file(&path).expect("a file of ours");
    }
}

#[test]
fn a_relative_path_is_shown_as_the_absolute_one() {
    let error: ConfigError = Layer::from_file("no such file.toml").expect_err("there is none");
    let here = std::env::current_dir().expect("a folder");
    assert_eq!(
        error.origin(),
        Origin::UserFile(here.join("no such file.toml").into())
    );
}
