//! What may be shown. Whatever is not known to be harmless is a secret.

use crate::percent;

/// What stands in the place of a secret.
pub(crate) const HIDDEN: &str = "***";

/// The query with the values of all parameters hidden, but of those that are known to hold no secret.
pub(crate) fn query(query: &str) -> String {
    let shown: Vec<String> = query
        .split('&')
        .map(|part| match part.split_once('=') {
            Some((name, value)) if !is_harmless(name) && !value.is_empty() => {
                format!("{name}={HIDDEN}")
            }
            Some(_) => part.to_owned(),
            // No name and no value: it may be a token.
            None if part.is_empty() => String::new(),
            None => HIDDEN.to_owned(),
        })
        .collect();
    shown.join("&")
}

/// The values that [`query`] hides, as they stand there and decoded.
pub(crate) fn secrets_of_query(query: &str) -> Vec<String> {
    query
        .split('&')
        .filter_map(|part| match part.split_once('=') {
            Some((name, value)) => (!is_harmless(name)).then_some(value),
            None => Some(part),
        })
        .flat_map(|value| {
            let decoded = String::from_utf8_lossy(&percent::decode(value)).into_owned();
            [value.to_owned(), decoded]
        })
        .collect()
}

/// `text`, which somebody else wrote, without any of `secrets`, and in one line: at most `limit` bytes of it, control
/// characters escaped.
pub(crate) fn foreign(text: &str, secrets: &[String], limit: usize) -> String {
    let mut secrets: Vec<&String> = secrets
        .iter()
        .filter(|secret| secret.len() >= SHORTEST)
        .collect();
    // Longer ones first: the rest of a secret that begins with another one is a secret too.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    let mut clean = text.to_owned();
    for secret in secrets {
        clean = clean.replace(secret.as_str(), HIDDEN);
    }
    let mut shown = String::new();
    for c in clean.trim().chars() {
        match c.is_control() {
            true if matches!(c, '\n' | '\r' | '\t') => shown.push(' '),
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
        if shown.len() > limit {
            shown.push_str(" ...");
            break;
        }
    }
    shown
}

fn is_harmless(name: &str) -> bool {
    HARMLESS
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name))
}

const HARMLESS: [&str; 15] = [
    "X-Amz-Algorithm",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Amz-SignedHeaders",
    "buffersize",
    "doas",
    "length",
    "noredirect",
    "offset",
    "op",
    "partNumber",
    "response-content-type",
    "user.name",
    "versionId",
    "x-id",
];
// Shorter ones stand in ordinary words, and protect nothing.
const SHORTEST: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_to_be_harmless_is_shown() {
        assert_eq!(
            query("op=OPEN&delegation=AbCd&sig=xyz&flag=&Zm9v&user.name=u"),
            "op=OPEN&delegation=***&sig=***&flag=&***&user.name=u"
        );
        assert_eq!(query(""), "");
    }

    #[test]
    fn foreign_text_is_one_bounded_line_without_secrets() {
        let secrets = ["hunter22".to_owned(), "e".to_owned()];
        assert_eq!(
            foreign("bad\r\nkey hunter22\x1b[2J", &secrets, 100),
            "bad  key ***\\u{1b}[2J"
        );
        let nested = ["abcd".to_owned(), "abcdefgh".to_owned()];
        assert_eq!(foreign("abcdefgh abcd", &nested, 100), "*** ***");
        assert_eq!(
            foreign(&"ü".repeat(50), &[], 9),
            format!("{} ...", "ü".repeat(5))
        );
    }
}
