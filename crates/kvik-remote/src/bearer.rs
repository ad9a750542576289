//! Bearer tokens by a function of the caller's: it is asked when there is none, and when a server has refused the last one.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use kvik_core::{Error, ErrorKind, Op, Result};

use crate::endpoint::authorization;
use crate::failure::Cause;
use crate::latest::{Found, Latest};
use crate::redact;
use crate::transport::runtime;

/// An error of whatever type.
pub(crate) type AnyError = Box<dyn StdError + Send + Sync>;

/// The function, and the token that it gave last. All handles that were opened by the same options share it.
#[derive(Clone)]
pub(crate) struct Bearer(Arc<Inner>);

struct Inner {
    give: Box<dyn Fn() -> Result<String, AnyError> + Send + Sync>,
    // One that a request can hold.
    last: ArcSwapOption<String>,
    asking: Latest<Result<Arc<String>>>,
}

impl Bearer {
    pub(crate) fn new(
        give: impl Fn() -> Result<String, AnyError> + Send + Sync + 'static,
    ) -> Bearer {
        Bearer(Arc::new(Inner {
            give: Box::new(give),
            last: ArcSwapOption::empty(),
            asking: Latest::new(),
        }))
    }

    /// The token that was given last, or the first one.
    ///
    /// # Errors
    /// Those of the function; `Misuse` if it gives what is no token.
    pub(crate) async fn token(&self) -> Result<Arc<String>> {
        match self.0.last.load_full() {
            Some(token) => Ok(token),
            None => self.other_than(None).await,
        }
    }

    /// The token after the one that a server has `refused`; the same if there is no other.
    ///
    /// # Errors
    /// As for [`token`](Bearer::token).
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
        let mut turn = match self.0.asking.under_way().await {
            Found::Answer(given) => return given,
            Found::Turn(turn) => turn,
        };
        // Whoever asked meanwhile has it.
        if let Some(token) = self.0.last.load_full()
            && refused.is_none_or(|refused| !Arc::ptr_eq(refused, &token))
        {
            return Ok(token);
        }
        let bearer = self.clone();
        // The function is not called again before it has returned, even where this caller does not wait for it any more.
        let asked = runtime()?.spawn(async move {
            let given = bearer.ask().await;
            turn.answer(given.clone());
            if let Ok(token) = &given {
                bearer.0.last.store(Some(Arc::clone(token)));
            }
            given
        });
        asked.await.unwrap_or_else(|cause| Err(panicked(cause)))
    }

    /// Calls the function.
    async fn ask(&self) -> Result<Arc<String>> {
        let bearer = self.clone();
        // It may take its time, as the threads that talk to the network may not.
        let given = tokio::task::spawn_blocking(move || (bearer.0.give)());
        let token = match given.await {
            Ok(given) => given.map_err(|cause| self.failed(cause))?,
            Err(cause) => return Err(panicked(cause)),
        };
        // Kept, it would be what all requests from now on fail with.
        authorization::bearer(&token)?;
        Ok(Arc::new(token))
    }

    fn failed(&self, cause: AnyError) -> Error {
        let secrets = self.secrets();
        let known = cause.downcast_ref::<Error>().map(Error::kind);
        let said = redact::foreign(&cause.to_string(), &secrets, LONGEST);
        let why = format!("the function that gives bearer tokens failed: {said}");
        let error = Error::new(known.unwrap_or(ErrorKind::PermissionDenied), Op::Open, why);
        match shows(&*cause, &secrets) {
            true => error,
            false => error.because(Cause(Arc::from(cause))),
        }
    }
}

