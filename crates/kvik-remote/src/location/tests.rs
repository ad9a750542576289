//! What broke elsewhere: bucket shapes that were not known, hosts that were signed for by mistake, keys that were encoded
//! twice, secrets in messages.

use proptest::prelude::*;

use std::time::UNIX_EPOCH;

use http::HeaderMap;

use super::*;
use crate::endpoint::{
    Ask, Endpoint, HttpEndpoint, Moment, S3Endpoint, S3Options, WebHdfsEndpoint, WebHdfsOptions,
};

#[track_caller]
fn check(url: &str, kind: Kind, shown: &str) -> Location {
    let location = Location::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
    assert_eq!(
        (location.kind(), location.to_string().as_str()),
        (kind, shown),
        "{url}"
    );
    location
}

/// What the object of an S3 URL is: bucket, key as it goes out, region.
#[track_caller]
fn check_object(url: &str, bucket: &str, key: &str, region: Option<&str>) {
    let location = Location::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
    let Found::Object(object) = location.found() else {
        panic!("{url} is {location:?}");
    };
    assert_eq!((object.bucket(), object.key()), (bucket, key), "{url}");
    assert_eq!(
        (location.kind(), location.region()),
        (Kind::S3, region),
        "{url}"
    );
    if let Some(site) = object.site() {
        assert_eq!(
            site.url_in(bucket, None).to_send(),
            url.replacen("HTTPS", "https", 1)
        );
    }
}

#[track_caller]
fn refuse(url: &str, kind: ErrorKind, part: &str) {
    let error = Location::parse(url).expect_err(url);
    assert_eq!(error.kind(), kind, "{url}: {error}");
    assert!(error.to_string().contains(part), "{url}: {error}");
}

#[test]
fn every_shape_of_an_s3_url_names_bucket_key_and_region() {
    let east = Some("us-east-1");
    check_object("https://b.s3.us-east-1.amazonaws.com/k/l", "b", "k/l", east);
    check_object("https://s3.us-east-1.amazonaws.com/b/k/l", "b", "k/l", east);
    check_object("https://a.b.s3.amazonaws.com/k", "a.b", "k", None);
    check_object("https://s3.amazonaws.com/B_1/k", "B_1", "k", None);
    check_object("http://b.s3-us-east-1.amazonaws.com/k", "b", "k", east);
    check_object("https://s3-us-east-1.amazonaws.com/b//k", "b", "/k", east);
    check_object("https://b.s3.amazonaws.com:8443/k", "b", "k", None);
    check_object(
        "HTTPS://b.s3.amazonaws.com/a=b+c%2fd'?versionId=x+y",
        "b",
        "a=b+c%2fd'",
        None,
    );
    check_object("s3://b/k", "b", "k", None);
    check_object("S3://b/a b#%2F%?versionId=7", "b", "a%20b%23%2F%25", None);
    let version = check(
        "s3://b/k?versionId=a#b",
        Kind::S3,
        "s3://b/k?versionId=a%23b",
    );
    assert_eq!(version.key().as_deref(), Some(&b"k"[..]));
    check_object(
        "https://b.s3.dualstack.cn-north-1.amazonaws.com.cn/k",
        "b",
        "k",
        Some("cn-north-1"),
    );
}

#[test]
fn what_is_not_surely_s3_is_plain_http() {
    for url in [
        "https://s3.us-east-1.amazonaws.com/",
        "https://s3.us-east-1.amazonaws.com/b",
        "https://s3.us-east-1.amazonaws.com/b/",
        "https://s3.us-east-1.amazonaws.com//k",
        "https://s3.us-east-1.amazonaws.com/b%20c/k",
        "https://s3.us-east-1.amazonaws.com/../k",
        "https://s3.us-east-1.amazonaws.com.example.org/b/k",
        "https://b.s3-website-us-east-1.amazonaws.com/k",
        "https://storage.googleapis.com/b/k",
        "http://127.0.0.1:9000/b/k",
        "http://[::1]:9000/b/k",
        "https://example.org/s3.amazonaws.com/b/k",
        "https://example.org/?u=https://b.s3.amazonaws.com/k",
    ] {
        if let Ok(location) = Location::parse(url) {
            assert_eq!(location.kind(), Kind::Http, "{url}");
        }
    }
    // With a password it is something else than S3, whatever the host is called.
    let location = Location::parse("https://u:pass@b.s3.amazonaws.com/k").unwrap();
    assert_eq!(location.kind(), Kind::Http);
    // Who the user is does not decide where the request goes.
    let location = Location::parse("https://b.s3.amazonaws.com:pw@example.org/k").unwrap();
    assert_eq!(
        (location.kind(), location.to_string().as_str()),
        (Kind::Http, "https://example.org/k")
    );
}

