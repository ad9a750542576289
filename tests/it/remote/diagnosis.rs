//! What stands between us and an object is named at the step where it stands, with what to do about it.

mod trust;

use std::time::Duration;

use kvik::{Diagnosis, ErrorKind, Keys, Outcome, RemoteOptions, Stage, Step};
use kvik_tests::hostile::{Reply, Script, Server, Step as Play};
use kvik_tests::pattern::pattern;
use kvik_tests::remote::{nobody, quick};
use kvik_tests::s3::refusal;

fn object() -> Vec<u8> {
    pattern(5, 0, 100_000)
}

fn of_s3(server: &Server) -> RemoteOptions {
    quick()
        .endpoint_url(&server.url(""))
        .keys(Keys::new("AKIAMINE", "hunter22"))
        .region("eu-west-1")
}

#[track_caller]
fn step(diagnosis: &Diagnosis, stage: Stage) -> &Step {
    let found = diagnosis.steps.iter().find(|step| step.stage == stage);
    found.unwrap_or_else(|| panic!("no step {stage} in {diagnosis:#?}"))
}

#[track_caller]
fn fact<'a>(diagnosis: &'a Diagnosis, stage: Stage, name: &str) -> &'a str {
    let facts = &step(diagnosis, stage).facts;
    let found = facts.iter().find(|(known, _)| *known == name);
    let (_, value) = found.unwrap_or_else(|| panic!("no fact {name} in {facts:?}"));
    value
}

/// The step that failed is this one; all behind it were not taken, but for the clock.
#[track_caller]
fn fails(diagnosis: &Diagnosis, stage: Stage, kind: ErrorKind, what: &str, advice: &str) {
    let (failed, found) = diagnosis.failure().unwrap();
    assert_eq!((failed.stage, found), (stage, kind), "{diagnosis:#?}");
    assert!(failed.what.contains(what), "{failed:?}");
    assert!(
        failed.advice.as_deref().unwrap().contains(advice),
        "{failed:?}"
    );
    let behind = diagnosis
        .steps
        .iter()
        .skip_while(|step| step.stage != stage);
    for step in behind.skip(1).filter(|step| step.stage != Stage::Clock) {
        assert_eq!(step.outcome, Outcome::NotReached, "{step:?}");
    }
    assert_eq!(
        diagnosis.steps.last().map(|step| step.stage),
        Some(Stage::Open)
    );
}

#[track_caller]
fn notes(diagnosis: &Diagnosis, stage: Stage, what: &str, advice: &str) {
    let step = step(diagnosis, stage);
    assert_eq!(step.outcome, Outcome::Note, "{step:?}");
    assert!(step.what.contains(what), "{step:?}");
    assert!(step.advice.as_deref().unwrap().contains(advice), "{step:?}");
}

#[test]
fn the_way_to_a_good_object_is_walked_to_its_end() {
    let server = Server::of(object());
    let diagnosis = quick().diagnose(&server.url("a"));
    assert_eq!(diagnosis.failure(), None, "{diagnosis:#?}");
    let outcomes: Vec<_> = diagnosis
        .steps
        .iter()
        .map(|step| (step.stage, step.outcome))
        .collect();
    let walked = [
        Stage::Url,
        Stage::Settings,
        Stage::Credentials,
        Stage::Dns,
        Stage::Tcp,
        Stage::Http,
        Stage::Clock,
        Stage::Range,
        Stage::Validator,
        Stage::Open,
    ];
    assert_eq!(outcomes, walked.map(|stage| (stage, Outcome::Ok)));
    assert_eq!(fact(&diagnosis, Stage::Url, "kind"), "HTTP");
    assert_eq!(
        fact(&diagnosis, Stage::Http, "status"),
        "206 Partial Content"
    );
    assert_eq!(fact(&diagnosis, Stage::Range, "bytes"), "100000");
    assert_eq!(fact(&diagnosis, Stage::Open, "bytes"), "100000");
    let ranges: Vec<_> = server
        .asked()
        .iter()
        .map(|asked| asked.range().unwrap())
        .collect();
    assert_eq!(ranges, [0..1, 99_999..100_000, 99_936..100_000, 0..65_536]);
    for len in [0, 1, 2] {
        let server = Server::of(pattern(1, 0, len));
        let diagnosis = quick().diagnose(&server.url("a"));
        assert_eq!(diagnosis.failure(), None, "{len}: {diagnosis:#?}");
    }
}

