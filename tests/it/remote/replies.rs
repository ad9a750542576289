//! Servers whose answers are not what was asked for, or end early. Once a body that ended early was taken for all of it, and
//! what was asked for again landed behind the wrong byte.

use std::time::Duration;

use kvik::stats::names::{
    HTTP_RETRIES, HTTP_RETRIES_OF_CONNECTION, HTTP_RETRIES_OF_PART, HTTP_RETRIES_OF_REFUSAL,
};
use kvik::{ByteSize, Error, ErrorKind, ReadOptions, RemoteHandle};
use kvik_tests::hostile::{Asked, Reply, Script, Server};
use kvik_tests::pattern::{UNTOUCHED, assert_same, pattern};
use kvik_tests::remote::quick;

const LEN: usize = 300_000;

fn object() -> Vec<u8> {
    pattern(7, 0, LEN)
}

/// Of known size, so that the first request is the first of a read.
fn known(server: &Server) -> RemoteHandle {
    quick().len(LEN as u64).open(&server.url("object")).unwrap()
}

/// Reads all of it by one request after another, and returns what it met and how many requests were made again.
fn read(server: &Server) -> (Result<Vec<u8>, Error>, u64) {
    let before = HTTP_RETRIES.get();
    let mut bytes = vec![UNTOUCHED; LEN];
    let options = ReadOptions::new()
        .num_threads(1)
        .task_size(ByteSize::new(LEN as u64));
    let outcome = known(server).read_at_with(&mut bytes, 0, &options);
    let outcome = outcome.map(|count| {
        bytes.truncate(count);
        bytes
    });
    (outcome, HTTP_RETRIES.get() - before)
}

/// A server that goes wrong in this way the first `times` times, and is right from then on.
fn wrong(times: usize, how: impl Fn(Reply, &Asked) -> Script + Send + Sync + 'static) -> Server {
    let object = object();
    Server::start(move |asked| {
        let right = Reply::of(&object, asked);
        match asked.number < times {
            true => how(right, asked),
            false => right.script(),
        }
    })
}

#[track_caller]
fn recovers(server: &Server, retries: u64) {
    let (outcome, made) = read(server);
    assert_same(&outcome.unwrap(), &object());
    assert_eq!(made, retries);
}

#[track_caller]
fn fails(server: &Server, kind: ErrorKind, retries: u64, says: &str) {
    let (outcome, made) = read(server);
    let error = outcome.map(drop).unwrap_err();
    assert_eq!(error.kind(), kind, "{error}");
    assert!(
        error.to_string().contains(says),
        "`{says}` is not in: {error}"
    );
    assert_eq!(made, retries, "{error}");
}

/// H2: the body ends early, by a clean end of the connection.
#[test]
fn what_is_missing_of_a_body_is_asked_for_from_the_byte_that_was_reached() {
    let server = wrong(2, |right, _| right.cut(70_000));
    recovers(&server, 2);
    let starts: Vec<_> = server.asked().iter().filter_map(Asked::range).collect();
    assert_eq!(starts, [0..LEN, 70_000..LEN, 140_000..LEN]);
}

#[test]
fn requests_that_are_made_again_are_counted_by_what_was_wrong() {
    let part = |_: Reply, _: &Asked| {
        let said = format!("bytes 0-99999/{LEN}");
        Reply::with(206, &object()[..100_000])
            .header("content-range", &said)
            .script()
    };
    for (counter, server) in [
        (
            &HTTP_RETRIES_OF_CONNECTION,
            wrong(1, |right, _| right.cut(70_000)),
        ),
        (
            &HTTP_RETRIES_OF_REFUSAL,
            wrong(1, |_, _| Reply::with(503, b"").script()),
        ),
        (&HTTP_RETRIES_OF_PART, wrong(1, part)),
    ] {
        let before = counter.get();
        recovers(&server, 1);
        assert_eq!(counter.get() - before, 1, "{counter:?}");
    }
}

/// H2: half of it, and then nothing.
#[test]
fn a_body_that_stalls_is_given_up_and_asked_for_again() {
    let server = wrong(1, |right, _| right.stall(LEN / 2));
    let object = quick()
        .len(LEN as u64)
        .idle_timeout(Duration::from_millis(200))
        .open(&server.url("object"))
        .unwrap();
    let mut bytes = vec![0; LEN];
    let all = ReadOptions::new().task_size(ByteSize::new(LEN as u64));
    assert_eq!(object.read_at_with(&mut bytes, 0, &all).unwrap(), LEN);
    assert_same(&bytes, &self::object());
    let starts: Vec<_> = server.asked().iter().filter_map(Asked::range).collect();
    assert_eq!(starts, [0..LEN, LEN / 2..LEN]);
}

