//! What broke elsewhere: bare statuses where the server had explained itself, and secrets that came back in explanations.

use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;

use super::*;

fn s3(body: &str) -> Cause {
    Cause::of_s3(body.as_bytes(), &[])
}

fn webhdfs(exception: &str, message: &str) -> Cause {
    let body = serde_json::json!({"RemoteException": {
        "exception": exception, "javaClassName": format!("org.x.{exception}"), "message": message,
    }});
    Cause::of_webhdfs(body.to_string().as_bytes(), &[])
}

#[test]
fn the_xml_of_s3_gives_code_message_request_and_region() {
    let cause = s3(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>AuthorizationHeaderMalformed</Code>\
         <Message>The region 'us-east-1' is wrong; expecting &apos;eu-west-1&apos; &#x2713;&amp;<![CDATA[<>]]></Message>\
         <Region>eu-west-1</Region><RequestId>7QX2</RequestId><HostId>abc=</HostId></Error>",
    );
    assert_eq!(
        cause.to_string(),
        "AuthorizationHeaderMalformed: The region 'us-east-1' is wrong; expecting 'eu-west-1' \u{2713}&<>, request 7QX2"
    );
    assert_eq!(cause.region.as_deref(), Some("eu-west-1"));
    assert_eq!(cause.kind(400), ErrorKind::Refused);
    // With a name space, and broken off.
    let cause = s3("<s:Error xmlns:s=\"u\"><s:Code>NoSuchKey</s:Code><s:Message>half");
    assert_eq!(
        (cause.code.as_deref(), cause.message),
        (Some("NoSuchKey"), None)
    );
}

#[test]
fn codes_decide_where_the_status_does_not() {
    let kind = |code: &str, status| s3(&format!("<Error><Code>{code}</Code></Error>")).kind(status);
    assert_eq!(kind("NoSuchKey", 404), ErrorKind::NotFound);
    assert_eq!(kind("ExpiredToken", 400), ErrorKind::PermissionDenied);
    assert_eq!(
        kind("SignatureDoesNotMatch", 403),
        ErrorKind::PermissionDenied
    );
    assert_eq!(kind("InvalidObjectState", 403), ErrorKind::Unsupported);
    assert_eq!(kind("RequestTimeout", 400), ErrorKind::TimedOut);
    assert_eq!(kind("SlowDown", 503), ErrorKind::Refused);
    assert_eq!(kind("Whatever", 404), ErrorKind::NotFound);
    assert_eq!(kind("Whatever", 412), ErrorKind::Changed);
    assert_eq!(kind("Whatever", 400), ErrorKind::Refused);
    assert!(s3("<Error><Code>SlowDown</Code></Error>").passes());
    assert!(!s3("<Error><Code>AccessDenied</Code></Error>").passes());
}

