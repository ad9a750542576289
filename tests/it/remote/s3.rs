//! Objects of S3: who asks, where, and what a refusal teaches. Once a wrong key became an anonymous request, and its user was
//! told of something else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kvik::stats::names::HTTP_RETRIES;
use kvik::{
    Addressing, Anonymous, ByteSize, Credentials, ErrorKind, Finding, Keys, Kind, ReadAtExt,
    RemoteOptions,
};
use kvik_tests::hostile::{Asked, Reply, Server};
use kvik_tests::pattern::{assert_same, pattern};
use kvik_tests::percent::decoded;
use kvik_tests::remote::quick;
use kvik_tests::s3::{Account, refusal};

fn account() -> Account {
    Account::new("AKIAMINE", "hunter/2+2")
}

fn keys() -> Keys {
    Keys::new("AKIAMINE", "hunter/2+2")
}

fn options(server: &Server) -> RemoteOptions {
    quick()
        .endpoint_url(&server.url(""))
        .region("eu-west-1")
        .keys(keys())
}

/// A server that checks each request, and has this object.
fn strict(account: Account, object: Vec<u8>) -> Server {
    Server::start(move |asked| match account.check(asked) {
        Ok(()) => Reply::of(&object, asked).script(),
        Err(refusal) => refusal.script(),
    })
}

#[test]
fn one_signature_serves_all_ranges_of_an_object() {
    let server = strict(account(), pattern(1, 0, 3_000_000));
    let object = options(&server).open("s3://b/dir/k").unwrap();
    assert_eq!((object.len(), object.kind()), (3_000_000, Kind::S3));
    assert_same(&object.read_to_end(0).unwrap(), &pattern(1, 0, 3_000_000));
    let asked = server.asked();
    assert!(asked.len() > 2);
    for request in &asked {
        assert_eq!(request.path, "/b/dir/k");
        let mine = request.header("authorization");
        assert_eq!(mine, asked[0].header("authorization"));
    }
    let facts = object.s3().unwrap();
    assert_eq!(facts.keys.as_deref(), Some("the caller"));
    assert_eq!(facts.region, "eu-west-1");
    assert_eq!(facts.address, server.url("b/dir/k"));
}

/// kvikio#823, durch/rust-s3#148, soto-project/soto#601, vortex-data/vortex#9420: keys with other letters are refused, or are
/// those of another object.
#[test]
fn s1_every_key_reaches_the_server_as_it_was_typed_with_a_good_signature() {
    let printable: String = (' '..='~').collect();
    let server = strict(account(), b"bytes".to_vec());
    let options = options(&server);
    let names = [
        printable.as_str(),
        " both ends ",
        "100%",
        "a%2Fb",
        "a//b",
        "\u{1f600}",
        "u\u{308}ber",
        "a+b=c&d?e#f",
        "a...b",
    ];
    for (number, key) in names.into_iter().enumerate() {
        let object = options.open_bucket_key("b", key).unwrap();
        assert_eq!(object.read_to_end(0).unwrap(), b"bytes", "{key}");
        let path = &server.asked()[number].path;
        let meant = decoded(path.strip_prefix("/b/").unwrap());
        assert_eq!(String::from_utf8(meant).unwrap(), key, "{path}");
    }
    // What the client would make another object of is not asked for.
    let error = options.open_bucket_key("b", "a/../b").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert_eq!(server.asked().len(), names.len());
}

#[test]
fn a_session_token_a_version_and_who_pays_go_out_signed() {
    let server = strict(account().token("t0ken=="), b"x".to_vec());
    let object = options(&server)
        .keys(keys().token("t0ken=="))
        .requester_pays(true)
        .open("s3://b/k?versionId=3%2F4")
        .unwrap();
    assert_eq!(object.read_to_end(0).unwrap(), b"x");
    let asked = &server.asked()[0];
    assert_eq!(asked.path, "/b/k?versionId=3%2F4");
    assert_eq!(asked.header("x-amz-request-payer"), Some("requester"));
    let signed = asked.header("authorization").unwrap();
    assert!(signed.contains("x-amz-request-payer;x-amz-security-token"));
}

