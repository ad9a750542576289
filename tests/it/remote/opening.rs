//! What is found out when an object is opened. Once a server without ranges was asked for all of its object by each piece of
//! a read, and the bytes were those from its start.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kvik::stats::names::{REMOTE_SIZE_PROBES, REMOTE_SIZE_PROBING};
use kvik::{ByteSize, Config, ErrorKind, Layer, ReadAtExt, RemoteHandle};
use kvik_tests::hostile::{Reply, Server};
use kvik_tests::pattern::{assert_same, pattern};
use kvik_tests::remote::quick;

#[test]
fn one_request_tells_the_size_and_its_bytes_are_kept() {
    let object = pattern(1, 0, 200_000);
    let server = Server::of(object.clone());
    let before = REMOTE_SIZE_PROBES.get();
    let handle = RemoteHandle::open(&server.url("a")).unwrap();
    assert_eq!(
        (handle.len(), REMOTE_SIZE_PROBES.get() - before),
        (200_000, 1)
    );
    assert!(REMOTE_SIZE_PROBING.get() > 0);
    let validator = handle.validator().unwrap();
    assert_eq!(validator.etag(), Some("\"version one\""));
    let mut bytes = vec![0; 65_536];
    handle.read_exact_at(&mut bytes, 0).unwrap();
    assert_same(&bytes, &object[..65_536]);
    assert_eq!(server.asked().len(), 1);
    // What is kept is not asked for again.
    handle.read_exact_at(&mut bytes, 65_000).unwrap();
    assert_same(&bytes, &object[65_000..][..65_536]);
    assert_eq!(server.asked()[1].range(), Some(65_536..130_536));
}

#[test]
fn a_size_that_the_caller_knows_is_not_asked_for() {
    let server = Server::of(pattern(1, 0, 1000));
    let handle = quick().len(1000).open(&server.url("a")).unwrap();
    assert_eq!((handle.len(), server.asked().len()), (1000, 0));
    assert_eq!(handle.validator(), None);
    assert_same(&handle.read_to_end(0).unwrap(), &pattern(1, 0, 1000));
    // One that is wrong is found out.
    let handle = quick().len(999).open(&server.url("a")).unwrap();
    let error = handle.read_at(&mut [0; 10], 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed, "{error}");
}

#[test]
fn empty_objects_and_those_of_one_byte_are_read() {
    let answers: [fn(&kvik_tests::hostile::Asked) -> Reply; 5] = [
        |asked| Reply::of(b"", asked),
        |_| Reply::whole(b""),
        // Some servers do not say how much there is.
        |asked| match asked.range() {
            Some(_) => Reply::status(416),
            None => Reply::whole(b""),
        },
        |_| Reply::whole(b"").chunked(),
        |asked| Reply::of(b"x", asked),
    ];
    for (number, answer) in answers.into_iter().enumerate() {
        let expected: &[u8] = if number == 4 { b"x" } else { b"" };
        let server = Server::start(move |asked| answer(asked).script());
        let handle = quick().open(&server.url("a")).unwrap();
        assert_eq!(handle.len(), expected.len() as u64, "answer {number}");
        assert_eq!(handle.read_to_end(0).unwrap(), expected, "answer {number}");
    }
}

/// Once the second question waited for the end of the first one's answer, which nobody was reading.
#[test]
fn a_question_that_makes_another_one_necessary_needs_no_room_for_two() {
    let one = Layer::new().remote_io_max_concurrent_requests(1);
    let server = Server::start(|asked| match asked.range() {
        Some(_) => Reply::status(416).script(),
        None => Reply::whole(b"bytes").script(),
    });
    let options = quick()
        .config(&Config::resolve([one]).unwrap())
        .timeout(Duration::from_secs(20));
    let handle = options.open(&server.url("a")).unwrap();
    assert_eq!(handle.read_to_end(0).unwrap(), b"bytes");
    assert_eq!(server.asked().len(), 2);
}

