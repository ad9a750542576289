//! The commands that only tell: stat, page-cache, bench. What cannot be known must come with its reason.

use std::fs;
use std::path::Path;

use crate::support::{fifo, folder_with, kvik, kvik_json, object};

#[test]
fn stat_tells_size_holes_cached_pages_and_the_route_with_reasons() {
    let (folder, path, _) = folder_with(10_000);
    let report = kvik_json(&["stat"], [path.as_path()]);
    assert_eq!(report["size"], 10_000);
    assert_eq!(report["kind"], "regular");
    assert_eq!(report["sparse"], false);
    assert_eq!(
        report["cached"]["total_pages"],
        10_000_u64.div_ceil(report["cached"]["page_size"].as_u64().unwrap())
    );
    let allowed = report["route"]["allowed"].as_array().unwrap();
    assert!(
        allowed
            .iter()
            .all(|engine| !engine["why"].as_str().unwrap().is_empty())
    );
    assert!(!allowed.is_empty());
    assert_eq!(report["residency"], "hot");

    let text = kvik()
        .arg("stat")
        .arg(&path)
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    let text = String::from_utf8(text).unwrap();
    for word in [
        "10000",
        "regular file",
        "direct I/O alignment",
        "block device",
        "residency             hot",
        "route",
        "posix     allowed: works on every file system",
        "direct    ",
    ] {
        assert!(text.contains(word), "{word} is not in:\n{text}");
    }

    let hole = folder.path().join("hole");
    fs::File::create(&hole).unwrap().set_len(1 << 20).unwrap();
    let report = kvik_json(&["stat"], [hole.as_path()]);
    assert_eq!(
        (
            report["sparse"].as_bool(),
            report["allocated_bytes"].as_u64()
        ),
        (Some(true), Some(0))
    );
}

#[test]
fn stat_of_what_is_no_file_says_why_there_is_no_route() {
    let folder = tempfile::tempdir().unwrap();
    let report = kvik_json(&["stat"], [folder.path()]);
    assert_eq!(report["kind"], "directory");
    assert!(
        report["route"]["absent"]
            .as_str()
            .unwrap()
            .contains("directory")
    );
    kvik()
        .arg("stat")
        .arg(folder.path().join("missing"))
        .assert()
        .code(3);
}

#[test]
fn dropped_pages_are_no_longer_counted() {
    let (_folder, path, _) = folder_with(1 << 20);
    let info = |flags: &[&str]| {
        let words = [&["page-cache", "info"], flags].concat();
        let report = kvik_json(&words, [path.as_path()]);
        (
            report["resident_pages"].as_u64().unwrap(),
            report["total_pages"].as_u64().unwrap(),
        )
    };
    let (resident, total) = info(&[]);
    assert_eq!(resident, total, "a file just written is cached");
    assert_eq!(info(&["--range", "0..1"]), (1, 1));
    assert_eq!(info(&["--range", "5..5"]), (0, 0));
    assert_eq!(info(&["--range", "2MiB.."]), (0, 0));

    let report = kvik_json(&["page-cache", "drop"], [path.as_path()]);
    assert_eq!(report["total_pages"], total);
    let (after, _) = info(&[]);
    assert_eq!(report["resident_pages"], after);
    // In a file system that lives in memory nothing can be dropped.
    let stat = kvik_json(&["stat"], [path.as_path()]);
    if !["tmpfs", "ramfs"].contains(&stat["file_system"]["name"].as_str().unwrap()) {
        assert_eq!(after, 0);
    }
}

#[test]
fn a_file_without_pages_has_no_share_of_them_cached() {
    let run = kvik()
        .args(["page-cache", "info", "/proc/self/status"])
        .assert()
        .success();
    let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    assert_eq!(text, "/proc/self/status: 0 of 0 pages cached\n");
}

#[test]
fn page_cache_without_a_subcommand_says_what_is_missing() {
    let run = kvik().args(["page-cache", "--json"]).assert().code(2);
    let error = object(&run.get_output().stdout)["error"].clone();
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("subcommand") && message.contains("drop"),
        "{error}"
    );
    let run = kvik().arg("page-cache").assert().code(2).stdout("");
    assert!(String::from_utf8_lossy(&run.get_output().stderr).contains("subcommand"));
}

#[test]
fn page_cache_refuses_what_has_no_pages_or_makes_no_sense() {
    let folder = tempfile::tempdir().unwrap();
    kvik()
        .args(["page-cache", "info"])
        .arg(folder.path())
        .assert()
        .code(2);
    kvik()
        .args(["page-cache", "drop"])
        .arg(folder.path().join("missing"))
        .assert()
        .code(3);
    kvik().args(["page-cache", "drop"]).assert().code(2);
    kvik()
        .args(["page-cache", "drop", "--system"])
        .arg(folder.path())
        .assert()
        .code(2);
}

