//! Percent encoding. What goes out is decided here, byte by byte: keys and names are encoded once, URLs are left alone.

use std::fmt::Write as _;

/// A key or path as somebody typed it, encoded once: all but unreserved characters and `/`.
pub(crate) fn encode_path(bytes: &[u8]) -> String {
    encode(bytes, |byte| is_unreserved(byte) || byte == b'/')
}

/// A name or value of a query, encoded once: all but unreserved characters.
pub(crate) fn encode_component(bytes: &[u8]) -> String {
    encode(bytes, is_unreserved)
}

/// The path of a URL of a scheme that is never sent as it is: `%XX` stands for what it says, all other bytes for
/// themselves. A `%` that begins no `%XX` can only mean itself.
pub(crate) fn encode_rest(text: &str) -> String {
    encode_around_triplets(text, |byte| is_unreserved(byte) || byte == b'/')
}

/// A path or query of a URL that is sent as it is: only what may not stand there at all is encoded, spaces, letters beyond
/// ASCII and `#` for instance. What the text has of `%` stays.
pub(crate) fn encode_illegal(text: &str) -> String {
    encode(text.as_bytes(), |byte| {
        byte == b'%' || is_unreserved(byte) || b":/?[]@!$&'()*+,;=".contains(&byte)
    })
}

/// What was encoded here, as others encode it: with small letters in `%xx`.
pub(crate) fn in_small_letters(encoded: &str) -> String {
    let mut small = String::with_capacity(encoded.len());
    let mut left = 0;
    for c in encoded.chars() {
        small.push(if left > 0 { c.to_ascii_lowercase() } else { c });
        left = if c == '%' { 2 } else { left - left.min(1) };
    }
    small
}

/// The path as the other side reads it: encoded once, whatever mixture came in. This is what S3 signs.
pub(crate) fn canonical_path(path: &str) -> String {
    encode_path(&decode(path))
}

/// The bytes that `text` stands for. A `%` that begins no `%XX` stands for itself.
pub(crate) fn decode(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match triplet(&bytes[at..]) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    decoded
}

fn encode_around_triplets(text: &str, stays: impl Fn(u8) -> bool) -> String {
    let bytes = text.as_bytes();
    let mut encoded = String::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        if triplet(&bytes[at..]).is_some() {
            // Three bytes of ASCII, so both ends are ends of characters.
            encoded.push_str(&text[at..at + 3]);
            at += 3;
        } else {
            push(&mut encoded, bytes[at], stays(bytes[at]));
            at += 1;
        }
    }
    encoded
}

fn encode(bytes: &[u8], stays: impl Fn(u8) -> bool) -> String {
    let mut encoded = String::with_capacity(bytes.len());
    for &byte in bytes {
        push(&mut encoded, byte, stays(byte));
    }
    encoded
}

fn push(encoded: &mut String, byte: u8, stays: bool) {
    if stays {
        encoded.push(char::from(byte));
    } else {
        // Writing to a `String` does not fail.
        let _ = write!(encoded, "%{byte:02X}");
    }
}

fn triplet(bytes: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = *bytes else {
        return None;
    };
    let high = char::from(high).to_digit(16)?;
    let low = char::from(low).to_digit(16)?;
    u8::try_from(high * 16 + low).ok()
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_part_has_its_own_rule() {
        let typed = "a b/ü+%2F%zz?#=~";
        assert_eq!(
            encode_path(typed.as_bytes()),
            "a%20b/%C3%BC%2B%252F%25zz%3F%23%3D~"
        );
        assert_eq!(encode_component(b"a/b c@"), "a%2Fb%20c%40");
        assert_eq!(encode_rest(typed), "a%20b/%C3%BC%2B%2F%25zz%3F%23%3D~");
        assert_eq!(
            encode_illegal("a b/ü+%2F%zz#=\"\\{}|^`<>[]'"),
            "a%20b/%C3%BC+%2F%zz%23=%22%5C%7B%7D%7C%5E%60%3C%3E[]'"
        );
        assert_eq!(canonical_path("/a=b+%c3%bc%7E"), "/a%3Db%2B%C3%BC~");
        assert_eq!(decode("%41%4"), b"A%4");
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes_to_itself(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            prop_assert_eq!(decode(&encode_path(&bytes)), bytes.clone());
            prop_assert_eq!(decode(&encode_component(&bytes)), bytes.clone());
            // Encoding what is canonical changes nothing.
            let canonical = encode_path(&bytes);
            prop_assert_eq!(canonical_path(&canonical), canonical);
        }

        #[test]
        fn an_illegal_character_is_encoded_and_everything_else_stays(text in "\\PC{0,32}") {
            let sent = encode_illegal(&text);
            prop_assert!(sent.bytes().all(|byte| byte.is_ascii_graphic()));
            prop_assert_eq!(encode_illegal(&sent), sent);
        }
    }
}
