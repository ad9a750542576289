//! nginx by TLS, asked through OpenSSL's own client.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use kvik_tests::need;
use kvik_tests::pattern::assert_same;
use kvik_tests::server::{Fixture, Server};

use crate::plain::{reply, request};

#[test]
fn the_certificate_is_by_our_authority_and_the_bytes_are_the_same() {
    let server = need::server("https");
    let said = client(&server, &["-CAfile", server.fact("ca")], "http/1.1");
    assert!(said.status.success(), "{}", errors(&said));
    let reply = reply(said.stdout);
    assert_eq!(reply.status, 206);
    let fixture = Fixture::named("medium");
    assert_eq!(
        reply.field("Content-Range"),
        format!("bytes 5-99999/{}", fixture.len)
    );
    assert_same(&reply.body, &fixture.part(5..100_000));
}

#[test]
fn who_does_not_trust_our_authority_is_not_served() {
    let server = need::server("https");
    let said = client(&server, &["-no-CAfile", "-no-CApath"], "http/1.1");
    assert!(!said.status.success());
    assert_eq!(said.stdout, b"");
    let why = errors(&said);
    assert!(why.contains("verify error"), "{why}");
}

#[test]
fn http2_is_agreed_to_where_it_is_offered_and_only_there() {
    for (name, agreed) in [
        ("http2", "ALPN protocol: h2"),
        ("https", "No ALPN negotiated"),
    ] {
        let server = need::server(name);
        let said = openssl(&server, &["-CAfile", server.fact("ca"), "-alpn", "h2"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&said.stdout);
        assert!(text.contains(agreed), "{name}: {text}");
    }
}

/// Asks for a range of `medium` over a connection that is checked as a client must check it.
fn client(server: &Server, trust: &[&str], protocol: &str) -> Output {
    let quiet = ["-quiet", "-alpn", protocol];
    let mut client = openssl(server, &[trust, &quiet].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let asked = request("localhost", "/medium", &["Range: bytes=5-99999"]);
    let mut to = client.stdin.take().unwrap();
    // A client that was refused has ended, and reads no request.
    let _ = to.write_all(asked.as_bytes());
    let said = client.wait_with_output().unwrap();
    drop(to);
    said
}

fn openssl(server: &Server, arguments: &[&str]) -> Command {
    let mut command = Command::new(need::program("openssl", "openssl"));
    command
        .args(["s_client", "-verify_return_error", "-connect"])
        .arg(server.address())
        .args(["-servername", "localhost", "-verify_hostname", "localhost"])
        .args(arguments);
    command
}

fn errors(said: &Output) -> String {
    String::from_utf8_lossy(&said.stderr).into_owned()
}