#[test]
fn a_signature_in_the_query_makes_it_presigned_and_is_never_shown() {
    let hidden = check(
        "https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIA%2Fx&X-Amz-Expires=9&x-amz-signature=abcdef12",
        Kind::S3Presigned,
        "https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=***&X-Amz-Expires=9&x-amz-signature=***",
    );
    assert!(hidden.secrets().contains(&"abcdef12".to_owned()));
    check(
        "https://s3.amazonaws.com/b/k?AWSAccessKeyId=AKIA&Signature=abc&Expires=1",
        Kind::S3Presigned,
        "https://s3.amazonaws.com/b/k?AWSAccessKeyId=***&Signature=***&Expires=***",
    );
    // The host of another store is no host of S3, so the URL goes out as any other.
    check(
        "https://minio.example.org/b/k?X-Amz-Algorithm=A&X-Amz-Signature=abc",
        Kind::Http,
        "https://minio.example.org/b/k?X-Amz-Algorithm=A&X-Amz-Signature=***",
    );
    let half = Location::parse("https://b.s3.amazonaws.com/k?X-Amz-Signature=abc").unwrap();
    assert_eq!(half.kind(), Kind::S3);
}

#[test]
fn all_forms_of_a_secret_are_told_to_those_who_hide_it() {
    let location = Location::parse("https://us%65r:p%40ss@example.org/a?sig=a%2Fb&op=x").unwrap();
    assert_eq!(
        location.secrets(),
        ["a%2Fb", "a/b", "user", "p@ss", "dXNlcjpwQHNz"]
    );
}

#[test]
fn webhdfs_is_known_by_port_and_path() {
    check(
        "http://nn:9870/webhdfs/v1/a=b/c%20d?op=OPEN&user.name=u&delegation=tok1&noredirect=true",
        Kind::WebHdfs,
        "http://nn:9870/webhdfs/v1/a=b/c%20d?user.name=u&delegation=***",
    );
    check(
        "HTTP://NN:80/WebHDFS/V1/x",
        Kind::WebHdfs,
        "http://nn/WebHDFS/V1/x",
    );
    check(
        "webhdfs://nn/a b#c",
        Kind::WebHdfs,
        "http://nn:9870/webhdfs/v1/a%20b%23c",
    );
    check(
        "swebhdfs://nn:443/a",
        Kind::WebHdfs,
        "https://nn/webhdfs/v1/a",
    );
    for url in [
        "http://nn/webhdfs/v1/x",
        "http://nn:9870/webhdfs/v1/",
        "http://nn:9870/webhdfs/v2/x",
        "http://nn:9870/x/webhdfs/v1/x",
        // It means less than the file.
        "http://nn:9870/webhdfs/v1/x?op=OPEN&offset=7",
        "http://nn:9870/webhdfs/v1/x?op=LISTSTATUS",
    ] {
        let location = Location::parse(url).unwrap();
        assert_eq!(
            (location.kind(), location.to_string().as_str()),
            (Kind::Http, url)
        );
    }
    refuse("webhdfs://nn/", ErrorKind::Misuse, "no file");
    refuse("webhdfs://nn/x?offset=7", ErrorKind::Misuse, "a whole file");
}

