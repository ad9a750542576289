//! Objects of the S3 server through the door of kvik.

use kvik::{Addressing, Anonymous, ByteSize, ErrorKind, Keys, Kind, ReadAtExt, RemoteOptions};
use kvik_tests::need;
use kvik_tests::pattern::assert_same;
use kvik_tests::remote::quick;
use kvik_tests::server::{Fixture, Server};

use crate::ranges::ranges_are_right;

fn keys(server: &Server) -> Keys {
    Keys::new(server.fact("access_key"), server.fact("secret_key"))
}

fn options(server: &Server) -> RemoteOptions {
    quick()
        .endpoint_url(server.fact("endpoint"))
        .region(server.fact("region"))
        .keys(keys(server))
}

#[test]
fn every_fixture_is_read_byte_for_byte_by_signed_requests() {
    let server = need::server("s3");
    let bucket = server.fact("bucket");
    for fixture in Fixture::all() {
        let options = options(&server).part_size(ByteSize::kib(200));
        let object = options.open_bucket_key(bucket, &fixture.name).unwrap();
        assert_eq!((object.len(), object.kind()), (fixture.len, Kind::S3));
        assert_same(&object.read_to_end(0).unwrap(), &fixture.bytes());
        // By its URL it is the same one.
        let url = format!("s3://{bucket}/{}", fixture.encoded());
        let same = options.open(&url).unwrap();
        assert_eq!(same.validator(), object.validator());
        assert_eq!(same.len(), fixture.len);
    }
}

#[test]
fn ranges_of_an_object_are_those_that_were_asked_for() {
    let server = need::server("s3");
    let fixture = Fixture::named("medium");
    let object = options(&server)
        .len(fixture.len)
        .open_bucket_key(server.fact("bucket"), "medium")
        .unwrap();
    ranges_are_right(&object, &fixture);
}

#[test]
fn an_object_is_found_by_the_host_too() {
    let server = need::server("s3");
    let fixture = Fixture::named("medium");
    let endpoint = format!("http://{}", server.fact("domain"));
    let object = options(&server)
        .endpoint_url(&endpoint)
        .addressing(Addressing::VirtualHost)
        .open_bucket_key(server.fact("bucket"), "medium")
        .unwrap();
    assert_same(&object.read_to_end(0).unwrap(), &fixture.bytes());
    let host = format!(
        "http://{}.{}/",
        server.fact("bucket"),
        server.fact("domain")
    );
    assert!(object.s3().unwrap().address.starts_with(&host));
}

#[test]
fn wrong_keys_and_none_are_denied_with_the_servers_reason() {
    let server = need::server("s3");
    let bucket = server.fact("bucket");
    let right = server.fact("access_key");
    for (options, code) in [
        (
            options(&server).keys(Keys::new("AKNOBODY", "s3cret")),
            "InvalidAccessKeyId",
        ),
        (
            options(&server).keys(Keys::new(right, "s3cret")),
            "SignatureDoesNotMatch",
        ),
        (
            options(&server).anonymous(Anonymous::Always),
            "AccessDenied",
        ),
    ] {
        let error = options.open_bucket_key(bucket, "one").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
        let text = error.to_string();
        assert!(text.contains(code) && text.contains(", request "), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
    }
}

#[test]
fn what_is_not_there_is_not_found() {
    let server = need::server("s3");
    let bucket = server.fact("bucket");
    for (bucket, key, code) in [
        (bucket, "nothing", "NoSuchKey"),
        ("no-such-bucket", "one", "NoSuchBucket"),
    ] {
        let error = options(&server).open_bucket_key(bucket, key).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        assert!(error.to_string().contains(code), "{error}");
    }
}
