//! Keys of S3 are opaque: whatever one is, its request goes out for it and for nothing else, or not at all.
#![no_main]

use std::time::{Duration, UNIX_EPOCH};

use kvik_remote::Location;
use kvik_remote::protocol::{Addressing, Ask, Endpoint, Moment, S3Endpoint, S3Options};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|key: &str| {
    let Ok(location) = Location::from_bucket_key("bucket", key) else {
        assert!(
            key.is_empty(),
            "every key that is there can be one: {key:?}"
        );
        return;
    };
    assert_eq!(location.key().as_deref(), Some(key.as_bytes()));
    let options = S3Options {
        endpoint: Some("http://127.0.0.1:9000".to_owned()),
        addressing: Addressing::Path,
        ..S3Options::default()
    };
    let endpoint = S3Endpoint::new(&location, options).unwrap();
    let now = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let Ok(request) = endpoint.request(&Ask::Range(0..1), &Moment::at(now)) else {
        return;
    };
    let path = request.url.strip_prefix("http://127.0.0.1:9000/bucket/");
    assert_eq!(decoded(path.unwrap()), key.as_bytes());
    // What the client would send otherwise is refused, and what it takes is sent as it is.
    if let Ok(url) = request.to_url() {
        assert_eq!(url.as_str(), request.url);
    }
});

/// Without the crate that encodes, so that the two cannot err together.
fn decoded(path: &str) -> Vec<u8> {
    let mut rest = path.as_bytes();
    let mut bytes = Vec::new();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        bytes.push(match first {
            b'%' => {
                let digits = std::str::from_utf8(&rest[..2]).unwrap();
                rest = &rest[2..];
                u8::from_str_radix(digits, 16).unwrap()
            }
            byte => *byte,
        });
    }
    bytes
}
