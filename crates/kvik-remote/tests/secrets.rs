//! Nothing that a programmer prints, and no refusal of what makes no sense, shows a secret.

use std::ffi::OsString;
use std::fmt::{Debug, Write as _};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use http::{HeaderMap, HeaderValue};
use kvik_remote::protocol::{
    Ask, Cause, Endpoint, HttpEndpoint, Moment, PresignedEndpoint, Request, Reuse, S3Endpoint,
    S3Options, WebHdfsEndpoint, WebHdfsOptions, sign,
};
use kvik_remote::{
    Addressing, AwsSettings, Chain, Credentials, Environment, Keys, Kind, Location, ProfileFiles,
    Profiles, RemoteOptions,
};

const SECRETS: [&str; 7] = [
    "hunter22",
    "aHVudGVyMjI",
    "t0ken-of-mine",
    "s3cret",
    "AKIASECRET",
    "sess10n",
    "delegat10n",
];

#[track_caller]
fn check(text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} is in: {text}");
    }
}

/// As it is printed in one line, and in many.
fn printed(value: &dyn Debug) -> String {
    format!("{value:?}\n{value:#?}\n")
}

fn keys() -> Keys {
    Keys::new("AKIASECRET", "s3cret").token("sess10n")
}

fn headers() -> HeaderMap {
    HeaderMap::from_iter([
        (
            http::header::AUTHORIZATION,
            HeaderValue::from_static("Bearer t0ken-of-mine"),
        ),
        (http::header::COOKIE, HeaderValue::from_static("id=sess10n")),
    ])
}

fn variable(name: &str) -> Option<OsString> {
    let value = match name {
        "AWS_ACCESS_KEY_ID" => "AKIASECRET",
        "AWS_SECRET_ACCESS_KEY" => "s3cret",
        "AWS_SESSION_TOKEN" => "sess10n",
        "AWS_ENDPOINT_URL" => "https://store.example.org/?key=hunter22",
        "HOME" => "/nowhere",
        _ => return None,
    };
    Some(value.into())
}

fn location(url: &str) -> Location {
    Location::parse(url).expect("a good URL")
}

const PRESIGNED: &str = "https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIASECRET%2Fr\
     &X-Amz-Security-Token=sess10n&X-Amz-Signature=s3cret";

#[test]
fn where_keys_come_from_is_printed_without_them() {
    let profiles = "[default]\naws_access_key_id = AKIASECRET\naws_secret_access_key = s3cret\n\
                    endpoint_url = https://u:hunter22@store.example.org\n";
    let profiles = Profiles::read("", profiles).expect("a good file");
    let profile = profiles.get("default").expect("it is there");
    let settings = AwsSettings::read(variable, Some(&profile)).expect("good settings");
    let of_profile = AwsSettings::read(|_| None, Some(&profile)).expect("good settings");
    let files = ProfileFiles::from_lookup(variable, None).expect("good files");
    let chain = Chain::new([Arc::new(keys()) as Arc<dyn Credentials>]);
    let environment = Environment::new(variable);
    let values: [&dyn Debug; 9] = [
        &keys(),
        &profiles,
        &profile,
        &settings,
        &of_profile,
        &files,
        &chain,
        &environment,
        &of_profile.endpoint_url,
    ];
    for value in values {
        check(&printed(value));
    }
    check(&format!("{} {files} {chain} {environment}", keys()));
}

