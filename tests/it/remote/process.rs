//! Remote handles in a process: forks, statistics, and what is never shown.

use kvik::stats::SummaryMonitor;
use kvik::{ErrorKind, RemoteHandle};
use kvik_tests::hostile::{Reply, Server};
use kvik_tests::pattern::pattern;
use kvik_tests::remote::quick;

use crate::child;

#[test]
fn a_forked_child_reads_by_connections_of_its_own() {
    let server = Server::of(pattern(1, 0, 100_000));
    child("remote-forked").arg(server.url("a")).succeeds();
}

#[test]
fn a_read_is_one_operation_with_the_bytes_that_it_moved() {
    let server = Server::of(pattern(1, 0, 100_000));
    let object = RemoteHandle::open(&server.url("a")).unwrap();
    let monitor = SummaryMonitor::start();
    object.read_exact_at(&mut vec![0; 90_000], 10_000).unwrap();
    object.read_at(&mut vec![0; 90_000], 20_000).unwrap();
    let totals = monitor.get();
    assert_eq!((totals.reads, totals.bytes_read), (2, 170_000));
}

/// Neither in errors, nor in what the handles and options print for a programmer.
#[test]
fn no_secret_is_shown() {
    let secrets = ["hunter2", "the-token", "the-key", "the-signature"];
    let server = Server::start(|asked| match asked.path.as_str() {
        path if path.starts_with("/there") => Reply::of(b"bytes", asked).script(),
        path if path.starts_with("/moved") => {
            Reply::redirect(302, "/there?x-sig=the-signature").script()
        }
        _ => Reply::with(
            403,
            b"<Error><Code>No</Code><Message>not the-signature</Message></Error>",
        )
        .header("content-type", "application/xml")
        .script(),
    });
    let url = |path: &str| {
        let url = server.url(&format!("{path}?x-sig=the-signature"));
        url.replace("http://", "http://me:hunter2@")
    };
    let options = quick().header("x-key", "the-key").bearer("the-token");
    let refused = options.open(&url("refused")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
    let object = options.open(&url("moved")).unwrap();
    let pending = object.submit_read(vec![0; 5], 0);
    let gone = RemoteHandle::open("http://me:hunter2@127.0.0.1:1/a?x-sig=the-signature");
    let gone = gone.unwrap_err();
    let texts = [
        format!("{options:?}"),
        format!("{object:?} {} {pending:?}", object.url()),
        format!(
            "{refused} {refused:?} {:?}",
            std::error::Error::source(&refused)
        ),
        format!("{gone} {gone:?} {:?}", std::error::Error::source(&gone)),
    ];
    for text in texts {
        for secret in secrets {
            assert!(!text.contains(secret), "{secret} is in: {text}");
        }
    }
    // They were sent, all the same.
    let asked = &server.asked()[0];
    assert_eq!(asked.header("authorization"), Some("Bearer the-token"));
    assert_eq!(asked.path, "/refused?x-sig=the-signature");
}