/// Once the threads had more of them between them than that.
#[test]
fn no_more_requests_are_under_way_than_the_caller_wants() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (counted, highest) = (Arc::clone(&now), Arc::clone(&most));
    let object = pattern(1, 0, 1_000_000);
    let server = Server::start(move |asked| {
        let under_way = counted.fetch_add(1, Ordering::SeqCst) + 1;
        highest.fetch_max(under_way, Ordering::SeqCst);
        // Whoever is not held back is here by then.
        std::thread::sleep(Duration::from_millis(5));
        counted.fetch_sub(1, Ordering::SeqCst);
        Reply::of(&object, asked).script()
    });
    let threads = Layer::new().num_threads(4);
    let handle = quick()
        .config(&Config::resolve([threads]).unwrap())
        .len(1_000_000)
        .concurrency(5)
        .part_size(ByteSize::kib(20))
        .open(&server.url("a"))
        .unwrap();
    assert_same(&handle.read_to_end(0).unwrap(), &pattern(1, 0, 1_000_000));
    let most = most.load(Ordering::SeqCst);
    assert!((1..=5).contains(&most), "{most} at a time");
}

/// H1: all of it, whatever is asked for.
#[test]
fn a_server_without_ranges_sends_its_object_once() {
    let object = pattern(1, 0, 32 << 20);
    let len = object.len() as u64;
    let server = Server::start(move |_| Reply::whole(&object).script());
    let handle = RemoteHandle::open(&server.url("a")).unwrap();
    let mut bytes = [0; 50];
    handle.read_exact_at(&mut bytes, 100).unwrap();
    assert_same(&bytes, &pattern(1, 100, 50));
    assert_same(&handle.read_to_end(0).unwrap(), &pattern(1, 0, 32 << 20));
    assert_eq!(server.asked().len(), 1);
    assert!(
        server.sent() < len + 1000,
        "{} of {len} bytes",
        server.sent()
    );
}

/// H1: where that is too much, it is said, and not fetched.
#[test]
fn a_long_object_of_a_server_without_ranges_is_refused() {
    let object = pattern(1, 0, 3 << 20);
    for chunked in [false, true] {
        let object = object.clone();
        let server = Server::start(move |_| match Reply::whole(&object) {
            whole if chunked => whole.chunked().script(),
            whole => whole.script(),
        });
        let options = quick().whole_limit(ByteSize::mib(1));
        let error = options.open(&server.url("a")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RangeUnsupported, "{error}");
        assert_eq!(server.asked().len(), 1);
        // With the size known, nothing of another place is taken for what was asked for.
        let handle = quick().len(3 << 20).open(&server.url("a")).unwrap();
        let error = handle.read_at(&mut [0; 50], 100).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RangeUnsupported, "{error}");
        assert_eq!(server.asked().len(), 2);
    }
}

#[test]
fn a_whole_object_without_a_length_is_read_to_its_end() {
    let object = pattern(1, 0, 100_000);
    let server = Server::start(move |_| Reply::whole(&object).chunked().script());
    let handle = quick().open(&server.url("a")).unwrap();
    assert_same(&handle.read_to_end(0).unwrap(), &pattern(1, 0, 100_000));
    assert_eq!((handle.len(), server.asked().len()), (100_000, 1));
}

#[test]
fn a_server_that_compresses_is_refused_and_was_told_not_to() {
    let server = Server::start(|asked| {
        assert_eq!(asked.header("accept-encoding"), Some("identity"));
        Reply::of(b"bytes", asked)
            .header("content-encoding", "gzip")
            .script()
    });
    let error = quick().open(&server.url("a")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RangeUnsupported, "{error}");
}

#[test]
fn opening_is_tried_again_like_reading() {
    let server = Server::start(|asked| match asked.number {
        0 => Reply::status(503).script(),
        1 => Reply::of(b"bytes", asked).cut(2),
        _ => Reply::of(b"bytes", asked).script(),
    });
    let handle = quick().open(&server.url("a")).unwrap();
    assert_eq!(handle.read_to_end(0).unwrap(), b"bytes");
    assert_eq!(server.asked().len(), 3);
    let gone = server.url("a");
    drop((handle, server));
    let error = quick().open(&gone).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    let says = "no connection: Connection refused (os error 111), and so 3 times";
    assert!(error.to_string().ends_with(says), "{error}");
}
