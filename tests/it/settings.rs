//! Settings from outside the process: whole or refused, key by key, and never from the working directory.

use std::os::unix::fs::PermissionsExt;

use kvik_tests::pattern::file;

use crate::child;

#[test]
fn a_bad_value_in_the_environment_fails_what_needs_that_key_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    child("settings-bad-value")
        .arg(folder.path())
        .env("KVIK_TASK_SIZE", "4abc")
        .succeeds();
}

#[test]
fn a_bad_setting_that_opening_needs_fails_it_before_the_file_is_emptied() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "full", 1, 100);
    for variable in [
        "KVIK_BOUNCE_BUFFER_SIZE",
        "KVIK_DIRECT_READ",
        "KVIK_DIRECT_WRITE",
        "KVIK_AUTO_DIRECT_IO_READ_OVERREAD",
        "KVIK_THREAD_POOL_PER_BLOCK_DEVICE",
    ] {
        child("settings-bad-value-at-opening")
            .arg(&path)
            .arg(variable)
            .env(variable, "4abc")
            .succeeds();
    }
}

#[test]
fn text_is_taken_whole_or_refused() {
    for (text, seen) in [
        ("4MiB", "task_size = 4 MiB (environment KVIK_TASK_SIZE)"),
        ("4 MiB", "task_size = 4 MiB (environment KVIK_TASK_SIZE)"),
        ("4194304", "task_size = 4 MiB (environment KVIK_TASK_SIZE)"),
    ] {
        let said = child("settings-seen")
            .arg("task_size")
            .env("KVIK_TASK_SIZE", text)
            .succeeds();
        assert_eq!(said.trim_end(), seen);
    }
    for text in ["4abc", "0", "-1", "4 MiB x", "99999999999999999999"] {
        let said = child("settings-seen")
            .arg("task_size")
            .arg("num_threads")
            .env("KVIK_TASK_SIZE", text)
            .succeeds();
        let (first, second) = said.split_once('\n').unwrap();
        assert!(
            first.starts_with("task_size: ")
                && first.contains(text)
                && first.contains("KVIK_TASK_SIZE"),
            "{said}"
        );
        assert!(second.starts_with("num_threads = "), "{said}");
    }
}

#[test]
fn our_variables_come_before_kvikios_whose_spellings_are_understood() {
    let said = child("settings-seen")
        .arg("num_threads")
        .arg("compat_mode")
        .arg("auto_direct_io_write")
        .env("KVIK_NUM_THREADS", "3")
        .env("KVIKIO_NTHREADS", "7")
        .env("KVIKIO_COMPAT_MODE", "ON")
        .env("KVIKIO_AUTO_DIRECT_IO_WRITE", "no")
        .succeeds();
    assert_eq!(
        said,
        "num_threads = 3 (environment KVIK_NUM_THREADS)\n\
         compat_mode = on (environment KVIKIO_COMPAT_MODE)\n\
         auto_direct_io_write = off (environment KVIKIO_AUTO_DIRECT_IO_WRITE)\n"
    );
}

#[test]
fn no_settings_file_is_read_from_the_working_directory_and_one_that_others_may_write_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = "num_threads = 11\n";
    for name in ["kvik.toml", "config.toml", ".kvik.toml"] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    std::fs::create_dir_all(folder.path().join("kvik")).unwrap();
    std::fs::create_dir_all(folder.path().join(".config/kvik")).unwrap();
    let usual = folder.path().join("kvik/config.toml");
    std::fs::write(&usual, text).unwrap();
    std::fs::write(folder.path().join(".config/kvik/config.toml"), text).unwrap();
    let seen = || {
        child("settings-seen")
            .arg("num_threads")
            .current_dir(folder.path())
    };

    for child in [
        seen(),
        seen().env("KVIK_CONFIG", "kvik.toml"),
        seen()
            .env("KVIK_CONFIG", "")
            .env("XDG_CONFIG_HOME", folder.path()),
    ] {
        let said = child.succeeds();
        assert!(!said.contains("= 11"), "{said}");
    }
    let named = || seen().env("KVIK_CONFIG", &usual).succeeds();
    assert_eq!(
        named(),
        format!("num_threads = 11 (file {})\n", usual.display())
    );
    std::fs::set_permissions(&usual, PermissionsExt::from_mode(0o666)).unwrap();
    let said = named();
    assert!(
        said.starts_with("num_threads: ") && said.contains(usual.to_str().unwrap()),
        "{said}"
    );
}