#[test]
fn what_is_no_url_ends_the_walk_at_once() {
    for (url, kind) in [
        ("https://", ErrorKind::Misuse),
        ("ftp://secret/a", ErrorKind::Unsupported),
        ("https://example.org", ErrorKind::Misuse),
    ] {
        let diagnosis = quick().diagnose(url);
        let (step, found) = diagnosis.failure().unwrap();
        assert_eq!((step.stage, found), (Stage::Url, kind));
        let behind = &diagnosis.steps[1..];
        assert_eq!(behind.len(), 10, "{behind:?}");
        assert!(
            behind
                .iter()
                .all(|step| step.outcome == Outcome::NotReached)
        );
        assert!(!format!("{diagnosis:?}").contains("secret"));
    }
}

#[test]
fn a_name_without_addresses_is_told() {
    let diagnosis = quick().diagnose("https://kvik.invalid/a");
    let (step, kind) = diagnosis.failure().unwrap();
    assert_eq!(step.stage, Stage::Dns, "{diagnosis:#?}");
    // Where nobody answers who knows names, it takes its time.
    assert!([ErrorKind::Unreachable, ErrorKind::TimedOut].contains(&kind));
    fails(
        &diagnosis,
        Stage::Dns,
        kind,
        "`kvik.invalid` is not known here",
        "getent hosts kvik.invalid",
    );
}

#[test]
fn a_port_where_nobody_listens_is_told() {
    let address = nobody();
    let diagnosis = quick().diagnose(&format!("http://{address}/a"));
    let advice = format!("nobody listens at port {}", address.port());
    fails(
        &diagnosis,
        Stage::Tcp,
        ErrorKind::Unreachable,
        "refused",
        &advice,
    );
}

#[test]
fn a_clock_that_is_wrong_is_told_where_s3_refuses_for_it() {
    let server = Server::start(|_| {
        let date = "Sat, 01 Jan 2000 00:00:00 GMT";
        refusal(403, "RequestTimeTooSkewed", "")
            .header("date", date)
            .script()
    });
    let diagnosis = of_s3(&server).diagnose("s3://b/k");
    fails(
        &diagnosis,
        Stage::Http,
        ErrorKind::PermissionDenied,
        "RequestTimeTooSkewed",
        "set the clock",
    );
    notes(
        &diagnosis,
        Stage::Clock,
        "ahead of the server's",
        "S3 refuses",
    );
    assert_eq!(
        fact(&diagnosis, Stage::Credentials, "keys_from"),
        "the caller"
    );
    assert_eq!(fact(&diagnosis, Stage::Credentials, "key_id"), "AKIA...");
    assert_eq!(
        fact(&diagnosis, Stage::Credentials, "region"),
        "eu-west-1 (from the caller)"
    );
    assert_eq!(
        fact(&diagnosis, Stage::Credentials, "bucket_stands"),
        "in the path"
    );
}

#[test]
fn refusals_are_told_with_the_reason_and_what_to_do() {
    for (status, code, kind, advice) in [
        (
            403,
            "AccessDenied",
            ErrorKind::PermissionDenied,
            "these keys may not",
        ),
        (
            403,
            "SignatureDoesNotMatch",
            ErrorKind::PermissionDenied,
            "secret key does not belong",
        ),
        (
            404,
            "NoSuchBucket",
            ErrorKind::NotFound,
            "the name of the bucket",
        ),
        (404, "NoSuchKey", ErrorKind::NotFound, "check the key"),
    ] {
        let server = Server::start(move |_| refusal(status, code, "").script());
        let diagnosis = of_s3(&server).diagnose("s3://b/k");
        fails(&diagnosis, Stage::Http, kind, code, advice);
        let reason = format!("{code}: No, says the server, request REQ7");
        assert_eq!(fact(&diagnosis, Stage::Http, "reason"), reason);
    }
    let server = Server::start(|_| {
        Reply::status(401)
            .header("www-authenticate", "Negotiate")
            .script()
    });
    let diagnosis = quick().diagnose(&server.url("a"));
    fails(
        &diagnosis,
        Stage::Http,
        ErrorKind::PermissionDenied,
        "401",
        "Kerberos",
    );
    assert_eq!(fact(&diagnosis, Stage::Http, "challenge"), "Negotiate");
}

#[test]
fn a_region_that_the_server_had_to_name_is_a_note() {
    let at = "<Region>eu-north-1</Region>";
    let server = Server::start(move |asked| {
        let signed = asked.header("authorization").unwrap_or_default();
        match signed.contains("/eu-north-1/") {
            true => Reply::of(b"bytes", asked).script(),
            false => refusal(301, "PermanentRedirect", at).script(),
        }
    });
    let diagnosis = of_s3(&server).diagnose("s3://b/k");
    assert_eq!(diagnosis.failure(), None, "{diagnosis:#?}");
    notes(
        &diagnosis,
        Stage::Http,
        "in the region eu-north-1",
        "AWS_REGION=eu-north-1",
    );
}

