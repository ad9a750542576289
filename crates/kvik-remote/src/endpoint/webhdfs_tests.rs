//! What broke elsewhere: paths that were not encoded, delegation tokens that were dropped, lengths found by a regular
//! expression.

use std::time::UNIX_EPOCH;

use super::*;

#[track_caller]
fn check(url: &str, options: &WebHdfsOptions, ask: &Ask, sent: &str) {
    let location = Location::parse(url).unwrap_or_else(|error| panic!("{url}: {error}"));
    let endpoint = WebHdfsEndpoint::new(&location, options).unwrap();
    let request = endpoint.request(ask, &Moment::at(UNIX_EPOCH)).unwrap();
    assert_eq!(
        (&request.method, request.url.as_str()),
        (&Method::GET, sent)
    );
    // A range is no header here: a data node would not look at it.
    assert!(request.headers.is_empty());
}

#[test]
fn a_range_is_a_part_of_the_query() {
    let none = WebHdfsOptions::default();
    let url = "http://nn:9870/webhdfs/v1/a%20b";
    check(
        url,
        &none,
        &Ask::Length,
        "http://nn:9870/webhdfs/v1/a%20b?op=GETFILESTATUS",
    );
    check(
        url,
        &none,
        &Ask::Whole,
        "http://nn:9870/webhdfs/v1/a%20b?op=OPEN",
    );
    check(
        url,
        &none,
        &Ask::Range(10..14),
        "http://nn:9870/webhdfs/v1/a%20b?op=OPEN&offset=10&length=4",
    );
    let location = Location::parse(url).unwrap();
    let endpoint = WebHdfsEndpoint::new(&location, &none).unwrap();
    assert!(
        endpoint
            .request(&Ask::Range(4..4), &Moment::at(UNIX_EPOCH))
            .is_err()
    );
}

#[test]
fn the_path_is_encoded_once() {
    let location =
        Location::from_base_path("http://nn:9870/webhdfs/v1/", "/a=b/100%/c+d e/ü").unwrap();
    let endpoint = WebHdfsEndpoint::new(&location, &WebHdfsOptions::default()).unwrap();
    let request = endpoint
        .request(&Ask::Whole, &Moment::at(UNIX_EPOCH))
        .unwrap();
    assert_eq!(
        request.url,
        "http://nn:9870/webhdfs/v1/a%3Db/100%25/c%2Bd%20e/%C3%BC?op=OPEN"
    );
}

#[test]
fn the_user_is_the_callers_the_urls_or_that_of_the_settings() {
    let given = |user: Option<&str>, default: Option<&str>| WebHdfsOptions {
        user: user.map(str::to_owned),
        default_user: default.map(str::to_owned),
        ..WebHdfsOptions::default()
    };
    let at = "http://nn:9870/webhdfs/v1/a";
    let with = format!("{at}?User.Name=url&doas=x");
    let whole = Ask::Whole;
    check(
        at,
        &given(None, Some("set")),
        &whole,
        &format!("{at}?user.name=set&op=OPEN"),
    );
    check(
        &with,
        &given(None, Some("set")),
        &whole,
        &format!("{at}?User.Name=url&doas=x&op=OPEN"),
    );
    check(
        &with,
        &given(Some("a@b c"), Some("set")),
        &whole,
        &format!("{at}?doas=x&user.name=a%40b%20c&op=OPEN"),
    );
}

#[test]
fn a_delegation_token_is_kept_and_stands_for_its_user() {
    let options = WebHdfsOptions {
        default_user: Some("set".to_owned()),
        ..WebHdfsOptions::default()
    };
    let at = "http://nn:9870/webhdfs/v1/a";
    let with = format!("{at}?delegation=JAAEc2xhdmVz_-&noredirect=true&op=OPEN");
    check(
        &with,
        &options,
        &Ask::Length,
        &format!("{at}?delegation=JAAEc2xhdmVz_-&op=GETFILESTATUS"),
    );
    let own = WebHdfsOptions {
        delegation: Some("own+token".to_owned()),
        ..options
    };
    check(
        &with,
        &own,
        &Ask::Whole,
        &format!("{at}?delegation=own%2Btoken&op=OPEN"),
    );
    let location = Location::parse(&with).unwrap();
    let endpoint = WebHdfsEndpoint::new(&location, &own).unwrap();
    let request = endpoint
        .request(&Ask::Whole, &Moment::at(UNIX_EPOCH))
        .unwrap();
    let shown = format!("{own:?} {location:?} {endpoint:?} {request:?}");
    assert!(!shown.contains("own") && !shown.contains("JAAE"), "{shown}");
}

#[test]
fn another_name_node_is_asked_for_the_same() {
    let location = Location::parse("https://nn1:9871/webhdfs/v1/a?user.name=u").unwrap();
    let endpoint = WebHdfsEndpoint::new(&location, &WebHdfsOptions::default()).unwrap();
    let other = endpoint.at_name_node("NN2:9999").unwrap();
    let request = other.request(&Ask::Whole, &Moment::at(UNIX_EPOCH)).unwrap();
    assert_eq!(
        request.url,
        "https://nn2:9999/webhdfs/v1/a?user.name=u&op=OPEN"
    );
    for wrong in ["", "a/b", "u@h:1", "h:x", "h?x"] {
        assert!(endpoint.at_name_node(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_status_is_read_as_json() {
    let text = r#"{"FileStatus":{"accessTime":0,"blockSize":134217728,"owner":"\"length\": 5",
        "length":1048583,"modificationTime":1320173277227,"type":"FILE","pathSuffix":""}}"#;
    let status = FileStatus::read(text.as_bytes()).unwrap();
    assert_eq!(
        (status.len, status.modified),
        (1_048_583, Some(1_320_173_277_227))
    );
    let kind = |text: &str| FileStatus::read(text.as_bytes()).unwrap_err().kind();
    let directory = r#"{"FileStatus":{"length":0,"type":"DIRECTORY"}}"#;
    assert_eq!(kind(directory), ErrorKind::IsADirectory);
    for text in [
        "",
        "{}",
        r#"{"FileStatus":{"type":"FILE"}}"#,
        r#"{"FileStatus":{"length":-1}}"#,
        r#"{"FileStatus":{"length":1e3}}"#,
        r#"{"FileStatus":{"length":9223372036854775808}}"#,
        " <HTML><body>Log in</body></HTML>",
        &format!("{{\"FileStatus\":{{\"length\":1}}{}}}", " ".repeat(70_000)),
        &"[".repeat(10_000),
    ] {
        assert_eq!(kind(text), ErrorKind::BadReply, "{text:.40}");
    }
}
