//! An object that was opened: what is known of it, and its first bytes.

use std::ops::Range;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use kvik_core::ErrorKind;
use kvik_stats::names;
use url::Url;

use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::origin::{Answered, Asker, Origin};
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
        let validator = match &self.origin.asker {
            Asker::Cluster(cluster) => Some(self.settled_by(cluster).await?),
            _ => self.validator(),
        };
        let known = Known {
            len: Some(self.len),
            validator: validator.as_deref(),
        };
        let answered = match self.origin.ask(Some(range), known).await {
            Ok(answered) => answered,
            Err(failure) => return Err(self.or_changed(failure).await),
        };
        if validator.is_none() {
            let settled = self.settle(&answered.validator);
            if !settled.is_same(&answered.validator) {
                let why = "two ranges that were asked for at once are of two versions";
                return Err(Failure::lasting(ErrorKind::Changed, why));
            }
        }
        Ok(answered)
    }

    /// Makes sure that bytes which are here are of the version that was seen first, where their answer does not say it.
    pub(crate) async fn confirm(&self) -> Result<(), Failure> {
        let Asker::Cluster(cluster) = &self.origin.asker else {
            return Ok(());
        };
        let status = cluster.status(&self.origin).await?;
        let now = Validator::of_file(&status);
        let known = self.settle(&now);
        if status.len != self.len {
            let why = format!("it had {} bytes and has {} now", self.len, status.len);
            return Err(Failure::lasting(ErrorKind::Changed, why));
        }
        if !known.is_same(&now) {
            let why = format!("its version was {known} and is {now} now");
            return Err(Failure::lasting(ErrorKind::Changed, why));
        }
        Ok(())
    }

    /// Bytes from `offset` on came wrong from `data_node`, or not to their end.
    pub(crate) fn stumbled(&self, offset: u64, data_node: &Url) {
        if let Asker::Cluster(cluster) = &self.origin.asker {
            cluster.stumbled(offset, data_node);
        }
    }

    /// The version of a file, asked for before its first bytes where the caller has said its length.
    async fn settled_by(&self, cluster: &Cluster) -> Result<Arc<Validator>, Failure> {
        if let Some(known) = self.validator() {
            return Ok(known);
        }
        let status = cluster.status(&self.origin).await?;
        if status.len != self.len {
            let why = format!("it was to have {} bytes and has {}", self.len, status.len);
            return Err(Failure::lasting(ErrorKind::Changed, why));
        }
        Ok(self.settle(&Validator::of_file(&status)))
    }

    /// What a refusal really means: a file that has become shorter has no such bytes any more.
    async fn or_changed(&self, failure: Failure) -> Failure {
        let may_tell = [ErrorKind::Refused, ErrorKind::BadReply, ErrorKind::Misuse];
        if !may_tell.contains(&failure.kind) {
            return failure;
        }
        match self.confirm().await {
            Err(changed) if changed.kind == ErrorKind::Changed => changed,
            _ => failure,
        }
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
