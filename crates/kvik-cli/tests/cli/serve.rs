//! `kvik serve`, with the other commands and the library as its clients.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Output, Stdio};

use kvik::RemoteHandle;

use crate::support::{data, fifo, folder_with, kvik, kvik_std, object, send};

/// A server at work, which ends with this.
pub(crate) struct Served {
    child: Option<Child>,
    stdout: BufReader<ChildStdout>,
    pub(crate) url: String,
}

/// Starts one and waits until it says that it is ready.
pub(crate) fn serve(place: &Path, flags: &[&str]) -> Served {
    let mut command = kvik_std();
    command.arg("serve").arg(place).args(flags);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    let url = line.trim_end().to_owned();
    let mut served = Served {
        child: Some(child),
        stdout,
        url,
    };
    if !served.url.starts_with("http://") {
        panic!("not ready: {line:?} {:?}", served.end("TERM"));
    }
    served
}

impl Served {
    /// Ends it by this signal; what it printed, without its first line.
    fn end(&mut self, signal: &str) -> Output {
        let child = self.child.take().unwrap();
        send(signal, &child);
        let mut rest = Vec::new();
        self.stdout.read_to_end(&mut rest).unwrap();
        let mut output = child.wait_with_output().unwrap();
        output.stdout = rest;
        output
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Files whose names and lengths are of every kind, and their paths in a URL.
fn fixtures(folder: &Path) -> Vec<(PathBuf, String, Vec<u8>)> {
    let rows = [
        ("empty", "empty", 0),
        ("one", "one", 1),
        ("small.bin", "small.bin", 4_097),
        ("first part", "first%20part", 65_536),
        ("100%+?#&=;.bin", "100%25%2B%3F%23%26%3D%3B.bin", 70_000),
        (
            "grüße-日本.bin",
            "gr%C3%BC%C3%9Fe-%E6%97%A5%E6%9C%AC.bin",
            12_345,
        ),
        ("sub/..hidden", "sub/..hidden", 99),
        ("sub/deep er/<big>", "sub/deep%20er/%3Cbig%3E", 9_000_001),
    ];
    let fixture = |(name, path, len): (&str, &str, usize)| {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let bytes = data(len);
        fs::write(&file, &bytes).unwrap();
        (file, path.to_owned(), bytes)
    };
    rows.into_iter().map(fixture).collect()
}

#[test]
fn every_file_comes_whole_by_the_library_and_by_copy_and_in_parts_by_cat() {
    let folder = tempfile::tempdir().unwrap();
    let copies = tempfile::tempdir().unwrap();
    let fixtures = fixtures(folder.path());
    let served = serve(folder.path(), &[]);
    for (file, path, bytes) in &fixtures {
        let url = format!("{}{path}", served.url);
        let handle = RemoteHandle::open(&url).unwrap();
        assert_eq!(handle.len(), bytes.len() as u64, "{path}");
        let mut read = vec![0; bytes.len()];
        handle.read_exact_at(&mut read, 0).unwrap();
        assert!(read == *bytes, "{path}");
        let copy = copies.path().join("copy");
        kvik().arg("copy").arg(&url).arg(&copy).assert().success();
        assert!(fs::read(&copy).unwrap() == *bytes, "{path}");
        if bytes.len() > 50 {
            let run = kvik().args(["cat", "--range", "7+30", &url]).assert();
            assert_eq!(run.success().get_output().stdout, bytes[7..37], "{path}");
        }
        // By one file alone it is the same under its own name.
        let alone = serve(file, &[]);
        let name = path.rsplit('/').next().unwrap();
        assert!(alone.url.ends_with(&format!("/{name}")), "{}", alone.url);
        let run = kvik().args(["cat", &alone.url]).assert();
        assert!(run.success().get_output().stdout == *bytes, "{path}");
    }
}

#[test]
fn a_file_that_changes_is_another_version_to_who_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, data(200_000)).unwrap();
    let served = serve(folder.path(), &[]);
    let handle = RemoteHandle::open(&format!("{}a", served.url)).unwrap();
    fs::write(folder.path().join("b"), vec![7; 200_000]).unwrap();
    fs::rename(folder.path().join("b"), &path).unwrap();
    let mut read = vec![0; 1000];
    let error = handle.read_exact_at(&mut read, 150_000).unwrap_err();
    assert_eq!(error.kind(), kvik::ErrorKind::Changed, "{error}");
}

