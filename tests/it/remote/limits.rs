//! Servers that want to fill the memory or to keep us for ever: each answer has an end, set by us, and an error of its own.

use std::time::Duration;

use kvik::{ByteSize, Error, ErrorKind, RemoteOptions};
use kvik_tests::hostile::{Reply, Script, Server, Step};
use kvik_tests::remote;

fn quick() -> RemoteOptions {
    remote::quick()
        .whole_limit(ByteSize::mib(1))
        .first_byte_timeout(Duration::from_secs(20))
        .idle_timeout(Duration::from_secs(20))
}

/// A right answer of one byte.
fn right() -> Reply {
    Reply::with(206, b"x").header("content-range", "bytes 0-0/1")
}

/// Sends this, and then the rest without an end.
fn endless(begin: &str, rest: &str) -> Script {
    let many = rest.repeat(4096 / rest.len() + 1);
    Script(vec![
        Step::Send(begin.into()),
        Step::Repeat(many.into_bytes()),
    ])
}

/// A head without its end.
fn head_of(reply: &Reply) -> String {
    let head = String::from_utf8(reply.head()).unwrap();
    head.strip_suffix("\r\n").unwrap().to_owned()
}

/// Opens an object of a server that answers in this way, and returns what that met and how often it asked.
fn open(
    options: RemoteOptions,
    answer: impl Fn() -> Script + Send + Sync + 'static,
) -> (Error, usize) {
    let server = Server::start(move |_| answer());
    let error = options.open(&server.url("object")).unwrap_err();
    (error, server.asked().len())
}

/// The same, for an answer that is refused with `kind` and words after so many requests.
#[track_caller]
fn refused(
    answer: impl Fn() -> Script + Send + Sync + 'static,
    kind: ErrorKind,
    says: &str,
    requests: usize,
) {
    let (error, asked) = open(quick(), answer);
    assert_eq!(error.kind(), kind, "{error}");
    let text = error.to_string();
    assert!(text.contains(says), "`{says}` is not in: {text}");
    assert!(text.len() < 1000, "{} bytes: {text}", text.len());
    assert_eq!(asked, requests, "{text}");
}

#[test]
fn a_head_has_an_end() {
    let kind = ErrorKind::BadReply;
    let says = "the head of the answer has more than 64 KiB";
    // A long line, and many that are not.
    refused(
        || right().header("x-a", &"a".repeat(70_000)).script(),
        kind,
        says,
        1,
    );
    let many = (0..100).fold(right(), |reply, number| {
        reply.header(&format!("x-{number}"), &"a".repeat(1000))
    });
    refused(move || many.clone().script(), kind, says, 1);
    // These the client takes for no answer by itself.
    let plays: [fn() -> Script; 4] = [
        // A line that does not end.
        || endless(&format!("{}x-a: ", head_of(&right())), "a"),
        // Many lines, and lines without end.
        || {
            let many = (0..129).fold(right(), |reply, number| {
                reply.header(&format!("x-{number}"), "a")
            });
            many.script()
        },
        || endless(&head_of(&right()), "x-a: a\r\n"),
        // The first line.
        || endless("HTTP/1.1 206 ", "a"),
    ];
    for play in plays {
        refused(play, kind, "none of HTTP: message head is too large", 3);
    }
}

#[test]
fn a_head_that_is_long_and_no_longer_than_that_is_read() {
    let server = Server::start(|asked| {
        let long = Reply::of(b"x", asked).header("x-a", &"a".repeat(60_000));
        (0..100)
            .fold(long, |reply, number| {
                reply.header(&format!("x-{number}"), "a")
            })
            .script()
    });
    let object = quick().open(&server.url("object")).unwrap();
    assert_eq!(object.len(), 1);
}

