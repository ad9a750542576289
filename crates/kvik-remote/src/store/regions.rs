//! In which regions buckets are, as servers said: what one handle was told no other one has to ask for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kvik_core::corridor::PerProcess;

/// A bucket, and the server that was asked for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Bucket {
    pub(super) server: String,
    pub(super) name: String,
}

/// The region that a server said this bucket is in.
pub(super) fn recall(bucket: &Bucket) -> Option<Arc<str>> {
    regions().get(bucket).cloned()
}

pub(super) fn remember(bucket: &Bucket, region: &Arc<str>) {
    let mut regions = regions();
    if regions.len() >= MOST {
        // Each of them is found out again by one request.
        regions.clear();
    }
    regions.insert(bucket.clone(), Arc::clone(region));
}

type Regions = HashMap<Bucket, Arc<str>>;

fn regions() -> MutexGuard<'static, Regions> {
    // In a child the parent's lock may be held by a thread that is not there.
    static REGIONS: PerProcess<Mutex<Regions>> = PerProcess::new();
    let regions = REGIONS.get_or(Mutex::default);
    regions.lock().unwrap_or_else(PoisonError::into_inner)
}

const MOST: usize = 10_000;
