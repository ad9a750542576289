//! Answer: what a request is answered with, before anything is sent.

use std::fs::{File, Metadata};
use std::ops::Range;

use super::conditions::{Validators, Verdict};
use super::files::{Files, Found};
use super::listing;
use super::range::Wanted;
use super::request::{Bad, Request};
use super::status::Status;

/// Head and body. What a request for the head alone leaves out is decided where it is sent.
pub(super) struct Answer {
    pub(super) status: Status,
    pub(super) fields: Vec<(&'static str, String)>,
    pub(super) body: Body,
}

pub(super) enum Body {
    /// Not even a length is told.
    None,
    Text(String),
    Part(File, Range<u64>),
}

impl Answer {
    /// Reads nothing of a file yet.
    pub(super) fn to(request: &Request, files: &Files, loopback: bool) -> Self {
        if loopback && !request.means_this_machine() {
            let why = "this server is for this machine alone, by an address or as localhost";
            return Answer::text(Status::MISDIRECTED, why);
        }
        match files.open(&request.names) {
            Ok(Found::File { file, facts }) => Answer::file(request, file, &facts),
            Ok(Found::Folder(entries)) => Answer {
                status: Status::OK,
                fields: vec![("Content-Type", "text/html; charset=utf-8".to_owned())],
                body: Body::Text(listing::html(&request.names, &entries)),
            },
            Err(status) => Answer::text(status, ""),
        }
    }

    pub(super) fn refusal(bad: &Bad) -> Self {
        let mut answer = Answer::text(bad.status, bad.why);
        if bad.status == Status::METHOD {
            answer.fields.push(("Allow", "GET, HEAD".to_owned()));
        }
        answer
    }

    /// A status in words, and what there is to say about it.
    pub(super) fn text(status: Status, why: &str) -> Self {
        let colon = if why.is_empty() { "" } else { ": " };
        Answer {
            status,
            fields: vec![("Content-Type", "text/plain; charset=utf-8".to_owned())],
            body: Body::Text(format!("{status}{colon}{why}\n")),
        }
    }

    fn file(request: &Request, file: File, facts: &Metadata) -> Self {
        let validators = Validators::of(facts);
        let known = vec![
            ("Accept-Ranges", "bytes".to_owned()),
            ("ETag", validators.etag.clone()),
            (
                "Last-Modified",
                httpdate::fmt_http_date(validators.modified),
            ),
        ];
        let verdict = validators.judge(request);
        let mut answer = match verdict {
            Verdict::Failed => Answer::text(Status::PRECONDITION, "the file is another one by now"),
            Verdict::NotModified => Answer {
                status: Status::NOT_MODIFIED,
                fields: Vec::new(),
                body: Body::None,
            },
            Verdict::Send | Verdict::SendWhole => {
                let partly = verdict == Verdict::Send;
                Answer::bytes(file, facts.len(), wanted(request, facts.len(), partly))
            }
        };
        answer.fields.extend(known);
        answer
    }

    fn bytes(file: File, len: u64, wanted: Wanted) -> Self {
        let kind = ("Content-Type", "application/octet-stream".to_owned());
        match wanted {
            Wanted::Whole => Answer {
                status: Status::OK,
                fields: vec![kind],
                body: Body::Part(file, 0..len),
            },
            Wanted::Part(range) => {
                let told = format!("bytes {}-{}/{len}", range.start, range.end - 1);
                Answer {
                    status: Status::PARTIAL,
                    fields: vec![kind, ("Content-Range", told)],
                    body: Body::Part(file, range),
                }
            }
            Wanted::Beyond => {
                let mut answer = Answer::text(Status::BEYOND, "the file ends before that");
                let told = format!("bytes */{len}");
                answer.fields.push(("Content-Range", told));
                answer
            }
        }
    }
}

/// A range counts where the bytes themselves are asked for, and only if there is one.
fn wanted(request: &Request, len: u64, partly: bool) -> Wanted {
    let mut ranges = request.all("range");
    match (ranges.next(), ranges.next()) {
        (Some(range), None) if partly && request.wants_body() => Wanted::of(range, len),
        _ => Wanted::Whole,
    }
}
