//! Commands on URLs.

use std::fs;
use std::process::Command;

use crate::serve::serve;
use crate::server::{AtLimit, Server};
use crate::support::{binary, kvik, names, object};

fn bytes() -> Vec<u8> {
    (0..9_000_000_u32)
        .map(|index| (index / 251 + index) as u8)
        .collect()
}

#[test]
fn a_remote_object_is_copied_whole_under_its_own_name() {
    let folder = tempfile::tempdir().unwrap();
    let url = Server::start(bytes()).url("/dir/data.bin?token=secret");
    let run = kvik()
        .arg("copy")
        .arg(&url)
        .arg(folder.path())
        .assert()
        .code(0);
    assert!(std::fs::read(folder.path().join("data.bin")).unwrap() == bytes());
    let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(
        said.contains("/dir/data.bin") && !said.contains("secret"),
        "{said}"
    );
    let missing = url.replace("dir/data.bin", "missing");
    let run = kvik()
        .arg("copy")
        .arg(&missing)
        .arg(folder.path())
        .assert()
        .code(3);
    let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(
        said.contains("404 Not Found") && !said.contains("secret"),
        "{said}"
    );
    assert!(!said.contains("hint:"), "{said}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_range_of_a_remote_object_is_printed() {
    let url = Server::start(bytes()).url("/data.bin");
    for (range, expected) in [("100+50", 100..150), ("8999990..", 8_999_990..9_000_000)] {
        let run = kvik()
            .args(["cat", "--range", range, &url])
            .assert()
            .code(0);
        assert_eq!(run.get_output().stdout, bytes()[expected]);
    }
    let run = kvik().args(["cat", &url]).assert().code(0);
    assert!(run.get_output().stdout == bytes());
}

#[test]
fn what_a_server_says_of_an_object_is_shown() {
    let url = Server::start(bytes()).url("/data.bin");
    let run = kvik().args(["stat", "--json", &url]).assert().code(0);
    let shown: serde_json::Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    assert_eq!(
        (&shown["bytes"], &shown["kind"]),
        (&9_000_000.into(), &"HTTP".into())
    );
    assert_eq!(shown["etag"], "\"one\"");
    assert_eq!(shown["validator"], "strong");
    assert_eq!(shown["server"], "mine/1.0");
    assert_eq!(shown["credentials"], serde_json::Value::Null);
}

#[test]
fn of_a_file_of_hdfs_nothing_is_said_of_who_asks() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("webhdfs/v1");
    fs::create_dir_all(&place).unwrap();
    // The answer to the only request that is made.
    let status =
        r#"{"FileStatus":{"type":"FILE","length":7,"modificationTime":1000,"fileId":16386}}"#;
    fs::write(place.join("f"), status).unwrap();
    let served = serve(folder.path(), &[]);
    let url = format!("{}f", served.url.replace("http:", "webhdfs:"));
    let mut command = kvik();
    command.env("HADOOP_USER_NAME", "me");
    let run = command.args(["stat", "--json", &url]).assert().code(0);
    let shown = object(&run.get_output().stdout);
    assert_eq!(
        (&shown["bytes"], &shown["kind"]),
        (&7.into(), &"WebHDFS".into())
    );
    assert_eq!(shown.get("credentials"), None);
}

#[test]
fn what_a_server_does_not_say_is_shown_as_nothing_and_who_asks_without_a_secret() {
    let server = Server::start(bytes());
    let url = server
        .url("/data.bin")
        .replace("http://", "http://me:hunter22@");
    for (headers, validator, name) in [
        ("", "none", "none"),
        (
            "etag: W/\"hunter22\"\r\nlast-modified: hunter22\r\nserver: me hunter22\r\n",
            "weak",
            "me ***",
        ),
        (
            "last-modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n",
            "time",
            "none",
        ),
    ] {
        server.replace(bytes(), headers);
        let run = kvik().args(["stat", &url]).assert().code(0);
        let text = String::from_utf8_lossy(&run.get_output().stdout).into_owned();
        let row = |label: &str| {
            let mut lines = text.lines();
            lines
                .find_map(|line| line.strip_prefix(&format!("{label:22}")))
                .map(str::to_owned)
        };
        assert_eq!(row("validator").as_deref(), Some(validator), "{text}");
        assert!(row("server").unwrap().contains(name), "{text}");
        assert_eq!(
            row("credentials").as_deref(),
            Some("the user in the URL"),
            "{text}"
        );
        assert!(!text.contains("hunter22"), "{text}");
    }
}

