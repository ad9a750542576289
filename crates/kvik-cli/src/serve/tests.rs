//! A server from outside, byte by byte.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};

use tempfile::TempDir;

use super::*;

/// A folder with `a`, ten bytes, and `big`, so large that no buffer of a socket takes it.
fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    fs::write(path.join("a"), "0123456789").unwrap();
    fs::write(path.join("big"), big()).unwrap();
    (folder, path)
}

fn big() -> Vec<u8> {
    // No part that a test asks for begins a whole number of these after another.
    let piece: Vec<u8> = (0..65_537_u32)
        .map(|index| (index / 251 + index) as u8)
        .collect();
    piece.repeat(245)
}

/// A server, and what it tells.
fn serve(place: &Path, limits: Limits) -> (Server, Receiver<String>) {
    let (tell, told) = channel();
    let tell = Mutex::new(tell);
    let tell = move |line: &str| {
        // The test may be over.
        let _ = tell.lock().unwrap().send(line.to_owned());
    };
    let address = (Ipv4Addr::LOCALHOST, 0).into();
    let server = Server::bind_within(place, address, Some(Box::new(tell)), limits).unwrap();
    (server, told)
}

/// Says this and returns what is answered until the server ends the connection.
fn say(server: &Server, words: &str) -> String {
    let mut socket = TcpStream::connect(server.address).unwrap();
    socket.write_all(words.as_bytes()).unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

/// The same for one request with these headers; the head and the body of the answer.
fn ask(server: &Server, line: &str, fields: &str) -> (String, String) {
    let answer = say(
        server,
        &format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{fields}\r\n"),
    );
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// The value of a header.
#[track_caller]
fn value<'a>(head: &'a str, name: &str) -> &'a str {
    let mut lines = head.lines();
    let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.unwrap_or_else(|| panic!("no {name}: {head}"))
}

#[test]
fn a_file_is_sent_whole_or_in_the_part_asked_for() {
    let (_kept, place) = folder();
    let (server, _) = serve(&place, Limits::default());
    let (head, body) = ask(&server, "GET /a", "");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert_eq!(body, "0123456789");
    assert_eq!(value(&head, "Content-Length"), "10");
    assert_eq!(value(&head, "Accept-Ranges"), "bytes");
    assert_eq!(value(&head, "Content-Type"), "application/octet-stream");
    assert!(httpdate::parse_http_date(value(&head, "Last-Modified")).is_ok());

    let (head, body) = ask(&server, "GET /a", "Range: bytes=2-4\r\n");
    assert!(
        head.starts_with("HTTP/1.1 206 Partial Content\r\n"),
        "{head}"
    );
    assert_eq!(
        (value(&head, "Content-Range"), &*body),
        ("bytes 2-4/10", "234")
    );
    let (head, body) = ask(&server, "GET /a", "Range: bytes=-3\r\n");
    assert_eq!(
        (value(&head, "Content-Range"), &*body),
        ("bytes 7-9/10", "789")
    );

    let (head, _) = ask(&server, "GET /a", "Range: bytes=10-\r\n");
    assert!(head.starts_with("HTTP/1.1 416 "), "{head}");
    assert_eq!(value(&head, "Content-Range"), "bytes */10");

    for fields in [
        "Range: bytes=0-1,4-5\r\n",
        "Range: bytes=0-1\r\nRange: bytes=4-5\r\n",
        "Range: bytes=0-1\r\nIf-Range: \"another\"\r\n",
    ] {
        let (head, body) = ask(&server, "GET /a", fields);
        assert!(head.starts_with("HTTP/1.1 200 "), "{fields}: {head}");
        assert_eq!(body, "0123456789", "{fields}");
    }
}

#[test]
fn the_head_alone_has_the_length_of_the_whole() {
    let (_kept, place) = folder();
    let (server, _) = serve(&place, Limits::default());
    let (head, body) = ask(&server, "HEAD /a", "Range: bytes=2-4\r\n");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    assert_eq!((value(&head, "Content-Length"), &*body), ("10", ""));
    let (head, body) = ask(&server, "HEAD /gone", "");
    assert!(
        head.starts_with("HTTP/1.1 404 ") && body.is_empty(),
        "{head}"
    );
}

