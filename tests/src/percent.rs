//! Percent-encoding, written by hand so that a fault of ours cannot hide one of kvik's.

/// The bytes that a path or a query means. A `%` without two digits means itself.
#[must_use]
pub fn decoded(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        rest = match after {
            [high, low, after @ ..]
                if *first == b'%' && [high, low].iter().all(|d| d.is_ascii_hexdigit()) =>
            {
                let digit = |digit: u8| char::from(digit).to_digit(16).unwrap() as u8;
                bytes.push(16 * digit(*high) + digit(*low));
                after
            }
            _ => {
                bytes.push(*first);
                after
            }
        };
    }
    bytes
}

/// The bytes encoded, but for letters, digits, `-._~` and what is `kept`.
#[must_use]
pub fn encoded(bytes: &[u8], kept: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encode = |&byte: &u8| match plain(byte) || kept.contains(&byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    bytes.iter().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded_and_what_is_no_code_means_itself() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decoded(&encoded(&all, b"/")), all);
        assert_eq!(encoded(b"aZ9-._~/ \xff", b"/"), "aZ9-._~/%20%FF");
        assert_eq!(decoded("%2f%2F%%4%+1%zz%"), b"//%%4%+1%zz%");
    }
}