#[test]
fn a_server_that_ignores_ranges_is_told_with_what_kvik_does() {
    let server = Server::start(|_| Reply::whole(&object()).script());
    let diagnosis = quick().diagnose(&server.url("a"));
    assert_eq!(diagnosis.failure(), None, "{diagnosis:#?}");
    notes(
        &diagnosis,
        Stage::Range,
        "the whole object where a range",
        "up to 67108864 bytes",
    );
    let options = quick().whole_limit(kvik::ByteSize::kib(64));
    let diagnosis = options.diagnose(&server.url("a"));
    fails(
        &diagnosis,
        Stage::Range,
        ErrorKind::RangeUnsupported,
        "it has 100000 bytes",
        "up to 65536 bytes",
    );
}

#[test]
fn wrong_bytes_and_other_versions_are_told() {
    let shifted = Server::start(|asked| {
        let range = asked.range().unwrap();
        let len = range.len().min(100_000);
        Reply::of(&object(), asked).body(&object()[..len]).script()
    });
    let diagnosis = quick().diagnose(&shifted.url("a"));
    fails(
        &diagnosis,
        Stage::Range,
        ErrorKind::BadReply,
        "have different bytes",
        "do not use this source",
    );

    let changing = Server::start(|asked| {
        let tag = format!("\"{}\"", asked.number);
        Reply::of(&object(), asked).header("etag", &tag).script()
    });
    let diagnosis = quick().diagnose(&changing.url("a"));
    fails(
        &diagnosis,
        Stage::Range,
        ErrorKind::Changed,
        "its version was",
        "several servers",
    );

    let packed = Server::start(|asked| {
        Reply::of(&object(), asked)
            .header("content-encoding", "gzip")
            .script()
    });
    let diagnosis = quick().diagnose(&packed.url("a"));
    fails(
        &diagnosis,
        Stage::Range,
        ErrorKind::RangeUnsupported,
        "compresses",
        "without compression",
    );
}

#[test]
fn a_page_of_html_and_a_version_that_nobody_tells_are_notes() {
    let server = Server::start(|asked| {
        let reply = Reply::of(&object(), asked).without("etag");
        reply
            .header("content-type", "text/html; charset=utf-8")
            .script()
    });
    let diagnosis = quick().diagnose(&server.url("a.bin"));
    assert_eq!(diagnosis.failure(), None, "{diagnosis:#?}");
    notes(&diagnosis, Stage::Http, "a page of HTML", "login");
    notes(
        &diagnosis,
        Stage::Validator,
        "neither ETag nor Last-Modified",
        "change of the size",
    );
    let diagnosis = quick().diagnose(&server.url("a.html"));
    assert_eq!(step(&diagnosis, Stage::Http).outcome, Outcome::Ok);
}

#[test]
fn redirects_are_told_and_a_server_that_they_lead_to_is_named() {
    let target = Server::of(object());
    let to = target.url("b?sig=cafe2222");
    let server = Server::start(move |_| Reply::redirect(302, &to).script());
    let diagnosis = quick().diagnose(&server.url("a"));
    assert_eq!(diagnosis.failure(), None, "{diagnosis:#?}");
    let led = format!("302 to {}", target.url("b?sig=***"));
    assert_eq!(fact(&diagnosis, Stage::Http, "redirects"), led);

    let dead = nobody();
    let server = Server::start(move |_| Reply::redirect(302, &format!("http://{dead}/b")).script());
    let diagnosis = quick().diagnose(&server.url("a"));
    let advice = format!("`kvik doctor http://{dead}/b`");
    fails(
        &diagnosis,
        Stage::Http,
        ErrorKind::Unreachable,
        "no connection",
        &advice,
    );
}

#[test]
fn a_server_that_says_nothing_takes_no_longer_than_it_may() {
    let server = Server::start(|_| Script(vec![Play::Silence]));
    let short = Duration::from_millis(100);
    let diagnosis = quick().first_byte_timeout(short).diagnose(&server.url("a"));
    fails(
        &diagnosis,
        Stage::Http,
        ErrorKind::TimedOut,
        "silent for 0.1 s",
        "says nothing",
    );
    let diagnosis = quick().timeout(short).diagnose(&server.url("a"));
    let (step, kind) = diagnosis.failure().unwrap();
    assert_eq!(kind, ErrorKind::TimedOut);
    assert!(step.what.contains("not done within the 0.1 s"), "{step:?}");
}

