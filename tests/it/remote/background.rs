//! Objects that are opened and read in the background: awaited, waited for, given up. Once what was dropped went on asking, and
//! what was cancelled went on writing (awslabs/mountpoint-s3#124).

use std::future::Future;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use kvik::{ByteSize, ErrorKind, Keys, ReadAtExt, ReadOptions};
use kvik_tests::hostile::{Reply, Script, Server, Step};
use kvik_tests::pattern::{assert_same, pattern};
use kvik_tests::remote::quick;
use kvik_tests::s3::Account;

use crate::child;

const LEN: usize = 200_000;

/// The smallest executor: it polls when it is woken.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut work = pin!(work);
    loop {
        match work.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => thread::park(),
        }
    }
}

async fn open_and_read(url: &str) -> Vec<u8> {
    let mut opening = quick().submit_open(url);
    let object = (&mut opening).await.unwrap();
    // The outcome can be asked for again.
    assert_eq!(opening.await.unwrap().url(), object.url());
    let len = object.len() as usize;
    let mut pending = object.submit_read(vec![0; len], 0);
    assert_eq!((&mut pending).await.unwrap(), len);
    pending.into_buf()
}

#[test]
fn an_object_is_opened_and_read_within_any_executor() {
    let server = Server::of(pattern(1, 0, LEN));
    let url = server.url("a");
    let alone = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let many = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    for bytes in [
        block_on(open_and_read(&url)),
        alone.block_on(open_and_read(&url)),
        many.block_on(async move {
            let url = url.clone();
            let spawned = tokio::spawn(async move { open_and_read(&url).await });
            spawned.await.unwrap()
        }),
    ] {
        assert_same(&bytes, &pattern(1, 0, LEN));
    }
}

/// A thread that serves a runtime may not wait for another one; what it asks for others do.
#[test]
fn calls_that_wait_work_on_threads_of_a_runtime_as_well() {
    let server = Server::of(pattern(1, 0, LEN));
    let url = server.url("a");
    let call = move || {
        let object = quick().open(&url).unwrap();
        assert_same(&object.read_to_end(0).unwrap(), &pattern(1, 0, LEN));
        let pending = object.submit_read(vec![0; 1000], 150_000);
        pending.wait().unwrap();
        assert_same(&pending.into_buf(), &pattern(1, 150_000, 1000));
    };
    let alone = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    alone.block_on(async { call() });
    let many = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    many.block_on(async {
        tokio::spawn({
            let call = call.clone();
            async move { call() }
        })
        .await
        .unwrap();
        tokio::task::spawn_blocking(call).await.unwrap();
    });
}

#[test]
fn an_object_is_opened_in_the_background_as_it_is_opened_by_waiting() {
    let account = Account::new("AKIAMINE", "secret");
    let server = Server::start(move |asked| match asked.header("authorization") {
        Some(_) => match account.check(asked) {
            Ok(()) => Reply::of(&pattern(1, 0, LEN), asked).script(),
            Err(refusal) => refusal.script(),
        },
        None if asked.path.starts_with("/refused") => Reply::status(403).script(),
        None => Reply::of(&pattern(1, 0, LEN), asked).script(),
    });
    let opening = quick().submit_open(&server.url("a"));
    let object = opening.wait().unwrap();
    assert!(opening.is_done());
    assert_eq!(object.len(), LEN as u64);
    let again = opening.wait_timeout(Duration::ZERO).unwrap().unwrap();
    assert_same(&again.read_to_end(0).unwrap(), &pattern(1, 0, LEN));
    // An outcome that is there stays.
    opening.cancel();
    opening.wait().unwrap();

    let known = quick().len(7).submit_open(&server.url("a")).wait().unwrap();
    assert_eq!((known.len(), known.validator()), (7, None));
    let options = quick()
        .endpoint_url(&server.url(""))
        .region("eu-west-1")
        .keys(Keys::new("AKIAMINE", "secret"));
    let object = options.submit_open_bucket_key("b", "k").wait().unwrap();
    assert_eq!((object.kind(), object.len()), (kvik::Kind::S3, LEN as u64));

    for (url, options) in [
        (server.url("refused"), quick()),
        ("nothing://a".to_owned(), quick()),
        (server.url("a"), quick().header("two words", "x")),
    ] {
        let expected = options.open(&url).unwrap_err();
        let error = options.submit_open(&url).wait().unwrap_err();
        assert_eq!(error.kind(), expected.kind());
        assert_eq!(error.to_string(), expected.to_string());
    }
}

