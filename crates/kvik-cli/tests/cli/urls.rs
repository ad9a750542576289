//! Commands on URLs.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};

use crate::support::kvik;

/// A server of ranges that has these bytes at each of its URLs but `/missing`. It ends with the process.
#[expect(clippy::disallowed_methods, reason = "a server has threads")]
pub(crate) fn serve(bytes: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let bytes = bytes.clone();
            std::thread::spawn(move || connection.map(|socket| answer(socket, &bytes)));
        }
    });
    format!("http://{address}")
}

fn answer(mut socket: TcpStream, bytes: &[u8]) {
    let mut lines = BufReader::new(socket.try_clone().unwrap()).lines();
    while let Some(Ok(first)) = lines.next() {
        let mut range = 0..bytes.len();
        for line in lines.by_ref().map_while(Result::ok) {
            let line = line.to_ascii_lowercase();
            if let Some((from, to)) = line
                .strip_prefix("range: bytes=")
                .and_then(|r| r.split_once('-'))
            {
                range = from.parse().unwrap()..(to.parse::<usize>().unwrap() + 1).min(bytes.len());
            }
            if line.is_empty() {
                break;
            }
        }
        let head = match first.contains("/missing") {
            true => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
            false => format!(
                "HTTP/1.1 206 Partial\r\netag: \"one\"\r\ncontent-length: {}\r\ncontent-range: bytes {}-{}/{}\r\n\r\n",
                range.len(),
                range.start,
                range.end - 1,
                bytes.len()
            ),
        };
        socket.write_all(head.as_bytes()).unwrap();
        if !first.contains("/missing") {
            socket.write_all(&bytes[range]).unwrap();
        }
    }
}

fn bytes() -> Vec<u8> {
    (0..9_000_000_u32)
        .map(|index| (index / 251 + index) as u8)
        .collect()
}

#[test]
fn a_remote_object_is_copied_whole_under_its_own_name() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("{}/dir/data.bin?token=secret", serve(bytes()));
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
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_range_of_a_remote_object_is_printed() {
    let url = format!("{}/data.bin", serve(bytes()));
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
    let url = format!("{}/data.bin", serve(bytes()));
    let run = kvik().args(["stat", "--json", &url]).assert().code(0);
    let shown: serde_json::Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    assert_eq!(
        (&shown["bytes"], &shown["kind"]),
        (&9_000_000.into(), &"HTTP".into())
    );
    assert_eq!(shown["etag"], "\"one\"");
}

#[test]
fn objects_of_s3_are_copied_printed_and_shown_with_who_asked_and_where() {
    let endpoint = serve(bytes());
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