/// apache/opendal#2232, kvikio#831, OSGeo/gdal#1900: wrong keys become an anonymous request, with an error of its own.
#[test]
fn s5_wrong_keys_are_denied_with_the_servers_reason_and_never_become_nobody() {
    let server = strict(account(), b"bytes".to_vec());
    for (wrong, code) in [
        (Keys::new("AKIAOTHER", "secret"), "InvalidAccessKeyId"),
        (Keys::new("AKIAMINE", "s3cret"), "SignatureDoesNotMatch"),
        (keys().token("t0ken"), "InvalidToken"),
    ] {
        for when in [Anonymous::Auto, Anonymous::Never] {
            let before = server.asked().len();
            let options = options(&server).keys(wrong.clone()).anonymous(when);
            let error = options.open("s3://b/k").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
            let text = error.to_string();
            let says = format!("403 Forbidden: {code}: No, says the server, request REQ7");
            assert!(text.contains(&says), "{text}");
            assert!(text.contains("signed with keys from the caller for the region eu-west-1"));
            for secret in ["s3cret", "t0ken", "hunter"] {
                assert!(!format!("{error:?} {text} {options:?}").contains(secret));
            }
            let asked = server.asked();
            assert_eq!(asked.len(), before + 1, "asked once");
            assert!(asked[before].header("authorization").is_some());
        }
    }
}

#[derive(Debug)]
struct Nothing;

impl std::fmt::Display for Nothing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the empty drawer")
    }
}

impl Credentials for Nothing {
    fn find(&self) -> Finding<'_> {
        Box::pin(async { Ok(None) })
    }
}

#[test]
fn without_keys_an_object_is_asked_for_without_a_signature_unless_that_is_not_wanted() {
    let server = Server::start(|asked| match asked.path.as_str() {
        "/b/public" => Reply::of(b"bytes", asked).script(),
        _ => refusal(403, "AccessDenied", "").script(),
    });
    let options = options(&server).credentials(Nothing);
    for options in [
        options.clone(),
        options.clone().anonymous(Anonymous::Always),
        options.clone().keys(keys()).kinds(&[Kind::S3Public]),
        options.clone().keys(keys()).anonymous(Anonymous::Always),
    ] {
        let object = options.open("s3://b/public").unwrap();
        assert_eq!(object.kind(), Kind::S3Public);
        assert_eq!(object.s3().unwrap().keys, None);
        assert_eq!(object.read_to_end(0).unwrap(), b"bytes");
    }
    let asked = server.asked();
    assert!(
        asked
            .iter()
            .all(|asked| asked.header("authorization").is_none())
    );
    let error = options.open("s3://b/private").unwrap_err();
    let text = error.to_string();
    let says = "AccessDenied: No, says the server, request REQ7; not signed, as there are no keys in the empty drawer";
    assert!(text.contains(says), "{text}");
    let before = server.asked().len();
    let never = options.anonymous(Anonymous::Never);
    let error = never.open("s3://b/public").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains("looked for in the empty drawer"));
    assert_eq!(server.asked().len(), before);
}

