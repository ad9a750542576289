//! Settings from the command line and the environment. What goes wrong elsewhere: half a number is taken for a whole one,
//! and one bad variable stops everything.

use crate::support::{folder_with, kvik, kvik_json, object};

#[test]
fn config_lists_every_setting_with_value_and_origin() {
    let run = kvik()
        .args([
            "config",
            "--json",
            "--threads",
            "3",
            "--set",
            "gds-threshold=1MiB",
        ])
        .env("KVIKIO_TASK_SIZE", "8MiB")
        .assert()
        .success();
    let report = object(&run.get_output().stdout);
    let settings = report["settings"].as_array().unwrap();
    let of = |name: &str| {
        let found = settings
            .iter()
            .find(|setting| setting["name"] == name)
            .unwrap();
        (
            found["value"].as_str().unwrap().to_owned(),
            found["origin"].as_str().unwrap().to_owned(),
        )
    };
    let pair = |value: &str, origin: &str| (value.to_owned(), origin.to_owned());
    assert_eq!(of("num_threads"), pair("3", "command line"));
    assert_eq!(of("gds_threshold"), pair("1 MiB", "command line"));
    assert_eq!(
        of("task_size"),
        pair("8 MiB", "environment KVIKIO_TASK_SIZE")
    );
    assert_eq!(of("compat_mode"), pair("auto", "default"));
    assert!(report["problems"].as_array().unwrap().is_empty());
    assert!(
        settings
            .iter()
            .all(|setting| !setting["meaning"].as_str().unwrap().is_empty())
    );

    let text = String::from_utf8(
        kvik()
            .arg("config")
            .assert()
            .success()
            .get_output()
            .stdout
            .clone(),
    )
    .unwrap();
    for setting in settings {
        assert!(
            text.contains(setting["name"].as_str().unwrap()),
            "{}",
            setting["name"]
        );
    }
    let text = kvik()
        .args(["config", "task_size"])
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("KVIK_TASK_SIZE, KVIKIO_TASK_SIZE"), "{text}");
    assert!(text.contains("effect      the library and"), "{text}");
    assert!(!text.contains("num_threads"), "{text}");
}

#[test]
fn config_marks_what_this_version_does_not_act_on() {
    let report = kvik_json(&["config"], []);
    let text = kvik().arg("config").assert().success();
    let text = String::from_utf8(text.get_output().stdout.clone()).unwrap();
    for setting in report["settings"].as_array().unwrap() {
        let (name, effect) = (&setting["name"], setting["effect"].as_str().unwrap());
        let name = name.as_str().unwrap();
        let row = text.lines().find(|row| row.starts_with(name)).unwrap();
        let mark = format!("[{effect}]");
        assert_eq!(row.ends_with(&mark), effect != "now", "{row}");
        // What a mark means stands below the table.
        assert_eq!(
            text.lines().any(|line| line.starts_with(&mark)),
            effect != "now"
        );
    }
    let of = |key: &str| kvik_json(&["config", key], [])["settings"][0]["effect"].clone();
    assert_eq!(of("task_size"), "now");
    assert_eq!(of("log_level"), "command");
    assert_eq!(of("remote_verbose"), "planned");
    let text = kvik().args(["config", "remote_verbose"]).assert().success();
    let text = String::from_utf8(text.get_output().stdout.clone()).unwrap();
    assert!(text.contains("effect      nothing acts on it"), "{text}");
}

#[test]
fn a_bad_setting_is_told_and_stops_only_what_needs_it() {
    let (_folder, path, bytes) = folder_with(10);
    let run = kvik()
        .args(["config", "--json"])
        .env("KVIK_TASK_SIZE", "4abc")
        .assert()
        .code(2);
    let report = object(&run.get_output().stdout);
    let problem = &report["problems"][0];
    assert_eq!(
        (problem["key"].as_str(), problem["value"].as_str()),
        (Some("task_size"), Some("4abc"))
    );
    let run = kvik()
        .arg("config")
        .env("KVIK_TASK_SIZE", "4abc")
        .assert()
        .code(2);
    let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    assert!(
        text.contains("problem:") && text.contains("unusable"),
        "{text}"
    );

    let run = kvik()
        .arg("cat")
        .arg(&path)
        .env("KVIK_TASK_SIZE", "4abc")
        .assert()
        .code(2);
    let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(
        said.contains("KVIK_TASK_SIZE") && said.contains("kvik config"),
        "{said}"
    );
    kvik()
        .arg("cat")
        .arg(&path)
        .env("KVIK_GDS_THRESHOLD", "4abc")
        .assert()
        .success()
        .stdout(bytes);
    // The command line is stronger than the environment, also where that is wrong.
    kvik()
        .args(["cat", "--task-size", "1MiB"])
        .arg(&path)
        .env("KVIK_TASK_SIZE", "4abc")
        .assert()
        .success();
}

#[test]
fn a_bad_setting_on_the_command_line_is_a_wrong_argument() {
    for flags in [
        &["--threads", "0"][..],
        &["--threads", "many"],
        &["--task-size", "4MB"],
        &["--set", "task_size"],
        &["--set", "no_such_key=1"],
    ] {
        let run = kvik().arg("config").args(flags).assert().code(2).stdout("");
        let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
        assert!(
            said.contains("hint:") && !said.contains("process"),
            "{said}"
        );
    }
}