#[test]
fn urls_go_out_byte_for_byte() {
    for url in [
        "https://example.org/a//b/./c/../d;e=f,g'h(i)!*~$&+@:%41%zz?x=%2f+y'&&z#",
        "http://example.org/?",
        "http://example.org?a",
        "http://[2001:db8::1]:8080/a",
    ] {
        let location = Location::parse(url).unwrap();
        let Found::Web(sent) = location.found() else {
            panic!("{location:?}");
        };
        let url = url.trim_end_matches('#').replace("org?a", "org/?a");
        assert_eq!(sent.to_send(), url);
    }
    // What may not stand in a URL cannot.
    check(
        "https://example.org/ü b|c",
        Kind::Http,
        "https://example.org/%C3%BC%20b%7Cc",
    );
    check(
        "https://example.org:443/a#part",
        Kind::Http,
        "https://example.org/a",
    );
    check(
        "http://[::FFFF:1.2.3.4]:/a",
        Kind::Http,
        "http://[::ffff:102:304]/a",
    );
    check(
        "https://u:p%40ss@EXAMPLE.org/a?token=secret",
        Kind::Http,
        "https://example.org/a?token=***",
    );
}

#[test]
fn what_is_no_url_of_an_object_is_refused_with_the_reason() {
    refuse("", ErrorKind::Misuse, "no scheme");
    refuse("example.org/a", ErrorKind::Misuse, "no scheme");
    refuse("//example.org/a", ErrorKind::Misuse, "no scheme");
    refuse("://example.org/a", ErrorKind::Unsupported, "scheme");
    refuse("file:///etc/passwd", ErrorKind::Unsupported, "scheme");
    refuse("ftp://example.org/a", ErrorKind::Unsupported, "scheme");
    refuse("https://example.org", ErrorKind::Misuse, "no object");
    refuse("https://example.org/", ErrorKind::Misuse, "no object");
    refuse("https:///a", ErrorKind::Misuse, "no host");
    refuse("https://exa mple.org/a", ErrorKind::Misuse, "character");
    refuse("https://ex%61mple.org/a", ErrorKind::Misuse, "character");
    refuse("https://exämple.org/a", ErrorKind::Misuse, "xn--");
    refuse("https://2130706433/a", ErrorKind::Misuse, "IPv4");
    refuse("https://0x7f.1/a", ErrorKind::Misuse, "IPv4");
    refuse("https://[::1/a", ErrorKind::Misuse, "does not end");
    refuse("https://[::1]x/a", ErrorKind::Misuse, "port");
    refuse("https://[::1%25eth0]/a", ErrorKind::Misuse, "IPv6");
    refuse("https://h:0/a", ErrorKind::Misuse, "port");
    refuse("https://h:65536/a", ErrorKind::Misuse, "port");
    refuse("https://h:+1/a", ErrorKind::Misuse, "port");
    refuse("https://u:p@ss@h/a", ErrorKind::Misuse, "%40");
    refuse("https://u:%00@h/a", ErrorKind::Misuse, "readable");
    refuse("https://h/a\r\nHost: x", ErrorKind::Misuse, "control");
    refuse("s3://b", ErrorKind::Misuse, "no object");
    refuse("s3://b/", ErrorKind::Misuse, "no object");
    refuse("s3:///k", ErrorKind::Misuse, "no bucket");
    refuse("s3://id:secret@b/k", ErrorKind::Misuse, "letters, digits");
    refuse("s3://../k", ErrorKind::Misuse, "none that a bucket");
    refuse("s3://b/k?part=1", ErrorKind::Misuse, "versionId only");
    refuse(
        &format!("https://h/{}", "a".repeat(40_000)),
        ErrorKind::Misuse,
        "32 KiB",
    );
}

#[test]
fn keys_are_opaque_and_encoded_once() {
    let key = " a/../b//%2F%zz?x#y+=@:;,$&'()*!~ü\u{1F600}\\|\"<>^`{} ";
    let location = Location::from_bucket_key("b", key).unwrap();
    let Found::Object(object) = location.found() else {
        panic!("{location:?}");
    };
    assert_eq!(
        object.key(),
        "%20a/../b//%252F%25zz%3Fx%23y%2B%3D%40%3A%3B%2C%24%26%27%28%29%2A%21~%C3%BC%F0%9F%98%80%5C%7C%22%3C%3E%5E%60%7B%7D%20"
    );
    assert_eq!(percent::decode(object.key()), key.as_bytes());
    for bucket in ["", ".", "..", "a/b", "a\nb"] {
        assert_eq!(
            Location::from_bucket_key(bucket, "k").unwrap_err().kind(),
            ErrorKind::Misuse
        );
    }
    assert!(Location::from_bucket_key("b", "").is_err());
    let based =
        Location::from_base_path("http://nn:9870/webhdfs/v1?user.name=u", "/a?=%41").unwrap();
    assert_eq!(
        based.to_string(),
        "http://nn:9870/webhdfs/v1/a%3F%3D%2541?user.name=u"
    );
}

