//! `kvik doctor`: every fact or its reason, every shortage with its next step, and nothing left behind.

use std::fs;

use crate::support::{folder_with, kvik, kvik_json, object};

#[test]
fn doctor_gives_facts_findings_and_a_verdict() {
    let (folder, path, _) = folder_with(10);
    for place in [None, Some(path.as_path()), Some(folder.path())] {
        let report = kvik_json(&["doctor"], place);
        assert!(report["machine"]["page_size"].as_u64().unwrap() >= 4096);
        assert_eq!(report["path"].is_null(), place.is_none());
        let gpu = &report["gpu"];
        assert_eq!(
            gpu["devices"].is_array(),
            gpu["devices"]["absent"].is_null(),
            "devices, or the reason why there are none"
        );
        let checks = report["device_route"]["checks"].as_array().unwrap();
        assert_eq!((checks.len(), &checks[0]["check"]), (6, &"driver".into()));
        assert!(
            report["verdict"]
                .as_str()
                .unwrap()
                .starts_with("kvik works here")
        );
        let findings = report["findings"].as_array().unwrap();
        assert!(
            findings
                .iter()
                .any(|finding| finding["what"].as_str().unwrap().contains("right bytes"))
        );
        assert!(
            findings
                .iter()
                .all(|finding| (finding["level"] == "ok") == finding["advice"].is_null())
        );
        kvik().arg("doctor").args(place).assert().success();
    }
    kvik().args(["doctor", "/missing"]).assert().code(3);
    let run = kvik()
        .arg("doctor")
        .env("KVIK_NUM_THREADS", "none")
        .assert()
        .code(2);
    let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    assert!(
        text.contains("problem") && text.contains("stands in the way"),
        "{text}"
    );
}

#[test]
fn doctor_says_which_driver_was_looked_for_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let run = kvik()
        .current_dir(folder.path())
        .args(["doctor", "/proc/self/exe"])
        .env("KVIK_CUDA_LIBRARY", "/nowhere/libcuda.so.1")
        .env("KVIK_CUFILE_LIBRARY", "/nowhere/libcufile.so.0")
        .assert()
        .success();
    let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    for line in [
        "\n  CUDA driver           none: no library could be loaded: tried /nowhere/libcuda.so.1 (",
        "\n  cuFile                none: no library could be loaded: tried /nowhere/libcufile.so.0 (",
        "\n  devices               none: no CUDA driver\n",
        "\nroute of device memory\n  compat mode auto\n    cuFile    ruled out: not usable: no CUDA driver: ",
        "\n  what cuFile needs for this path\n    CUDA driver           no: not usable: no CUDA driver: ",
    ] {
        assert!(text.contains(line), "{line} is not in:\n{text}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// The command beside the fake driver, which cargo has built.
fn with_driver(words: &[&str]) -> String {
    let library = std::env::current_exe()
        .unwrap()
        .with_file_name("libcuda_fake.so");
    let run = kvik()
        .args(words)
        .env("KVIK_CUDA_LIBRARY", library)
        .env("KVIK_CUFILE_LIBRARY", "/nowhere/libcufile.so.0")
        .env("FAKE_CUDA_DEVICES", "2")
        .assert()
        .success();
    String::from_utf8(run.get_output().stdout.clone()).unwrap()
}

#[test]
fn doctor_sees_two_devices_and_the_way_to_their_memory() {
    let text = with_driver(&["doctor", "/proc/self/exe"]);
    for part in [
        "\n  device 0              Fake H200, PCI 0000:10:00.0, GPU-",
        "\n  device 1              Fake H200, PCI 0000:11:00.0, GPU-",
        "\n    staged    allowed: through page-locked host memory\n    cuFile    ruled out: not installed: no library could be loaded: tried /nowhere/libcufile.so.0 (",
        "\n    CUDA driver           yes\n",
        "this process sees 2 CUDA devices",
        "\n  note    cuFile is not installed: no library could be loaded: tried /nowhere/libcufile.so.0 (",
        " threads and 2 devices; no problems, ",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    let report = object(with_driver(&["doctor", "--json"]).as_bytes());
    let devices = report["gpu"]["devices"].as_array().unwrap();
    assert_eq!(
        (devices.len(), &devices[1]["pci"]),
        (2, &"0000:11:00.0".into())
    );
    let route = &report["device_route"];
    assert_eq!(route["allowed"][0]["way"], "staged");
    assert_eq!(route["ruled_out"][0]["engine"], "cuFile");
    let checks = route["checks"].as_array().unwrap();
    assert_eq!(
        (&checks[0]["check"], &checks[0]["outcome"]["usable"]),
        (&"driver".into(), &true.into())
    );
}

#[test]
fn what_one_call_of_the_driver_does_not_tell_leaves_the_rest_told() {
    let library = std::env::current_exe()
        .unwrap()
        .with_file_name("libcuda_fake.so");
    let run = kvik()
        .args(["doctor", "--json"])
        .env("KVIK_CUDA_LIBRARY", library)
        .env("FAKE_CUDA_FAIL", "cuDeviceGetName:1:999,cuDeviceGet:2:101")
        .assert()
        .success();
    let report = object(&run.get_output().stdout);
    let devices = report["gpu"]["devices"].as_array().unwrap();
    let why = |fact: &serde_json::Value| fact["absent"].as_str().unwrap().to_owned();
    assert!(why(&devices[0]["name"]).starts_with("cuDeviceGetName: CUDA_ERROR_UNKNOWN (999)"));
    assert_eq!(devices[0]["compute_capability"], "9.0");
    for fact in ["name", "uuid", "pci", "memory", "bar1", "compute_mode"] {
        let why = why(&devices[1][fact]);
        assert!(
            why.starts_with("cuDeviceGet: CUDA_ERROR_INVALID_DEVICE (101)"),
            "{fact}: {why}"
        );
    }
}

#[test]
fn doctor_tells_what_to_do_where_the_driver_shows_no_device() {
    let library = std::env::current_exe()
        .unwrap()
        .with_file_name("libcuda_fake.so");
    let run = kvik()
        .arg("doctor")
        .env("KVIK_CUDA_LIBRARY", library)
        .env("FAKE_CUDA_DEVICES", "0")
        .assert()
        .success();
    let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    for part in [
        "\n  devices               none: cuInit: CUDA_ERROR_NO_DEVICE (100)",
        "\n    staged    ruled out: no device: cuInit: CUDA_ERROR_NO_DEVICE (100)",
        "\n          -> CUDA_VISIBLE_DEVICES may hide all of them; ",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
}

#[test]
fn doctor_tells_a_bad_setting_once_and_by_its_name() {
    for name in ["KVIK_NUM_THREADS", "KVIK_COMPAT_MODE", "KVIK_GDS_THRESHOLD"] {
        let run = kvik()
            .args(["doctor", "--json"])
            .env(name, "none")
            .assert()
            .code(2);
        let report = object(&run.get_output().stdout);
        let problems: Vec<&str> = report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|finding| finding["level"] == "problem")
            .map(|finding| finding["what"].as_str().unwrap())
            .collect();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(
            problems[0].starts_with("setting ") && problems[0].contains(name),
            "{problems:?}"
        );
    }
}
