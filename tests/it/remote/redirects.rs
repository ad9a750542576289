//! H4: redirects. Once the range stayed behind, and secrets went along to hosts that they were not meant for.

use std::time::{Duration, Instant};

use kvik::stats::names::{HTTP_REDIRECTS_FORGOTTEN, HTTP_RETRIES};
use kvik::{ErrorKind, ReadAtExt};
use kvik_tests::hostile::{Asked, Reply, Script, Server, Step};
use kvik_tests::pattern::{assert_same, pattern};
use kvik_tests::remote::quick;

const LEN: usize = 200_000;

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
    let options = quick().bearer("a-token").header("X-Key", "a key");
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

/// Once a dead place was asked for ever after.
#[test]
fn a_place_that_is_dead_is_forgotten_and_the_first_server_asked_again() {
    let answers: [fn(Reply) -> Script; 7] = [
        |_| Script(vec![Step::Close]),
        |_| Script(vec![Step::Reset]),
        |_| Reply::status(400).script(),
        |_| Reply::status(500).script(),
        |_| Reply::status(503).script(),
        |_| Reply::with(200, b"<html>Log in</html>").script(),
        |right| right.header("etag", "\"another\"").script(),
    ];
    for (number, answer) in answers.into_iter().enumerate() {
        let good = Server::of(pattern(1, 0, LEN));
        let object = pattern(1, 0, LEN);
        let dead = Server::start(move |asked| match asked.number {
            0 => Reply::of(&object, asked).script(),
            _ => answer(Reply::of(&object, asked)),
        });
        let places = [dead.url("dead"), good.url("good")];
        let first = Server::start(move |asked| {
            let place = &places[asked.number.min(1)];
            Reply::redirect(307, place).script()
        });
        let handle = quick().max_attempts(1).open(&first.url("a")).unwrap();
        let forgotten = HTTP_REDIRECTS_FORGOTTEN.get();
        let mut bytes = [0; 10];
        for offset in [70_000, 80_000] {
            handle.read_exact_at(&mut bytes, offset).unwrap();
            assert_same(&bytes, &pattern(1, offset, 10));
        }
        let asked = (first.asked().len(), good.asked().len());
        assert_eq!(asked, (2, 2), "answer {number}");
        assert_eq!(HTTP_REDIRECTS_FORGOTTEN.get() - forgotten, 1);
    }
}

#[test]
fn a_place_where_nobody_listens_any_more_is_forgotten_too() {
    let good = Server::of(pattern(1, 0, LEN));
    let gone = Server::of(pattern(1, 0, LEN));
    let places = [gone.url("gone"), good.url("good")];
    let first =
        Server::start(move |asked| Reply::redirect(307, &places[asked.number.min(1)]).script());
    let handle = quick().max_attempts(1).open(&first.url("a")).unwrap();
    drop(gone);
    let mut bytes = [0; 10];
    handle.read_exact_at(&mut bytes, 70_000).unwrap();
    assert_same(&bytes, &pattern(1, 70_000, 10));
}

/// It is asked for once for each request, and where the first server has no better place that is the end.
#[test]
fn a_first_server_without_a_better_place_is_not_asked_for_ever() {
    let there = Server::start(|asked| match asked.number {
        0 => Reply::of(&pattern(1, 0, LEN), asked).script(),
        _ => Reply::status(500).script(),
    });
    let to = there.url("there");
    let first = Server::start(move |_| Reply::redirect(307, &to).script());
    let handle = quick().open(&first.url("a")).unwrap();
    let before = HTTP_RETRIES.get();
    let error = handle.read_at(&mut [0; 10], 70_000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert_eq!(HTTP_RETRIES.get() - before, 2);
    // The one that was good; the remembered one; three times by way of the first server.
    assert_eq!(
        (first.asked().len(), there.asked().len()),
        (1 + 3, 1 + 1 + 3)
    );
}

/// A place that asks for time is not gone round.
#[test]
fn a_place_that_names_a_time_is_given_it() {
    let there = Server::start(|asked| match asked.number {
        1 => Reply::status(503).header("retry-after", "1").script(),
        _ => Reply::of(&pattern(1, 0, LEN), asked).script(),
    });
    let to = there.url("there");
    let first = Server::start(move |_| Reply::redirect(307, &to).script());
    let handle = quick().open(&first.url("a")).unwrap();
    let begun = Instant::now();
    handle.read_exact_at(&mut [0; 10], 70_000).unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert_eq!((first.asked().len(), there.asked().len()), (2, 3));
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