#[test]
fn requests_and_what_makes_them_are_printed_without_secrets() {
    let moment_keys = keys();
    let moment = Moment {
        keys: Some(&moment_keys),
        bearer: Some("t0ken-of-mine"),
        ..Moment::at(UNIX_EPOCH + Duration::from_secs(1_000_000))
    };
    let with_user = location("https://me:hunter22@example.org/a?sig=s3cret");
    let presigned = location(PRESIGNED);
    let object = location("s3://b/k");
    let file = location("webhdfs://nn/a?delegation=delegat10n");
    let options = S3Options {
        endpoint: Some("https://store.example.org".to_owned()),
        headers: headers(),
        ..S3Options::default()
    };
    let of_hdfs = WebHdfsOptions {
        delegation: Some("delegat10n".to_owned()),
        headers: headers(),
        ..WebHdfsOptions::default()
    };
    let mut text = printed(&options) + &printed(&of_hdfs) + &printed(&moment);
    for location in [&with_user, &presigned, &object, &file] {
        writeln!(text, "{location} {}", printed(location)).expect("it is a string");
    }
    let no_headers = HeaderMap::new();
    let store = S3Endpoint::new(&object, options.clone()).expect("an object");
    let endpoints: [Box<dyn Endpoint>; 6] = [
        Box::new(HttpEndpoint::new(&with_user, &headers()).expect("of the web")),
        Box::new(HttpEndpoint::new(&with_user, &no_headers).expect("of the web")),
        Box::new(PresignedEndpoint::new(&presigned, &headers()).expect("presigned")),
        Box::new(store.clone()),
        Box::new(Reuse::new(store)),
        Box::new(WebHdfsEndpoint::new(&file, &of_hdfs).expect("a file")),
    ];
    for endpoint in &endpoints {
        for moment in [moment, Moment::at(moment.now)] {
            let request = endpoint.request(&Ask::Range(0..10), &moment);
            text += &printed(&request.expect("a good request"));
        }
        // What it keeps is printed, too.
        text += &printed(endpoint);
    }
    check(&text);
}

#[test]
fn what_makes_no_sense_is_refused_without_repeating_it() {
    let mut text = String::new();
    for url in [
        "hunter22",
        "hunter22://a/b",
        "http://me:hunter22@@host/a",
        "http://me:hunter22",
        "http://me:hunter22@/a",
        "http://me:hunter22@host:port/a",
        "http://me:hunter22@ho st/a",
        "http://me:hunter%ff22@host/a",
        "http://me:hunter22@host/",
        "http://host/a?sig=hunter22\n",
        "s3://hunter22:me@b/k",
        "s3://b/k?sig=hunter22",
        "webhdfs://nn/a?op=hunter22",
    ] {
        match Location::parse(url) {
            Err(error) => text += &(printed(&error) + &error.to_string()),
            Ok(location) => text += &(printed(&location) + &location.to_string()),
        }
        text += &Kind::infer(url, &[Kind::S3])
            .map_or_else(|error| error.to_string(), |_| String::new());
    }
    let options = RemoteOptions::new;
    for options in [
        options().header("hunter22 is none", "x"),
        options().header("x-key", "hunter22\r\n"),
        options().header("range", "hunter22"),
        options().bearer("hunter22 hunter22"),
        options().basic_auth("a:b", "hunter22"),
        options().keys(Keys::new("AKIASECRET\n", "s3cret")),
        options().keys(Keys::new("AKIASECRET", "s3cret\n")),
        options().endpoint_url("https://me:hunter22@host"),
        options().endpoint_url("https://host?key=hunter22"),
        options().endpoint_url("hunter22"),
    ] {
        text += &printed(&options);
        let error = options.open("s3://b/k").expect_err("it makes no sense");
        text += &(printed(&error) + &error.to_string());
    }
    let style: Result<Addressing, _> = "hunter22".parse();
    text += &printed(&style);
    let mut request = Request::new(http::Method::GET, "https://host/a?=hunter22".to_owned());
    text += &printed(&sign(&mut request, &keys(), "r", UNIX_EPOCH));
    let body = b"<Error><Code>No</Code><Message>hunter22</Message></Error>";
    text += &printed(&Cause::of_s3(body, &["hunter22".to_owned()]));
    let line = "[default]\nhunter22\n";
    text += &format!("{:?}", Profiles::read("", line).map(drop));
    check(&text);
}
