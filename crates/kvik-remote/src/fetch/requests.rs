//! The requests of one task: what failed is asked for again, from the byte that was reached.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;

use bytes::Bytes;
use kvik_core::{Error, ErrorKind, Op};
use kvik_stats::names;

use crate::failure::Failure;
use crate::object::Object;
use crate::origin::{Answered, Origin};
use crate::reply::Answer;
use crate::retry::{self, Failures};

/// Takes bytes in the order in which they lie in the object.
pub(crate) trait Sink {
    /// Takes the next ones; `false` if nobody wants more.
    fn take(&mut self, bytes: Bytes) -> bool;
}

/// Brings all bytes of `range`, which lies within the object.
///
/// # Errors
/// What the last request met. All that the sink took is of the range, from its start on.
pub(crate) async fn bring(
    object: &Object,
    range: Range<u64>,
    sink: &mut impl Sink,
) -> Result<(), Error> {
    let mut at = range.start;
    let mut failures = Failures::default();
    while at < range.end {
        let before = at;
        let Err(failure) = attempt(object, &mut at, range.end, sink).await else {
            continue;
        };
        failures.note(at - before);
        again(&object.origin, failure, failures.in_a_row)
            .await
            .map_err(|failure| failure.into_error(Op::Read, failures.in_a_row))?;
    }
    while let Err(failure) = object.confirm().await {
        failures.note(0);
        again(&object.origin, failure, failures.in_a_row)
            .await
            .map_err(|failure| failure.into_error(Op::Read, failures.in_a_row))?;
    }
    Ok(())
}

/// Returns when a request is to be made again.
///
/// # Errors
/// The failure, if it is not.
pub(crate) async fn again(origin: &Origin, failure: Failure, failures: u32) -> Result<(), Failure> {
    let dice = RandomState::new().build_hasher().finish();
    let Some(wait) = origin.policy.wait(failure.again, failures, dice) else {
        return Err(failure);
    };
    if !failure.is_unsent && !origin.shared().budget.take() {
        return Err(retry::exhausted(failure));
    }
    names::HTTP_RETRIES.increment();
    failure.retries().increment();
    names::HTTP_RETRY_BACKOFF.add(wait.as_nanos() as u64);
    let (place, why) = (&origin.place, &failure.why);
    tracing::debug!(%place, %why, failures, ?wait, "a request is made again");
    tokio::time::sleep(wait).await;
    Ok(())
}

/// One request for what is left; `at` goes along with what the sink took.
async fn attempt(
    object: &Object,
    at: &mut u64,
    end: u64,
    sink: &mut impl Sink,
) -> Result<(), Failure> {
    let start = *at;
    let mut answered = object.ask(&(start..end)).await?;
    let data_node = answered.data_node.take();
    let outcome = take(answered, at, end, sink).await;
    if let (Err(failure), Some(data_node)) = (&outcome, &data_node)
        // That nobody wants more is no fault of who sends it.
        && failure.kind != ErrorKind::Cancelled
    {
        object.stumbled(start, data_node);
    }
    outcome
}

/// The bytes of an answer to a request for all from `at` to `end`.
async fn take(
    mut answered: Answered,
    at: &mut u64,
    end: u64,
    sink: &mut impl Sink,
) -> Result<(), Failure> {
    let start = *at;
    let promised = match &answered.answer {
        Answer::Part { range, .. } => range.end,
        // Only an answer to a question for all of it.
        Answer::Whole { .. } => end,
        Answer::Empty | Answer::Beyond => {
            return Err(Failure::reply(
                "the server sent nothing where there is something",
            ));
        }
    };
    while *at < promised {
        let Some(chunk) = answered.chunk().await? else {
            return Err(Failure::passing(
                ErrorKind::Unreachable,
                format!("the body ended {} bytes early", promised - *at),
            ));
        };
        let count = chunk.len() as u64;
        if count > promised - *at {
            return Err(Failure::too_long());
        }
        if !sink.take(chunk) {
            return Err(Failure::lasting(ErrorKind::Cancelled, "nobody wants more"));
        }
        *at += count;
    }
    answered.finish().await?;
    if promised == end {
        return Ok(());
    }
    if promised - start < SMALLEST_PART {
        return Err(Failure::reply(
            "the server sent only a small part of the range",
        ));
    }
    // Servers may send less than they are asked for. Most of those that do have a limit, and are not in trouble.
    names::HTTP_RETRIES.increment();
    names::HTTP_RETRIES_OF_PART.increment();
    Ok(())
}

// Less than this in an answer is no way to read anything.
const SMALLEST_PART: u64 = 4 << 10;
