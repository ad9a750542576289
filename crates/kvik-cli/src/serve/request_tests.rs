//! What a head is read as, and why it is refused.

use super::*;

fn parse(head: &str) -> Result<Request, Bad> {
    Request::parse(head.as_bytes(), 8)
}

/// A request for this target.
#[track_caller]
fn names_of(target: &str) -> Vec<String> {
    let request = parse(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n")).unwrap();
    let shown = |name: &OsString| name.to_string_lossy().into_owned();
    request.names.iter().map(shown).collect()
}

#[track_caller]
fn check(head: &str, status: Status, why: &str) {
    let bad = parse(head).expect_err(head);
    assert_eq!(bad.status, status, "{head:?}: {}", bad.why);
    assert!(bad.why.contains(why), "{head:?}: {}", bad.why);
}

#[test]
fn a_plain_request_is_read_whole() {
    let head = "GET /a/b%20c.bin?token=1 HTTP/1.1\r\nHost: x:1\r\nRANGE:  bytes=0-1 \r\nX: a:b\r\n";
    let request = parse(head).unwrap();
    assert_eq!(request.method, Method::Get);
    assert_eq!(request.path, "/a/b%20c.bin");
    assert_eq!(request.names, ["a", "b c.bin"]);
    assert_eq!(request.host.as_deref(), Some("x:1"));
    assert!(request.keep);
    assert_eq!(request.all("range").collect::<Vec<_>>(), ["bytes=0-1"]);
    assert_eq!(request.all("x").collect::<Vec<_>>(), ["a:b"]);
}

#[test]
fn lines_may_end_without_a_carriage_return_and_version_1_0_needs_no_host() {
    let request = parse("HEAD / HTTP/1.0\nAccept: */*\n").unwrap();
    assert_eq!(request.method, Method::Head);
    assert!(request.names.is_empty() && !request.keep);
    assert!(
        !parse("GET / HTTP/1.1\nHost: a\nConnection: x, Close")
            .unwrap()
            .keep
    );
}

#[test]
fn a_target_with_a_host_is_taken_apart() {
    let request = parse("GET http://other:80/a?b HTTP/1.1\r\nHost: one\r\n").unwrap();
    assert_eq!(request.host.as_deref(), Some("other:80"));
    assert_eq!(request.names, ["a"]);
    assert!(names_of("http://other").is_empty());
}

#[test]
fn names_are_decoded_once() {
    assert_eq!(names_of("/a%2520b"), ["a%20b"]);
    assert_eq!(names_of("//a/./%2E/b/"), ["a", "b"]);
    assert_eq!(names_of("/%C3%A4/+"), ["ä", "+"]);
    assert_eq!(names_of("/...%2e"), ["...."]);
    assert_eq!(names_of("/a#b/c"), ["a"]);
}

#[test]
fn a_path_that_leads_elsewhere_is_refused_however_it_is_written() {
    for target in [
        "/..",
        "/../etc/passwd",
        "/a/../b",
        "/%2e%2e/a",
        "/.%2E/a",
        "/a/%2E.",
    ] {
        let head = format!("GET {target} HTTP/1.1\r\nHost: a\r\n");
        check(&head, Status::BAD_REQUEST, "out of the folder");
    }
    for target in ["/a%2fb", "/..%2F..%2Fetc", "/a%00b"] {
        let head = format!("GET {target} HTTP/1.1\r\nHost: a\r\n");
        check(&head, Status::BAD_REQUEST, "no name of a file");
    }
}

#[test]
fn odd_requests_are_refused_with_the_reason() {
    let bad = Status::BAD_REQUEST;
    check("", bad, "METHOD TARGET VERSION");
    check("GET", bad, "METHOD TARGET VERSION");
    check("GET /", bad, "METHOD TARGET VERSION");
    check("GET  / HTTP/1.1", bad, "METHOD TARGET VERSION");
    check("GET /a b HTTP/1.1", bad, "METHOD TARGET VERSION");
    check("GET /\u{e4} HTTP/1.1", bad, "must be encoded");
    check("GET /\u{1b}[2J HTTP/1.1", bad, "must be encoded");
    check("\u{16}\u{3}\u{1}\u{2}", bad, "must be encoded");
    check("GET / HTTP/2.0\r\nHost: a", Status::VERSION, "HTTP/1.1");
    check("PRI * HTTP/2.0", Status::VERSION, "HTTP/1.1");
    check("GET / HTTP/1.1", bad, "no header `Host`");
    check("GET / HTTP/1.1\nHost: a\nHost: b", bad, "twice");
    check("GET / HTTP/1.1\nHost: a\n folded: b", bad, "NAME: VALUE");
    check("GET / HTTP/1.1\nHost : a", bad, "NAME: VALUE");
    check("GET / HTTP/1.1\nHost", bad, "NAME: VALUE");
    check("GET / HTTP/1.1\n: a", bad, "NAME: VALUE");
    check("GET / HTTP/1.1\nHost: a\u{0}", bad, "NAME: VALUE");
    check("GET / HTTP/1.1\nHost: a\rb", bad, "NAME: VALUE");
    check("GET * HTTP/1.1\nHost: a", bad, "no path");
    check("GET a.bin HTTP/1.1\nHost: a", bad, "no path");
    check("GET https://a/b HTTP/1.1\nHost: a", bad, "no path");
    check("GET /%zz HTTP/1.1\nHost: a", bad, "two digits");
    check("GET /%4 HTTP/1.1\nHost: a", bad, "two digits");
    check("GET / HTTP/1.1\nHost: a\nContent-Length: 5", bad, "a body");
    check(
        "GET / HTTP/1.1\nHost: a\nTransfer-Encoding: chunked",
        bad,
        "a body",
    );
    for method in ["POST", "PUT", "DELETE", "CONNECT", "get"] {
        let head = format!("{method} / HTTP/1.1\nHost: a");
        check(&head, Status::METHOD, "only read");
    }
    let many = "A: b\r\n".repeat(9);
    check(
        &format!("GET / HTTP/1.1\r\n{many}"),
        Status::TOO_LARGE,
        "too many",
    );
}

#[test]
fn whatever_is_changed_in_a_head_it_is_refused_or_keeps_its_promises() {
    let head = b"GET /a/%2e%41//b.bin?c HTTP/1.1\r\nHost: [::1]:80\r\nRange: bytes=0-1\r\nContent-Length: 0\r\n";
    let pieces: [&[u8]; 10] = [
        b"..", b"%2e", b"%2F", b"/", b"\n", b"\r\n", b" ", b":", b"\0", b"\xff",
    ];
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    let mut accepted = 0;
    for _ in 0..50_000 {
        let mut changed = head.to_vec();
        for _ in 0..=random(4) {
            let from = random(changed.len());
            let to = (from + random(4)).min(changed.len());
            changed.splice(from..to, pieces[random(pieces.len())].iter().copied());
        }
        let Ok(request) = Request::parse(&changed, 8) else {
            continue;
        };
        accepted += 1;
        let shown = String::from_utf8_lossy(&changed).into_owned();
        for name in &request.names {
            let name = name.to_string_lossy();
            assert!(!["", ".", ".."].contains(&&*name), "{shown:?}");
            assert!(!name.contains(['/', '\0']), "{shown:?}");
        }
        assert!(request.path.starts_with('/'), "{shown:?}");
        assert!(
            request.path.bytes().all(|byte| byte.is_ascii_graphic()),
            "{shown:?}"
        );
        assert!(request.host.is_some() || !request.keep, "{shown:?}");
    }
    assert!((1_000..49_000).contains(&accepted), "{accepted}");
}

#[test]
fn a_name_that_may_mean_any_machine_is_told_from_this_one() {
    for (host, expected) in [
        ("127.0.0.1:80", true),
        ("[::1]:80", true),
        ("localhost", true),
        ("LocalHost.:80", true),
        ("bucket.localhost:9000", true),
        ("evil.example", false),
        ("localhost.example:80", false),
        ("notlocalhost", false),
        ("127.0.0.1.example", false),
        ("", false),
    ] {
        let request = parse(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n")).unwrap();
        assert_eq!(request.means_this_machine(), expected, "{host}");
    }
}