#[test]
fn the_tag_of_a_file_changes_with_it_and_conditions_are_kept() {
    let (_kept, place) = folder();
    let (server, _) = serve(&place, Limits::default());
    let (head, _) = ask(&server, "GET /a", "");
    let tag = value(&head, "ETag").to_owned();
    assert!(tag.starts_with('"') && tag.ends_with('"'), "{tag}");
    let status = |fields: &str| {
        let (head, body) = ask(&server, "GET /a", fields);
        (head[9..12].to_owned(), body)
    };
    let part = |tag: &str| format!("Range: bytes=0-0\r\nIf-Range: {tag}\r\n");
    assert_eq!(status(&format!("If-Match: {tag}\r\n")).0, "200");
    assert_eq!(status(&part(&tag)), ("206".to_owned(), "0".to_owned()));
    assert_eq!(
        status(&format!("If-None-Match: {tag}\r\n")),
        ("304".to_owned(), String::new())
    );
    // Another file of the same length, whose time of change is set back.
    let time = fs::metadata(place.join("a")).unwrap().modified().unwrap();
    fs::write(place.join("b"), "9876543210").unwrap();
    let file = fs::File::options()
        .write(true)
        .open(place.join("b"))
        .unwrap();
    file.set_modified(time).unwrap();
    fs::rename(place.join("b"), place.join("a")).unwrap();
    assert_eq!(status(&format!("If-Match: {tag}\r\n")).0, "412");
    assert_eq!(
        status(&part(&tag)),
        ("200".to_owned(), "9876543210".to_owned())
    );
    assert_eq!(status(&format!("If-None-Match: {tag}\r\n")).0, "200");
}

#[test]
fn requests_sent_at_once_are_answered_in_order_on_one_connection() {
    let (_kept, place) = folder();
    let (server, told) = serve(&place, Limits::default());
    let one =
        |range: &str| format!("GET /a HTTP/1.1\r\nHost: [::1]\r\nRange: bytes={range}\r\n\r\n");
    let last = "GET /a HTTP/1.0\r\n\r\n";
    let answer = say(&server, &[&one("0-0"), "\r\n", &one("5-6"), last].concat());
    let bodies: Vec<&str> = answer
        .split("HTTP/1.1 ")
        .skip(1)
        .map(|answer| answer.split_once("\r\n\r\n").unwrap().1)
        .collect();
    assert_eq!(bodies, ["0", "56", "0123456789"]);
    let lines: Vec<String> = told.iter().take(3).collect();
    let peer = lines[0].split(' ').next().unwrap();
    assert_eq!(lines[0], format!("{peer} GET /a [bytes=0-0] 206 1"));
    assert_eq!(lines[2], format!("{peer} GET /a [] 200 10"));
    let sent = server.stop();
    assert_eq!((sent.requests, sent.bytes), (3, 13));
}