#[test]
fn objects_of_s3_are_copied_printed_and_shown_with_who_asked_and_where() {
    let endpoint = Server::start(bytes()).url("");
    let keyed = || {
        let mut command = kvik();
        command
            .env("AWS_ENDPOINT_URL", &endpoint)
            .env("AWS_REGION", "eu-west-1")
            .env("AWS_ACCESS_KEY_ID", "AKIAMINE")
            .env("AWS_SECRET_ACCESS_KEY", "hunter22");
        command
    };
    let url = "s3://bucket/dir/data.bin";
    let run = keyed().args(["stat", "--json", url]).assert().code(0);
    let shown: serde_json::Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    let address = format!("{endpoint}/bucket/dir/data.bin");
    for (name, value) in [
        ("url", url),
        ("kind", "S3"),
        ("keys", "the environment"),
        ("region", "eu-west-1"),
        ("address", &address),
        ("addressing", "path"),
        ("server", "mine/1.0"),
    ] {
        assert_eq!(shown[name], value, "{shown}");
    }
    let run = keyed().args(["stat", url]).assert().code(0);
    let text = String::from_utf8_lossy(&run.get_output().stdout).into_owned();
    assert!(text.contains("the environment"), "{text}");
    assert!(!text.contains("hunter22"), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let run = keyed().args(["copy", url]).arg(folder.path()).assert();
    run.code(0);
    assert!(std::fs::read(folder.path().join("data.bin")).unwrap() == bytes());
    let run = keyed()
        .args(["cat", "--range", "7+9", url])
        .assert()
        .code(0);
    assert_eq!(run.get_output().stdout, bytes()[7..16]);
    // Without keys nothing is signed.
    let run = kvik()
        .env("AWS_ENDPOINT_URL", &endpoint)
        .args(["stat", "--json", url])
        .assert()
        .code(0);
    let shown: serde_json::Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    assert_eq!(shown["kind"], "S3 public");
    assert_eq!(shown["keys"], serde_json::Value::Null);
}

#[test]
fn a_url_without_a_name_asks_for_one_and_no_user_becomes_one() {
    let folder = tempfile::tempdir().unwrap();
    let url = Server::start(bytes()).url("");
    let host = url.strip_prefix("http://").unwrap();
    for url in [
        format!("http://me:secret@{host}?a=b"),
        format!("http://me:secret@{host}/dir/?a=b/c"),
        format!("http://me:secret@{host}/dir/..%2fescaped"),
    ] {
        let run = kvik()
            .arg("copy")
            .arg(&url)
            .arg(folder.path())
            .assert()
            .code(2);
        let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
        assert!(
            said.contains("name the new file") && !said.contains("secret"),
            "{said}"
        );
        assert_eq!(names(folder.path()), Vec::<String>::new());
    }
    // With a name of its own it is copied.
    let url = format!("http://me:secret@{host}?a=b");
    kvik()
        .arg("copy")
        .arg(&url)
        .arg(folder.path().join("c"))
        .assert()
        .code(0);
    assert!(std::fs::read(folder.path().join("c")).unwrap() == bytes());
    let url = format!("http://me:secret@{host}/dir/a%20b?a=b");
    kvik()
        .arg("copy")
        .arg(&url)
        .arg(folder.path())
        .assert()
        .code(0);
    assert_eq!(names(folder.path()), ["a b", "c"]);
}

#[test]
fn a_copy_has_the_permissions_of_a_new_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(bytes());
    for (umask, mode) in [
        ("022", 0o644),
        ("027", 0o640),
        ("077", 0o600),
        ("002", 0o664),
    ] {
        let copy = folder.path().join(umask);
        let script = format!("umask {umask}; exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh"]).arg(binary());
        command.args(["copy", &server.url("/a")]).arg(&copy);
        assert!(command.output().unwrap().status.success());
        let facts = std::fs::metadata(&copy).unwrap();
        assert_eq!(facts.permissions().mode() & 0o7777, mode, "{umask}");
    }
}