/// H2: a part of the range, told as such.
#[test]
fn a_part_of_a_range_is_completed() {
    let object = object();
    let server = Server::start(move |asked| {
        let range = asked.range().unwrap();
        let part = range.start..range.end.min(range.start + 100_000);
        let said = format!("bytes {}-{}/{LEN}", part.start, part.end - 1);
        Reply::with(206, &object[part])
            .header("content-range", &said)
            .script()
    });
    recovers(&server, 2);
    assert_eq!(server.asked().len(), 3);
}

/// Many small answers, each as it should be, are no failures.
#[test]
fn a_server_that_sends_no_more_than_some_kibibytes_at_a_time_is_read_to_the_end() {
    let object = object();
    let server = Server::start(move |asked| {
        let range = asked.range().unwrap();
        let part = range.start..range.end.min(range.start + 8192);
        let said = format!("bytes {}-{}/{LEN}", part.start, part.end - 1);
        Reply::with(206, &object[part])
            .header("content-range", &said)
            .script()
    });
    recovers(&server, 36);
    assert_eq!(server.asked().len(), LEN.div_ceil(8192));
}

/// H2: another range than the one that was asked for.
#[test]
fn bytes_of_another_range_are_never_taken() {
    let shifted = |right: Reply, asked: &Asked| {
        let range = asked.range().unwrap();
        let said = format!("bytes {}-{}/{LEN}", range.start + 1, LEN - 1);
        right.header("content-range", &said).script()
    };
    fails(
        &wrong(usize::MAX, shifted),
        ErrorKind::BadReply,
        2,
        "the server sent bytes 1..300000 of 300000 where 0..300000 were asked for, and so 3 times",
    );
    recovers(&wrong(2, shifted), 2);
}

#[test]
fn an_object_that_changes_between_two_ranges_is_told_and_not_asked_for_again() {
    for (name, value) in [
        ("etag", "\"version two\""),
        ("content-range", "bytes 0-299999/300001"),
    ] {
        let server = wrong(usize::MAX, move |right, asked| {
            let right = right.header("etag", "\"version one\"");
            match asked.range().unwrap().start {
                0 if name == "content-range" => right.header(name, value).script(),
                0 => right.script(),
                _ => right.header(name, value).script(),
            }
        });
        let handle = known(&server);
        let mut byte = [0];
        let first = handle.read_at(&mut byte, 0);
        let error = match first {
            Ok(_) => handle.read_at(&mut byte, 5).unwrap_err(),
            Err(error) => error,
        };
        assert_eq!(error.kind(), ErrorKind::Changed, "{name}: {error}");
    }
    // A server that heeds `If-Match` says so itself.
    let server = wrong(usize::MAX, |right, asked| match asked.header("if-match") {
        None => right.script(),
        Some(tag) => {
            assert_eq!(tag, "\"version one\"");
            Reply::status(412).script()
        }
    });
    let handle = known(&server);
    handle.read_at(&mut [0], 0).unwrap();
    let before = HTTP_RETRIES.get();
    let error = handle.read_at(&mut [0], 1).unwrap_err();
    assert_eq!(
        (error.kind(), HTTP_RETRIES.get()),
        (ErrorKind::Changed, before)
    );
}

#[test]
fn servers_that_fail_in_passing_are_asked_again_and_others_are_not() {
    for (status, kind, retries) in [
        (500, ErrorKind::Refused, 2),
        (503, ErrorKind::Refused, 2),
        (429, ErrorKind::Refused, 2),
        (408, ErrorKind::Refused, 2),
        (501, ErrorKind::Refused, 0),
        (400, ErrorKind::Refused, 0),
        (401, ErrorKind::PermissionDenied, 0),
        (403, ErrorKind::PermissionDenied, 0),
        (404, ErrorKind::NotFound, 0),
        (410, ErrorKind::NotFound, 0),
        (204, ErrorKind::BadReply, 2),
    ] {
        let server = wrong(usize::MAX, move |_, _| Reply::status(status).script());
        fails(&server, kind, retries, &format!("answered {status}"));
    }
    recovers(&wrong(2, |_, _| Reply::status(503).script()), 2);
}

#[test]
fn a_server_that_names_a_time_is_given_it() {
    let server = wrong(1, |_, _| {
        Reply::status(429).header("retry-after", "1").script()
    });
    let begun = std::time::Instant::now();
    recovers(&server, 1);
    assert!(begun.elapsed() >= Duration::from_secs(1));
}

/// A connection that the server ends while nobody uses it is not the next request's misfortune.
#[test]
fn idle_connections_that_end_cost_nothing() {
    let object = object();
    let server = Server::start(move |asked| {
        let right = Reply::of(&object, asked);
        let all = asked.range().unwrap().len();
        right.cut(all)
    });
    let handle = known(&server);
    for offset in 0..20 {
        let mut bytes = [0; 100];
        handle.read_exact_at(&mut bytes, offset).unwrap();
        assert_same(&bytes, &pattern(7, offset, 100));
        std::thread::sleep(Duration::from_millis(5));
    }
}