#[test]
fn an_allow_list_decides_in_its_order() {
    let kinds = [Kind::Http, Kind::S3];
    let location = Location::parse_among("https://b.s3.amazonaws.com/k", &kinds).unwrap();
    assert_eq!(location.kind(), Kind::Http);
    let location = Location::parse_among("s3://b/k", &kinds).unwrap();
    assert_eq!(location.kind(), Kind::S3);
    let error =
        Location::parse_among("https://example.org/a", &[Kind::S3, Kind::WebHdfs]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "open: the URL is of none of the kinds allowed: S3, WebHDFS"
    );
    assert!(Location::parse_among("https://example.org/a", &[]).is_err());
}

#[test]
fn a_learnt_region_moves_the_host_of_a_url_within_its_service() {
    for (url, moved) in [
        (
            "https://b.s3.us-east-1.amazonaws.com/k",
            "https://b.s3.eu-west-1.amazonaws.com/k",
        ),
        (
            "https://s3.amazonaws.com/b/k",
            "https://s3.eu-west-1.amazonaws.com/b/k",
        ),
        (
            "https://b.s3-us-west-2.amazonaws.com/k?versionId=1",
            "https://b.s3.eu-west-1.amazonaws.com/k?versionId=1",
        ),
        (
            "https://b.s3-fips.dualstack.us-east-1.amazonaws.com/k",
            "https://b.s3-fips.dualstack.eu-west-1.amazonaws.com/k",
        ),
        (
            "https://b.s3-accelerate.amazonaws.com/k",
            "https://b.s3-accelerate.amazonaws.com/k",
        ),
        (
            "https://a-1.s3-accesspoint.us-east-1.amazonaws.com/k",
            "https://a-1.s3-accesspoint.us-east-1.amazonaws.com/k",
        ),
    ] {
        let location = Location::parse(url).unwrap();
        let Found::Object(object) = location.found() else {
            panic!("{location:?}");
        };
        let site = object.site().expect("the URL has a host");
        assert_eq!(
            site.url_in(object.bucket(), Some("eu-west-1")).to_send(),
            moved
        );
        assert_eq!(
            site.url_in(object.bucket(), location.region()).to_send(),
            url
        );
    }
}

