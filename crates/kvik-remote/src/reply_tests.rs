//! Tables of answers, right and wrong ones.

use std::time::Duration;

use http::{HeaderName, HeaderValue};

use super::*;

fn headers(rows: &[(&'static str, &str)]) -> HeaderMap {
    let row = |(name, value): &(&'static str, &str)| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_str(value).unwrap(),
        )
    };
    rows.iter().map(row).collect()
}

#[track_caller]
fn check(
    status: u16,
    rows: &[(&'static str, &str)],
    known: Option<u64>,
    expected: Result<Answer, ErrorKind>,
) {
    let status = StatusCode::from_u16(status).unwrap();
    let known = Known {
        len: known,
        validator: None,
    };
    let answer = judge(status, &headers(rows), &(100..200), known);
    assert_eq!(answer.map_err(|failure| failure.kind), expected, "{rows:?}");
}

fn part(range: Range<u64>, len: u64) -> Result<Answer, ErrorKind> {
    Ok(Answer::Part { range, len })
}

#[test]
fn a_part_is_the_beginning_of_what_was_asked_for() {
    for (said, known, expected) in [
        ("bytes 100-199/1000", None, part(100..200, 1000)),
        ("bytes 100-199/1000", Some(1000), part(100..200, 1000)),
        ("bytes 100-149/150", None, part(100..150, 150)),
        ("bytes 100-149/1000", Some(1000), part(100..150, 1000)),
        ("bytes 100-199/*", Some(1000), part(100..200, 1000)),
        ("bytes 100-199/*", None, Err(ErrorKind::RangeUnsupported)),
        ("bytes 100-199/1001", Some(1000), Err(ErrorKind::Changed)),
        ("bytes 101-199/1000", Some(1000), Err(ErrorKind::BadReply)),
        ("bytes 0-99/1000", Some(1000), Err(ErrorKind::BadReply)),
        ("bytes 100-200/1000", Some(1000), Err(ErrorKind::BadReply)),
        ("bytes 100-99/1000", Some(1000), Err(ErrorKind::BadReply)),
        ("bytes 100-199/150", None, Err(ErrorKind::BadReply)),
        ("bytes 100-199", None, Err(ErrorKind::BadReply)),
        ("bytes +100-199/1000", None, Err(ErrorKind::BadReply)),
        (
            "bytes 100-18446744073709551615/*",
            Some(9),
            Err(ErrorKind::BadReply),
        ),
        (
            "bytes 100-99999999999999999999/*",
            Some(9),
            Err(ErrorKind::BadReply),
        ),
        // Longer than anything, and as long as anything can be.
        (
            "bytes 100-199/18446744073709551615",
            None,
            Err(ErrorKind::BadReply),
        ),
        (
            "bytes 100-199/99999999999999999999",
            None,
            Err(ErrorKind::BadReply),
        ),
        (
            "bytes 100-199/9223372036854775807",
            None,
            part(100..200, i64::MAX as u64),
        ),
        ("lines 100-199/1000", None, Err(ErrorKind::BadReply)),
        ("", None, Err(ErrorKind::BadReply)),
    ] {
        check(206, &[("content-range", said)], known, expected);
    }
    check(206, &[], Some(1000), Err(ErrorKind::BadReply));
}

#[test]
fn the_body_of_a_part_is_as_long_as_the_part_and_comes_as_it_is() {
    let range = ("content-range", "bytes 100-199/1000");
    for (row, expected) in [
        (("content-length", "100"), part(100..200, 1000)),
        (("content-length", "99"), Err(ErrorKind::BadReply)),
        (("content-length", "many"), Err(ErrorKind::BadReply)),
        (("content-length", "+100"), Err(ErrorKind::BadReply)),
        (
            ("content-length", "99999999999999999999"),
            Err(ErrorKind::BadReply),
        ),
        (("transfer-encoding", "chunked"), part(100..200, 1000)),
        (
            ("transfer-encoding", "gzip, chunked"),
            Err(ErrorKind::RangeUnsupported),
        ),
        (("content-encoding", "identity"), part(100..200, 1000)),
        (
            ("content-encoding", "gzip"),
            Err(ErrorKind::RangeUnsupported),
        ),
        (
            ("content-type", "multipart/byteranges; boundary=x"),
            Err(ErrorKind::BadReply),
        ),
    ] {
        check(206, &[range, row], None, expected);
    }
    let mut twice = headers(&[range, ("content-encoding", "identity")]);
    let judged = |headers: &HeaderMap| {
        let judged = judge(
            StatusCode::PARTIAL_CONTENT,
            headers,
            &(100..200),
            Known::default(),
        );
        judged.map_err(|failure| failure.kind)
    };
    twice.append("content-encoding", HeaderValue::from_static("gzip"));
    assert_eq!(judged(&twice), Err(ErrorKind::RangeUnsupported));
    let mut twice = headers(&[range]);
    twice.append(
        "content-range",
        HeaderValue::from_static("bytes 100-199/1001"),
    );
    assert_eq!(judged(&twice), Err(ErrorKind::BadReply));
}

#[test]
fn a_whole_object_is_taken_where_its_size_is_not_known_or_it_is_what_was_asked_for() {
    check(
        200,
        &[("content-length", "10")],
        None,
        Ok(Answer::Whole { len: Some(10) }),
    );
    check(200, &[], None, Ok(Answer::Whole { len: None }));
    check(200, &[("content-length", "0")], None, Ok(Answer::Empty));
    check(
        200,
        &[("content-encoding", "br")],
        None,
        Err(ErrorKind::RangeUnsupported),
    );
    check(
        200,
        &[("content-length", "1000")],
        Some(1000),
        Err(ErrorKind::RangeUnsupported),
    );
    check(
        200,
        &[("content-length", "900")],
        Some(1000),
        Err(ErrorKind::Changed),
    );
    let known = Known {
        len: Some(1000),
        validator: None,
    };
    let answer = judge(StatusCode::OK, &HeaderMap::new(), &(0..1000), known);
    assert_eq!(answer.unwrap(), Answer::Whole { len: Some(1000) });
}

#[test]
fn a_range_beyond_the_end_tells_of_an_empty_object_or_of_a_change() {
    for (said, known, expected) in [
        (Some("bytes */0"), None, Ok(Answer::Empty)),
        (None, None, Ok(Answer::Beyond)),
        (Some("bytes */50"), None, Err(ErrorKind::BadReply)),
        (Some("bytes */50"), Some(1000), Err(ErrorKind::Changed)),
        (Some("bytes */1000"), Some(1000), Err(ErrorKind::BadReply)),
        (None, Some(1000), Err(ErrorKind::BadReply)),
    ] {
        let rows: Vec<_> = said
            .map(|said| ("content-range", said))
            .into_iter()
            .collect();
        check(416, &rows, known, expected);
    }
}

#[test]
fn another_version_is_a_change() {
    let known = Validator::of(&headers(&[("etag", "\"one\"")]));
    let known = Known {
        len: Some(1000),
        validator: Some(&known),
    };
    let ask = |status, etag| {
        let rows = [("content-range", "bytes 100-199/1000"), ("etag", etag)];
        let status = StatusCode::from_u16(status).unwrap();
        judge(status, &headers(&rows), &(100..200), known).map_err(|failure| failure.kind)
    };
    assert_eq!(ask(206, "\"one\""), part(100..200, 1000));
    assert_eq!(ask(206, "\"two\""), Err(ErrorKind::Changed));
    assert_eq!(ask(412, "\"two\""), Err(ErrorKind::Changed));
}

#[test]
fn other_answers_are_none() {
    for status in [204, 304, 100, 300] {
        check(status, &[], None, Err(ErrorKind::BadReply));
    }
}

#[test]
fn refusals_have_their_kind_and_only_some_may_pass() {
    let policy = Policy {
        attempts: 3,
        first_wait: Duration::ZERO,
        longest_wait: Duration::ZERO,
        statuses: None,
    };
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
    for (status, after, kind, again) in [
        (404, "", ErrorKind::NotFound, Again::Never),
        (410, "", ErrorKind::NotFound, Again::Never),
        (403, "", ErrorKind::PermissionDenied, Again::Never),
        (401, "1", ErrorKind::PermissionDenied, Again::Never),
        (400, "", ErrorKind::Refused, Again::Never),
        (503, "", ErrorKind::Refused, Again::Soon),
        (
            503,
            "7",
            ErrorKind::Refused,
            Again::After(Duration::from_secs(7)),
        ),
        (
            429,
            "Sun, 06 Nov 1994 08:49:37 GMT",
            ErrorKind::Refused,
            Again::After(Duration::from_secs(7)),
        ),
        (
            429,
            "Sat, 06 Nov 1993 08:49:37 GMT",
            ErrorKind::Refused,
            Again::After(Duration::ZERO),
        ),
        (408, "soon", ErrorKind::Refused, Again::Soon),
        (503, "-7", ErrorKind::Refused, Again::Soon),
        (
            503,
            "99999999999999999999",
            ErrorKind::Refused,
            Again::After(Duration::from_secs(u64::MAX)),
        ),
    ] {
        let rows = headers(&[("retry-after", after)]);
        let status = StatusCode::from_u16(status).unwrap();
        let failure = refusal(status, &rows, &policy, now);
        assert_eq!(
            (failure.kind, failure.again),
            (kind, again),
            "{status} {after}"
        );
    }
}

#[test]
fn xml_is_known_by_its_kind_whatever_is_said_beside_it() {
    for (said, is) in [
        ("application/xml", true),
        ("application/xml; charset=utf-8", true),
        ("Text/XML ;charset=utf-8", true),
        ("image/svg+xml", true),
        ("text/html; about=xml", false),
        ("", false),
    ] {
        assert_eq!(is_xml(&headers(&[("content-type", said)])), is, "{said}");
    }
}