#[test]
fn bench_names_what_is_wrong_with_its_arguments_and_settings_once() {
    for (flags, variable, expected) in [
        (
            &["--case", "nosuch"][..],
            "UNUSED",
            "kvik: bench: no case is called nosuch; ",
        ),
        (
            &["--rounds", "0"],
            "UNUSED",
            "kvik: bench: the number of rounds must be positive",
        ),
        (
            &["--rounds", "99999999999"],
            "UNUSED",
            "kvik: bench: 99999999999 rounds are more than the 100000 that are kept",
        ),
        (
            &[],
            "KVIK_NUM_THREADS",
            "kvik: setting num_threads: \"none\" from environment ",
        ),
    ] {
        let run = kvik()
            .arg("bench")
            .args(flags)
            .env(variable, "none")
            .assert()
            .code(2)
            .stdout("");
        let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn bench_has_the_members_that_others_rely_on() {
    let folder = tempfile::tempdir().unwrap();
    let line = "bench --size 8MiB --rounds 1 --budget 0.5 --case host-read-hot --dir";
    let words: Vec<&str> = line.split(' ').collect();
    let report = kvik_json(&words, [folder.path()]);
    let cases = report["cases"].as_array().unwrap();
    assert!(!cases.is_empty());
    for case in cases {
        for name in ["value", "cpu_s_per_gb", "limit", "ratio"] {
            assert!(case[name].is_number(), "{name} of {case}");
        }
        assert!(case["name"].is_string() && case["unit"].is_string());
    }
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        0,
        "bench leaves nothing behind"
    );
    kvik()
        .args(["bench", "--case", "no-such-case"])
        .assert()
        .code(2);
}

#[test]
fn bench_file_reads_a_file_and_leaves_it_as_it_is() {
    let (folder, path, bytes) = folder_with(8 << 20);
    let line = "bench file --rounds 1 --budget 0.5 --threads 2 --task-size 1MiB";
    let words: Vec<&str> = line.split(' ').collect();
    let report = kvik_json(&words, [path.as_path()]);
    assert!(!report["cases"].as_array().unwrap().is_empty());
    assert!(fs::read(&path).unwrap() == bytes);
    kvik()
        .args(["bench", "file"])
        .arg(folder.path().join("missing"))
        .assert()
        .code(3);
}

#[test]
fn bench_mmap_reads_out_of_maps_and_leaves_a_file_as_it_is() {
    let (_folder, path, bytes) = folder_with(8 << 20);
    let line = "bench mmap --rounds 1 --budget 0.5 --threads 2";
    let words: Vec<&str> = line.split(' ').collect();
    let cases = [
        "kept-offset-0-threads-2",
        "kept-offset-16-threads-2",
        "once-offset-0-threads-2",
        "once-offset-16-threads-2",
    ];
    let names_of = |report: &serde_json::Value| {
        let all = report["cases"].as_array().unwrap().clone();
        all.iter()
            .map(|case| case["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let theirs = kvik_json(&words, [path.as_path()]);
    assert_eq!(names_of(&theirs), cases);
    assert!(fs::read(&path).unwrap() == bytes);
    for case in theirs["cases"].as_array().unwrap() {
        // Who shortens a file that a plain loop has mapped ends the process.
        let limit = case["limit_name"].as_str().unwrap();
        assert!(!limit.contains("map"), "{case}");
    }

    let own = tempfile::tempdir().unwrap();
    let size = ["--size", "8MiB", "--dir"];
    let report = kvik_json(&[&words[..], &size].concat(), [own.path()]);
    assert_eq!(names_of(&report), cases);
    for case in report["cases"].as_array().unwrap() {
        assert!(case["value"].as_f64().unwrap() > 0.0, "{case}");
        assert!(case["cpu_s_per_gb"].is_f64(), "{case}");
        if cfg!(target_arch = "x86_64") {
            let limit = case["limit_name"].as_str().unwrap();
            assert!(limit.contains("map"), "{case}");
        }
    }
    assert_eq!(fs::read_dir(own.path()).unwrap().count(), 0);
}

#[test]
fn bench_refuses_at_once_what_it_cannot_measure() {
    let (folder, path, _) = folder_with(10);
    let fifo = fifo(folder.path());
    let socket = folder.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for (place, kind) in [
        (fifo.as_path(), "NotSeekable"),
        (&socket, "NotSeekable"),
        (Path::new("/dev/zero"), "NotSeekable"),
        (folder.path(), "IsADirectory"),
        (&path, "Misuse"),
    ] {
        let run = kvik()
            .args(["bench", "file", "--json", "--quiet"])
            .arg(place)
            .assert()
            .code(2);
        let error = object(&run.get_output().stdout)["error"].clone();
        assert_eq!(error["kind"], kind, "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(place.to_str().unwrap()), "{error}");
    }
    for (place, code) in [(&path, 2), (&folder.path().join("missing"), 3)] {
        let run = kvik()
            .args(["bench", "--dir"])
            .arg(place)
            .assert()
            .code(code);
        let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
        assert!(said.contains(place.to_str().unwrap()), "{said}");
        assert_eq!(said.contains("not a directory"), code == 2, "{said}");
    }
}
