//! What broke elsewhere: buckets lost from requests to endpoints, regions of arguments that were not used, tokens sent to
//! stores that were not asked.

use std::time::UNIX_EPOCH;

use super::*;
use crate::credentials::Keys;

fn location(url: &str) -> Location {
    Location::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

fn options(endpoint: &str) -> S3Options {
    S3Options {
        endpoint: Some(endpoint.to_owned()),
        ..S3Options::default()
    }
}

/// The URL, and the region that it is signed for.
#[track_caller]
fn check(url: &str, options: S3Options, learnt: Option<&str>, sent: &str, region: &str) {
    let endpoint = S3Endpoint::new(&location(url), options).unwrap();
    let keys = Keys::new("id", "secret");
    let moment = Moment {
        keys: Some(&keys),
        region: learnt,
        ..Moment::at(UNIX_EPOCH)
    };
    let request = endpoint.request(&Ask::Range(0..4), &moment).unwrap();
    assert_eq!(request.url, sent);
    let authorization = request.headers["authorization"].to_str().unwrap();
    assert!(
        authorization.contains(&format!("/{region}/s3/aws4_request")),
        "{authorization}"
    );
    let sealed = "SignedHeaders=host;x-amz-content-sha256;x-amz-date,";
    assert!(authorization.contains(sealed), "{authorization}");
    assert_eq!(request.headers["range"], "bytes=0-3");
}

#[test]
fn the_object_is_asked_for_where_endpoint_region_and_style_say() {
    let none = S3Options::default;
    let region = |region: &str| S3Options {
        region: Some(region.to_owned()),
        default_region: Some("ap-south-1".to_owned()),
        ..none()
    };
    check(
        "s3://b/k",
        none(),
        None,
        "https://b.s3.amazonaws.com/k",
        "us-east-1",
    );
    check(
        "s3://b/k",
        region("eu-west-1"),
        None,
        "https://b.s3.eu-west-1.amazonaws.com/k",
        "eu-west-1",
    );
    check(
        "s3://b/k",
        region("eu-west-1"),
        Some("us-west-2"),
        "https://b.s3.us-west-2.amazonaws.com/k",
        "us-west-2",
    );
    check(
        "s3://b/k",
        region("cn-north-1"),
        None,
        "https://b.s3.cn-north-1.amazonaws.com.cn/k",
        "cn-north-1",
    );
    // The certificate is for one label, and old names have letters that no host has.
    check(
        "s3://a.b/k",
        none(),
        None,
        "https://s3.amazonaws.com/a.b/k",
        "us-east-1",
    );
    check(
        "s3://B_1/k",
        none(),
        None,
        "https://s3.amazonaws.com/B_1/k",
        "us-east-1",
    );
    let endpoint = || options("http://127.0.0.1:9000");
    check(
        "s3://a.b/k k?versionId=7",
        endpoint(),
        None,
        "http://127.0.0.1:9000/a.b/k%20k?versionId=7",
        "us-east-1",
    );
    check(
        "s3://b/k",
        options("https://h/gate/"),
        None,
        "https://h/gate/b/k",
        "us-east-1",
    );
    check(
        "s3://b/k",
        options("http://[::1]:80/"),
        None,
        "http://[::1]/b/k",
        "us-east-1",
    );
    let style = |addressing, endpoint| S3Options {
        addressing,
        ..options(endpoint)
    };
    let hosted = Addressing::VirtualHost;
    check(
        "s3://b/k",
        style(hosted, "http://localhost:1"),
        None,
        "http://b.localhost:1/k",
        "us-east-1",
    );
    check(
        "s3://a.b/k",
        style(hosted, "http://localhost:1"),
        None,
        "http://a.b.localhost:1/k",
        "us-east-1",
    );
    // An endpoint of AWS is AWS.
    let aws = "https://s3.eu-west-1.amazonaws.com";
    check(
        "s3://b/k",
        S3Options {
            endpoint: Some(aws.to_owned()),
            ..region("eu-west-1")
        },
        None,
        "https://b.s3.eu-west-1.amazonaws.com/k",
        "eu-west-1",
    );
    check(
        "s3://b/k",
        style(Addressing::Path, aws),
        None,
        "https://s3.eu-west-1.amazonaws.com/b/k",
        "us-east-1",
    );
}

#[test]
fn a_host_in_the_url_stays_until_a_server_says_otherwise() {
    let url = "https://b.s3.eu-west-1.amazonaws.com/k=%41";
    let setting = S3Options {
        default_region: Some("us-west-2".to_owned()),
        ..options("http://127.0.0.1:9000")
    };
    check(url, setting.clone(), None, url, "eu-west-1");
    let moved = "https://b.s3.us-west-1.amazonaws.com/k=%41";
    check(url, setting.clone(), Some("us-west-1"), moved, "us-west-1");
    let argument = S3Options {
        region: Some("ca-west-1".to_owned()),
        ..setting
    };
    check(url, argument, None, url, "ca-west-1");
    let china = "https://s3.amazonaws.com.cn/b/k";
    check(china, S3Options::default(), None, china, "cn-north-1");
    let global = "https://s3.amazonaws.com/b/k";
    let default = S3Options {
        default_region: Some("us-west-2".to_owned()),
        ..S3Options::default()
    };
    check(global, default, None, global, "us-west-2");
}

#[test]
fn without_keys_and_for_public_objects_nothing_is_signed() {
    let keys = Keys::new("id", "secret").token("t0ken");
    let with_keys = Moment {
        keys: Some(&keys),
        ..Moment::at(UNIX_EPOCH)
    };
    let public = Location::parse_among("s3://b/k", &[Kind::S3Public]).unwrap();
    let public = S3Endpoint::new(&public, S3Options::default()).unwrap();
    let plain = S3Endpoint::new(&location("s3://b/k"), S3Options::default()).unwrap();
    for request in [
        public.request(&Ask::Whole, &with_keys).unwrap(),
        plain.request(&Ask::Whole, &Moment::at(UNIX_EPOCH)).unwrap(),
    ] {
        assert!(request.headers.is_empty(), "{request:?}");
        assert_eq!(request.url, "https://b.s3.amazonaws.com/k");
    }
    let request = plain.request(&Ask::Length, &with_keys).unwrap();
    assert_eq!(request.method, Method::HEAD);
    let shown = format!("{request:?} {with_keys:?}");
    assert!(
        !shown.contains("t0ken") && !shown.contains("secret\""),
        "{shown}"
    );
}

#[test]
fn who_pays_and_other_headers_are_signed() {
    let mut headers = HeaderMap::new();
    headers.insert(
        "x-amz-server-side-encryption-customer-algorithm",
        HeaderValue::from_static("AES256"),
    );
    let options = S3Options {
        requester_pays: true,
        headers,
        ..S3Options::default()
    };
    let endpoint = S3Endpoint::new(&location("s3://b/k"), options).unwrap();
    let keys = Keys::new("id", "secret");
    let moment = Moment {
        keys: Some(&keys),
        ..Moment::at(UNIX_EPOCH)
    };
    let request = endpoint.request(&Ask::Whole, &moment).unwrap();
    assert!(!format!("{endpoint:?} {request:?}").contains("AES256"));
    assert_eq!(request.headers["x-amz-request-payer"], "requester");
    let authorization = request.headers["authorization"].to_str().unwrap();
    assert!(authorization.contains(
        "x-amz-date;x-amz-request-payer;x-amz-server-side-encryption-customer-algorithm,"
    ));
}

#[test]
fn the_other_style_is_offered_only_where_one_had_to_be_chosen() {
    let other = |url: &str, options: S3Options| {
        let endpoint = S3Endpoint::new(&location(url), options).unwrap();
        let other = endpoint.addressed_otherwise()?;
        assert!(other.addressed_otherwise().is_none());
        Some(
            other
                .request(&Ask::Whole, &Moment::at(UNIX_EPOCH))
                .unwrap()
                .url,
        )
    };
    let expected = Some("https://b.store.example/k".to_owned());
    assert_eq!(
        other("s3://b/k", options("https://store.example")),
        expected
    );
    let path = S3Options {
        addressing: Addressing::Path,
        ..options("https://store.example")
    };
    assert_eq!(other("s3://b/k", path), None);
    assert_eq!(other("s3://b/k", options("http://127.0.0.1:9")), None);
    assert_eq!(other("s3://b/k", options("http://[::1]:9")), None);
    assert_eq!(other("s3://B_1/k", options("https://store.example")), None);
    assert_eq!(other("s3://b/k", S3Options::default()), None);
}

#[test]
fn styles_have_the_names_of_profiles() {
    for (text, style) in [
        ("auto", Addressing::Auto),
        ("Path", Addressing::Path),
        (" virtual", Addressing::VirtualHost),
    ] {
        assert_eq!(text.parse::<Addressing>().unwrap(), style);
        assert_eq!(style.to_string(), text.trim().to_lowercase());
    }
    assert_eq!(
        "host".parse::<Addressing>().unwrap_err().kind(),
        ErrorKind::Config
    );
}

#[test]
fn where_the_bucket_stands_is_said_as_the_request_has_it() {
    let aws = "https://s3.eu-west-1.amazonaws.com";
    let hosted = S3Options {
        addressing: Addressing::VirtualHost,
        ..options("http://localhost:1")
    };
    let (path, host) = (Addressing::Path, Addressing::VirtualHost);
    for (url, options, style) in [
        ("s3://b/k", S3Options::default(), host),
        ("s3://a.b/k", S3Options::default(), path),
        ("s3://b/k", options(aws), host),
        ("s3://a.b/k", options(aws), path),
        ("s3://b/k", options("http://b.example:1"), path),
        ("s3://a.b/k", hosted, host),
        ("https://b.s3.amazonaws.com/k", S3Options::default(), host),
        ("https://s3.amazonaws.com/b/k", S3Options::default(), path),
    ] {
        let endpoint = S3Endpoint::new(&location(url), options).unwrap();
        assert_eq!(endpoint.addressing(), style, "{url}");
    }
}

#[test]
fn endpoints_and_styles_that_cannot_be_used_are_refused() {
    for endpoint in [
        "store.example",
        "s3://b",
        "ftp://h",
        "https://h?x=1",
        "https://u:hunter22@h",
        "https://",
    ] {
        let error = S3Endpoint::new(&location("s3://b/k"), options(endpoint)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{endpoint}: {error}");
        assert!(!error.to_string().contains("hunter22"), "{error}");
    }
    let hosted = S3Options {
        addressing: Addressing::VirtualHost,
        ..S3Options::default()
    };
    assert_eq!(
        S3Endpoint::new(&location("s3://B_1/k"), hosted)
            .unwrap_err()
            .kind(),
        ErrorKind::Config
    );
    let error = S3Endpoint::new(&location("https://h/k"), S3Options::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
}