#[test]
fn answers_that_announce_an_answer_are_not_waited_through_for_ever() {
    for line in ["103 Early Hints", "100 Continue", "199 Whatever"] {
        let options = quick()
            .first_byte_timeout(Duration::from_millis(300))
            .max_attempts(2);
        // Not as fast as they go: a client that is built without optimisation reads a burst of them for minutes.
        let heads = format!("HTTP/1.1 {line}\r\n\r\n").repeat(4);
        let some = [
            Step::Send(heads.into_bytes()),
            Step::Wait(Duration::from_millis(5)),
        ];
        let (error, asked) = open(options, move || {
            Script(some.iter().cycle().take(1000).cloned().collect())
        });
        assert_eq!((error.kind(), asked), (ErrorKind::TimedOut, 2), "{error}");
    }
    // Some of them are nothing to complain about.
    let server = Server::start(|asked| {
        let hints = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".repeat(3);
        let Script(mut steps) = Reply::of(b"x", asked).script();
        steps.insert(0, Step::Send(hints.into()));
        Script(steps)
    });
    assert_eq!(quick().open(&server.url("object")).unwrap().len(), 1);
}

#[test]
fn numbers_that_are_too_large_are_none() {
    let lengths: [(&str, ErrorKind, &str, usize); 3] = [
        ("99999999999999999999999", ErrorKind::BadReply, "answer", 3),
        ("18446744073709551615", ErrorKind::BadReply, "answer", 3),
        (
            "9223372036854775807",
            ErrorKind::BadReply,
            "the length of the body is not that of the part",
            3,
        ),
    ];
    for (length, kind, says, requests) in lengths {
        refused(
            move || right().header("content-length", length).script(),
            kind,
            says,
            requests,
        );
    }
    for range in [
        "bytes 0-0/18446744073709551615",
        "bytes 0-0/99999999999999999999999",
        "bytes 0-99999999999999999999999/*",
        "bytes 0-18446744073709551615/18446744073709551616",
    ] {
        refused(
            move || right().header("content-range", range).script(),
            ErrorKind::BadReply,
            "a Content-Range that is none",
            3,
        );
    }
    // A whole object of that length is one that is too long.
    refused(
        || {
            Reply::with(200, b"x")
                .header("content-length", "9223372036854775807")
                .script()
        },
        ErrorKind::RangeUnsupported,
        "more than 1048576 bytes",
        1,
    );
}

/// An answer in chunks, whose body this is, byte for byte.
fn chunked(body: &str) -> Script {
    let head = right().chunked().head();
    Script(vec![
        Step::Send([&head, body.as_bytes()].concat()),
        Step::Close,
    ])
}

#[test]
fn chunks_that_are_none_are_no_body() {
    let bad: [&str; 4] = [
        "fffffffffffffffff\r\nx\r\n0\r\n\r\n",
        "one\r\nx\r\n0\r\n\r\n",
        "-1\r\nx\r\n0\r\n\r\n",
        "1\r\nxx\r\n0\r\n\r\n",
    ];
    for body in bad {
        let says = "the body is none of HTTP";
        refused(move || chunked(body), ErrorKind::BadReply, says, 3);
    }
    let head = String::from_utf8(right().chunked().head()).unwrap();
    for (begin, rest) in [
        // What may stand behind a length, and what may come behind the last chunk.
        ("1;", "a"),
        ("1\r\nx\r\n0\r\n", "x-a: a\r\n"),
        ("1\r\nx\r\n0\r\nx-a: ", "a"),
    ] {
        let begin = format!("{head}{begin}");
        let says = "the body is none of HTTP";
        refused(move || endless(&begin, rest), ErrorKind::BadReply, says, 3);
    }
}

#[test]
fn a_body_that_does_not_end_is_left() {
    let chunk = format!("3e8\r\n{}\r\n", "x".repeat(1000));
    let part = String::from_utf8(right().chunked().head()).unwrap();
    let (begin, rest) = (part, chunk.clone());
    refused(
        move || endless(&begin, &rest),
        ErrorKind::BadReply,
        "the body is longer than it was to be",
        1,
    );
    // A whole object, in chunks and up to an end that does not come.
    let says = "more than 1048576 bytes";
    let whole = Reply::with(200, b"").without("content-length");
    let in_chunks = String::from_utf8(whole.clone().chunked().head()).unwrap();
    refused(
        move || endless(&in_chunks, &chunk),
        ErrorKind::RangeUnsupported,
        says,
        1,
    );
    let plain = String::from_utf8(whole.head()).unwrap();
    refused(
        move || endless(&plain, "x"),
        ErrorKind::RangeUnsupported,
        says,
        1,
    );
}