#[test]
fn a_region_that_a_server_names_is_taken_and_remembered_for_the_bucket() {
    let moved = |asked: &Asked| {
        let at = "<Region>eu-west-1</Region><Endpoint>s3.eu-west-1.amazonaws.com</Endpoint>";
        let header = asked.header("authorization").unwrap_or_default();
        match (
            header.contains("/eu-west-1/"),
            asked.path.contains("header"),
        ) {
            (true, _) => None,
            (false, false) => Some(refusal(301, "PermanentRedirect", at)),
            (false, true) => Some(Reply::status(307).header("x-amz-bucket-region", "eu-west-1")),
        }
    };
    let malformed = |asked: &Asked| account().check(asked).err();
    let plays: [fn(&Asked) -> Option<Reply>; 2] = [moved, malformed];
    for (number, play) in plays.into_iter().enumerate() {
        let server = Server::start(move |asked| match play(asked) {
            Some(refusal) => refusal.script(),
            None => Reply::of(b"bytes", asked).script(),
        });
        let retries = HTTP_RETRIES.get();
        let options = options(&server).region("us-east-2");
        let object = options.open("s3://b/k").unwrap();
        assert_eq!(object.read_to_end(0).unwrap(), b"bytes");
        assert_eq!(object.s3().unwrap().region, "eu-west-1");
        assert_eq!(server.asked().len(), 2, "play {number}");
        options.open("s3://b/other").unwrap();
        assert_eq!(server.asked().len(), 3, "nothing is learnt twice");
        options.open("s3://c/header").unwrap();
        assert_eq!(server.asked().len(), 5, "another bucket may be elsewhere");
        assert_eq!(HTTP_RETRIES.get(), retries);
    }
}

/// Other questions are on their way while the first one learns it.
#[test]
fn a_region_that_many_requests_learn_at_once_is_taken_by_all_of_them() {
    let server = strict(account(), pattern(1, 0, 1_000_000));
    let object = options(&server)
        .region("us-east-2")
        .len(1_000_000)
        .part_size(ByteSize::kib(40))
        .open("s3://b/k")
        .unwrap();
    assert_same(&object.read_to_end(0).unwrap(), &pattern(1, 0, 1_000_000));
    assert_eq!(object.s3().unwrap().region, "eu-west-1");
}

#[test]
fn a_server_that_names_one_region_after_the_other_is_not_followed_for_ever() {
    let server = Server::start(|asked| {
        let region = format!("<Region>r-{}</Region>", asked.number);
        refusal(301, "PermanentRedirect", &region).script()
    });
    let error = options(&server).open("s3://b/k").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("PermanentRedirect"), "{error}");
    assert_eq!(server.asked().len(), 2);
}

#[test]
fn a_signature_that_was_good_and_is_refused_is_made_anew_once() {
    for lasts in [false, true] {
        let refused = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&refused);
        let object = pattern(1, 0, 200_000);
        let server = Server::start(move |asked| {
            if asked.number == 1 || (lasts && asked.number > 1) {
                counted.fetch_add(1, Ordering::Relaxed);
                return refusal(403, "AccessDenied", "").script();
            }
            match account().check(asked) {
                Ok(()) => Reply::of(&object, asked).script(),
                Err(refusal) => refusal.script(),
            }
        });
        let handle = options(&server).open("s3://b/k").unwrap();
        let mut bytes = vec![0; 1000];
        let outcome = handle.read_exact_at(&mut bytes, 150_000);
        match lasts {
            false => {
                outcome.unwrap();
                assert_same(&bytes, &pattern(1, 150_000, 1000));
            }
            true => assert_eq!(outcome.unwrap_err().kind(), ErrorKind::PermissionDenied),
        }
        assert_eq!(server.asked().len(), 3);
        assert_eq!(refused.load(Ordering::Relaxed), 1 + usize::from(lasts));
    }
}

/// A source whose keys change.
#[derive(Clone, Debug)]
struct Rotating(Arc<AtomicUsize>);

impl std::fmt::Display for Rotating {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the rotating drawer")
    }
}

impl Credentials for Rotating {
    fn find(&self) -> Finding<'_> {
        let round = self.0.load(Ordering::Relaxed);
        Box::pin(async move { Ok(Some(Keys::new(format!("AK{round}"), "secret"))) })
    }
}

