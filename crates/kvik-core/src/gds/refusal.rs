//! Why cuFile, or its driver, cannot be used: told in one way to those who may use nothing else, and in another to the rest.

use std::borrow::Cow;
use std::sync::Arc;

use kvik_sys::CuFileStatus;

use crate::error::{Error, ErrorKind, Op};

/// Why cuFile cannot be used.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    // Completes "cuFile is".
    why: Cow<'static, str>,
    cause: Option<Arc<dyn std::error::Error + Send + Sync>>,
    // An error that is told as it is, whoever asked.
    error: Option<Error>,
    passes: bool,
}

impl Refusal {
    pub(super) fn new(why: impl Into<Cow<'static, str>>) -> Refusal {
        Refusal {
            why: why.into(),
            cause: None,
            error: None,
            passes: false,
        }
    }

    /// What `call` answered.
    pub(super) fn of_call(call: &str, status: CuFileStatus) -> Refusal {
        Refusal::new(format!("not usable: {call}: {status}")).because(status)
    }

    /// An error that has nothing to do with cuFile: a child that may use no device, a setting that cannot be used.
    pub(super) fn of(error: Error) -> Refusal {
        let mut refusal = Refusal::new(format!("not usable: {error}"));
        refusal.error = Some(error);
        refusal
    }

    pub(super) fn because(
        mut self,
        cause: impl std::error::Error + Send + Sync + 'static,
    ) -> Refusal {
        self.cause = Some(Arc::new(cause));
        self
    }

    /// The same, where it may be otherwise at the next call.
    pub(super) fn passing(mut self) -> Refusal {
        self.passes = true;
        self
    }

    /// Whether it may be otherwise at the next call.
    pub(super) fn passes(&self) -> bool {
        self.passes
    }

    /// A clause that completes "cuFile is".
    pub(super) fn why(&self) -> &str {
        &self.why
    }

    /// For a file that may be moved by cuFile alone.
    pub(super) fn required(self) -> Error {
        self.told("the compat mode OFF requires cuFile, which is", Op::Inspect)
    }

    /// For who asked for cuFile's driver itself.
    pub(crate) fn of_driver(self, op: Op) -> Error {
        self.told("cuFile is", op)
    }

    fn told(self, beginning: &str, op: Op) -> Error {
        if let Some(error) = self.error {
            return error;
        }
        let why = format!("{beginning} {}", self.why);
        let error = Error::new(ErrorKind::GdsUnavailable, op, why);
        match self.cause {
            Some(cause) => error.because_of(cause),
            None => error,
        }
    }
}