#[test]
fn what_would_have_to_be_decoded_is_refused_wherever_that_is_said() {
    let says = "the server compresses what was to come as it is";
    let headers: [(&str, &str); 4] = [
        ("content-encoding", "gzip"),
        ("content-encoding", "identity, br"),
        ("Content-Encoding", "x-own"),
        ("transfer-encoding", "gzip, chunked"),
    ];
    for (name, value) in headers {
        for status in [200, 206] {
            let reply = Reply::with(status, b"x").header("content-range", "bytes 0-0/1");
            let reply = reply.without("content-length").header(name, value);
            refused(
                move || Script(vec![Step::Send(reply.head()), Step::Close]),
                ErrorKind::RangeUnsupported,
                says,
                1,
            );
        }
    }
}

#[test]
fn a_time_that_nobody_waits_for_ends_it_and_one_that_is_none_does_not() {
    let retry = |status: u16, after: &'static str| {
        move || Reply::status(status).header("retry-after", after).script()
    };
    for after in [
        "121",
        "18446744073709551615",
        "99999999999999999999999999",
        "Fri, 31 Dec 9999 23:59:59 GMT",
    ] {
        for status in [429, 503] {
            refused(retry(status, after), ErrorKind::Refused, "answered", 1);
        }
    }
    for after in ["-5", "soon", "", "0", "Thu, 01 Jan 1970 00:00:00 GMT"] {
        refused(retry(503, after), ErrorKind::Refused, "and so 3 times", 3);
    }
}

#[test]
fn a_redirect_to_a_url_that_is_too_long_is_not_followed() {
    refused(
        || Reply::redirect(302, &format!("/{}", "a".repeat(40_000))).script(),
        ErrorKind::Refused,
        "to a URL longer than 32 KiB",
        1,
    );
    // Neither is one that becomes too long when it is written as a URL.
    refused(
        || Reply::redirect(302, &format!("/{}", "\"".repeat(20_000))).script(),
        ErrorKind::Refused,
        "to a URL longer than 32 KiB",
        1,
    );
}

#[test]
fn the_reason_of_a_refusal_is_read_so_far_and_no_further() {
    let xml = |body: &str| {
        Reply::with(403, body.as_bytes()).header("content-type", "application/xml; charset=utf-8")
    };
    let bomb = format!(
        "<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY a0 \"ha\">{}]><Error><Code>&a29;</Code></Error>",
        (1..30)
            .map(|n| format!("<!ENTITY a{n} \"&a{0};&a{0};\">", n - 1))
            .collect::<String>()
    );
    let deep = format!("<Error>{}", "<a>".repeat(300_000));
    let long = format!("<Error><Code>{}</Code></Error>", "C".repeat(60_000));
    let wide = format!("<Error>{}<Code>Late</Code></Error>", "<a/>".repeat(100_000));
    for body in [bomb, deep, long, wide] {
        let reply = xml(&body);
        refused(
            move || reply.clone().script(),
            ErrorKind::PermissionDenied,
            "the server answered 403 Forbidden",
            1,
        );
    }
    let head = xml("").without("content-length").head();
    let begin = format!(
        "{}<Error><Code>AccessDenied</Code><Message>",
        String::from_utf8(head).unwrap()
    );
    refused(
        move || endless(&begin, "a"),
        ErrorKind::PermissionDenied,
        "AccessDenied",
        1,
    );
    // One that begins and does not go on is not waited for.
    let begin = xml("").header("content-length", "1000").head();
    refused(
        move || Script(vec![Step::Send(begin.clone()), Step::Silence]),
        ErrorKind::PermissionDenied,
        "403 Forbidden",
        1,
    );
}
