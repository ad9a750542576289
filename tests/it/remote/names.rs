//! What stands in a URL, on its way to the server.

use kvik::{Keys, Location, ReadAtExt};
use kvik_tests::hostile::{Reply, Server};
use kvik_tests::remote::quick;
use kvik_tests::s3::Account;

/// boto/botocore#2601, aws/aws-cli#8863, #2883: an IPv6 address or a user in the URL breaks the host and the signature.
#[test]
fn u1_the_host_that_is_signed_is_the_one_that_is_sent_and_a_user_is_no_part_of_it() {
    let account = Account::new("AKIAMINE", "hunter22");
    let server = Server::start_v6(move |asked| match account.check(asked) {
        Ok(()) => Reply::of(b"bytes", asked).script(),
        Err(refusal) => refusal.script(),
    });
    let port = server.address().port();
    let options = quick()
        .endpoint_url(&server.url(""))
        .region("eu-west-1")
        .keys(Keys::new("AKIAMINE", "hunter22"));
    let object = options.open("s3://b/k").unwrap();
    assert_eq!(object.read_to_end(0).unwrap(), b"bytes");
    let host = format!("[::1]:{port}");
    assert_eq!(server.asked()[0].header("host"), Some(host.as_str()));

    let server = Server::of(b"bytes".to_vec());
    let url = server.url("a").replace("http://", "http://user:p%40ss@");
    let object = quick().open(&url).unwrap();
    assert_eq!(object.read_to_end(0).unwrap(), b"bytes");
    let asked = &server.asked()[0];
    assert_eq!(asked.header("authorization"), Some("Basic dXNlcjpwQHNz"));
    let host = server.address().to_string();
    assert_eq!(asked.header("host"), Some(host.as_str()));
    let shown = format!("{object:?} {}", object.url());
    assert!(
        !shown.contains("p%40ss") && !shown.contains("user"),
        "{shown}"
    );
    // The endpoint of a store names no user: there are keys for that.
    let endpoint = server.url("").replace("http://", "http://user:p%40ss@");
    let error = options
        .endpoint_url(&endpoint)
        .open("s3://b/k")
        .unwrap_err();
    assert!(!format!("{error:?}").contains("p%40ss"), "{error}");
}

/// kvikio#844: what is encoded is encoded again, or what is not is not.
#[test]
fn u3_a_url_goes_out_byte_for_byte_and_a_path_is_encoded_once() {
    let server = Server::of(b"bytes".to_vec());
    for path in ["a%20b%2fc", "%C3%BC?x=1+2&y=%20", "a;b=c,d@e:f!g'h", "%23"] {
        let before = server.asked().len();
        quick().open(&server.url(path)).unwrap();
        assert_eq!(server.asked()[before].path, format!("/{path}"));
    }
    for (path, sent) in [
        ("a b#c?d", "/data/a%20b%23c%3Fd"),
        ("100%", "/data/100%25"),
        ("a%20b", "/data/a%2520b"),
        ("\u{fc}ber", "/data/%C3%BCber"),
    ] {
        let before = server.asked().len();
        let location = Location::from_base_path(&server.url("data"), path).unwrap();
        quick().open_location(&location).unwrap();
        assert_eq!(server.asked()[before].path, sent);
    }
}
