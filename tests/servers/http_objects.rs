//! Objects of nginx through the door of kvik: plain, slowly, by TLS, and where the server offers HTTP/2.

use kvik::{ByteSize, ErrorKind, Kind, ReadAtExt, RemoteOptions};
use kvik_tests::need;
use kvik_tests::pattern::assert_same;
use kvik_tests::remote::quick;
use kvik_tests::server::{Fixture, Server};

use crate::ranges::ranges_are_right;

#[track_caller]
fn reads(options: &RemoteOptions, server: &Server, fixture: &Fixture) {
    let url = server.url_of(fixture);
    let object = options.open(&url).unwrap();
    assert_eq!((object.len(), object.kind()), (fixture.len, Kind::Http));
    assert_same(&object.read_to_end(0).unwrap(), &fixture.bytes());
    // Nothing of a range that is asked for by itself comes from what was kept.
    let known = options.clone().len(fixture.len).open(&url).unwrap();
    let (start, end) = (fixture.len / 3, fixture.len - fixture.len / 4);
    let mut bytes = vec![0; (end - start) as usize];
    known.read_exact_at(&mut bytes, start).unwrap();
    assert_same(&bytes, &fixture.part(start..end));
}

#[test]
fn every_fixture_is_read_from_nginx_byte_for_byte() {
    let server = need::server("http");
    let options = quick().part_size(ByteSize::kib(200));
    for fixture in Fixture::all() {
        reads(&options, &server, &fixture);
    }
    let error = quick()
        .open(&format!("{}nothing", server.url()))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[test]
fn every_fixture_is_read_by_tls_from_a_server_that_our_authority_vouches_for() {
    for name in ["https", "http2"] {
        let server = need::server(name);
        let options = quick().ca_bundle(server.fact("ca"));
        for fixture in Fixture::all() {
            reads(&options, &server, &fixture);
        }
        let error = quick()
            .open(&format!("{}medium", server.url()))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Untrusted, "{error}");
    }
}

#[test]
fn ranges_of_an_object_of_nginx_are_those_that_were_asked_for() {
    let server = need::server("http");
    let fixture = Fixture::named("medium");
    let options = quick().len(fixture.len);
    let object = options.open(&server.url_of(&fixture)).unwrap();
    ranges_are_right(&object, &fixture);
}

#[test]
fn a_slow_server_is_read_to_the_end() {
    let server = need::server("throttled");
    reads(&quick(), &server, &Fixture::named("medium"));
}
