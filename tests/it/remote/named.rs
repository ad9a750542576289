//! Options by name: those of fsspec and object_store were refused, or one of them passed over without a word.

use std::fmt::Write as _;

use kvik::{ErrorKind, Kind, NamedOption, ReadAtExt, RemoteOptions};
use kvik_tests::hostile::{Reply, Server};
use kvik_tests::remote::quick;
use kvik_tests::s3::Account;

#[test]
fn an_object_of_s3_is_read_by_the_names_of_other_libraries() {
    let account = Account::new("AKIAMINE", "hunter/2+2").token("t0ken==");
    let server = Server::start(move |asked| match account.check(asked) {
        Ok(()) => Reply::of(b"bytes", asked).script(),
        Err(refusal) => refusal.script(),
    });
    let endpoint = server.url("");
    for names in [
        // object_store
        [
            "aws_access_key_id",
            "aws_secret_access_key",
            "aws_session_token",
            "aws_region",
            "aws_endpoint",
        ],
        // s3fs
        ["key", "secret", "token", "region", "endpoint_url"],
        // the variables of AWS
        [
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "AWS_DEFAULT_REGION",
            "AWS_ENDPOINT_URL",
        ],
    ] {
        let values = ["AKIAMINE", "hunter/2+2", "t0ken==", "eu-west-1", &endpoint];
        let options = RemoteOptions::from_map(names.into_iter().zip(values)).unwrap();
        let object = options.open("s3://b/k").unwrap();
        assert_eq!(object.kind(), Kind::S3);
        assert_eq!(object.read_to_end(0).unwrap(), b"bytes");
        let shown = format!("{options:?} {object:?}");
        assert!(
            !shown.contains("hunter") && !shown.contains("t0ken"),
            "{shown}"
        );
    }
    assert!(server.asked().iter().all(|asked| asked.path == "/b/k"));
    // What the map does not say stays as it was said.
    let options = quick()
        .endpoint_url(&endpoint)
        .with_map([("anon", "true"), ("max_retries", "0")])
        .unwrap();
    let error = options.open("s3://b/k").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    assert!(error.to_string().contains("not signed, as was asked for"));
}

#[test]
fn objects_are_asked_for_by_https_alone_where_that_is_said() {
    let server = Server::of(b"bytes".to_vec());
    let options = RemoteOptions::from_map([("allow_http", "false")]).unwrap();
    let store = options
        .clone()
        .with_map([("endpoint", &*server.url("")), ("anon", "yes")])
        .unwrap();
    for error in [
        options.open(&server.url("a")).unwrap_err(),
        options.submit_open(&server.url("a")).wait().unwrap_err(),
        options.clone().len(5).open(&server.url("a")).unwrap_err(),
        store.open("s3://b/k").unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        let says = "it is asked for by http, and the options say https only";
        assert!(error.to_string().contains(says), "{error}");
    }
    assert_eq!(server.asked().len(), 0);
    let allowed = options.with_map([("allow_http", "true")]).unwrap();
    allowed.open(&server.url("a")).unwrap();
    // A store of AWS is asked by https.
    let known = RemoteOptions::new().https_only(true).len(5);
    let known = known.with_map([("anon", "yes")]).unwrap();
    known.open("s3://b/k").unwrap();
}

/// The table of the book is the one of the code.
#[test]
fn the_book_has_every_option_with_its_names() {
    let mut table = String::from("| names | value | what it says |\n| --- | --- | --- |\n");
    for option in NamedOption::ALL {
        let names: Vec<String> = option
            .names()
            .iter()
            .map(|name| format!("`{name}`"))
            .collect();
        let names = names.join(", ");
        writeln!(
            table,
            "| {names} | {} | {} |",
            option.expects(),
            option.says()
        )
        .unwrap();
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/remote.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("<!-- options -->\n").unwrap();
    let (found, _) = rest.split_once("<!-- end of options -->").unwrap();
    assert_eq!(
        found, table,
        "what docs/src/remote.md has to have:\n{table}"
    );
}