#[test]
fn a_folder_is_listed_and_what_is_listed_is_found() {
    let (_kept, place) = folder();
    fs::create_dir(place.join("<s u b>")).unwrap();
    fs::write(place.join("<s u b>/%41"), "escaped").unwrap();
    let (server, _) = serve(&place, Limits::default());
    let (head, page) = ask(&server, "GET /", "");
    assert_eq!(value(&head, "Content-Type"), "text/html; charset=utf-8");
    assert_eq!(value(&head, "Content-Length"), page.len().to_string());
    let links = |page: &str| -> Vec<String> {
        let parts = page.split("href=\"").skip(1);
        parts
            .map(|part| part.split('"').next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(links(&page), ["/%3Cs%20u%20b%3E/", "/a", "/big"]);
    let (_, page) = ask(&server, &format!("GET {}", links(&page)[0]), "");
    assert_eq!(links(&page), ["/", "/%3Cs%20u%20b%3E/%2541"]);
    let (_, text) = ask(&server, &format!("GET {}", links(&page)[1]), "");
    assert_eq!(text, "escaped");
}

#[test]
fn odd_requests_are_refused_and_the_connection_ends() {
    let (_kept, place) = folder();
    let (server, _) = serve(&place, Limits::default());
    for (words, status) in [
        ("nonsense\r\n\r\n", "400"),
        ("GET /../a HTTP/1.1\r\nHost: ::\r\n\r\n", "400"),
        ("GET /%2e%2e/a HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        (
            "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
            "405",
        ),
        (
            "GET /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
            "400",
        ),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"),
        ("GET /a HTTP/1.1\r\n\r\n", "400"),
    ] {
        let follower = "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let answer = say(&server, &[words, follower].concat());
        let begin = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&begin), "{words:?}: {answer}");
        assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
        assert_eq!(
            answer.matches("\r\nServer: ").count(),
            1,
            "{words:?}: {answer}"
        );
    }
    let (head, _) = ask(&server, "PUT /a", "");
    assert_eq!(value(&head, "Allow"), "GET, HEAD");
}

#[test]
fn a_name_of_somebody_elses_is_not_answered_on_the_loopback() {
    let (_kept, place) = folder();
    let (server, _) = serve(&place, Limits::default());
    let words = "GET /a HTTP/1.0\r\nHost: rebound.example\r\n\r\n";
    let answer = say(&server, words);
    assert!(answer.starts_with("HTTP/1.1 421 "), "{answer}");
    assert!(!answer.contains("0123456789"), "{answer}");
}

#[test]
fn heads_that_are_too_long_or_have_too_many_lines_are_refused() {
    let (_kept, place) = folder();
    let limits = Limits::default();
    let (server, _) = serve(&place, limits);
    let long = "x".repeat(limits.head_bytes);
    let many = "A: b\r\n".repeat(limits.headers + 1);
    for words in [
        format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"),
        format!("GET /{long}{long}{long}"),
        format!("GET /a HTTP/1.1\r\nHost: a\r\nA: {long}"),
        format!("GET /a HTTP/1.1\r\n{many}\r\n"),
    ] {
        let answer = say(&server, &words);
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }
    let fits = "A: b\r\n".repeat(limits.headers - 2);
    assert_eq!(ask(&server, "GET /a", &fits).1, "0123456789");
}

#[test]
fn a_client_that_is_too_slow_loses_its_connection() {
    let (_kept, place) = folder();
    let short = Duration::from_millis(50);
    let limits = Limits {
        idle: short,
        ..Limits::default()
    };
    assert_eq!(say(&serve(&place, limits).0, ""), "");
    let limits = Limits {
        head_time: short,
        stalled: short,
        ..Limits::default()
    };
    let (server, told) = serve(&place, limits);
    let late = say(&server, "GET /a HT");
    assert!(late.starts_with("HTTP/1.1 408 "), "{late}");
    assert!(told.recv().unwrap().contains("took too long: 408"));
    // One that takes nothing of its answer.
    let mut socket = TcpStream::connect(server.address).unwrap();
    socket.write_all(b"GET /big HTTP/1.0\r\n\r\n").unwrap();
    let line = told.recv().unwrap();
    assert!(
        line.contains("GET /big [] 200 ") && line.contains("cut off"),
        "{line}"
    );
    let mut answer = Vec::new();
    // Nothing more comes; a reset would be as good.
    let _ = socket.read_to_end(&mut answer);
    assert!(answer.len() < big().len());
}

