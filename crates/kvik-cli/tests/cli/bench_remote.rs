//! `kvik bench remote`, over its own server: its figures mean nothing here.

use std::fs;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{kvik, kvik_std, names, object};

/// What `look` finds within half a minute.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        sleep(Duration::from_millis(1));
    }
}

/// The process of the server that a bench has started, once it is one.
fn server_of(bench: &Child) -> Option<u32> {
    let id = bench.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    let child = children.trim().parse().ok()?;
    let line = fs::read_to_string(format!("/proc/{child}/cmdline")).ok()?;
    line.contains("\0serve\0").then_some(child)
}

/// Whether a process is gone, or is only waited for by whoever is its parent now.
fn has_ended(process: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else {
        return true;
    };
    stat.contains(") Z ")
}

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

#[test]
fn the_server_of_a_bench_that_is_killed_ends_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = kvik_std();
    command
        .args(["--quiet", "bench", "remote", "--size", "4MiB"])
        .args(["--time", "60", "--dir"])
        .arg(folder.path())
        .stdout(Stdio::null());
    let mut bench = command.spawn().unwrap();
    let server = wait_for("no server", || server_of(&bench));
    bench.kill().unwrap();
    bench.wait().unwrap();
    wait_for("the server outlives the bench", || {
        has_ended(server).then_some(())
    });
}