#[test]
fn a_proxy_is_looked_at_in_place_of_the_server_and_told_as_such() {
    let proxy = Server::of(object());
    let options = quick().proxy(&format!("http://me:hunter22@{}", proxy.address()));
    // Nobody but the proxy knows this name.
    let diagnosis = options.diagnose("http://kvik.invalid/a");
    assert_eq!(diagnosis.failure(), None, "{diagnosis:#?}");
    for stage in [Stage::Dns, Stage::Tcp] {
        let told = fact(&diagnosis, stage, "proxy");
        assert!(told.ends_with("(from the caller)"), "{told}");
    }
    let told = &step(&diagnosis, Stage::Dns).what;
    assert_eq!(told, "`127.0.0.1` is an address, and no name");
    assert!(!format!("{diagnosis:?}").contains("hunter22"));

    let dead = nobody();
    let options = quick().proxy(&format!("http://{dead}"));
    let diagnosis = options.diagnose("https://kvik.invalid/a");
    let advice = "this is the proxy, not the server";
    fails(
        &diagnosis,
        Stage::Tcp,
        ErrorKind::Unreachable,
        "refused",
        advice,
    );

    let wary = Server::start(|_| Reply::status(407).script());
    let options = quick().proxy(&format!("http://{}", wary.address()));
    let diagnosis = options.diagnose("http://kvik.invalid/a");
    let advice = "they stand in its URL";
    fails(
        &diagnosis,
        Stage::Http,
        ErrorKind::PermissionDenied,
        "proxy",
        advice,
    );
}

#[test]
fn files_of_webhdfs_are_told_by_what_opening_says() {
    let server = Server::start(|_| {
        Reply::status(401)
            .header("www-authenticate", "Negotiate")
            .script()
    });
    let diagnosis = quick().diagnose(&server.url("webhdfs/v1/a"));
    assert_eq!(fact(&diagnosis, Stage::Url, "kind"), "WebHDFS");
    fails(
        &diagnosis,
        Stage::Open,
        ErrorKind::PermissionDenied,
        "Kerberos",
        "who asks",
    );
    for stage in [Stage::Http, Stage::Clock, Stage::Range, Stage::Validator] {
        let step = step(&diagnosis, stage);
        assert_eq!(step.outcome, Outcome::NotReached);
        assert!(step.what.contains("left to opening"), "{step:?}");
    }
}

#[test]
fn where_the_bucket_stands_is_not_read_out_of_a_host_that_begins_like_it() {
    let server = Server::of(object());
    let diagnosis = of_s3(&server).diagnose("s3://127/k");
    assert_eq!(diagnosis.failure(), None, "{diagnosis:#?}");
    let stands = fact(&diagnosis, Stage::Credentials, "bucket_stands");
    assert_eq!(stands, "in the path");
    let object = of_s3(&server).open("s3://127/k").unwrap();
    assert_eq!(object.s3().unwrap().addressing, kvik::Addressing::Path);
}

#[test]
fn a_store_asked_by_http_that_says_nothing_may_speak_tls() {
    let server = Server::start(|_| Script(vec![Play::Close]));
    let diagnosis = of_s3(&server).diagnose("s3://b/k");
    let (step, _) = diagnosis.failure().unwrap();
    assert_eq!(step.stage, Stage::Http);
    let advice = step.advice.as_deref().unwrap();
    assert!(advice.contains("write https://"), "{advice}");
}

#[test]
fn no_step_shows_a_secret() {
    // It repeats what it was sent, and sends on to where that stands in the path.
    let server = Server::start(|asked| {
        let said = format!("{:?}", asked.headers);
        let login = asked.header("authorization").unwrap_or_default();
        match asked.path.starts_with("/moved") {
            true => Reply::redirect(302, "/b/hunter22?sig=cafe2222").script(),
            false => Reply::with(403, said.as_bytes())
                .header("server", &format!("hunter22, says {login}"))
                .header("content-type", "application/xml")
                .script(),
        }
    });
    let address = server.address();
    let known = format!("http://somebody:hunter22@{address}/a?X-Amz-Signature=cafe2222");
    let moved = format!("http://somebody:hunter22@{address}/moved");
    for diagnosis in [
        quick().diagnose(&known),
        quick().diagnose(&moved),
        quick().bearer("hunter22").diagnose(&server.url("a")),
        quick()
            .header("x-key", "hunter22")
            .diagnose(&server.url("a")),
        of_s3(&server).diagnose("s3://b/k"),
    ] {
        let shown = format!("{diagnosis:?}");
        assert!(shown.contains("***, says"), "{shown}");
        for secret in [
            "hunter22",
            "somebody",
            "cafe2222",
            "AKIAMINE",
            "c29tZWJvZHk6",
        ] {
            assert!(!shown.contains(secret), "{secret}: {shown}");
        }
        assert!(diagnosis.failure().is_some());
    }
}
