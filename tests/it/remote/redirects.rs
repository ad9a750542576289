//! H4: redirects. Once the range stayed behind, and secrets went along to hosts that they were not meant for.

use std::time::Duration;

use kvik::{ErrorKind, ReadAtExt, RemoteHandle, RemoteOptions};
use kvik_tests::hostile::{Asked, Reply, Server};
use kvik_tests::pattern::{assert_same, pattern};

const LEN: usize = 200_000;

fn quick() -> RemoteOptions {
    RemoteHandle::builder().backoff(Duration::ZERO, Duration::ZERO)
}

fn has_secret(asked: &Asked) -> bool {
    asked.header("authorization").is_some() || asked.header("x-key").is_some()
}

#[test]
fn every_redirect_keeps_the_range_and_is_remembered() {
    for status in [301, 302, 303, 307, 308] {
        let object = pattern(1, 0, LEN);
        let server = Server::start(move |asked| match asked.path.as_str() {
            "/moved" => Reply::redirect(status, "/object?signature=1%2F2").script(),
            _ => Reply::of(&object, asked).script(),
        });
        let handle = quick().open(&server.url("moved")).unwrap();
        assert_same(&handle.read_to_end(0).unwrap(), &pattern(1, 0, LEN));
        let asked = server.asked();
        assert_eq!(
            (asked[0].path.as_str(), asked[0].range()),
            ("/moved", Some(0..65_536))
        );
        for asked in &asked[1..] {
            assert_eq!(asked.path, "/object?signature=1%2F2", "{status}");
            assert!(asked.range().is_some());
        }
    }
}

#[test]
fn secrets_go_to_their_own_origin_only() {
    let there = Server::of(pattern(1, 0, LEN));
    let to = there.url("object");
    let here = Server::start(move |asked| match asked.path.as_str() {
        "/first" => Reply::redirect(302, "/second").script(),
        _ => Reply::redirect(302, &to).script(),
    });
    let options = quick().bearer("a token").header("X-Key", "a key");
    let handle = options.open(&here.url("first")).unwrap();
    assert_same(&handle.read_to_end(0).unwrap(), &pattern(1, 0, LEN));
    assert!(here.asked().iter().all(has_secret));
    assert!(there.asked().len() > 1 && !there.asked().iter().any(has_secret));
}

#[test]
fn a_place_that_is_not_good_any_more_is_asked_for_anew() {
    for status in [403, 410] {
        let object = pattern(1, 0, LEN);
        let server = Server::start(move |asked| match asked.path.as_str() {
            "/moved" => Reply::redirect(307, &format!("/{}", asked.number)).script(),
            // Each place is good for one answer.
            place if place == format!("/{}", asked.number - 1) => {
                Reply::of(&object, asked).script()
            }
            _ => Reply::status(status).script(),
        });
        let handle = quick().open(&server.url("moved")).unwrap();
        for offset in [70_000, 80_000, 90_000] {
            let mut bytes = [0; 10];
            handle.read_exact_at(&mut bytes, offset).unwrap();
            assert_same(&bytes, &pattern(1, offset, 10));
        }
    }
}

#[test]
fn circles_and_ways_out_of_the_web_end() {
    for (to, says) in [
        ("/a", "the server sends us on more than 10 times"),
        (
            "file:///etc/hostname",
            "to something other than http or https",
        ),
        ("ftp://127.0.0.1/a", "to something other than http or https"),
    ] {
        let server = Server::start(move |_| Reply::redirect(302, to).script());
        let error = quick().open(&server.url("a")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains(says), "{error}");
        assert!(server.asked().len() <= 11);
    }
}
