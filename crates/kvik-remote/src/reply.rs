//! What a server answered, believed only after this. Pure: status and headers go in, what the body is comes out.

use std::ops::Range;
use std::time::SystemTime;

use http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, RETRY_AFTER, TRANSFER_ENCODING,
};
use http::{HeaderMap, HeaderName, StatusCode};
use kvik_core::ErrorKind;

use crate::failure::{Again, Failure};
use crate::retry::Policy;
use crate::validator::Validator;

/// What is known of the object before the answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Known<'a> {
    pub(crate) len: Option<u64>,
    pub(crate) validator: Option<&'a Validator>,
}

/// What the body of an answer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// These bytes of an object that is so long: the beginning of the range that was asked for, at least one byte.
    Part { range: Range<u64>, len: u64 },
    /// The whole object, whatever was asked for. Its length need not be known.
    Whole { len: Option<u64> },
    /// Nothing: the object is empty.
    Empty,
    /// Nothing: there are no bytes where the range begins, and the server does not say how many there are.
    Beyond,
}

/// Judges the answer to a request for `asked`, which is not empty.
pub(crate) fn judge(
    status: StatusCode,
    headers: &HeaderMap,
    asked: &Range<u64>,
    known: Known<'_>,
) -> Result<Answer, Failure> {
    match status {
        StatusCode::PARTIAL_CONTENT => part(headers, asked, known),
        StatusCode::OK => whole(headers, asked, known),
        StatusCode::RANGE_NOT_SATISFIABLE => beyond(headers, known),
        StatusCode::PRECONDITION_FAILED => Err(changed("the server has another version of it now")),
        other => Err(Failure::reply(format!(
            "the server answered {} to a request for bytes",
            status_text(other)
        ))),
    }
}

/// What an answer that says that something is wrong means: of status 400 or more, but not 412 and 416.
pub(crate) fn refusal(
    status: StatusCode,
    headers: &HeaderMap,
    policy: &Policy,
    now: SystemTime,
) -> Failure {
    let why = format!("the server answered {}", status_text(status));
    let mut failure = Failure::lasting(kind_of(status.as_u16()), why);
    if policy.repeats(status.as_u16()) {
        failure.again = retry_after(headers, now).map_or(Again::Soon, Again::After);
    }
    failure
}

/// What a program may decide on, where nothing but the status of an answer says that something is wrong.
pub(crate) fn kind_of(status: u16) -> ErrorKind {
    match status {
        404 | 410 => ErrorKind::NotFound,
        401 | 403 | 407 => ErrorKind::PermissionDenied,
        412 => ErrorKind::Changed,
        _ => ErrorKind::Refused,
    }
}

fn part(headers: &HeaderMap, asked: &Range<u64>, known: Known<'_>) -> Result<Answer, Failure> {
    plain(headers)?;
    let multipart = |value: &str| value.trim_start().starts_with("multipart/");
    if text(headers, CONTENT_TYPE).is_some_and(multipart) {
        return Err(Failure::reply(
            "the server sent several parts where one was asked for",
        ));
    }
    if headers.get_all(CONTENT_RANGE).iter().count() > 1 {
        return Err(Failure::reply(
            "the server sent a part, and two ranges of it",
        ));
    }
    let said = text(headers, CONTENT_RANGE)
        .ok_or_else(|| Failure::reply("the server sent a part and not which one"))?;
    let (range, len) = content_range(said).ok_or_else(|| {
        Failure::reply("the server sent a part, and a Content-Range that is none")
    })?;
    same_version(headers, known)?;
    let len = match (len, known.len) {
        (Some(len), Some(known)) if len != known => {
            return Err(changed(format!("it had {known} bytes and has {len} now")));
        }
        (Some(len), _) | (None, Some(len)) => len,
        (None, None) => {
            return Err(Failure::lasting(
                ErrorKind::RangeUnsupported,
                "the server does not say how long the object is",
            ));
        }
    };
    if range.start != asked.start || range.end > asked.end.min(len) {
        return Err(Failure::reply(format!(
            "the server sent bytes {}..{} of {len} where {}..{} were asked for",
            range.start, range.end, asked.start, asked.end
        )));
    }
    if content_length(headers)?.is_some_and(|body| body != range.end - range.start) {
        return Err(Failure::reply(
            "the length of the body is not that of the part that it is to be",
        ));
    }
    Ok(Answer::Part { range, len })
}