/// Whether the text of an error, or that of what caused it, has any of `secrets`.
fn shows(error: &(dyn StdError + 'static), secrets: &[String]) -> bool {
    let mut all = std::iter::successors(Some(error), |error| (*error).source());
    all.any(|error| {
        let texts = format!("{error} {error:?}");
        redact::hide(&texts, secrets) != texts
    })
}

fn panicked(cause: tokio::task::JoinError) -> Error {
    let why = "the function that gives bearer tokens has panicked";
    Error::new(ErrorKind::Internal, Op::Open, why).because(cause)
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
    use std::future::poll_fn;
    use std::pin::Pin;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Mutex, mpsc};
    use std::task::Poll;

    fn now<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
        runtime().unwrap().wait_for(work).unwrap()
    }

    /// Whether this has begun by now, and waits.
    async fn waits(asked: &mut Pin<Box<impl Future>>) -> bool {
        poll_fn(|cx| Poll::Ready(asked.as_mut().poll(cx).is_pending())).await
    }

    #[test]
    fn many_who_need_a_token_at_once_ask_for_it_once() {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let bearer = Bearer::new(move || {
            let call = counted.fetch_add(1, Ordering::Relaxed);
            Ok(format!("token-{call}"))
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
        assert!(first.iter().all(|token| **token == "token-0"), "{first:?}");
        let second = all(Some(Arc::clone(&first[0])));
        assert!(
            second.iter().all(|token| **token == "token-1"),
            "{second:?}"
        );
        // Who was refused with the first one takes the second.
        let late = all(Some(Arc::clone(&first[0])));
        assert!(late.iter().all(|token| **token == "token-1"), "{late:?}");
        assert_eq!(calls.load(Ordering::Relaxed), 2);
        assert_eq!(bearer.secrets(), ["token-1"]);
        assert!(!format!("{bearer:?}").contains("token-1"));
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

    #[test]
    fn many_who_wait_for_a_call_that_fails_share_its_failure() {
        let panics: fn() -> Result<String, AnyError> = || panic!("on purpose");
        for (give, says) in [
            (panics, "has panicked"),
            (|| Err("the vault is locked".into()), "the vault is locked"),
            (|| Ok("two words".to_owned()), "no token has"),
        ] {
            let (calls, (let_go, held)) = (Arc::new(AtomicUsize::new(0)), mpsc::channel::<()>());
            let (counted, held) = (Arc::clone(&calls), Mutex::new(held));
            let bearer = Bearer::new(move || {
                counted.fetch_add(1, Ordering::Relaxed);
                // Once nobody can let it go any more it goes on by itself.
                let _ = held.lock().unwrap().recv();
                give()
            });
            let asking = bearer.clone();
            let errors = now(async move {
                let ask = |_| {
                    let bearer = asking.clone();
                    Box::pin(async move { bearer.token().await })
                };
                let mut all: Vec<_> = (0..20).map(ask).collect();
                for asked in &mut all {
                    assert!(waits(asked).await);
                }
                let_go.send(()).unwrap();
                drop(let_go);
                let mut errors = Vec::new();
                for asked in all {
                    errors.push(asked.await.unwrap_err());
                }
                errors
            });
            for error in errors {
                assert!(error.to_string().contains(says), "{error}");
            }
            assert_eq!(calls.load(Ordering::Relaxed), 1, "{says}");
            // Who comes later asks again, and nothing of what failed is kept.
            assert!(now(async move { bearer.token().await }).is_err());
            assert_eq!(calls.load(Ordering::Relaxed), 2, "{says}");
        }
    }

    #[test]
    fn a_call_that_nobody_waits_for_any_more_is_not_made_twice_at_a_time() {
        let (calls, (let_go, held)) = (Arc::new(AtomicUsize::new(0)), mpsc::channel::<()>());
        let (counted, held) = (Arc::clone(&calls), Mutex::new(held));
        let bearer = Bearer::new(move || {
            let call = counted.fetch_add(1, Ordering::Relaxed);
            held.lock().unwrap().recv()?;
            Ok(format!("token-{call}"))
        });
        let token = now(async move {
            let mut first = Box::pin(bearer.token());
            assert!(waits(&mut first).await);
            drop(first);
            let mut second = Box::pin(bearer.token());
            assert!(waits(&mut second).await);
            let_go.send(()).unwrap();
            second.await.unwrap()
        });
        assert_eq!(*token, "token-0");
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn an_error_that_shows_the_last_token_is_told_without_it_and_without_its_causes() {
        let calls = AtomicUsize::new(0);
        let bearer = Bearer::new(move || match calls.fetch_add(1, Ordering::Relaxed) {
            0 => Ok("hunter22".to_owned()),
            1 => Err("hunter22 cannot be renewed".into()),
            _ => {
                let cause = std::io::Error::other("hunter22 is too old");
                let error = Error::new(ErrorKind::TimedOut, Op::Open, "too slow");
                Err(error.because(cause).into())
            }
        });
        let errors = now(async move {
            let first = bearer.token().await.unwrap();
            [bearer.after(&first).await, bearer.after(&first).await]
        });
        let [renewed, slow] = errors.map(Result::unwrap_err);
        assert!(
            renewed
                .to_string()
                .contains("failed: *** cannot be renewed")
        );
        assert_eq!(slow.kind(), ErrorKind::TimedOut);
        for error in [renewed, slow] {
            assert!(StdError::source(&error).is_none(), "{error}");
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("hunter22"), "{shown}");
        }
    }
}