#[test]
fn what_repeats_the_request_is_not_looked_at_and_named_secrets_are_taken_out() {
    let secrets = ["FwoGtoken".to_owned(), "abcd1234".to_owned()];
    let body = "<Error><Code>SignatureDoesNotMatch</Code><Message>not abcd1234\r\nnor FwoGtoken</Message>\
                <AWSAccessKeyId>AKIAX</AWSAccessKeyId><StringToSign>AWS4</StringToSign><Token-0>FwoGtoken</Token-0>\
                <CanonicalRequest>x-amz-security-token:FwoGtoken</CanonicalRequest><A><Code>Deep</Code></A></Error>";
    let cause = Cause::of_s3(body.as_bytes(), &secrets);
    assert_eq!(cause.to_string(), "SignatureDoesNotMatch: not ***  nor ***");
    let shown = format!("{cause:?}");
    for secret in ["FwoG", "abcd", "AKIAX", "AWS4", "Deep"] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

#[test]
fn remote_exceptions_are_decoded() {
    let cause = webhdfs(
        "FileNotFoundException",
        "File /a b does not exist.\n\tat org.x.Y(Z.java:1)",
    );
    assert_eq!(
        cause.to_string(),
        "FileNotFoundException: File /a b does not exist."
    );
    assert_eq!(cause.kind(404), ErrorKind::NotFound);
    let kind = |exception, message, status| webhdfs(exception, message).kind(status);
    assert_eq!(
        kind("FileNotFoundException", "Path is not a file: /d", 404),
        ErrorKind::IsADirectory
    );
    assert_eq!(
        kind("AccessControlException", "Permission denied", 403),
        ErrorKind::PermissionDenied
    );
    assert_eq!(
        kind(
            "SecurityException",
            "Failed to obtain user group information",
            401
        ),
        ErrorKind::PermissionDenied
    );
    assert_eq!(
        kind("InvalidToken", "token (u) can't be found in cache", 403),
        ErrorKind::PermissionDenied
    );
    assert_eq!(
        kind("IllegalArgumentException", "Invalid offset", 400),
        ErrorKind::Misuse
    );
    assert_eq!(kind("IOException", "broken", 500), ErrorKind::Refused);
    let standby = webhdfs(
        "StandbyException",
        "Operation category READ is not supported in state standby",
    );
    assert!(standby.is_standby() && standby.passes());
    assert!(!webhdfs("IOException", "x").passes());
}

#[test]
fn what_is_no_explanation_is_told_as_such() {
    let page = Cause::of_webhdfs(b"\n<!DOCTYPE HTML><title>Log in</title>", &[]);
    assert!(page.to_string().contains("page of HTML"), "{page}");
    for body in [
        "",
        "not found",
        "{}",
        "<Other><Code>x</Code></Other>",
        "{\"RemoteException\":7}",
    ] {
        assert!(s3(body).is_empty(), "{body}");
        assert!(Cause::of_webhdfs(body.as_bytes(), &[]).is_empty(), "{body}");
    }
    assert_eq!(s3("").to_string(), "no reason given");
}

#[test]
fn headers_fill_in_for_an_empty_body() {
    let mut headers = HeaderMap::new();
    headers.insert("x-amz-bucket-region", HeaderValue::from_static("eu-west-1"));
    headers.insert("x-amz-request-id", HeaderValue::from_static("7QX2"));
    let cause = Cause::default().or_headers(&headers, &[]);
    assert_eq!(
        (cause.region.as_deref(), cause.request_id.as_deref()),
        (Some("eu-west-1"), Some("7QX2"))
    );
    headers.insert(
        "x-amz-bucket-region",
        HeaderValue::from_static("evil.example/x"),
    );
    assert_eq!(Cause::default().or_headers(&headers, &[]).region, None);
    headers.append(
        "www-authenticate",
        HeaderValue::from_static("Basic realm=\"x\""),
    );
    headers.append("www-authenticate", HeaderValue::from_static("NEGOTIATE"));
    let cause = Cause::of_webhdfs(b"", &[]).or_headers(&headers, &[]);
    assert!(cause.to_string().contains("Kerberos"), "{cause}");
}

#[test]
fn texts_of_servers_are_bounded() {
    let cause = s3(&format!(
        "<Error><Code>{0}</Code><Message>{0}</Message></Error>",
        "x".repeat(30_000)
    ));
    assert!(cause.to_string().len() < 600, "{}", cause.to_string().len());
    let deep = format!("<Error>{}", "<a>".repeat(200_000));
    assert!(s3(&deep).is_empty());
    assert!(Cause::of_webhdfs("[".repeat(200_000).as_bytes(), &[]).is_empty());
}

proptest! {
    #[test]
    fn no_body_makes_reading_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), xmlish in "[<>/&;#xError CodMsage!\\[\\]\"'=-]{0,80}") {
        for body in [bytes.as_slice(), xmlish.as_bytes()] {
            for cause in [Cause::of_s3(body, &[]), Cause::of_webhdfs(body, &[])] {
                let shown = cause.to_string();
                prop_assert!(!shown.chars().any(char::is_control), "{:?}", shown);
            }
        }
    }

    #[test]
    fn no_named_secret_comes_back(secret in "[A-Za-z0-9+/]{4,40}", before in "[a-z ]{0,8}", after in "[a-z ]{0,8}") {
        let text = format!("{before}{secret}{after}");
        let body = format!("<Error><Code>{text}</Code><Message>{text}</Message><RequestId>{text}</RequestId></Error>");
        let cause = Cause::of_s3(body.as_bytes(), std::slice::from_ref(&secret));
        let shown = format!("{cause:?} {cause}");
        prop_assert!(!shown.contains(&secret), "{}", shown);
    }
}