#[test]
fn a_file_that_is_cut_while_it_is_sent_ends_short_and_is_not_padded() {
    let (_kept, place) = folder();
    let (server, told) = serve(&place, Limits::default());
    let mut socket = TcpStream::connect(server.address).unwrap();
    socket.write_all(b"GET /big HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = vec![0; 100_000];
    socket.read_exact(&mut answer).unwrap();
    // The server cannot be done: it waits for us to take more.
    let file = fs::File::options()
        .write(true)
        .open(place.join("big"))
        .unwrap();
    file.set_len(200_000).unwrap();
    socket.read_to_end(&mut answer).unwrap();
    let body = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap()
        + 4;
    let body = &answer[body..];
    let whole = big();
    assert!(body.len() < whole.len(), "{}", body.len());
    assert!(*body == whole[..body.len()]);
    assert!(told.recv().unwrap().contains("cut off"));
}

#[test]
fn many_clients_at_once_get_their_own_bytes() {
    let (_kept, place) = folder();
    let (server, _) = serve(&place, Limits::default());
    let mut sockets: Vec<TcpStream> = (0..40)
        .map(|_| TcpStream::connect(server.address).unwrap())
        .collect();
    let range = |index: usize| index * 300_000..index * 300_000 + 299_000 + index;
    for (index, mut socket) in sockets.iter().enumerate() {
        let range = range(index);
        let (first, last) = (range.start, range.end - 1);
        write!(
            socket,
            "GET /big HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nRange: bytes={first}-{last}\r\n\r\n"
        )
        .unwrap();
    }
    let whole = big();
    for (index, socket) in sockets.iter_mut().enumerate() {
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).unwrap();
        assert!(answer.ends_with(&whole[range(index)]), "{index}");
        assert!(answer.len() < range(index).len() + 1000, "{index}");
    }
}

#[test]
fn whoever_comes_when_all_places_are_taken_is_served_when_one_is_free() {
    let (_kept, place) = folder();
    let limits = Limits {
        connections: 2,
        ..Limits::default()
    };
    let (server, told) = serve(&place, limits);
    let request = b"GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut sockets: Vec<TcpStream> = (0..3)
        .map(|_| TcpStream::connect(server.address).unwrap())
        .collect();
    for socket in &mut sockets {
        socket.write_all(request).unwrap();
    }
    let first: Vec<String> = told.iter().take(2).collect();
    assert!(first.iter().all(|line| line.ends_with("GET /a [] 200 10")));
    assert!(told.try_recv().is_err(), "the third has no place");
    drop(sockets.remove(0));
    drop(sockets.remove(0));
    assert!(told.recv().unwrap().ends_with("GET /a [] 200 10"));
}

#[test]
fn stopping_ends_what_is_under_way_and_nobody_is_answered_any_more() {
    let (_kept, place) = folder();
    let (server, told) = serve(&place, Limits::default());
    let address = server.address;
    let idle = TcpStream::connect(address).unwrap();
    let mut busy = TcpStream::connect(address).unwrap();
    busy.write_all(b"GET /big HTTP/1.0\r\n\r\n").unwrap();
    busy.read_exact(&mut [0; 1000]).unwrap();
    let sent = server.stop();
    assert_eq!(sent.requests, 1);
    assert!(sent.bytes < 16_000_000);
    assert!(told.recv().unwrap().contains("cut off"));
    for mut socket in [idle, busy] {
        // An end or a reset, but an end.
        let _ = socket.read_to_end(&mut Vec::new());
    }
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn an_address_of_version_6_and_one_that_is_every_address_have_usable_urls() {
    let (_kept, place) = folder();
    for (address, begin) in [
        ("[::1]:0", "http://[::1]:"),
        ("0.0.0.0:0", "http://127.0.0.1:"),
    ] {
        let server = Server::bind(&place.join("a"), address.parse().unwrap(), None).unwrap();
        let url = server.url();
        assert!(url.starts_with(begin) && url.ends_with("/a"), "{url}");
        let host = url
            .strip_prefix("http://")
            .unwrap()
            .strip_suffix("/a")
            .unwrap();
        let mut socket = TcpStream::connect(host).unwrap();
        write!(socket, "GET /a HTTP/1.0\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("\r\n\r\n0123456789"), "{answer}");
    }
}