fn whole(headers: &HeaderMap, asked: &Range<u64>, known: Known<'_>) -> Result<Answer, Failure> {
    plain(headers)?;
    let len = content_length(headers)?;
    // Before the first answer a whole object will do where it is not too long, which is for the caller to see.
    let Some(expected) = known.len else {
        return Ok(match len {
            Some(0) => Answer::Empty,
            len => Answer::Whole { len },
        });
    };
    same_version(headers, known)?;
    if len.is_some_and(|len| len != expected) {
        return Err(changed(format!(
            "it had {expected} bytes and has {} now",
            len.unwrap_or_default()
        )));
    }
    if *asked != (0..expected) {
        return Err(Failure::lasting(
            ErrorKind::RangeUnsupported,
            "the server sends the whole object where a range is asked for",
        ));
    }
    Ok(Answer::Whole {
        len: Some(expected),
    })
}

fn beyond(headers: &HeaderMap, known: Known<'_>) -> Result<Answer, Failure> {
    let total = text(headers, CONTENT_RANGE)
        .and_then(|value| value.trim().strip_prefix("bytes */"))
        .map(number);
    match (total, known.len) {
        (Some(Some(total)), Some(known)) if total != known => {
            Err(changed(format!("it had {known} bytes and has {total} now")))
        }
        (Some(Some(0)), None) => Ok(Answer::Empty),
        (None, None) => Ok(Answer::Beyond),
        _ => Err(Failure::reply(
            "the server has no such range, and says that the object goes beyond it",
        )),
    }
}

/// The bytes are those of the object: nothing was asked for that would have them changed on the way.
pub(crate) fn plain(headers: &HeaderMap) -> Result<(), Failure> {
    // Chunks are taken apart by the client; nothing else is.
    let is_plain = |name: HeaderName, known: &str| {
        let mut values = headers.get_all(name).iter();
        values.all(|value| {
            let mut words = value.to_str().unwrap_or("?").split(',').map(str::trim);
            words.all(|word| {
                let fits = |plain: &str| word.eq_ignore_ascii_case(plain);
                word.is_empty() || fits("identity") || fits(known)
            })
        })
    };
    match is_plain(CONTENT_ENCODING, "identity") && is_plain(TRANSFER_ENCODING, "chunked") {
        true => Ok(()),
        false => Err(Failure::lasting(
            ErrorKind::RangeUnsupported,
            "the server compresses what was to come as it is",
        )),
    }
}

fn same_version(headers: &HeaderMap, known: Known<'_>) -> Result<(), Failure> {
    let reply = Validator::of(headers);
    match known.validator {
        Some(validator) if !validator.is_same(&reply) => Err(changed(format!(
            "its version was {validator} and is {reply} now"
        ))),
        _ => Ok(()),
    }
}

fn changed(why: impl Into<String>) -> Failure {
    Failure::lasting(ErrorKind::Changed, why)
}

pub(crate) fn content_length(headers: &HeaderMap) -> Result<Option<u64>, Failure> {
    match text(headers, CONTENT_LENGTH) {
        None => Ok(None),
        Some(value) => match number(value) {
            Some(len) => Ok(Some(len)),
            None => Err(Failure::reply("the length of the body is no number")),
        },
    }
}

/// `bytes A-B/LEN` or `bytes A-B/*`.
fn content_range(value: &str) -> Option<(Range<u64>, Option<u64>)> {
    let rest = value.trim().strip_prefix("bytes")?.trim_start();
    let (range, len) = rest.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last) = (number(first)?, number(last)?);
    let len = match len.trim() {
        "*" => None,
        len => Some(number(len)?),
    };
    let end = last.checked_add(1)?;
    let last_of_all = len.unwrap_or(end);
    // Nothing is longer than offsets of files go.
    let fits = first < end && end <= last_of_all && i64::try_from(last_of_all).is_ok();
    fits.then_some((first..end, len))
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<std::time::Duration> {
    let value = text(headers, RETRY_AFTER)?.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // One that no number holds is a time all the same.
        let seconds = value.parse().unwrap_or(u64::MAX);
        return Some(std::time::Duration::from_secs(seconds));
    }
    let then = httpdate::parse_http_date(value).ok()?;
    Some(then.duration_since(now).unwrap_or_default())
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// Whether the body is said to be XML.
pub(crate) fn is_xml(headers: &HeaderMap) -> bool {
    let said = text(headers, CONTENT_TYPE).unwrap_or_default();
    let kind = said.split(';').next().unwrap_or_default().trim();
    kind.to_ascii_lowercase().ends_with("xml")
}

pub(crate) fn status_text(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

#[cfg(test)]
#[path = "reply_tests.rs"]
mod tests;
