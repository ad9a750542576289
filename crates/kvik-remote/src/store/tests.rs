//! A source of keys that fails is not asked by each request that waits for it.

use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::AtomicUsize;
use std::task::Poll;

use tokio::sync::Semaphore;

use super::*;
use crate::credentials::Finding;
use crate::endpoint::S3Options;

/// Has keys that have ended; asked again it waits to be let go, and has nothing to give.
#[derive(Debug)]
struct Failing {
    asked: AtomicUsize,
    held: Semaphore,
}

impl Failing {
    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a drawer")
    }
}

impl Credentials for Failing {
    fn find(&self) -> Finding<'_> {
        Box::pin(async {
            if self.asked.fetch_add(1, Ordering::Relaxed) == 0 {
                return Ok(Some(
                    Keys::new("id", "secret").expires(SystemTime::UNIX_EPOCH),
                ));
            }
            self.held.acquire().await.unwrap().forget();
            let why = "the drawer is locked";
            Err(Error::new(ErrorKind::PermissionDenied, Op::Configure, why))
        })
    }
}

#[test]
fn many_who_wait_for_keys_share_the_failure_to_find_them() {
    let source = Arc::new(Failing {
        asked: AtomicUsize::new(0),
        held: Semaphore::new(0),
    });
    let location = Location::parse("s3://b/k").unwrap();
    let endpoint = S3Endpoint::new(&location, S3Options::default()).unwrap();
    let store = Store::new(endpoint, Account::IfAny(source.clone()));
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.unwrap().block_on(async {
        store.prepare().await.unwrap();
        let fresh = |_| Box::pin(store.keep_fresh(SystemTime::now()));
        let mut all: Vec<_> = (0..20).map(fresh).collect();
        for one in &mut all {
            let waits = poll_fn(|cx| Poll::Ready(one.as_mut().poll(cx).is_pending()));
            assert!(waits.await);
        }
        source.held.add_permits(2);
        for one in all {
            let error = one.await.unwrap_err();
            assert!(error.to_string().contains("is locked"), "{error}");
        }
        assert_eq!(source.asked(), 2);
        // Who comes later asks again.
        assert!(fresh(20).await.is_err());
        assert_eq!(source.asked(), 3);
    });
}
