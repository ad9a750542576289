//! What nodes answered, believed only after this. Pure.

use std::ops::Range;

use http::StatusCode;
use http::header::CONTENT_TYPE;
use kvik_core::ErrorKind;

use crate::endpoint::{FileStatus, starts_like_html};
use crate::failure::{Failure, clause_of};
use crate::reply::{self, Answer};
use crate::transport::Reply;

/// Judges the answer to `OPEN` for `asked`, which lies within a file of `len` bytes. There is no `Content-Range`: the answer
/// is what was asked for, and where it has a length, that one.
pub(super) fn bytes(reply: &Reply, asked: &Range<u64>, len: u64) -> Result<Answer, Failure> {
    if reply.status != StatusCode::OK {
        return Err(Failure::reply(format!(
            "the node answered {} to a request for bytes",
            reply::status_text(reply.status)
        )));
    }
    let kind = reply.headers.get(CONTENT_TYPE);
    // Nodes send bytes as such, whatever the file is.
    if kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html")) {
        let why =
            "a page of HTML came where bytes were to come, that of a login or of a proxy perhaps";
        return Err(Failure::lasting(ErrorKind::BadReply, why));
    }
    reply::plain(&reply.headers)?;
    let count = asked.end - asked.start;
    let end = match reply::content_length(&reply.headers)? {
        Some(0) => {
            return Err(Failure::reply(
                "the node sent nothing where there is something",
            ));
        }
        Some(more) if more > count => {
            let why = format!("the node sent {more} bytes where {count} were asked for");
            return Err(Failure::lasting(ErrorKind::BadReply, why));
        }
        Some(count) => asked.start + count,
        None => asked.end,
    };
    let range = asked.start..end;
    Ok(Answer::Part { range, len })
}

/// Reads the answer to `GETFILESTATUS`.
pub(super) fn status(body: &[u8]) -> Result<FileStatus, Failure> {
    FileStatus::read(body).map_err(|error| match error.kind() {
        // Somebody else's answer may be a node's the next time, but for a page that is meant for people.
        ErrorKind::BadReply if !starts_like_html(body) => Failure::reply(clause_of(&error)),
        kind => Failure::lasting(kind, clause_of(&error)),
    })
}
