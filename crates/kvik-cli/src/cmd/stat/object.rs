//! What a server says of an object.

use kvik::{Kind, RemoteHandle, S3Facts, Validator};
use serde_json::{Value, json};

use crate::output::Report;

use super::LABEL;

/// One fact: its name for programs, its label for people, and what it is.
type Row = (&'static str, &'static str, Value);

pub(super) fn report(url: &str, object: &RemoteHandle) -> Report {
    let validator = object.validator();
    let mut rows: Vec<Row> = vec![
        ("url", "url", json!(object.url())),
        ("kind", "kind", json!(object.kind().to_string())),
        ("bytes", "size, bytes", json!(object.len())),
        (
            "validator",
            "validator",
            json!(strength(validator.as_ref())),
        ),
        ("etag", "etag", json!(validator.as_ref().and_then(etag))),
        (
            "last_modified",
            "last modified",
            json!(validator.as_ref().and_then(last_modified)),
        ),
        ("server", "server", json!(object.server())),
    ];
    match object.s3() {
        Some(facts) => rows.extend(of_s3(facts)),
        // Of HDFS settings say who asks, too, and the URL alone would tell half of it.
        None if object.kind() == Kind::WebHdfs => {}
        None => rows.push((
            "credentials",
            "credentials",
            json!(credentials(url, object.kind())),
        )),
    }
    let text = rows.iter().map(|(_, label, value)| {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let value = if value == "null" { "none" } else { &value };
        format!("{label:LABEL$}{value}\n")
    });
    let text = text.collect();
    let report = rows
        .into_iter()
        .map(|(name, _, value)| (name.to_owned(), value));
    Report::new(Value::Object(report.collect())).text(text)
}

fn of_s3(facts: S3Facts) -> [Row; 4] {
    let addressing = facts.addressing.to_string();
    [
        ("address", "address", json!(facts.address)),
        ("addressing", "addressing", json!(addressing)),
        ("keys", "keys", json!(facts.keys)),
        ("region", "region", json!(facts.region)),
    ]
}

/// The entity tag, unless the server put a secret of ours there, which the text of a validator does not have.
fn etag(validator: &Validator) -> Option<&str> {
    let etag = validator.etag()?;
    Some(match validator.to_string().contains(etag) {
        true => etag,
        false => HIDDEN,
    })
}

/// The time of change, unless it is something else.
fn last_modified(validator: &Validator) -> Option<&str> {
    let modified = validator.last_modified()?;
    Some(match httpdate::parse_http_date(modified) {
        Ok(_) => modified,
        Err(_) => HIDDEN,
    })
}

/// By what versions of the object are told apart.
fn strength(validator: Option<&Validator>) -> &'static str {
    let etag = validator.and_then(Validator::etag);
    match (etag, validator.and_then(Validator::last_modified)) {
        (Some(etag), _) if etag.starts_with('"') => "strong",
        (Some(_), _) => "weak",
        (None, Some(_)) => "time",
        (None, None) => "none",
    }
}

/// As whom an object that is not of S3 was asked for.
fn credentials(url: &str, kind: Kind) -> Option<&'static str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    match kind {
        Kind::S3Presigned => Some("the signature in the URL"),
        _ => authority.contains('@').then_some("the user in the URL"),
    }
}

// As kvik's own texts have it.
const HIDDEN: &str = "***";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_named_in_the_url_asks() {
        for (url, kind, who) in [
            (
                "http://me:secret@host/k",
                Kind::Http,
                Some("the user in the URL"),
            ),
            ("http://host/k@me", Kind::Http, None),
            (
                "https://b/k?X-Amz-Signature=a",
                Kind::S3Presigned,
                Some("the signature in the URL"),
            ),
        ] {
            assert_eq!(credentials(url, kind), who, "{url}");
        }
    }
}
