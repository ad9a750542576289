//! An object that was opened: what is known of it, and its first bytes.

use std::ops::Range;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use kvik_stats::names;

use crate::failure::Failure;
use crate::origin::{Answered, Origin};
use crate::reply::Known;
use crate::validator::Validator;

/// What all clones of a handle share.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) origin: Origin,
    pub(crate) len: u64,
    pub(crate) head: Bytes,
    // Empty where the caller has said the length, until the first answer.
    validator: ArcSwapOption<Validator>,
}

impl Object {
    pub(crate) fn new(
        origin: Origin,
        len: u64,
        head: Bytes,
        validator: Option<Validator>,
    ) -> Object {
        let object = Object {
            origin,
            len,
            head,
            validator: ArcSwapOption::empty(),
        };
        if let Some(validator) = validator {
            object.settle(&validator);
        }
        object
    }

    /// What tells its version, if an answer was there.
    pub(crate) fn validator(&self) -> Option<Arc<Validator>> {
        self.validator.load_full()
    }

    /// Asks for `range`, which lies within the object. What comes is of the version that was seen first.
    pub(crate) async fn ask(&self, range: &Range<u64>) -> Result<Answered, Failure> {
        let validator = self.validator();
        let known = Known {
            len: Some(self.len),
            validator: validator.as_deref(),
        };
        let answered = self.origin.ask(Some(range), known).await?;
        if validator.is_none() {
            let settled = self.settle(&answered.validator);
            if !settled.is_same(&answered.validator) {
                let why = "two ranges that were asked for at once are of two versions";
                return Err(Failure::lasting(kvik_core::ErrorKind::Changed, why));
            }
        }
        Ok(answered)
    }

    /// Takes the validator of the first answer; returns the one that counts.
    fn settle(&self, first: &Validator) -> Arc<Validator> {
        let first = Arc::new(first.clone());
        let nobody: Option<Arc<Validator>> = None;
        let before = self
            .validator
            .compare_and_swap(&nobody, Some(Arc::clone(&first)));
        match &*before {
            Some(winner) => Arc::clone(winner),
            None => {
                if first.is_none() {
                    names::HTTP_WITHOUT_VALIDATOR.increment();
                }
                first
            }
        }
    }
}
