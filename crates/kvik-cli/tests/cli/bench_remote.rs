//! `kvik bench remote`, over its own server: its figures mean nothing here.

use crate::support::{kvik, names, object};

#[test]
fn bench_remote_serves_a_file_of_its_own_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = kvik();
    command
        .args(["--json", "--quiet", "bench", "remote", "--size", "4MiB"])
        .args(["--rounds", "1", "--time", "0", "--dir"])
        .arg(folder.path());
    let run = command.assert().success();
    let report = object(&run.get_output().stdout);
    let figures = report["figures"].as_array().unwrap();
    let named: Vec<_> = figures.iter().map(|each| &each["name"]).collect();
    assert_eq!(named, ["whole", "4k-1", "4k-32"]);
    assert_eq!(report["len"], 4 << 20);
    for figure in figures {
        assert!(figure["value"].as_f64().unwrap() > 0.0, "{figure}");
        assert_eq!(figure["retries"], 0, "{figure}");
    }
    assert!(figures[1]["requests"].as_u64().unwrap() >= 256, "{report}");
    assert!(
        report["url"]
            .as_str()
            .unwrap()
            .starts_with("http://127.0.0.1:")
    );
    assert!(names(folder.path()).is_empty());
}

#[test]
fn bench_remote_refuses_what_is_no_url_and_what_cannot_be_reached() {
    let run = kvik()
        .args(["bench", "remote", "data.bin"])
        .assert()
        .code(2);
    let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(said.contains("no URL"), "{said}");
    let run = kvik()
        .args(["--set", "http_max_attempts=1", "bench", "remote"])
        .arg("http://127.0.0.1:9/data.bin")
        .assert()
        .failure();
    let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(said.contains("no connection"), "{said}");
}
