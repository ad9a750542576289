//! How connections are made, kept and counted. Once a read of many ranges opened a connection for each of them at once, and a
//! server with a short queue made them wait for a minute.

use std::collections::HashSet;
use std::net::TcpListener;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use kvik::stats::names::{
    BYTES_BY_HTTP, BYTES_BY_S3, HTTP_CLOSED_CONNECTIONS, HTTP_CONNECTIONS, HTTP_CONNECTIONS_IN_USE,
    HTTP_DNS, HTTP_DNS_LOOKUPS, HTTP_RETRIES, HTTP_TCP, HTTP_TLS,
};
use kvik::{Anonymous, ByteSize, ErrorKind, ReadAtExt, ReadOptions};
use kvik_tests::hostile::{Reply, Script, Server, Step};
use kvik_tests::pattern::{assert_same, pattern};
use kvik_tests::remote::quick;
use kvik_tests::tls::{Authority, Certificate, url};

const LEN: usize = 300_000;

/// KvikIO opens all of them at once.
#[test]
fn a_burst_of_requests_opens_few_connections_and_more_with_each_answer() {
    let object = pattern(1, 0, LEN);
    let (answered, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let all_there = std::sync::Barrier::new(8);
    let server = Server::start(move |asked| {
        // Each answer lets another one take its place, and one more.
        let allowed = 8 + 2 * answered.load(Ordering::SeqCst);
        let come = most.fetch_max(asked.number + 1, Ordering::SeqCst);
        assert!(come.max(asked.number + 1) <= allowed.max(8), "{asked:?}");
        if asked.number < 8 {
            all_there.wait();
        }
        answered.fetch_add(1, Ordering::SeqCst);
        Reply::of(&object, asked).script()
    });
    let handle = quick().len(LEN as u64).open(&server.url("a")).unwrap();
    let mut bytes = vec![0; LEN];
    let burst = ReadOptions::new()
        .num_threads(64)
        .task_size(ByteSize::new(LEN as u64 / 64));
    handle.read_at_with(&mut bytes, 0, &burst).unwrap();
    assert_same(&bytes, &pattern(1, 0, LEN));
    let asked = server.asked();
    assert!(asked.len() >= 64, "{}", asked.len());
    let first: HashSet<_> = asked[..8].iter().map(|asked| asked.connection).collect();
    assert_eq!(first.len(), 8);
}

/// Each of them would keep the room that the next one waits for.
#[test]
fn many_requests_that_are_sent_on_to_the_same_host_do_not_wait_for_each_other() {
    let object = pattern(1, 0, LEN);
    let all_there = std::sync::Barrier::new(8);
    let server = Server::start(move |asked| {
        if asked.number < 8 {
            all_there.wait();
        }
        match asked.path.as_str() {
            "/there" => Reply::of(&object, asked).script(),
            _ => Reply::redirect(307, "/there").script(),
        }
    });
    let handle = quick().len(LEN as u64).open(&server.url("a")).unwrap();
    let mut bytes = vec![0; LEN];
    let burst = ReadOptions::new()
        .num_threads(8)
        .task_size(ByteSize::new(LEN as u64 / 8));
    handle.read_at_with(&mut bytes, 0, &burst).unwrap();
    assert_same(&bytes, &pattern(1, 0, LEN));
}

#[test]
fn a_kept_connection_that_the_server_has_just_closed_is_no_failure() {
    let object = pattern(1, 0, LEN);
    let (seen, closed) = (Mutex::new(HashSet::new()), AtomicUsize::new(0));
    let server = Server::start(move |asked| {
        let is_kept = !seen.lock().unwrap().insert(asked.connection);
        if is_kept && closed.fetch_add(1, Ordering::SeqCst) < 3 {
            return Script(vec![Step::Close]);
        }
        Reply::of(&object, asked).script()
    });
    let handle = quick().max_attempts(1).open(&server.url("a")).unwrap();
    let before = (HTTP_CLOSED_CONNECTIONS.get(), HTTP_RETRIES.get());
    let mut offset = 100_000;
    while HTTP_CLOSED_CONNECTIONS.get() < before.0 + 3 {
        let mut bytes = [0; 1000];
        handle.read_exact_at(&mut bytes, offset).unwrap();
        assert_same(&bytes, &pattern(1, offset, 1000));
        offset += 100;
    }
    assert_eq!(HTTP_RETRIES.get(), before.1);
}

/// Connections belong to whoever drives them, and who reads next is lent the one who did last.
#[test]
fn an_opening_and_the_reads_after_it_go_by_one_connection_on_any_thread() {
    let server = Server::of(pattern(1, 0, LEN));
    let handle = quick().open(&server.url("a")).unwrap();
    let read = |offset| {
        let mut bytes = [0; 1000];
        handle.read_exact_at(&mut bytes, offset).unwrap();
        assert_same(&bytes, &pattern(1, offset, 1000));
    };
    for offset in [100_000, 200_000, 299_000] {
        read(offset);
        std::thread::scope(|scope| scope.spawn(|| read(offset - 500)).join().unwrap());
    }
    handle.submit_read(vec![0; 1000], 150_000).wait().unwrap();
    assert_eq!((server.asked().len(), server.connections()), (8, 1));
}

#[test]
fn a_new_connection_that_ends_without_an_answer_is_one() {
    let server = Server::start(|_| Script(vec![Step::Close]));
    let before = HTTP_CLOSED_CONNECTIONS.get();
    let error = quick().max_attempts(2).open(&server.url("a")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert_eq!((server.asked().len(), server.connections()), (2, 2));
    assert_eq!(HTTP_CLOSED_CONNECTIONS.get(), before);
}

#[test]
fn connections_and_what_they_took_are_counted() {
    let counts = || {
        [
            HTTP_CONNECTIONS.get(),
            HTTP_DNS_LOOKUPS.get(),
            HTTP_DNS.get(),
            HTTP_TCP.get(),
            HTTP_TLS.get(),
        ]
    };
    let server = Server::of(pattern(1, 0, LEN));
    let object = quick().open(&server.url("a")).unwrap();
    object.read_to_end(0).unwrap();
    let [connections, lookups, dns, tcp, tls] = counts();
    assert_eq!(connections, server.connections());
    // No name was asked for, and nothing came by TLS.
    assert_eq!((lookups, dns, tls), (0, 0, 0));
    assert!(tcp > 0);

    let named = format!("http://localhost:{}/a", server.address().port());
    for _ in 0..3 {
        let object = quick().open(&named).unwrap();
        object.read_to_end(0).unwrap();
    }
    let [connections, lookups, dns, _, tls] = counts();
    assert_eq!(connections, server.connections());
    assert_eq!((lookups, tls), (1, 0));
    assert!(dns > 0);

    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let secure = authority.serve(Certificate::Right, |asked| {
        Reply::of(&pattern(1, 0, LEN), asked).script()
    });
    let options = quick().ca_bundle(authority.file(folder.path()));
    options.open(&url(&secure, "a")).unwrap();
    let [all, _, _, _, tls] = counts();
    assert_eq!(all, connections + secure.connections());
    assert!(tls > 0);
}

/// Once a host that had moved was looked for at its old address for some seconds more.
#[test]
fn a_name_whose_addresses_take_no_connection_is_asked_for_anew() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://localhost:{}/a", gone.local_addr().unwrap().port());
    drop(gone);
    for tries in 1..4 {
        let error = quick().max_attempts(1).open(&url).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
        assert_eq!(HTTP_DNS_LOOKUPS.get(), tries);
    }
}

#[test]
fn connections_in_use_are_those_of_requests_under_way() {
    let object = pattern(1, 0, LEN);
    let all_there = std::sync::Barrier::new(4);
    let server = Server::start(move |asked| {
        if all_there.wait().is_leader() {
            assert_eq!(HTTP_CONNECTIONS_IN_USE.get(), 4);
        }
        all_there.wait();
        Reply::of(&object, asked).script()
    });
    let handle = quick().len(LEN as u64).open(&server.url("a")).unwrap();
    let mut bytes = vec![0; LEN];
    let four = ReadOptions::new()
        .num_threads(4)
        .task_size(ByteSize::new(LEN as u64 / 4));
    handle.read_at_with(&mut bytes, 0, &four).unwrap();
    assert_same(&bytes, &pattern(1, 0, LEN));
    assert_eq!(HTTP_CONNECTIONS_IN_USE.get(), 0);
}

#[test]
fn bytes_are_counted_by_the_kind_of_their_object() {
    let server = Server::of(pattern(1, 0, LEN));
    let plain = quick().open(&server.url("a")).unwrap();
    plain.read_to_end(0).unwrap();
    assert_eq!((BYTES_BY_HTTP.get(), BYTES_BY_S3.get()), (LEN as u64, 0));
    let options = quick()
        .endpoint_url(&server.url(""))
        .anonymous(Anonymous::Always);
    let stored = options.open("s3://b/k").unwrap();
    stored.read_to_end(0).unwrap();
    let counted = (BYTES_BY_HTTP.get(), BYTES_BY_S3.get());
    assert_eq!(counted, (LEN as u64, LEN as u64));
}
