//! The step `http`: what comes of a request for the first byte, by way of redirects and of what a store teaches.

use http::HeaderMap;
use http::header::{CONTENT_TYPE, LOCATION, SERVER, VIA, WWW_AUTHENTICATE};

use super::advice::{self, Refusal};
use super::watch::{Exchange, Head, Log, shown};
use super::{Stage, Step, Way, millis};
use crate::cause::Cause;
use crate::failure::Failure;
use crate::origin::{Answered, Asker};
use crate::redact;
use crate::reply::{Known, status_text};

/// What the first request found: the step, and what the answer is if it is one.
pub(super) struct Asked {
    pub(super) step: Step,
    /// The last head that came.
    pub(super) head: Option<Head>,
    /// What the range is to be judged by; `None` if no answer came.
    pub(super) answer: Option<Result<Answered, Failure>>,
}

/// Asks for the first byte.
pub(super) async fn examine(way: &Way, log: &Log) -> Asked {
    let before = region(way);
    let answer = way.origin.ask(Some(&(0..1)), Known::default()).await;
    let exchanges = log.exchanges();
    let last = exchanges.last();
    let head = last.and_then(|exchange| exchange.head.clone());
    let mut newest_first = exchanges.iter().rev();
    let newest = newest_first.find_map(|exchange| exchange.head.as_ref());
    let secrets = secrets(way, &exchanges);
    let is_answer = |head: &Head| head.status.is_success() || head.status.as_u16() == 416;
    let (step, answer) = match (answer, &head) {
        // What is wrong with an answer to the question is a matter of the range.
        (answer, Some(head)) if is_answer(head) => {
            let learnt = region(way).filter(|now| before.as_ref() != Some(now));
            (of_answer(way, head, learnt), Some(answer))
        }
        (Err(failure), _) => (of_failure(way, &exchanges, &secrets, &failure), None),
        (Ok(answered), _) => (
            Step::ok(Stage::Http, "the server answers"),
            Some(Ok(answered)),
        ),
    };
    let pairs = exchanges.iter().zip(exchanges.iter().skip(1));
    let led: Vec<String> = pairs.filter_map(|(from, to)| redirect(from, to)).collect();
    let step = step.maybe("redirects", (!led.is_empty()).then(|| led.join(", then ")));
    let step = match newest {
        Some(head) => described(step, head, &secrets),
        None => step,
    };
    let step = step.hiding(&secrets);
    Asked { step, head, answer }
}

fn of_answer(way: &Way, head: &Head, learnt: Option<String>) -> Step {
    let what = format!("the server answers {}", status_text(head.status));
    if is_page(&head.headers) && !names_page(way) {
        return Step::note(
            Stage::Http,
            format!("{what} with a page of HTML"),
            "if the object is no page, this is the page of a login or of a proxy: open the URL in a browser, and ask for a \
             direct one, or for a token",
        );
    }
    if let Some(region) = learnt {
        return Step::note(
            Stage::Http,
            format!("{what}; it had to say that the bucket is in the region {region}"),
            format!("AWS_REGION={region} saves a request"),
        );
    }
    Step::ok(Stage::Http, what)
}

fn of_failure(way: &Way, exchanges: &[Exchange], secrets: &[String], failure: &Failure) -> Step {
    let first = exchanges.first().map(|exchange| exchange.url.origin());
    let last = exchanges.last();
    let led = last.filter(|last| first.is_some_and(|first| first != last.url.origin()));
    let Some(head) = last.and_then(|last| last.head.as_ref()) else {
        return match led {
            Some(last) => Step::of_failure(Stage::Http, failure, advice::of_next_server(last))
                .fact("asked_last", shown(&last.url)),
            None => Step::of_failure(Stage::Http, failure, advice::of_no_answer(way, failure)),
        };
    };
    let cause = Cause::of_s3(&head.reason, secrets).or_headers(&head.headers, secrets);
    let signed = match &way.origin.asker {
        Asker::Store(store) => store.is_signed(),
        _ => false,
    };
    let refusal = Refusal {
        status: head.status.as_u16(),
        code: cause.code.as_deref().unwrap_or_default(),
        headers: &head.headers,
        kind: way.location.kind(),
        is_signed: signed,
        has_user: way.has_user(),
        is_secure: last.is_some_and(|last| last.url.scheme() == "https"),
        failure: failure.kind,
    };
    Step::of_failure(Stage::Http, failure, advice::of_refusal(&refusal))
        .maybe("reason", (!cause.is_empty()).then(|| cause.to_string()))
}

fn described(step: Step, head: &Head, secrets: &[String]) -> Step {
    let text = |name| {
        let values = head.headers.get_all(name).iter();
        let values: Vec<_> = values
            .map(|value| String::from_utf8_lossy(value.as_bytes()))
            .collect();
        let text = redact::foreign(&values.join(", "), secrets, LONGEST);
        (!text.is_empty()).then_some(text)
    };
    step.fact("status", status_text(head.status))
        .maybe("server", text(SERVER.as_str()))
        .maybe("via", text(VIA.as_str()))
        .maybe("content_type", text(CONTENT_TYPE.as_str()))
        .maybe("challenge", text(WWW_AUTHENTICATE.as_str()))
        .maybe("request_id", text("x-amz-request-id"))
        .fact("took", millis(head.took))
}

/// Where an answer sent us.
fn redirect(from: &Exchange, to: &Exchange) -> Option<String> {
    let head = from.head.as_ref()?;
    let sends = head.status.is_redirection() && head.headers.contains_key(LOCATION);
    sends.then(|| format!("{} to {}", head.status.as_u16(), shown(&to.url)))
}

fn region(way: &Way) -> Option<String> {
    match &way.origin.asker {
        Asker::Store(store) => Some(store.region_in_use()),
        _ => None,
    }
}

/// What no text may show, even where a server repeats it.
fn secrets(way: &Way, exchanges: &[Exchange]) -> Vec<String> {
    let mut secrets = way.origin.secrets.clone();
    if let Asker::Store(store) = &way.origin.asker {
        secrets.extend(store.secrets());
    }
    let sent = exchanges.iter().flat_map(|exchange| &exchange.secrets);
    secrets.extend(sent.cloned());
    secrets
}

fn is_page(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(|kind| kind.as_bytes());
    kind.is_some_and(|kind| kind.len() >= 9 && kind[..9].eq_ignore_ascii_case(b"text/html"))
}

/// Whether the URL looks like that of a page.
fn names_page(way: &Way) -> bool {
    let name = way.location.to_string();
    let path = name
        .split('?')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    [".html", ".htm", "/"].iter().any(|end| path.ends_with(end))
}

const LONGEST: usize = 200;
