//! Bearer tokens by a function of the caller's: it is asked when there is none, and when a server has refused the last one.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use kvik_core::corridor::PerProcess;
use kvik_core::{Error, ErrorKind, Op, Result};
use tokio::sync::Mutex;

use crate::failure::Cause;
use crate::redact;

/// An error of whatever type.
pub(crate) type AnyError = Box<dyn StdError + Send + Sync>;

/// The function, and the token that it gave last. All handles that were opened by the same options share it.
#[derive(Clone)]
pub(crate) struct Bearer(Arc<Inner>);

struct Inner {
    give: Box<dyn Fn() -> Result<String, AnyError> + Send + Sync>,
    last: ArcSwapOption<String>,
    // Held by the one who asks the function.
    asking: PerProcess<Mutex<()>>,
}

impl Bearer {
    pub(crate) fn new(
        give: impl Fn() -> Result<String, AnyError> + Send + Sync + 'static,
    ) -> Bearer {
        Bearer(Arc::new(Inner {
            give: Box::new(give),
            last: ArcSwapOption::empty(),
            asking: PerProcess::new(),
        }))
    }

    /// The token that was given last, or the first one.
    ///
    /// # Errors
    /// Those of the function.
    pub(crate) async fn token(&self) -> Result<Arc<String>> {
        match self.0.last.load_full() {
            Some(token) => Ok(token),
            None => self.other_than(None).await,
        }
    }

    /// The token after the one that a server has `refused`; the same if there is no other.
    ///
    /// # Errors
    /// Those of the function.
    pub(crate) async fn after(&self, refused: &Arc<String>) -> Result<Arc<String>> {
        self.other_than(Some(refused)).await
    }

    /// What no text may show.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let last = self.0.last.load_full();
        last.map(|token| String::clone(&token))
            .into_iter()
            .collect()
    }

    async fn other_than(&self, refused: Option<&Arc<String>>) -> Result<Arc<String>> {
        let asking = self
            .0
            .asking
            .get_or_make(|| Ok::<_, Infallible>(Mutex::new(())));
        let asking = match asking {
            Ok(asking) => asking.lock().await,
            Err(never) => match never {},
        };
        // Whoever asked meanwhile has it.
        if let Some(token) = self.0.last.load_full()
            && refused.is_none_or(|refused| !Arc::ptr_eq(refused, &token))
        {
            return Ok(token);
        }
        let inner = Arc::clone(&self.0);
        // It may take its time, as the threads that talk to the network may not.
        let given = tokio::task::spawn_blocking(move || {
            let given = (inner.give)().map(Arc::new);
            if let Ok(token) = &given {
                inner.last.store(Some(Arc::clone(token)));
            }
            given
        });
        let given = given.await;
        drop(asking);
        match given {
            Ok(Ok(token)) => Ok(token),
            Ok(Err(cause)) => Err(self.failed(cause)),
            Err(cause) => {
                let why = "the function that gives bearer tokens has panicked";
                Err(Error::new(ErrorKind::Internal, Op::Open, why).because(cause))
            }
        }
    }

    fn failed(&self, cause: AnyError) -> Error {
        let known = cause.downcast_ref::<Error>().map(Error::kind);
        let said = redact::foreign(&cause.to_string(), &self.secrets(), LONGEST);
        let why = format!("the function that gives bearer tokens failed: {said}");
        let kind = known.unwrap_or(ErrorKind::PermissionDenied);
        Error::new(kind, Op::Open, why).because(Cause(cause))
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer")
    }
}

// As much as a person reads.
const LONGEST: usize = 500;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::runtime;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn now<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
        runtime().unwrap().wait_for(work).unwrap()
    }

    #[test]
    fn many_who_need_a_token_at_once_ask_for_it_once() {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let bearer = Bearer::new(move || {
            let call = counted.fetch_add(1, Ordering::Relaxed);
            Ok(format!("token {call}"))
        });
        let all = |refused: Option<Arc<String>>| {
            let bearer = bearer.clone();
            now(async move {
                let mut tasks = Vec::new();
                for _ in 0..20 {
                    let (bearer, refused) = (bearer.clone(), refused.clone());
                    tasks.push(tokio::spawn(async move {
                        match refused {
                            Some(refused) => bearer.after(&refused).await.unwrap(),
                            None => bearer.token().await.unwrap(),
                        }
                    }));
                }
                let mut tokens = Vec::new();
                for task in tasks {
                    tokens.push(task.await.unwrap());
                }
                tokens
            })
        };
        let first = all(None);
        assert!(first.iter().all(|token| **token == "token 0"), "{first:?}");
        let second = all(Some(Arc::clone(&first[0])));
        assert!(
            second.iter().all(|token| **token == "token 1"),
            "{second:?}"
        );
        // Who was refused with the first one takes the second.
        let late = all(Some(Arc::clone(&first[0])));
        assert!(late.iter().all(|token| **token == "token 1"), "{late:?}");
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        assert_eq!(bearer.secrets(), ["token 1"]);
        assert!(!format!("{bearer:?}").contains("token 1"));
    }

    #[test]
    fn what_the_function_fails_with_is_told_with_its_kind() {
        let failing = |cause: fn() -> AnyError| {
            let bearer = Bearer::new(move || Err(cause()));
            now(async move { bearer.token().await }).unwrap_err()
        };
        let error = failing(|| "the vault is\r\nlocked".into());
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        let says = "the function that gives bearer tokens failed: the vault is  locked";
        assert!(error.to_string().ends_with(says), "{error}");
        let error = failing(|| Error::new(ErrorKind::TimedOut, Op::Open, "too slow").into());
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
        assert!(
            StdError::source(&error)
                .unwrap()
                .to_string()
                .contains("too slow")
        );
        let bearer = Bearer::new(|| panic!("on purpose"));
        let error = now(async move { bearer.token().await }).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
    }
}
