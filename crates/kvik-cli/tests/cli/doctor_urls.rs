//! `kvik doctor URL`: the way to an object, step by step.

use std::net::TcpListener;

use crate::server::Server;
use crate::support::{kvik, object};

/// What is printed, without what differs from run to run.
#[track_caller]
fn told(url: &str, code: i32) -> String {
    let run = kvik().args(["doctor", url]).assert().code(code);
    let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    let (_, rest) = url.split_once("127.0.0.1:").unwrap();
    let port = rest.split('/').next().unwrap();
    let text = text.replace(port, "PORT");
    let lines = text.lines().map(|line| match line.find(" took ") {
        Some(at) => format!("{} took TIME", &line[..at]),
        None => line.to_owned(),
    });
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_way_to_an_object_is_told_step_by_step() {
    let url = Server::start(vec![7; 100_000]).url("/data.bin?token=secret");
    let text = told(&url, 0);
    assert_eq!(text, include_str!("doctor_good.txt"), "{text}");
    let text = told(&url.replace("data.bin", "missing"), 3);
    assert_eq!(text, include_str!("doctor_missing.txt"), "{text}");
}

#[test]
fn a_server_that_is_not_there_is_told_with_what_to_do() {
    let address = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let text = told(&format!("http://{address}/data.bin"), 1);
    assert_eq!(text, include_str!("doctor_refused.txt"), "{text}");
}

#[test]
fn a_name_that_nobody_knows_is_told() {
    let run = kvik()
        .args(["doctor", "https://kvik.invalid/data.bin"])
        .assert()
        .code(1);
    let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    assert!(
        text.contains("the name `kvik.invalid` is not known here"),
        "{text}"
    );
    assert!(
        text.contains("\n          -> check how `kvik.invalid` is written"),
        "{text}"
    );
    assert!(
        text.ends_with("dns stands in the way; 1 problem, no notes\n"),
        "{text}"
    );
}

#[test]
fn the_steps_are_findings_of_the_json_too() {
    let url = Server::start(vec![7; 10]).url("/missing?token=secret");
    let run = kvik().args(["doctor", "--json", &url]).assert().code(3);
    let report = object(&run.get_output().stdout);
    assert!(!report.to_string().contains("secret"), "{report}");
    let findings = report["findings"].as_array().unwrap();
    let of = |stage: &str| {
        findings
            .iter()
            .find(|finding| finding["stage"] == stage)
            .unwrap()
    };
    let http = of("http");
    assert_eq!(
        (&http["level"], &http["kind"]),
        (&"problem".into(), &"NotFound".into())
    );
    assert_eq!(http["facts"]["status"], "404 Not Found");
    assert!(
        http["advice"]
            .as_str()
            .unwrap()
            .starts_with("check the path")
    );
    let open = of("open");
    assert_eq!(
        (&open["level"], &open["advice"]),
        (&"skipped".into(), &serde_json::Value::Null)
    );
    assert_eq!(
        report["verdict"],
        "http stands in the way; 1 problem, no notes"
    );
}

#[test]
fn objects_of_s3_are_told_with_who_asks_and_no_secret() {
    let endpoint = Server::start(vec![7; 10]).url("");
    let run = kvik()
        .env("AWS_ENDPOINT_URL", &endpoint)
        .env("AWS_REGION", "eu-west-1")
        .env("AWS_ACCESS_KEY_ID", "AKIAMINE")
        .env("AWS_SECRET_ACCESS_KEY", "hunter22")
        .args(["doctor", "s3://bucket/dir/data.bin"])
        .assert()
        .code(0);
    let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    for part in [
        "signed with keys from the environment for the region eu-west-1",
        "key id              AKIA...\n",
        "region              eu-west-1 (from AWS_REGION)\n",
        "endpoint            from AWS_ENDPOINT_URL\n",
        "bucket stands       in the path\n",
        "kvik reads this object; no problems, no notes\n",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    for secret in ["hunter22", "AKIAMINE"] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[test]
fn a_setting_that_stands_in_the_way_is_told_by_its_name() {
    let run = kvik()
        .env("KVIK_HTTP_TIMEOUT", "soon")
        .args(["doctor", "http://127.0.0.1:1/a"])
        .assert()
        .code(2);
    let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
    assert!(
        text.contains("http_timeout") && text.contains("KVIK_HTTP_TIMEOUT"),
        "{text}"
    );
}
