//! nginx, plain.

use kvik_tests::need;
use kvik_tests::pattern::assert_same;
use kvik_tests::server::Fixture;

use crate::plain::get;

#[test]
fn nginx_serves_every_fixture_byte_for_byte() {
    let server = need::server("http");
    for fixture in Fixture::all() {
        let reply = get(
            server.address(),
            &format!("{}{}", server.path(), fixture.encoded()),
            &[],
        );
        assert_eq!(reply.status, 200, "{}", fixture.name);
        assert_eq!(reply.field("Accept-Ranges"), "bytes");
        assert_same(&reply.body, &fixture.bytes());
    }
}

#[test]
fn nginx_answers_a_range_with_its_bytes_and_says_which_they_are() {
    let server = need::server("http");
    let fixture = Fixture::named("medium");
    let len = fixture.len;
    for range in [0..1, 0..len, 4095..8193, len - 1..len] {
        let asked = format!("Range: bytes={}-{}", range.start, range.end - 1);
        let reply = get(server.address(), "/medium", &[&asked]);
        assert_eq!(reply.status, 206, "{asked}");
        let said = format!("bytes {}-{}/{len}", range.start, range.end - 1);
        assert_eq!(reply.field("Content-Range"), said);
        assert_same(&reply.body, &fixture.part(range));
    }
}

#[test]
fn nginx_answers_a_range_behind_the_end_with_the_length_alone() {
    let server = need::server("http");
    let fixture = Fixture::named("medium");
    let asked = format!("Range: bytes={}-", fixture.len);
    let reply = get(server.address(), "/medium", &[&asked]);
    assert_eq!(reply.status, 416);
    assert_eq!(
        reply.field("Content-Range"),
        format!("bytes */{}", fixture.len)
    );
}

#[test]
fn nginx_keeps_to_a_validator() {
    let server = need::server("http");
    let tag = get(server.address(), "/medium", &["Range: bytes=0-0"])
        .field("ETag")
        .to_owned();
    assert!(tag.starts_with('"'), "strong: {tag}");
    let same = format!("If-Match: {tag}");
    assert_eq!(get(server.address(), "/medium", &[&same]).status, 200);
    let other = "If-Match: \"other\"";
    assert_eq!(get(server.address(), "/medium", &[other]).status, 412);
}

#[test]
fn the_throttled_place_serves_the_same_bytes() {
    let server = need::server("throttled");
    let reply = get(server.address(), &format!("{}medium", server.path()), &[]);
    assert_eq!(reply.status, 200);
    assert_same(&reply.body, &Fixture::named("medium").bytes());
}