/// A server that takes one request, sends `first`, tells so, and goes on when it is told to. It tells whether its client is
/// still there then.
struct Halting {
    url: String,
    sent: Receiver<()>,
    go_on: Sender<()>,
    serving: JoinHandle<bool>,
}

impl Halting {
    fn start(first: Vec<u8>, rest: Vec<u8>) -> Halting {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/a", listener.local_addr().unwrap());
        let (tell, sent) = mpsc::channel();
        let (go_on, told) = mpsc::channel();
        let serving = thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            read_head(&mut socket);
            socket.write_all(&first).unwrap();
            tell.send(()).unwrap();
            told.recv().unwrap();
            // It may be gone in the midst of it.
            let _ = socket.write_all(&rest);
            matches!(socket.read(&mut [0]), Ok(1))
        });
        Halting {
            url,
            sent,
            go_on,
            serving,
        }
    }

    fn go_on(self) -> bool {
        self.go_on.send(()).unwrap();
        self.serving.join().unwrap()
    }
}

fn read_head(socket: &mut TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
}

#[test]
fn an_opening_that_is_cancelled_or_dropped_asks_no_more() {
    for dropped in [false, true] {
        let server = Halting::start(Vec::new(), b"HTTP/1.1 503 Busy\r\n\r\n".to_vec());
        let opening = quick().max_attempts(100).submit_open(&server.url);
        server.sent.recv().unwrap();
        assert!(!opening.is_done());
        assert!(opening.wait_timeout(Duration::from_millis(1)).is_none());
        match dropped {
            true => drop(opening),
            false => {
                opening.cancel();
                let error = opening.wait().unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
                assert_eq!(block_on(opening).unwrap_err().kind(), ErrorKind::Cancelled);
            }
        }
        assert!(!server.go_on(), "the connection has ended");
    }
}

#[test]
fn an_opening_in_the_background_ends_with_its_time() {
    let server = Server::start(|_| Script(vec![Step::Silence]));
    let options = quick().timeout(Duration::from_millis(100));
    for error in [
        options.submit_open(&server.url("a")).wait().unwrap_err(),
        block_on(options.submit_open(&server.url("a"))).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        let says = format!("open {}: not open within 0.1 s", server.url("a"));
        assert_eq!(error.to_string(), says);
    }
}

/// What a server sends to a read that has ended lands nowhere, whatever ended it.
#[test]
fn nobody_writes_to_the_buffer_of_a_read_that_was_ended_in_the_midst_of_a_body() {
    let object = pattern(1, 0, LEN);
    for by_deadline in [false, true] {
        let head = format!(
            "HTTP/1.1 206 Partial\r\ncontent-range: bytes 0-{}/{LEN}\r\ncontent-length: {LEN}\r\n\r\n",
            LEN - 1
        );
        let first = [head.as_bytes(), &object[..50_000]].concat();
        let server = Halting::start(first, object[50_000..].to_vec());
        let handle = quick().len(LEN as u64).open(&server.url).unwrap();
        let mut whole = ReadOptions::new().task_size(ByteSize::new(LEN as u64));
        if by_deadline {
            whole = whole.timeout(Duration::from_millis(300));
        }
        let pending = handle.submit_read_with(vec![0xEE; LEN], 0, &whole);
        server.sent.recv().unwrap();
        let expected = match by_deadline {
            true => ErrorKind::TimedOut,
            false => {
                pending.cancel();
                ErrorKind::Cancelled
            }
        };
        let (outcome, mut buffer) = pending.finish();
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), expected, "{error}");
        assert!(error.done() <= 50_000, "{error}");
        let done = error.done() as usize;
        assert_same(&buffer[..done], &object[..done]);
        buffer.fill(0x55);
        assert!(!server.go_on(), "the connection has ended");
        assert!(buffer.iter().all(|byte| *byte == 0x55));
    }
}

#[test]
fn an_opening_of_the_parent_is_none_of_its_child() {
    let server = Server::start(|_| Script(vec![Step::Silence]));
    child("remote-opening-forked")
        .arg(server.url("a"))
        .succeeds();
}