#[test]
fn keys_that_ended_are_looked_for_again() {
    let round = Arc::new(AtomicUsize::new(0));
    let now = Arc::clone(&round);
    let server = Server::start(move |asked| {
        let account = Account::new(&format!("AK{}", now.load(Ordering::Relaxed)), "secret");
        match account.check(asked) {
            Ok(()) => Reply::of(&pattern(1, 0, 200_000), asked).script(),
            // As some stores say it.
            Err(_) => refusal(400, "ExpiredToken", "").script(),
        }
    });
    let options = options(&server).credentials(Rotating(Arc::clone(&round)));
    let handle = options.open("s3://b/k").unwrap();
    round.store(1, Ordering::Relaxed);
    let mut bytes = vec![0; 1000];
    handle.read_exact_at(&mut bytes, 100_000).unwrap();
    assert_same(&bytes, &pattern(1, 100_000, 1000));
    assert_eq!(server.asked().len(), 3);
}

/// A source of one's own that takes its time, on a thread of its own, and counts how often it is asked.
#[derive(Clone, Debug)]
struct Slow {
    asked: Arc<AtomicUsize>,
    account: Arc<AtomicUsize>,
}

impl std::fmt::Display for Slow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the slow drawer")
    }
}

impl Credentials for Slow {
    fn find(&self) -> Finding<'_> {
        Box::pin(async {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let account = self.account.load(Ordering::Relaxed);
            let looking =
                tokio::task::spawn_blocking(move || Keys::new(format!("AK{account}"), "secret"));
            // As whoever asks a service does.
            Ok(Some(looking.await.unwrap().from_source("the slow drawer")))
        })
    }
}

#[test]
fn many_requests_whose_keys_ended_ask_their_source_once() {
    let slow = Slow {
        asked: Arc::default(),
        account: Arc::default(),
    };
    let now = Arc::clone(&slow.account);
    let server = Server::start(move |asked| {
        let account = Account::new(&format!("AK{}", now.load(Ordering::Relaxed)), "secret");
        match account.check(asked) {
            Ok(()) => Reply::of(&pattern(1, 0, 1_000_000), asked).script(),
            Err(refusal) => refusal.script(),
        }
    });
    let handle = options(&server)
        .credentials(slow.clone())
        .part_size(ByteSize::kib(40))
        .open("s3://b/k")
        .unwrap();
    assert_eq!(slow.asked.load(Ordering::Relaxed), 1);
    slow.account.store(1, Ordering::Relaxed);
    assert_same(&handle.read_to_end(0).unwrap(), &pattern(1, 0, 1_000_000));
    assert_eq!(slow.asked.load(Ordering::Relaxed), 2);
    assert_eq!(
        handle.s3().unwrap().keys.as_deref(),
        Some("the slow drawer")
    );
}

/// developmentseed/obstore#754, oven-sh/bun#16272, apache/arrow#38135: a store takes one way to address a bucket only.
#[test]
fn s6_a_store_that_wants_the_bucket_in_the_host_gets_it_there() {
    let server = Server::start(move |asked| {
        let host = asked.header("host").unwrap_or_default();
        if !host.starts_with("b.localhost:") {
            return refusal(403, "SecondLevelDomainForbidden", "").script();
        }
        assert_eq!(asked.path, "/k");
        match account().check(asked) {
            Ok(()) => Reply::of(b"bytes", asked).script(),
            Err(refusal) => refusal.script(),
        }
    });
    let endpoint = format!("http://localhost:{}", server.address().port());
    let options = options(&server).endpoint_url(&endpoint);
    let object = options.open("s3://b/k").unwrap();
    assert_eq!(object.read_to_end(0).unwrap(), b"bytes");
    let address = format!("http://b.localhost:{}/k", server.address().port());
    assert_eq!(object.s3().unwrap().address, address);
    assert_eq!(server.asked().len(), 2);
    let hosted = options.clone().addressing(Addressing::VirtualHost);
    hosted.open("s3://b/k").unwrap();
    assert_eq!(server.asked().len(), 3);
    // Several requests at once find it out, too.
    let many = options.clone().len(5).part_size(ByteSize::new(1));
    let object = many.open("s3://b/k").unwrap();
    assert_eq!(object.read_to_end(0).unwrap(), b"bytes");
    // Where that is not wanted, or helps nobody, the first refusal is told.
    let path = options.clone().addressing(Addressing::Path);
    for error in [
        path.open("s3://b/k").unwrap_err(),
        options.open("s3://c/k").unwrap_err(),
        options.open("s3://not.one.host_/k").unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
        assert!(error.to_string().contains("SecondLevelDomainForbidden"));
    }
}

