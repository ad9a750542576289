//! `kvik copy` fetches from each server.

use std::fs;

use kvik_tests::child::Child;
use kvik_tests::need;
use kvik_tests::pattern::assert_same;
use kvik_tests::server::Fixture;

fn command(arguments: &[&str]) -> Child {
    let child = Child::new(env!("CARGO_BIN_EXE_kvik-tests-child"), "command");
    arguments
        .iter()
        .fold(child, |child, argument| child.arg(argument))
}

#[track_caller]
fn copies(url: &str, fixture: &Fixture, prepare: impl Fn(Child) -> Child) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy");
    let copy = command(&["copy", "--quiet", url, path.to_str().unwrap()]);
    prepare(copy).succeeds();
    assert_same(&fs::read(&path).unwrap(), &fixture.bytes());
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn copies_come_from_nginx_plain_and_by_tls() {
    for name in ["http", "https", "http2", "throttled"] {
        let server = need::server(name);
        for name in ["empty", "medium", "folder/inner file"] {
            let fixture = Fixture::named(name);
            copies(&server.url_of(&fixture), &fixture, |copy| {
                match server.url() {
                    plain if plain.starts_with("http:") => copy,
                    _ => copy.env("SSL_CERT_FILE", server.fact("ca")),
                }
            });
        }
    }
}

#[test]
fn copies_come_from_s3() {
    let server = need::server("s3");
    for name in ["empty", "large", "percent%20twenty"] {
        let fixture = Fixture::named(name);
        let url = format!("s3://{}/{}", server.fact("bucket"), fixture.encoded());
        copies(&url, &fixture, |copy| {
            copy.env("AWS_ENDPOINT_URL", server.fact("endpoint"))
                .env("AWS_REGION", server.fact("region"))
                .env("AWS_ACCESS_KEY_ID", server.fact("access_key"))
                .env("AWS_SECRET_ACCESS_KEY", server.fact("secret_key"))
        });
    }
}

#[test]
fn copies_come_from_hdfs() {
    let server = need::server("webhdfs");
    for name in ["empty", "large", "unicode-\u{fc}-\u{6f22}"] {
        let fixture = Fixture::named(name);
        copies(&server.url_of(&fixture), &fixture, |copy| {
            copy.env("KVIKIO_WEBHDFS_USERNAME", server.fact("user"))
        });
    }
}
