//! H7: servers that are silent. Once a call lasted for ever, or until a limit that also ended slow transfers that went on.

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use kvik::stats::names::HTTP_REQUESTS;
use kvik::{ByteSize, ErrorKind, ReadOptions};
use kvik_tests::hostile::{Reply, Script, Server, Step};
use kvik_tests::pattern::{assert_same, pattern};
use kvik_tests::remote::quick;

const LEN: usize = 300_000;

fn silent() -> Server {
    Server::start(|_| Script(vec![Step::Silence]))
}

#[test]
fn a_server_that_never_answers_is_given_up_after_its_time() {
    let server = silent();
    let options = quick()
        .first_byte_timeout(Duration::from_millis(100))
        .max_attempts(2);
    let error = options.open(&server.url("a")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let says = "the server was silent for 0.1 s, and so 2 times";
    assert!(error.to_string().ends_with(says), "{error}");
    assert_eq!(server.asked().len(), 2);
}

/// A listener that accepts nobody, with those who wait for it: its queue is full after some connections.
fn full_listener() -> (TcpListener, Vec<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let connect = || TcpStream::connect_timeout(&address, Duration::from_millis(50));
    let waiting = std::iter::repeat_with(connect)
        .map_while(Result::ok)
        .collect();
    (listener, waiting)
}

#[test]
fn a_connection_that_nobody_accepts_is_given_up_after_its_time() {
    let (listener, waiting) = full_listener();
    let address = listener.local_addr().unwrap();
    let options = quick()
        .connect_timeout(Duration::from_millis(100))
        .max_attempts(1);
    let error = options.open(&format!("http://{address}/a")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    assert!(
        error.to_string().ends_with("no connection within 0.1 s"),
        "{error}"
    );
    drop(waiting);
}

/// Once each of them waited until those before it had waited for a connection, one after another in the end.
#[test]
fn many_who_open_objects_of_a_dead_host_hear_of_it_together() {
    let (listener, waiting) = full_listener();
    let url = format!("http://{}/a", listener.local_addr().unwrap());
    let options = quick()
        .connect_timeout(Duration::from_secs(1))
        .max_attempts(1);
    let before = HTTP_REQUESTS.get();
    let opening: Vec<_> = (0..200).map(|_| options.submit_open(&url)).collect();
    for pending in opening {
        let error = pending.wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        assert!(
            error.to_string().contains("no connection within 1 s"),
            "{error}"
        );
    }
    // Those who come late may find the next round under way; nobody comes that late in every round.
    let requests = HTTP_REQUESTS.get() - before;
    assert!((8..200).contains(&requests), "{requests} requests");
    drop(waiting);
}

#[test]
fn a_slow_transfer_that_goes_on_is_not_ended() {
    let object = pattern(1, 0, LEN);
    let server = Server::start(move |asked| {
        Reply::of(&object, asked).drip(10_000, Duration::from_millis(20))
    });
    let handle = quick()
        .len(LEN as u64)
        .idle_timeout(Duration::from_millis(300))
        .open(&server.url("a"))
        .unwrap();
    let mut bytes = vec![0; LEN];
    let all = ReadOptions::new().task_size(ByteSize::new(LEN as u64));
    handle.read_at_with(&mut bytes, 0, &all).unwrap();
    assert_same(&bytes, &pattern(1, 0, LEN));
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn a_deadline_ends_a_read_wherever_it_stands() {
    let object = pattern(1, 0, LEN);
    let server = Server::start(move |asked| Reply::of(&object, asked).stall(1000));
    let handle = quick().len(LEN as u64).open(&server.url("a")).unwrap();
    let begun = Instant::now();
    let mut bytes = vec![0; LEN];
    let all = ReadOptions::new()
        .task_size(ByteSize::new(LEN as u64))
        .timeout(Duration::from_millis(200));
    let error = handle.read_at_with(&mut bytes, 0, &all).unwrap_err();
    assert_eq!((error.kind(), error.done()), (ErrorKind::TimedOut, 1000));
    assert_same(&bytes[..1000], &pattern(1, 0, 1000));
    // The same for all calls of a handle, opening it included.
    let server = silent();
    let limited = quick().timeout(Duration::from_millis(200));
    let error = limited.open(&server.url("a")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    let handle = limited.len(10).open(&server.url("a")).unwrap();
    let error = handle.read_at(&mut [0; 10], 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn cancelling_and_dropping_take_no_time() {
    let server = silent();
    let handle = quick().len(100_000_000).open(&server.url("a")).unwrap();
    for _ in 0..3 {
        let pending = handle.submit_read(vec![0; 100_000_000], 0);
        while server.asked().is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let begun = Instant::now();
        pending.cancel();
        let error = pending.wait().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
        assert!(
            begun.elapsed() < Duration::from_millis(100),
            "{:?}",
            begun.elapsed()
        );
        let pending = handle.submit_read(vec![0; 10_000_000], 0);
        let begun = Instant::now();
        drop(pending);
        assert!(
            begun.elapsed() < Duration::from_millis(100),
            "{:?}",
            begun.elapsed()
        );
    }
}

/// One piece that fails is the end of the read: others, which wait for bytes, do not keep it waiting.
#[test]
fn the_first_error_ends_pieces_that_are_under_way() {
    let server = Server::start(|asked| match asked.range().unwrap().start {
        0 => Script(vec![Step::Silence]),
        _ => Script(vec![
            Step::Wait(Duration::from_millis(50)),
            Step::Send(Reply::status(403).head()),
        ]),
    });
    let handle = quick().len(LEN as u64).open(&server.url("a")).unwrap();
    let begun = Instant::now();
    let two = ReadOptions::new().task_size(ByteSize::new(200_000));
    let error = handle.read_at_with(&mut vec![0; LEN], 0, &two).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    assert!(begun.elapsed() < Duration::from_secs(5));
}
