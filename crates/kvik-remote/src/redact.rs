//! What may be shown. Whatever is not known to be harmless is a secret.

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use http::HeaderMap;
use http::header::{AUTHORIZATION, PROXY_AUTHORIZATION};

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
    let mut secrets = Vec::new();
    for part in query.split('&') {
        let (name, value) = part.split_once('=').unwrap_or(("", part));
        if is_harmless(name) {
            continue;
        }
        let decoded = String::from_utf8_lossy(&percent::decode(value)).into_owned();
        if name.eq_ignore_ascii_case("X-Amz-Credential") {
            // The id of the key goes around without what belongs to it here.
            secrets.extend(decoded.split('/').next().map(str::to_owned));
        }
        secrets.extend([value.to_owned(), decoded]);
    }
    secrets
}

/// The values of the headers that are marked as sensitive, and what in them is a secret by itself: a token behind the name of
/// its scheme, user and password, the values of cookies.
pub(crate) fn secrets_of_headers(headers: &HeaderMap) -> Vec<String> {
    let mut secrets = Vec::new();
    for (name, value) in headers.iter().filter(|(_, value)| value.is_sensitive()) {
        let text = String::from_utf8_lossy(value.as_bytes());
        let login = name == AUTHORIZATION || name == PROXY_AUTHORIZATION;
        match text.split_once(' ') {
            Some((scheme, rest)) if login => secrets.extend(secrets_of_login(scheme, rest.trim())),
            _ => secrets.extend(parts(&text)),
        }
        secrets.push(text.into_owned());
    }
    secrets
}

fn secrets_of_login(scheme: &str, rest: &str) -> Vec<String> {
    let mut secrets = vec![rest.to_owned()];
    if scheme.eq_ignore_ascii_case("basic") {
        let pair = BASE64_STANDARD.decode(rest).unwrap_or_default();
        let pair = String::from_utf8_lossy(&pair);
        let (user, password) = pair.split_once(':').unwrap_or((&pair, ""));
        secrets.extend([&pair, user, password].map(str::to_owned));
    } else if scheme.starts_with("AWS") {
        // What it lists of the request besides is no secret.
        let signed =
            |part: &&str| part.starts_with("Signature=") || part.starts_with("Credential=");
        let signed = rest.split([',', ' ']).filter(signed);
        secrets.extend(signed.flat_map(parts));
    } else {
        secrets.extend(parts(rest));
    }
    secrets
}

/// What stands between the separators of a header, and behind a `=` there.
fn parts(text: &str) -> Vec<String> {
    let pieces = text
        .split([' ', ',', ';'])
        .filter(|piece| !piece.is_empty());
    let found = pieces.flat_map(|piece| {
        let value = piece
            .split_once('=')
            .map(|(_, value)| value.trim_matches('"'));
        // A short word without a name is one of those that stand in ordinary texts, too.
        let word = (piece.len() >= SHORTEST_WORD).then_some(piece);
        [word, value].into_iter().flatten()
    });
    found.map(str::to_owned).collect()
}

/// `text` without any of `secrets`, in none of the forms in which they go around.
pub(crate) fn hide(text: &str, secrets: &[String]) -> String {
    let mut forms: Vec<String> = secrets.iter().flat_map(|secret| forms(secret)).collect();
    forms.retain(|form| form.len() >= SHORTEST);
    // Longer ones first: the rest of a secret that begins with another one is a secret too.
    forms.sort_by(|one, other| other.len().cmp(&one.len()).then(one.cmp(other)));
    forms.dedup();
    let mut clean = text.to_owned();
    for form in forms {
        if clean.contains(&form) {
            clean = clean.replace(&form, HIDDEN);
        }
    }
    clean
}

/// A secret as it is, and as URLs and headers have it.
fn forms(secret: &str) -> Vec<String> {
    let decoded = percent::decode(secret);
    let encoded = percent::encode_component(&decoded);
    let mut forms = vec![
        secret.to_owned(),
        percent::encode_component(secret.as_bytes()),
        percent::in_small_letters(&encoded),
        encoded,
        // Without what fills up the last letters: so it is found with it, too.
        BASE64_STANDARD_NO_PAD.encode(secret),
        BASE64_URL_SAFE_NO_PAD.encode(secret),
    ];
    forms.extend(String::from_utf8(decoded));
    forms
}

/// `text`, which somebody else wrote, without any of `secrets`, and in one line: at most `limit` bytes of it, control
/// characters escaped.
pub(crate) fn foreign(text: &str, secrets: &[String], limit: usize) -> String {
    let clean = hide(text, secrets);
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
const SHORTEST_WORD: usize = 8;

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

    #[track_caller]
    fn shows(text: &str, secrets: &[String], expected: &str) {
        assert_eq!(hide(text, secrets), expected, "{secrets:?}");
    }

    #[test]
    fn a_secret_is_hidden_in_each_form_in_which_it_goes_around() {
        let secrets = ["p@ss/w\u{f6}rd".to_owned()];
        for form in [
            "p@ss/w\u{f6}rd",
            "p%40ss%2Fw%C3%B6rd",
            "p%40ss%2fw%c3%b6rd",
            "cEBzcy93w7ZyZA==",
            "cEBzcy93w7ZyZA",
        ] {
            let shown = hide(&format!("not <{form}>"), &secrets);
            let rest = shown.trim_end_matches(['>', '=']);
            assert_eq!(rest, "not <***", "{form}");
        }
        shows("a%2Fbc or a/bc", &["a%2fbc".to_owned()], "*** or ***");
    }

    #[test]
    fn what_is_secret_in_a_header_is_found_by_itself() {
        let secrets = |name: &'static str, value: &'static str| {
            let mut value = http::HeaderValue::from_static(value);
            value.set_sensitive(true);
            secrets_of_headers(&HeaderMap::from_iter([(
                http::HeaderName::from_static(name),
                value,
            )]))
        };
        let bearer = secrets("authorization", "Bearer t0ken==");
        shows("Bearer: no t0ken== here", &bearer, "Bearer: no *** here");
        let basic = secrets("authorization", "Basic dXNlcjpwQHNz");
        shows(
            "user, p@ss, p%40ss, dXNlcjpwQHNz",
            &basic,
            "***, ***, ***, ***",
        );
        let signed = secrets(
            "authorization",
            "AWS4-HMAC-SHA256 Credential=AKIAX/20260101/r/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature=abcdef",
        );
        shows(
            "host x-amz-date AKIAX/20260101/r/s3/aws4_request abcdef",
            &signed,
            "host x-amz-date *** ***",
        );
        let cookie = secrets("cookie", "sid=abc12; lang=de");
        shows(
            "sid is abc12, lang is de",
            &cookie,
            "sid is ***, lang is de",
        );
        let key = secrets("x-key", "one-long-key");
        shows("key one-long-key", &key, "key ***");
        let plain = HeaderMap::from_iter([(
            AUTHORIZATION,
            http::HeaderValue::from_static("Bearer t0ken"),
        )]);
        assert_eq!(secrets_of_headers(&plain), Vec::<String>::new());
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
