//! URLs: none of them panics, and what is said of one holds no secret of it and means the same as before.
#![no_main]

use kvik_remote::{Kind, Location};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(url) = std::str::from_utf8(bytes) else {
        return;
    };
    look_at(url);
    // A name and a password where a URL may have them, and a signature: no text is to show those.
    if let Some((scheme, rest)) = url.split_once("://") {
        look_at(&format!("{scheme}://user:{SECRET}@{rest}"));
    }
    let joint = if url.contains('?') { '&' } else { '?' };
    let base = url.split('#').next().unwrap_or_default();
    look_at(&format!("{base}{joint}X-Amz-Signature={SECRET}"));
});

fn look_at(url: &str) {
    let said = match Location::parse(url) {
        Ok(location) => {
            assert_eq!(Kind::infer(url, &Kind::ALL).unwrap(), location.kind());
            let alone = Location::parse_among(url, &[location.kind()]).unwrap();
            assert_eq!(alone, location, "it is what it is without a choice, too");
            if let Some(bucket) = location.bucket() {
                assert!(!bucket.is_empty() && !bucket.contains('/'));
                assert!(location.key().is_some_and(|key| !key.is_empty()));
            }
            format!("{location} {location:?}")
        }
        Err(error) => format!("{error} {error:?}"),
    };
    // Where nothing but a path says so, it is no secret.
    let is_marked = url.contains(&format!(":{SECRET}@")) || url.contains(&format!("={SECRET}"));
    assert!(
        !is_marked || !said.contains(SECRET),
        "{url:?} shows its secret: {said}"
    );
}

const SECRET: &str = "s3cr3t0f1t";