#[test]
fn a_copy_is_verified_and_an_empty_object_is_one_too() {
    let folder = tempfile::tempdir().unwrap();
    for bytes in [Vec::new(), vec![7], bytes()] {
        let server = Server::start(bytes.clone());
        let copy = folder.path().join("b");
        let run = kvik()
            .args(["copy", "--json", "--verify", &server.url("/a")])
            .arg(&copy)
            .assert()
            .code(0);
        let report = object(&run.get_output().stdout);
        assert_eq!(report["verified"], true);
        assert_eq!(report["synced"], true);
        assert_eq!(report["bytes"], bytes.len());
        assert!(std::fs::read(&copy).unwrap() == bytes);
        assert_eq!(names(folder.path()), ["b"]);
    }
}

#[test]
fn requests_that_were_made_again_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(bytes());
    server.begin_run(1 << 20, AtLimit::HangsUp);
    let copy = folder.path().join("b");
    let failing = [
        "copy",
        "--json",
        "--stats",
        "--set",
        "http_max_attempts=2",
        &server.url("/a"),
    ];
    let run = kvik().args(failing).arg(&copy).assert().code(1);
    let stats = object(&run.get_output().stdout)["stats"].clone();
    assert!(
        stats["counters"]["http_retries"].as_u64().unwrap() > 0,
        "{stats}"
    );
    server.begin_run(u64::MAX, AtLimit::Waits);
    let run = kvik()
        .args(["copy", "--stats", &server.url("/a")])
        .arg(&copy)
        .assert()
        .code(0);
    let table = String::from_utf8_lossy(&run.get_output().stdout).into_owned();
    assert!(table.contains("http requests"), "{table}");
}

#[test]
fn a_log_of_everything_has_no_secret_of_a_url() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let url = Server::start(bytes()).url("/dir/data.bin?token=s3cr3t&X-Amz-Signature=s3cr3t");
    let url = url.replacen("http://", "http://user:s3cr3t@", 1);
    kvik()
        .args(["copy", &url])
        .arg(folder.path())
        .env("KVIKIO_LOG_LEVEL", "trace")
        .env("KVIKIO_LOG_FILE", &log)
        .assert()
        .code(0);
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("backend=\"REMOTE_HTTP\""), "{log}");
    assert!(log.contains("engine=\"http\""), "{log}");
    assert!(!log.contains("s3cr3t"), "{log}");
}

#[test]
fn what_cannot_take_a_copy_is_told_before_the_server_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(bytes());
    std::fs::create_dir(folder.path().join("data.bin")).unwrap();
    let missing = folder.path().join("missing/");
    for (destination, code, kind) in [
        (folder.path(), 2, "IsADirectory"),
        (&missing, 3, "NotFound"),
        (std::path::Path::new("-"), 2, "Misuse"),
        (std::path::Path::new("/dev/null"), 2, "Misuse"),
        (std::path::Path::new("s3://bucket/key"), 7, "Unsupported"),
    ] {
        let run = kvik()
            .args(["copy", "--json", &server.url("/data.bin")])
            .arg(destination)
            .assert()
            .code(code);
        let error = object(&run.get_output().stdout)["error"].clone();
        assert_eq!(error["kind"], kind, "{error}");
    }
    assert_eq!(server.sent(), 0);
    assert_eq!(names(folder.path()), ["data.bin"]);
}
