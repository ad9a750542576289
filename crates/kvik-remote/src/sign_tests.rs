//! Signatures against the examples that AWS published, and against a second computation of them.

use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use http::Method;
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use super::*;

/// 2013-05-24T00:00:00Z, the day of the examples.
fn example_day() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_369_353_600)
}

fn example_keys() -> Keys {
    Keys::new(
        "AKIAIOSFODNN7EXAMPLE",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    )
}

fn get(url: &str, headers: &[(&'static str, &str)]) -> Request {
    let mut request = Request::new(Method::GET, url.to_owned());
    for (name, value) in headers {
        let value = HeaderValue::from_str(value).expect("a header");
        request.headers.insert(*name, value);
    }
    request
}

fn header<'a>(request: &'a Request, name: &str) -> &'a str {
    let value = request.headers.get(name).expect("the header is there");
    value.to_str().expect("a text")
}

#[track_caller]
fn check(url: &str, headers: &[(&'static str, &str)], names: &str, signature: &str) {
    let mut request = get(url, headers);
    sign(&mut request, &example_keys(), "us-east-1", example_day()).unwrap();
    assert_eq!(
        header(&request, "authorization"),
        format!(
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders={names}, Signature={signature}"
        )
    );
    assert_eq!(header(&request, "x-amz-date"), "20130524T000000Z");
    assert_eq!(header(&request, "x-amz-content-sha256"), EMPTY);
    assert!(request.headers["authorization"].is_sensitive());
    assert_eq!(verify(&request, &example_keys()), signature);
}

#[test]
fn the_published_examples_come_out() {
    // "GET Object": the one example that has a range, which is sealed only if it is there before the signature.
    check(
        "https://examplebucket.s3.amazonaws.com/test.txt",
        &[("range", "bytes=0-9")],
        "host;range;x-amz-content-sha256;x-amz-date",
        "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
    );
    // "GET Bucket Lifecycle".
    check(
        "https://examplebucket.s3.amazonaws.com/?lifecycle",
        &[],
        "host;x-amz-content-sha256;x-amz-date",
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
    );
    // "Get Bucket (List Objects)".
    check(
        "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J",
        &[],
        "host;x-amz-content-sha256;x-amz-date",
        "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
    );
}

#[test]
fn the_token_is_sealed_and_sent_whatever_the_key_is_called() {
    let keys = example_keys().token("FwoG/token==");
    let mut request = get(
        "https://b.s3.amazonaws.com/k?versionId=3",
        &[("x-amz-request-payer", "requester")],
    );
    sign(&mut request, &keys, "eu-west-1", example_day()).unwrap();
    assert_eq!(header(&request, "x-amz-security-token"), "FwoG/token==");
    assert!(request.headers["x-amz-security-token"].is_sensitive());
    let names = "SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-request-payer;x-amz-security-token,";
    assert!(
        header(&request, "authorization").contains(names),
        "{request:?}"
    );
    assert!(header(&request, "authorization").ends_with(&verify(&request, &keys)));
}

#[test]
fn keys_regions_and_times_that_cannot_be_signed_with_are_refused_without_being_shown() {
    let wrong = [
        (Keys::new("", "s"), "r", example_day(), ErrorKind::Config),
        (
            Keys::new("hunter22\r\nx: y", "s"),
            "r",
            example_day(),
            ErrorKind::Config,
        ),
        (
            Keys::new("a", "hunter22\n"),
            "r",
            example_day(),
            ErrorKind::Config,
        ),
        (Keys::new("a", ""), "r", example_day(), ErrorKind::Config),
        (
            Keys::new("a", "s").token("hunter22 "),
            "r",
            example_day(),
            ErrorKind::Config,
        ),
        (Keys::new("a", "s"), "", example_day(), ErrorKind::Config),
        (Keys::new("a", "s"), "r/x", example_day(), ErrorKind::Config),
        (
            Keys::new("a", "s"),
            "r",
            UNIX_EPOCH - Duration::from_secs(1),
            ErrorKind::Misuse,
        ),
        (
            Keys::new("a", "s"),
            "r",
            UNIX_EPOCH + Duration::from_secs(1 << 40),
            ErrorKind::Misuse,
        ),
    ];
    for (keys, region, now, kind) in wrong {
        let mut request = get("https://b.s3.amazonaws.com/k", &[]);
        let error = sign(&mut request, &keys, region, now).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(!format!("{error:?}").contains("hunter22"), "{error:?}");
        assert!(request.headers.is_empty());
    }
}

/// The signature that a server computes for what arrives: the other side of [`sign`], written from the specification.
fn verify(request: &Request, keys: &Keys) -> String {
    let (_, rest) = request.url.split_once("://").expect("a URL");
    let (authority, target) = rest.split_at(rest.find('/').expect("a path"));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let plus = |text: &str| percent::encode_component(&percent::decode(&text.replace('+', " ")));
    let mut parameters: Vec<(String, String)> = query
        .split('&')
        .filter(|part| !part.is_empty())
        .map(|part| part.split_once('=').unwrap_or((part, "")))
        .map(|(name, value)| (plus(name), plus(value)))
        .collect();
    parameters.sort();
    let parameters: Vec<String> = parameters
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let authorization = header(request, "authorization");
    let between = |from: &str, to: &str| {
        let (_, rest) = authorization
            .split_once(from)
            .expect("a part of the header");
        rest.split(to).next().expect("its value")
    };
    let names = between("SignedHeaders=", ",");
    let mut canonical = format!(
        "{}\n{}\n{}\n",
        request.method,
        percent::encode_path(&percent::decode(path)),
        parameters.join("&")
    );
    for name in names.split(';') {
        let value = match name {
            "host" => authority,
            name => header(request, name).trim(),
        };
        canonical += &format!("{name}:{value}\n");
    }
    canonical += &format!("\n{names}\n{}", header(request, "x-amz-content-sha256"));
    let scope = between(&format!("Credential={}/", keys.id()), ",");
    let to_sign = format!(
        "AWS4-HMAC-SHA256\n{}\n{scope}\n{}",
        header(request, "x-amz-date"),
        hex(&Sha256::digest(&canonical))
    );
    let first = format!("AWS4{}", keys.secret()).into_bytes();
    let key = scope.split('/').fold(first, |key, part| mac(&key, part));
    hex(&mac(&key, &to_sign))
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_server_computes_the_same_signature_for_what_arrives(
        path in "[!-\"$->@-~]{0,24}", query in "[!-\"$-~]{0,24}", token in "[!-~]{1,24}", port in 81u16..,
        secret in "[A-Za-z0-9/+]{1,40}", seconds in 0u64..4_000_000_000, with_token in any::<bool>(),
    ) {
        // The scheme's own port, 80, is neither sent nor signed: no URL of ours has it.
        let path = percent::encode_illegal(&path);
        let query = percent::encode_illegal(&query);
        let mut request = get(&format!("http://h.example:{port}/{path}?{query}"), &[]);
        let mut keys = Keys::new("AKIA1", secret);
        if with_token {
            keys = keys.token(token);
        }
        let now = UNIX_EPOCH + Duration::from_secs(seconds);
        if sign(&mut request, &keys, "eu-west-1", now).is_err() {
            let text = String::from_utf8(percent::decode(&query));
            prop_assert!(text.is_err() || query.starts_with('=') || query.contains("&="));
            return Ok(());
        }
        let signature = verify(&request, &keys);
        prop_assert!(header(&request, "authorization").ends_with(&signature), "{}", request.url);
    }
}
