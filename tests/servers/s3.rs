//! The S3 server, by what it refuses: requests that it would serve must be signed.

use kvik_tests::need;

use crate::plain::get;

#[test]
fn s3_refuses_a_request_without_a_signature() {
    let server = need::server("s3");
    let target = format!("/{}/one", server.fact("bucket"));
    let reply = get(server.address(), &target, &[]);
    assert_eq!(reply.status, 403);
    let text = reply.text();
    assert!(text.contains("<Code>AccessDenied</Code>"), "{text}");
    assert!(!text.contains(server.fact("secret_key")));
}

#[test]
fn s3_refuses_a_key_that_it_does_not_know() {
    let server = need::server("s3");
    let target = format!("/{}/one", server.fact("bucket"));
    let said = refused(server.address(), &target, "AKNOBODY");
    assert_eq!(said, "InvalidAccessKeyId");
}

#[test]
fn s3_refuses_a_signature_that_is_none_of_its_key() {
    let server = need::server("s3");
    let target = format!("/{}/one", server.fact("bucket"));
    let said = refused(server.address(), &target, server.fact("access_key"));
    assert_eq!(said, "SignatureDoesNotMatch");
}

/// The code of the refusal of a signature by `key` that nobody made. It is of the older kind, which needs no clock.
fn refused(address: &str, target: &str, key: &str) -> String {
    let target = format!("{target}?AWSAccessKeyId={key}&Expires=4000000000&Signature=bm9uZQ%3D%3D");
    let reply = get(address, &target, &[]);
    let text = reply.text();
    assert_eq!(reply.status, 403, "{text}");
    let (_, rest) = text.split_once("<Code>").unwrap();
    rest.split_once("</Code>").unwrap().0.to_owned()
}
