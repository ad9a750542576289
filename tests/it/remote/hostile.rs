//! All ways in which a server can be bad, each with memory of the host and of a device to read into: what is wrong is made
//! good by so many requests, or is the error that it should be, and the bytes are never others than the object's.

use std::time::Duration;

use kvik::stats::names::HTTP_RETRIES;
use kvik::{ByteSize, Error, ErrorKind, ReadOptions, RemoteHandle, RemoteOptions};
use kvik_tests::gpu::{Gpu, Kind, Memory};
use kvik_tests::hostile::{Asked, Reply, Script, Server, Step};
use kvik_tests::need;
use kvik_tests::pattern::{UNTOUCHED, assert_same, pattern};
use kvik_tests::remote;

const LEN: usize = 300_000;

/// A bad server, and what comes of it.
struct Case {
    name: &'static str,
    /// What it makes of the right answer to a request.
    play: fn(Reply, &Asked) -> Script,
    /// Its first answers are bad, and all from this one on are right.
    bad: usize,
    /// How many bytes are asked for at a time.
    part: usize,
    /// How long it may be silent.
    limit: Duration,
    /// The bytes of the object, or an error of this kind that says so.
    comes: Result<(), (ErrorKind, &'static str)>,
    /// How many requests were made again, and how many there were.
    retries: u64,
    requests: usize,
}

const ALWAYS: usize = usize::MAX;

fn recovers(
    name: &'static str,
    bad: usize,
    [retries, requests]: [usize; 2],
    play: fn(Reply, &Asked) -> Script,
) -> Case {
    Case {
        name,
        play,
        bad,
        part: LEN,
        limit: Duration::from_secs(60),
        comes: Ok(()),
        retries: retries as u64,
        requests,
    }
}

fn fails(
    name: &'static str,
    (kind, says): (ErrorKind, &'static str),
    [retries, requests]: [usize; 2],
    play: fn(Reply, &Asked) -> Script,
) -> Case {
    Case {
        comes: Err((kind, says)),
        ..recovers(name, ALWAYS, [retries, requests], play)
    }
}

/// The right answer, but this header says this.
fn with(right: Reply, name: &str, value: &str) -> Script {
    right.header(name, value).script()
}

fn redirected(right: Reply, asked: &Asked, status: u16) -> Script {
    match asked.path.as_str() {
        "/there?x=%2F" => right.script(),
        _ => Reply::redirect(status, "/there?x=%2F").script(),
    }
}

fn garbage(text: &str) -> Script {
    Script(vec![Step::Send(text.into()), Step::Close])
}

/// Ends after 70,000 bytes the first time; then this header says this.
fn changing(right: Reply, asked: &Asked, name: &str, value: &str) -> Script {
    match asked.number {
        0 => right.cut(70_000),
        _ => right.header(name, value).script(),
    }
}

fn truncating() -> Vec<Case> {
    vec![
        recovers("the body ends early", 2, [2, 3], |right, _| {
            right.cut(70_000)
        }),
        recovers(
            "the body ends before its first byte",
            2,
            [2, 3],
            |right, _| right.cut(0),
        ),
        recovers("the head ends early", 2, [2, 3], |right, _| {
            let head = right.head();
            garbage(std::str::from_utf8(&head[..head.len() / 2]).unwrap())
        }),
        Case {
            limit: Duration::from_secs(1),
            ..recovers("the body stalls", 1, [1, 2], |right, _| {
                right.stall(LEN / 2)
            })
        },
        Case {
            limit: Duration::from_secs(1),
            ..recovers("nothing comes", 1, [1, 2], |_, _| {
                Script(vec![Step::Silence])
            })
        },
        recovers("the connection is reset", 2, [2, 3], |right, _| {
            right.reset(100)
        }),
        recovers("it is reset at once", 2, [2, 3], |_, _| {
            Script(vec![Step::Reset])
        }),
        recovers("a chunked body ends early", 1, [1, 2], |right, _| {
            right.body(&pattern(7, 0, LEN / 2)).chunked().script()
        }),
        recovers("a chunked body breaks off", 1, [1, 2], |right, _| {
            right.chunked().cut(100_000)
        }),
        Case {
            part: 32_768,
            ..recovers(
                "each answer ends its connection",
                ALWAYS,
                [0, 10],
                |right, asked| {
                    let all = asked.range().unwrap().len();
                    right.header("connection", "close").cut(all)
                },
            )
        },
        recovers("the body comes slowly", ALWAYS, [0, 1], |right, _| {
            right.drip(30_000, Duration::from_millis(2))
        }),
    ]
}

fn lying() -> Vec<Case> {
    let bad = ErrorKind::BadReply;
    let changed = ErrorKind::Changed;
    vec![
        fails(
            "a length too small",
            (bad, "the length of the body"),
            [2, 3],
            |right, _| right.header("content-length", "299999").cut(299_999),
        ),
        fails(
            "a length too large",
            (bad, "the length of the body"),
            [2, 3],
            |right, _| right.header("content-length", "300001").script(),
        ),
        fails(
            "a body too long",
            (bad, "the body is longer"),
            [0, 1],
            |right, _| right.body(&pattern(7, 0, LEN + 100)).chunked().script(),
        ),
        fails(
            "another range",
            (bad, "the server sent bytes 1..300000"),
            [2, 3],
            |right, _| with(right, "content-range", "bytes 1-299999/300000"),
        ),
        recovers("another range at first", 2, [2, 3], |right, _| {
            with(right, "content-range", "bytes 1-299999/300000")
        }),
        fails(
            "a range that is none",
            (bad, "a Content-Range that is none"),
            [2, 3],
            |right, _| with(right, "content-range", "bytes 5-2/1"),
        ),
        fails(
            "no range",
            (bad, "a part and not which one"),
            [2, 3],
            |right, _| right.without("content-range").script(),
        ),
        fails(
            "several parts",
            (bad, "several parts"),
            [2, 3],
            |right, _| with(right, "content-type", "multipart/byteranges; boundary=x"),
        ),
        fails(
            "another length",
            (changed, "it had 300000 bytes"),
            [0, 1],
            |right, _| with(right, "content-range", "bytes 0-299999/300001"),
        ),
        fails(
            "no such range",
            (changed, "and has 5 now"),
            [0, 1],
            |_, _| {
                Reply::status(416)
                    .header("content-range", "bytes */5")
                    .script()
            },
        ),
        fails(
            "another version later",
            (changed, "its version was"),
            [1, 2],
            |right, asked| changing(right, asked, "etag", "\"version two\""),
        ),
        fails(
            "no version later",
            (changed, "and is none now"),
            [1, 2],
            |right, asked| match asked.number {
                0 => right.cut(70_000),
                _ => right.without("etag").script(),
            },
        ),
        fails(
            "another length later",
            (changed, "and has 300001 now"),
            [1, 2],
            |right, asked| changing(right, asked, "content-range", "bytes 70000-299999/300001"),
        ),
        fails(
            "it says so itself",
            (changed, "another version"),
            [1, 2],
            |right, asked| match asked.header("if-match") {
                None => right.cut(70_000),
                Some(_) => Reply::status(412).script(),
            },
        ),
        fails(
            "another object",
            (changed, "it had 300000 bytes"),
            [0, 1],
            |_, _| Reply::whole(b"<html>Log in</html>").script(),
        ),
        fails(
            "compressed",
            (ErrorKind::RangeUnsupported, "compresses"),
            [0, 1],
            |right, _| with(right, "content-encoding", "gzip"),
        ),
    ]
}

fn redirecting() -> Vec<Case> {
    let refused = ErrorKind::Refused;
    vec![
        recovers("301", ALWAYS, [0, 2], |right, asked| {
            redirected(right, asked, 301)
        }),
        recovers("302", ALWAYS, [0, 2], |right, asked| {
            redirected(right, asked, 302)
        }),
        recovers("303", ALWAYS, [0, 2], |right, asked| {
            redirected(right, asked, 303)
        }),
        recovers("307", ALWAYS, [0, 2], |right, asked| {
            redirected(right, asked, 307)
        }),
        recovers("308", ALWAYS, [0, 2], |right, asked| {
            redirected(right, asked, 308)
        }),
        recovers("ten times", ALWAYS, [0, 11], |right, asked| {
            match asked.number {
                10 => right.script(),
                number => Reply::redirect(302, &format!("/{number}")).script(),
            }
        }),
        fails(
            "in a circle",
            (refused, "more than 10 times"),
            [0, 11],
            |_, _| Reply::redirect(302, "/a").script(),
        ),
        fails(
            "out of the web",
            (refused, "other than http or https"),
            [0, 1],
            |_, _| Reply::redirect(302, "file:///etc/hostname").script(),
        ),
        fails(
            "nowhere",
            (ErrorKind::BadReply, "and not where"),
            [2, 3],
            |_, _| Reply::status(302).script(),
        ),
        fails(
            "to many places",
            (ErrorKind::BadReply, "answered 300"),
            [2, 3],
            |_, _| Reply::redirect(300, "/a").script(),
        ),
    ]
}

fn refusing() -> Vec<Case> {
    let refused = ErrorKind::Refused;
    vec![
        recovers("it throttles and names a time", 2, [2, 3], |_, _| {
            Reply::status(429).header("retry-after", "0").script()
        }),
        recovers("it is busy and names a time", 2, [2, 3], |_, _| {
            let past = "Thu, 01 Jan 1970 00:00:00 GMT";
            Reply::status(503).header("retry-after", past).script()
        }),
        fails(
            "it names a long time",
            (refused, "answered 429"),
            [0, 1],
            |_, _| Reply::status(429).header("retry-after", "100000").script(),
        ),
        recovers("it is in trouble", 2, [2, 3], |_, _| {
            Reply::status(500).script()
        }),
        fails(
            "it stays in trouble",
            (refused, "answered 502"),
            [2, 3],
            |_, _| Reply::status(502).script(),
        ),
        fails(
            "it refuses",
            (ErrorKind::PermissionDenied, "answered 403"),
            [0, 1],
            |_, _| Reply::status(403).script(),
        ),
        fails(
            "it has none",
            (ErrorKind::NotFound, "answered 404"),
            [0, 1],
            |_, _| Reply::status(404).script(),
        ),
        fails(
            "it sends nothing",
            (ErrorKind::BadReply, "answered 204"),
            [2, 3],
            |_, _| Reply::status(204).script(),
        ),
    ]
}

fn babbling() -> Vec<Case> {
    let bad = (ErrorKind::BadReply, "the answer is none of HTTP");
    vec![
        fails("another protocol", bad, [2, 3], |_, _| {
            garbage("SSH-2.0-OpenSSH_9.6\r\n")
        }),
        fails("a status of letters", bad, [2, 3], |_, _| {
            garbage("HTTP/1.1 twohundred OK\r\n\r\n")
        }),
        fails("two lengths", bad, [2, 3], |_, _| {
            garbage("HTTP/1.1 206 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx")
        }),
        fails("a header without a name", bad, [2, 3], |_, _| {
            garbage("HTTP/1.1 206 OK\r\n: 1\r\n\r\n")
        }),
        fails(
            "empty lines",
            (ErrorKind::Unreachable, "connection"),
            [2, 3],
            |_, _| garbage("\r\n\r\n\r\n\r\n"),
        ),
        recovers("all of it at first", 2, [2, 3], |_, _| {
            garbage("\0\u{1}\u{2}\r\n\r\n")
        }),
    ]
}

/// Where the bytes go.
enum Place {
    Host(Vec<u8>),
    Device(Memory),
}

impl Place {
    fn both(gpu: &Gpu) -> [Place; 2] {
        let mut device = Memory::new(gpu, 0, Kind::Plain, LEN);
        device.set(UNTOUCHED);
        [Place::Host(vec![UNTOUCHED; LEN]), Place::Device(device)]
    }

    fn fill(&mut self, object: &RemoteHandle, part: usize) -> Result<usize, Error> {
        let options = ReadOptions::new()
            .num_threads(1)
            .task_size(ByteSize::new(part as u64));
        match self {
            Place::Host(bytes) => object.read_at_with(bytes, 0, &options),
            Place::Device(memory) => object.read_at_with(memory.target(0..LEN), 0, &options),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Place::Host(bytes) => bytes.clone(),
            Place::Device(memory) => memory.bytes(),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Place::Host(_) => "host",
            Place::Device(_) => "device",
        }
    }
}

/// Of known size, and without waits between requests.
fn quick() -> RemoteOptions {
    remote::quick().len(LEN as u64)
}

#[track_caller]
fn check(gpu: &Gpu, case: &Case) {
    for mut place in Place::both(gpu) {
        let name = format!("{}, into the memory of the {}", case.name, place.name());
        let (play, bad) = (case.play, case.bad);
        let object = pattern(7, 0, LEN);
        let server = Server::start(move |asked| {
            let right = Reply::of(&object, asked);
            match asked.number < bad {
                true => play(right, asked),
                false => right.script(),
            }
        });
        let options = quick()
            .first_byte_timeout(case.limit)
            .idle_timeout(case.limit);
        let handle = options.open(&server.url("object")).unwrap();
        let before = HTTP_RETRIES.get();
        let outcome = place.fill(&handle, case.part);
        let retries = HTTP_RETRIES.get() - before;
        let bytes = place.bytes();
        let done = match (outcome, case.comes) {
            (Ok(count), Ok(())) => {
                assert_eq!(count, LEN, "{name}");
                count
            }
            (Err(error), Err((kind, says))) => {
                assert_eq!(error.kind(), kind, "{name}: {error}");
                let text = error.to_string();
                assert!(text.contains(says), "{name}: `{says}` is not in: {text}");
                error.done() as usize
            }
            (outcome, _) => panic!("{name}: {outcome:?}"),
        };
        assert_same(&bytes[..done], &pattern(7, 0, done));
        assert_eq!(retries, case.retries, "{name}: requests made again");
        assert_eq!(server.asked().len(), case.requests, "{name}: requests");
    }
}

#[track_caller]
fn check_all(cases: Vec<Case>) {
    let gpu = need::gpu();
    for case in cases {
        check(&gpu, &case);
    }
}

#[test]
fn what_ends_early_or_comes_slowly_is_completed_in_host_and_device_memory() {
    check_all(truncating());
}

#[test]
fn what_is_not_true_is_told_in_host_and_device_memory() {
    check_all(lying());
}

#[test]
fn redirects_are_followed_or_refused_in_host_and_device_memory() {
    check_all(redirecting());
}

#[test]
fn refusals_are_waited_out_or_told_in_host_and_device_memory() {
    check_all(refusing());
}

#[test]
fn garbage_is_no_answer_in_host_and_device_memory() {
    check_all(babbling());
}

#[test]
fn heads_split_at_every_byte_are_read_into_host_and_device_memory() {
    let gpu = need::gpu();
    let object = pattern(7, 0, LEN);
    let asked_for_all = Asked {
        number: 0,
        connection: 0,
        path: String::new(),
        headers: vec![("range".to_owned(), format!("bytes=0-{}", LEN - 1))],
    };
    let len = Reply::of(&object, &asked_for_all).head().len();
    for mut place in Place::both(&gpu) {
        let object = object.clone();
        let server = Server::start(move |asked| Reply::of(&object, asked).split_head(asked.number));
        let handle = quick().open(&server.url("object")).unwrap();
        let before = HTTP_RETRIES.get();
        for _ in 0..=len {
            assert_eq!(place.fill(&handle, LEN).unwrap(), LEN);
            assert_same(&place.bytes(), &pattern(7, 0, LEN));
        }
        assert_eq!(HTTP_RETRIES.get(), before, "{}", place.name());
        assert_eq!(server.asked().len(), len + 1);
    }
}
