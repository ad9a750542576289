//! What is found out of an object when it is opened: by its first bytes, which are kept.

use std::time::Instant;

use bytes::Bytes;
use kvik_core::{Error, ErrorKind, Op, Result};
use kvik_stats::names;

use crate::failure::Failure;
use crate::fetch::again;
use crate::origin::{Answered, Asker, Origin};
use crate::reply::{Answer, Known};
use crate::retry::Failures;
use crate::validator::Validator;

/// An object as it was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) len: u64,
    pub(crate) validator: Validator,
    /// Its first bytes, or all of it where the server sends no ranges.
    pub(crate) head: Bytes,
}

/// Asks for the first bytes, or a name node for the status of the file. Where the server sends the whole object instead, it is
/// kept if it has no more than `whole` bytes.
///
/// # Errors
/// `RangeUnsupported` if it has more; else what the last request met.
pub(crate) async fn open(origin: &Origin, whole: u64) -> Result<Found> {
    names::REMOTE_SIZE_PROBES.increment();
    let begun = Instant::now();
    let mut failures = Failures::default();
    loop {
        match attempt(origin, whole).await {
            Ok(found) => {
                names::REMOTE_SIZE_PROBING.add(begun.elapsed().as_nanos() as u64);
                return Ok(found);
            }
            Err(failure) => {
                failures.note(0);
                again(origin, failure, failures.in_a_row)
                    .await
                    .map_err(|failure| error(failure, failures.in_a_row))?;
            }
        }
    }
}

async fn attempt(origin: &Origin, whole: u64) -> Result<Found, Failure> {
    if let Asker::Cluster(cluster) = &origin.asker {
        let status = cluster.status(origin).await?;
        return Ok(Found {
            len: status.len,
            validator: Validator::of_file(&status),
            head: Bytes::new(),
        });
    }
    let mut answered = origin.ask(Some(&(0..HEAD)), Known::default()).await?;
    if answered.answer == Answer::Beyond {
        // Some servers say so, and no more, of an empty object; asked for all of it they say how much that is. The answer
        // goes first: it counts among the requests under way, of which there may be room for one only.
        drop(answered);
        answered = origin.ask(None, Known::default()).await?;
    }
    let validator = answered.validator.clone();
    let (len, head) = match answered.answer {
        Answer::Part { ref range, len } => {
            let count = range.end;
            (Some(len), collect(answered, Some(count), count).await?)
        }
        Answer::Whole { len } if len.is_none_or(|len| len <= whole) => {
            (len, collect(answered, len, whole).await?)
        }
        Answer::Whole { .. } => return Err(too_long(whole)),
        Answer::Empty => (Some(0), Bytes::new()),
        Answer::Beyond => {
            return Err(Failure::reply(
                "the server says that there is nothing, and not how much",
            ));
        }
    };
    Ok(Found {
        len: len.unwrap_or(head.len() as u64),
        validator,
        head,
    })
}

/// The whole body: of exactly `expected` bytes if that is known, and of `most` at most.
async fn collect(
    mut answered: Answered,
    expected: Option<u64>,
    most: u64,
) -> Result<Bytes, Failure> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answered.chunk().await? {
        if (bytes.len() + chunk.len()) as u64 > expected.unwrap_or(most) {
            return Err(match expected {
                Some(_) => Failure::too_long(),
                None => too_long(most),
            });
        }
        bytes.try_reserve(chunk.len()).map_err(|cause| {
            let why = "no memory for the object, of which the server sends no ranges";
            Failure::lasting(ErrorKind::OutOfMemory, why).because(cause)
        })?;
        bytes.extend_from_slice(&chunk);
    }
    if expected.is_some_and(|expected| expected != bytes.len() as u64) {
        return Err(Failure::passing(
            ErrorKind::Unreachable,
            "the body ended early",
        ));
    }
    Ok(Bytes::from(bytes))
}

fn too_long(most: u64) -> Failure {
    let why = format!(
        "the server sends the whole object where a range is asked for, and it has more than {most} bytes"
    );
    Failure::lasting(ErrorKind::RangeUnsupported, why)
}

fn error(failure: Failure, failures: u32) -> Error {
    failure.into_error(Op::Open, failures)
}

/// Read when an object is opened: what comes with an answer at no extra cost, and all of most small objects.
pub(crate) const HEAD: u64 = 64 << 10;