/// Pieces of URLs, some of them wrong, in an order that is often right.
fn urlish() -> impl Strategy<Value = String> {
    let scheme = prop::sample::select(vec![
        "http", "https", "s3", "HTTPS", "webhdfs", "swebhdfs", "file", "",
    ]);
    let host = prop::sample::select(vec![
        "example.org",
        "b.s3.amazonaws.com",
        "s3.us-east-1.amazonaws.com",
        "s3-eu-west-1.amazonaws.com",
        "[::1]",
        "127.0.0.1",
        "nn",
        "b.s3.cn-north-1.amazonaws.com.cn",
        "a-1.s3-accesspoint.us-east-1.amazonaws.com",
        "..",
        "é",
        "[",
    ]);
    let port = prop::sample::select(vec!["", ":", ":80", ":443", ":9870", ":99999", ":x"]);
    let path = prop::collection::vec(
        prop_oneof![
            Just("/".to_owned()),
            Just("/webhdfs/v1/".to_owned()),
            Just("%2F".to_owned()),
            Just("%".to_owned()),
            "[ -~]{0,8}",
            "\\PC{0,4}",
        ],
        0..6,
    );
    (scheme, host, port, path)
        .prop_map(|(scheme, host, port, path)| format!("{scheme}://{host}{port}{}", path.concat()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_makes_parsing_panic(text in any::<String>(), url in urlish()) {
        let _ = Location::parse(&text);
        let _ = Location::parse(&url);
        for kind in Kind::ALL {
            let _ = Location::parse_among(&url, &[kind]);
        }
    }

    #[test]
    fn what_goes_out_means_the_same_when_it_is_read_again(url in urlish()) {
        let Ok(location) = Location::parse(&url) else { return Ok(()) };
        prop_assert!(location.to_string().bytes().all(|byte| byte.is_ascii_graphic()));
        let sent = match location.found() {
            Found::Web(url) | Found::File(url) if url.user_info().is_none() => url.to_send(),
            Found::Object(object) => match object.site() {
                Some(site) => site.url_in(object.bucket(), None).to_send(),
                None => location.to_string(),
            },
            _ => return Ok(()),
        };
        let again = Location::parse(&sent).unwrap();
        prop_assert_eq!(again.to_string(), location.to_string());
        // A file is known by its port, which does not go out where it is the scheme's own, or by `webhdfs:`.
        if location.kind() != Kind::WebHdfs {
            prop_assert_eq!(again.kind(), location.kind());
            prop_assert_eq!((again.bucket(), again.region()), (location.bucket(), location.region()));
        }
    }

    #[test]
    fn the_client_sends_what_was_meant_or_says_that_it_cannot(url in urlish(), key in "\\PC{1,16}") {
        let keyed = Location::from_bucket_key("b", &key);
        for location in [Location::parse(&url), keyed].into_iter().flatten() {
            let endpoint: Box<dyn Endpoint> = match location.found() {
                Found::Web(_) => Box::new(HttpEndpoint::new(&location, &HeaderMap::new()).unwrap()),
                Found::Object(_) => Box::new(S3Endpoint::new(&location, S3Options::default()).unwrap()),
                Found::File(_) => Box::new(WebHdfsEndpoint::new(&location, &WebHdfsOptions::default()).unwrap()),
            };
            let request = endpoint.request(&Ask::Whole, &Moment::at(UNIX_EPOCH)).unwrap();
            let path = request.url.split('?').next().unwrap_or_default().to_ascii_lowercase().replace("%2e", ".");
            let resolves = path.split('/').any(|part| part == "." || part == "..");
            prop_assert_eq!(request.to_url().is_err(), resolves, "{}", request.url);
        }
    }

    #[test]
    fn no_secret_of_a_url_is_shown(
        user in "[A-Za-z0-9]{8,16}", password in "[A-Za-z0-9%~!]{8,16}", token in "[A-Za-z0-9%=/+~]{8,24}",
        name in prop::sample::select(vec!["token", "sig", "X-Amz-Signature", "delegation", "X-Amz-Security-Token", "k", "access_token"]),
        host in prop::sample::select(vec!["example.org", "b.s3.amazonaws.com", "nn:9870", "[::1]"]),
        path in prop::sample::select(vec!["/a", "/webhdfs/v1/a"]),
        bare in any::<bool>(),
    ) {
        let token = format!("Zq{}", token.trim_start_matches('='));
        let query = match bare { true => token.replace('=', ""), false => format!("{name}={token}") };
        let user = format!("Zu{user}");
        let password = format!("Zp{password}");
        for url in [
            format!("https://{user}:{password}@{host}{path}?{query}"),
            format!("https://{host}{path}?{query}&op=OPEN"),
            format!("https://{user}@{host}{path}?a=b&{query}"),
            format!("s3://{user}:{password}@b/k?{query}"),
            format!("{user}:{password}@{host}{path}?{query}"),
            format!("https://{user}:{password}@{host}:x{path}?{query}"),
        ] {
            let shown = match Location::parse(&url) {
                Ok(location) => format!("{location} {location:?} {:?}", location.secrets().len()),
                Err(error) => format!("{error} {error:?}"),
            };
            for start in ["Zq", "Zu", "Zp"] {
                prop_assert!(!shown.contains(start), "{} shows {}", url, shown);
            }
        }
    }

    #[test]
    fn a_key_is_what_was_typed_after_one_decoding(key in "\\PC{1,24}", bucket in "[a-z0-9]{3,12}") {
        let location = Location::from_bucket_key(&bucket, &key).unwrap();
        prop_assert_eq!(location.key(), Some(key.as_bytes().to_vec()));
        // Its text is a URL of the same object.
        prop_assert_eq!(&Location::parse(&location.to_string()).unwrap(), &location);
    }
}
