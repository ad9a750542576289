//! One question for all who wait for its answer.

use std::convert::Infallible;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};

use kvik_core::ErrorKind;
use kvik_core::corridor::PerProcess;
use tokio::sync::Mutex;

use crate::failure::{Again, Failure};

/// The last answer to a question whose answer changes.
#[derive(Default)]
pub(super) struct Latest<T>(PerProcess<Asked<T>>);

#[derive(Debug)]
struct Asked<T> {
    /// How many questions were begun.
    begun: AtomicU64,
    /// The last one that was answered, by its number.
    answered: Mutex<(u64, Option<Outcome<T>>)>,
}

/// What was answered, or why nothing was.
type Outcome<T> = Result<T, (ErrorKind, String, Again)>;

impl<T: Copy> Latest<T> {
    pub(super) fn new() -> Latest<T> {
        // Not inherited by a child: a question that the parent's threads ask is answered to nobody there.
        Latest(PerProcess::new())
    }

    /// The answer to a question that begins after this was called: one that was begun before may be answered by what was
    /// so before. Who comes while others wait shares theirs.
    pub(super) async fn after_now<F>(&self, ask: impl FnOnce() -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let made = self.0.get_or_make(|| {
            Ok::<_, Infallible>(Asked {
                begun: AtomicU64::new(0),
                answered: Mutex::new((0, None)),
            })
        });
        let asked = match made {
            Ok(asked) => asked,
            Err(never) => match never {},
        };
        let before = asked.begun.load(Ordering::SeqCst);
        let mut answered = asked.answered.lock().await;
        if let (number, Some(outcome)) = &*answered
            && *number > before
        {
            return shared(outcome);
        }
        let number = asked.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let outcome = ask().await;
        let kept = match &outcome {
            Ok(answer) => Ok(*answer),
            Err(failure) => Err((failure.kind, failure.why.clone(), failure.again)),
        };
        *answered = (number, Some(kept));
        outcome
    }
}

impl<T> std::fmt::Debug for Latest<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Latest").finish_non_exhaustive()
    }
}

fn shared<T: Copy>(outcome: &Outcome<T>) -> Result<T, Failure> {
    match outcome {
        Ok(answer) => Ok(*answer),
        Err((kind, why, again)) => {
            let mut failure = Failure::lasting(*kind, why.clone());
            failure.again = *again;
            Err(failure)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tokio::sync::oneshot;

    /// A question that was under way when somebody came does not serve him; all who wait share the next one.
    #[test]
    fn who_waits_shares_a_question_that_begins_after_he_came() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(async {
            let latest = Arc::new(Latest::new());
            let asked = Arc::new(AtomicU64::new(0));
            let (go, wait) = oneshot::channel::<()>();
            let first = {
                let (latest, asked) = (Arc::clone(&latest), Arc::clone(&asked));
                tokio::spawn(async move {
                    let question = || async {
                        asked.fetch_add(1, Ordering::SeqCst);
                        wait.await.unwrap();
                        Ok(1)
                    };
                    latest.after_now(question).await
                })
            };
            while asked.load(Ordering::SeqCst) == 0 {
                tokio::task::yield_now().await;
            }
            let others: Vec<_> = (0..10)
                .map(|_| {
                    let (latest, asked) = (Arc::clone(&latest), Arc::clone(&asked));
                    tokio::spawn(async move {
                        let question = || async { Ok(asked.fetch_add(1, Ordering::SeqCst) + 1) };
                        latest.after_now(question).await
                    })
                })
                .collect();
            // All of them have come before the first is answered.
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            go.send(()).unwrap();
            assert_eq!(first.await.unwrap().unwrap(), 1);
            for other in others {
                assert_eq!(other.await.unwrap().unwrap(), 2);
            }
            assert_eq!(asked.load(Ordering::SeqCst), 2);
        });
    }

    #[test]
    fn a_failure_is_shared_with_what_is_to_be_done_about_it() {
        let failure = || Failure::passing(ErrorKind::TimedOut, "silence");
        let Failure {
            kind, why, again, ..
        } = failure();
        let again = shared::<u64>(&Err((kind, why, again))).unwrap_err();
        assert_eq!(
            (again.kind, again.again),
            (ErrorKind::TimedOut, Again::Soon)
        );
        assert_eq!(again.why, failure().why);
    }
}