#[test]
fn empty_objects_of_s3_and_those_of_one_byte_are_read() {
    for object in [&b""[..], b"x"] {
        let with_range = strict(account(), object.to_vec());
        // As stores do that do not say how much there is.
        let without = Server::start(move |asked| match account().check(asked) {
            Ok(()) if asked.range().is_some() && object.is_empty() => {
                refusal(416, "InvalidRange", "").script()
            }
            Ok(()) => Reply::of(object, asked).script(),
            Err(refusal) => refusal.script(),
        });
        for server in [with_range, without] {
            let handle = options(&server).open("s3://b/k").unwrap();
            assert_eq!(handle.len(), object.len() as u64);
            assert_eq!(handle.read_to_end(0).unwrap(), object);
        }
    }
}

#[test]
fn a_refusal_of_s3_has_its_kind_its_code_and_its_request() {
    for (status, code, kind, count) in [
        (404, "NoSuchKey", ErrorKind::NotFound, 1),
        (404, "NoSuchBucket", ErrorKind::NotFound, 1),
        (403, "InvalidObjectState", ErrorKind::Unsupported, 1),
        (503, "SlowDown", ErrorKind::Refused, 3),
        (400, "RequestTimeout", ErrorKind::TimedOut, 3),
    ] {
        let server = Server::start(move |_| {
            let reply = refusal(status, code, "");
            reply
                .header("content-type", "application/xml; charset=utf-8")
                .script()
        });
        let error = options(&server).open("s3://b/k").unwrap_err();
        let text = error.to_string();
        assert_eq!(error.kind(), kind, "{text}");
        assert!(
            text.contains(&format!("{code}: No, says the server, request REQ7")),
            "{text}"
        );
        assert_eq!(server.asked().len(), count, "{code}");
    }
}

#[test]
fn a_size_that_is_known_asks_nothing_and_is_still_read_by_its_owner() {
    let server = strict(account(), pattern(1, 0, 100_000));
    let handle = options(&server).len(100_000).open("s3://b/k").unwrap();
    assert_eq!((server.asked().len(), handle.kind()), (0, Kind::S3));
    assert_same(&handle.read_to_end(0).unwrap(), &pattern(1, 0, 100_000));
}

#[test]
fn a_token_or_a_password_is_none_for_s3() {
    let server = strict(account(), b"bytes".to_vec());
    let error = options(&server)
        .bearer("t0ken")
        .open("s3://b/k")
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    assert_eq!(server.asked().len(), 0);
}

/// A store that sends readers on does not get their keys sent on with them.
#[test]
fn a_redirect_to_another_origin_takes_no_signature_along() {
    let there = Server::of(b"bytes".to_vec());
    let to = there.url("there");
    let server = Server::start(move |asked| match account().check(asked) {
        Ok(()) => Reply::redirect(307, &to).script(),
        Err(refusal) => refusal.script(),
    });
    let options = options(&server).keys(keys());
    let handle = options.open("s3://b/k").unwrap();
    assert_eq!(handle.read_to_end(0).unwrap(), b"bytes");
    for name in ["authorization", "x-amz-date", "x-amz-content-sha256"] {
        assert_eq!(there.asked()[0].header(name), None);
    }
}
