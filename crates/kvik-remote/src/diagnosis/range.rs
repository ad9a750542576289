//! The steps `range` and `validator`: whether the server sends what it is asked for and nothing else, and by what a change
//! of the object would be noticed.

use kvik_core::ErrorKind;

use super::{Stage, Step, Way, advice};
use crate::failure::Failure;
use crate::origin::Answered;
use crate::reply::{Answer, Known};
use crate::validator::Validator;

/// Judges the answer to the question for the first byte, and asks for the end of the object in two ways.
pub(super) async fn examine(
    way: &Way,
    answer: Result<Answered, Failure>,
) -> Result<(Step, Validator), Step> {
    let wrong =
        |failure: Failure| Step::of_failure(Stage::Range, &failure, advice::of_range(failure.kind));
    let answered = answer.map_err(wrong)?;
    let validator = answered.validator.clone();
    let len = match answered.answer {
        Answer::Part { len, .. } => len,
        Answer::Whole { len } => return whole(way, len).map(|step| (step, validator)),
        Answer::Empty | Answer::Beyond => {
            let step = Step::ok(
                Stage::Range,
                "the object is empty: there is no range to ask for",
            );
            return Ok((step, validator));
        }
    };
    let first = bytes(answered).await.map_err(wrong)?;
    let known = Known {
        len: Some(len),
        validator: Some(&validator),
    };
    let tail = len.saturating_sub(TAIL)..len;
    let last = way
        .origin
        .ask(Some(&(len - 1..len)), known)
        .await
        .map_err(wrong)?;
    let last = bytes(last).await.map_err(wrong)?;
    let end = way.origin.ask(Some(&tail), known).await.map_err(wrong)?;
    let end = bytes(end).await.map_err(wrong)?;
    // Less than was asked for is no wrong answer, and does not reach the end.
    let is_complete = end.len() as u64 == tail.end - tail.start;
    let same_end = !is_complete || end.last() == last.first();
    let same_begin = tail.start > 0 || end.first() == first.first();
    if !(same_end && same_begin) {
        return Err(Step::failed(
            Stage::Range,
            ErrorKind::BadReply,
            "two ranges that overlap have different bytes",
            "the server, or something before it, sends wrong bytes; kvik cannot tell which are right: do not use this source",
        ));
    }
    let step = Step::ok(
        Stage::Range,
        "the server sends the ranges that it is asked for",
    );
    let asked = format!("0..1, {}..{len}, {}..{len}", len - 1, tail.start);
    Ok((
        step.fact("bytes", len.to_string()).fact("asked", asked),
        validator,
    ))
}

/// The server ignores the range.
fn whole(way: &Way, len: Option<u64>) -> Result<Step, Step> {
    let what = "the server sends the whole object where a range is asked for";
    let most = way.whole;
    match len {
        Some(len) if len > most => Err(Step::failed(
            Stage::Range,
            ErrorKind::RangeUnsupported,
            format!("{what}, and it has {len} bytes"),
            format!(
                "kvik keeps such an object in memory only up to {most} bytes (`RemoteOptions::whole_limit`): fetch it by another \
                 program, or from a server with ranges"
            ),
        )
        .fact("bytes", len.to_string())),
        len => Ok(Step::note(
            Stage::Range,
            what,
            format!(
                "kvik fetches such an object once and keeps it in memory, up to {most} bytes; a server with ranges is faster, and \
                 takes longer ones"
            ),
        )
        .maybe("bytes", len.map(|len| len.to_string()))),
    }
}

/// By what a change would be noticed. Pure.
pub(super) fn validator(validator: &Validator) -> Step {
    let stage = Stage::Validator;
    let (what, advice) = match (validator.etag(), validator.last_modified()) {
        (Some(_), _) if validator.strong().is_some() => {
            let what = format!("a strong {validator}: no two versions are mixed up");
            return Step::ok(stage, what);
        }
        (Some(_), _) => (
            format!("a weak {validator}"),
            "kvik compares it, but cannot hold the server to it: leave the object alone while it is read",
        ),
        (None, Some(_)) => (
            validator.to_string(),
            "a change within the same second that keeps the size is not noticed: leave the object alone while it is read",
        ),
        (None, None) => (
            "the server sends neither ETag nor Last-Modified".to_owned(),
            "only a change of the size is noticed: leave the object alone while it is read",
        ),
    };
    Step::note(stage, what, advice)
}

/// The body of an answer that was judged to be a part.
async fn bytes(mut answered: Answered) -> Result<Vec<u8>, Failure> {
    let count = match &answered.answer {
        Answer::Part { range, .. } => range.end - range.start,
        // One that was right for the whole of it, as are all that reach this.
        Answer::Whole { len } => len.unwrap_or_default(),
        Answer::Empty | Answer::Beyond => 0,
    };
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < count {
        let Some(chunk) = answered.chunk().await? else {
            return Err(Failure::passing(
                ErrorKind::Unreachable,
                "the body ended early",
            ));
        };
        bytes.extend_from_slice(&chunk);
    }
    match bytes.len() as u64 > count {
        true => Err(Failure::too_long()),
        false => answered.finish().await.map(|()| bytes),
    }
}

// Enough for two ends to differ if they are from two places.
const TAIL: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::Outcome;
    use http::{HeaderMap, HeaderName, HeaderValue};

    #[test]
    fn what_tells_versions_apart_is_told_with_what_it_leaves_open() {
        let modified = ("last-modified", "Mon, 01 Jan 2024 00:00:00 GMT");
        for (headers, outcome, what, advice) in [
            (
                vec![("etag", "\"a\""), modified],
                Outcome::Ok,
                "a strong ETag \"a\": no two versions are mixed up",
                None,
            ),
            (
                vec![("etag", "W/\"a\"")],
                Outcome::Note,
                "a weak ETag W/\"a\"",
                Some("cannot hold"),
            ),
            (
                vec![modified],
                Outcome::Note,
                "Last-Modified Mon, 01 Jan 2024 00:00:00 GMT",
                Some("same second"),
            ),
            (
                vec![],
                Outcome::Note,
                "the server sends neither ETag nor Last-Modified",
                Some("only a change of the size"),
            ),
        ] {
            let headers = headers.into_iter().map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            });
            let step = validator(&Validator::of(&HeaderMap::from_iter(headers)));
            assert_eq!((step.outcome, step.what.as_str()), (outcome, what));
            assert_eq!(step.advice.is_some(), advice.is_some());
            let says = step.advice.unwrap_or_default();
            assert!(says.contains(advice.unwrap_or_default()), "{says}");
        }
    }
}