#[test]
fn nothing_leads_out_of_the_folder_and_nothing_waits_for_a_fifo() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "outside").unwrap();
    let folder = outside.path().join("served");
    fs::create_dir(&folder).unwrap();
    symlink("../secret", folder.join("link")).unwrap();
    symlink("..", folder.join("above")).unwrap();
    fifo(&folder);
    let served = serve(&folder, &[]);
    let address = served
        .url
        .strip_prefix("http://")
        .unwrap()
        .trim_end_matches('/');
    for (target, status) in [
        ("/../secret", "400"),
        ("/%2e%2e/secret", "400"),
        ("/above/../../secret", "400"),
        ("/..%2fsecret", "400"),
        ("/link", "404"),
        ("/above/secret", "404"),
        ("//secret", "404"),
        ("/fifo", "403"),
    ] {
        let mut socket = TcpStream::connect(address).unwrap();
        write!(socket, "GET {target} HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{target}: {answer}"
        );
        assert!(!answer.contains("outside"), "{target}: {answer}");
    }
}

#[test]
fn it_ends_by_a_signal_with_code_0_and_says_what_it_has_sent() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), data(1000)).unwrap();
    for signal in ["INT", "TERM"] {
        let mut served = serve(folder.path(), &["-v"]);
        let url = format!("{}a", served.url);
        let bytes = kvik().args(["cat", &url]).assert().success();
        assert_eq!(bytes.get_output().stdout, data(1000));
        // One that is connected and asks for nothing holds up nobody.
        let address = served
            .url
            .strip_prefix("http://")
            .unwrap()
            .trim_end_matches('/');
        let _idle = TcpStream::connect(address).unwrap();
        let output = served.end(signal);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert_eq!(output.stdout, b"");
        assert!(
            said.contains(" GET /a [bytes=0-65535] 206 1000\n"),
            "{said}"
        );
        assert!(said.ends_with("1 requests, 1000 B\n"), "{said}");
    }
}

#[test]
fn one_that_another_program_starts_ends_with_its_standard_input_and_not_before() {
    let (folder, _, bytes) = folder_with(1000);
    let mut command = kvik_std();
    command.args(["serve", "--until-eof"]).arg(folder.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"of no meaning\n").unwrap();
    let object = RemoteHandle::open(&format!("{}a", line.trim_end())).unwrap();
    let mut read = vec![0; bytes.len()];
    object.read_exact_at(&mut read, 0).unwrap();
    assert_eq!(read, bytes);
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("requests, "), "{said}");
}

#[test]
fn with_json_the_url_is_on_standard_output_and_the_object_on_standard_error() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), data(1000)).unwrap();
    let mut served = serve(folder.path(), &["--json", "--quiet"]);
    let url = format!("{}a", served.url);
    kvik().args(["cat", &url]).assert().success();
    let output = served.end("INT");
    assert_eq!(output.stdout, b"");
    let report = object(&output.stderr);
    assert_eq!(report["url"], served.url);
    assert_eq!(
        (&report["requests"], &report["bytes"]),
        (&1.into(), &1000.into())
    );
}

#[test]
fn an_address_that_others_reach_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let mut served = serve(folder.path(), &["--bind", "0.0.0.0"]);
    let said = String::from_utf8(served.end("INT").stderr).unwrap();
    assert!(
        said.contains("warning") && said.contains("everybody who reaches 0.0.0.0"),
        "{said}"
    );
    let mut served = serve(folder.path(), &["--bind", "127.0.0.2"]);
    assert!(
        served.url.starts_with("http://127.0.0.2:"),
        "{}",
        served.url
    );
    let said = String::from_utf8(served.end("INT").stderr).unwrap();
    assert!(!said.contains("warning"), "{said}");
}

#[test]
fn what_cannot_be_served_is_told_with_its_code() {
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("gone");
    kvik().arg("serve").arg(&gone).assert().code(3);
    kvik().args(["serve", "/dev/null"]).assert().code(2);
    kvik()
        .arg("serve")
        .arg(fifo(folder.path()))
        .assert()
        .code(2);
    let served = serve(folder.path(), &[]);
    let port = served.url.trim_end_matches('/').rsplit(':').next().unwrap();
    let run = kvik()
        .arg("serve")
        .arg(folder.path())
        .args(["--port", port])
        .assert()
        .code(1);
    let said = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(said.contains("in use"), "{said}");
}
