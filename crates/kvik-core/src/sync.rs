//! The primitives that the model checker replaces, chosen here: std, or loom under `--cfg loom`.
//!
//! `Arc` stays std's: loom's cannot hold trait objects, and reference counts are not what the models are about.

#[cfg(loom)]
pub(crate) use loom::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    sync::{Condvar, Mutex, MutexGuard},
    thread,
};
#[cfg(not(loom))]
pub(crate) use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    sync::{Condvar, Mutex, MutexGuard},
    thread,
};

/// Locks, whatever happened to the last owner: the data under kvik's locks is consistent at every step, and a panic is
/// reported by the transfer that caught it, not by all that come after.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Waits on `condvar`, with the same view on poisoning as [`lock`].
pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar
        .wait(guard)
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
