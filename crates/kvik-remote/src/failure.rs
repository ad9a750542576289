//! Why a request did not bring what it was to bring, and whether making it again makes sense.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kvik_core::{Error, ErrorKind, Op};
use kvik_stats::{Counter, names};

/// What stopped one request.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) kind: ErrorKind,
    /// A clause without a secret: it becomes a part of the text of an error.
    pub(crate) why: String,
    pub(crate) again: Again,
    /// Whether no server was asked: trying again costs nobody anything.
    pub(crate) is_unsent: bool,
    cause: Option<Cause>,
}

/// Whether, and when, to make the request again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// It would meet the same.
    Never,
    /// It may well succeed.
    Soon,
    /// The server names the time.
    After(Duration),
}

impl Failure {
    /// One that no repetition helps.
    pub(crate) fn lasting(kind: ErrorKind, why: impl Into<String>) -> Failure {
        Failure {
            kind,
            why: why.into(),
            again: Again::Never,
            is_unsent: false,
            cause: None,
        }
    }

    /// An error of somebody who knows nothing of requests.
    pub(crate) fn of(error: Error) -> Failure {
        Failure::lasting(error.kind(), clause_of(&error)).because(error)
    }

    /// One that may pass.
    pub(crate) fn passing(kind: ErrorKind, why: impl Into<String>) -> Failure {
        Failure {
            again: Again::Soon,
            ..Failure::lasting(kind, why)
        }
    }

    /// One of a request that was not made, since others met it just before.
    pub(crate) fn unsent(kind: ErrorKind, why: impl Into<String>) -> Failure {
        Failure {
            is_unsent: true,
            ..Failure::passing(kind, why)
        }
    }

    /// What a server sent is not what it has to send.
    pub(crate) fn reply(why: impl Into<String>) -> Failure {
        Failure::passing(ErrorKind::BadReply, why)
    }

    /// The body goes on where it was to end: what its head said of it is not true, and will not be the next time.
    pub(crate) fn too_long() -> Failure {
        Failure::lasting(ErrorKind::BadReply, "the body is longer than it was to be")
    }

    pub(crate) fn because(
        mut self,
        cause: impl std::error::Error + Send + Sync + 'static,
    ) -> Failure {
        self.cause = Some(Cause(Arc::new(cause)));
        self
    }

    /// The same with another text.
    pub(crate) fn saying(self, why: String) -> Failure {
        Failure { why, ..self }
    }

    /// Where a request that is made again for this reason is counted.
    pub(crate) fn retries(&self) -> &'static Counter {
        match self.kind {
            ErrorKind::Refused => &names::HTTP_RETRIES_OF_REFUSAL,
            ErrorKind::TimedOut => &names::HTTP_RETRIES_OF_TIMEOUT,
            ErrorKind::Unreachable => &names::HTTP_RETRIES_OF_CONNECTION,
            ErrorKind::BadReply => &names::HTTP_RETRIES_OF_REPLY,
            _ => &names::HTTP_RETRIES_OF_OTHER,
        }
    }

    /// The error of a caller, after so many requests that failed.
    pub(crate) fn into_error(self, op: Op, failures: u32) -> Error {
        let why = match failures {
            0 | 1 => self.why,
            _ => format!("{}, and so {failures} times", self.why),
        };
        let error = Error::new(self.kind, op, why);
        match self.cause {
            Some(cause) => error.because(cause),
            None => error,
        }
    }
}

/// What an error says, for a text that says itself what was being done and where, and what the next step is.
pub(crate) fn clause_of(error: &Error) -> String {
    let text = error.to_string();
    let done = match error.place() {
        Some(place) => format!("{} {place}: ", error.op()),
        None => format!("{}: ", error.op()),
    };
    let mut clause = text.strip_prefix(&done);
    if let (Some(found), Some(advice)) = (clause, error.advice()) {
        clause = found.strip_suffix(&format!("; {advice}"));
    }
    clause.unwrap_or(&text).to_owned()
}

/// An error of whatever type.
#[derive(Clone)]
pub(crate) struct Cause(pub(crate) Arc<dyn std::error::Error + Send + Sync>);

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Cause {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_becomes_a_failure_says_nothing_twice() {
        for (kind, text) in [
            (ErrorKind::Config, "read: no keys are there"),
            (
                ErrorKind::OutOfMemory,
                "read: no keys are there; free memory or raise the limit, then run it again",
            ),
        ] {
            let first = Error::new(kind, Op::Configure, "no keys are there");
            let error = Failure::of(first.clone()).into_error(Op::Read, 1);
            assert_eq!((error.kind(), error.to_string().as_str()), (kind, text));
            let cause = std::error::Error::source(&error).unwrap();
            assert_eq!(cause.to_string(), first.to_string());
        }
    }
}
