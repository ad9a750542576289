//! `kvik bench gpu` on a driver that is faked, and without one. Its figures mean nothing here.

use std::fs;

use serde_json::Value;

use crate::support::{kvik, kvik_with_gpu, names, object};

#[test]
fn one_case_has_a_report_that_is_saved_as_it_is_printed_and_leaves_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("report.json");
    let mut command = kvik_with_gpu();
    command
        .args(["--json", "--quiet", "--threads", "2", "bench", "gpu"])
        .args(["--size", "8MiB", "--rounds", "1", "--case", "read-hot"])
        .args(["--device", "1", "--dir"])
        .arg(folder.path())
        .arg("--save")
        .arg(&saved);
    let run = command.assert().success();
    let report = object(&run.get_output().stdout);
    let case = &report["cases"][0];
    assert_eq!(case["name"], "gpu-read-hot-2");
    assert!(case["value"].as_f64().unwrap() > 0.0);
    let device = |note: &Value| note.as_str().unwrap().starts_with("device 1: ");
    assert!(
        report["notes"].as_array().unwrap().iter().any(device),
        "{report}"
    );
    let text = fs::read_to_string(&saved).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), report);
    assert_eq!(names(folder.path()), ["report.json"]);
}

#[test]
fn a_gpu_with_little_memory_gets_less_data_and_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = kvik_with_gpu();
    command
        .env("FAKE_CUDA_MEMORY", (32 << 20).to_string())
        .args(["--json", "--quiet", "--threads", "1", "bench", "gpu"])
        .args(["--size", "1GiB", "--rounds", "1", "--case", "read-hot"])
        .arg("--dir")
        .arg(folder.path());
    let run = command.assert().success();
    let report = object(&run.get_output().stdout);
    let bytes = report["machine"]["data"].as_u64().unwrap();
    assert!((4 << 20..=32 << 20).contains(&bytes), "{report}");
    let less = |note: &Value| note.as_str().unwrap().contains("free on the device");
    assert!(
        report["notes"].as_array().unwrap().iter().any(less),
        "{report}"
    );
}

#[test]
fn without_a_driver_it_ends_with_7_and_says_what_was_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = kvik();
    command
        .env("KVIK_CUDA_LIBRARY", folder.path().join("missing.so"))
        .args(["bench", "gpu", "--dir"])
        .arg(folder.path());
    let run = command.assert().code(7);
    let text = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(
        text.contains("no GPU to measure") && text.contains("missing.so"),
        "{text}"
    );
    assert_eq!(names(folder.path()), Vec::<String>::new());
}
