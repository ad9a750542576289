//! A value that is made at its first use, without a lock: [`Once`].

use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;
// Not those of sync.rs: loom's cannot be looked at without its scheduler, and nothing here waits for another thread.
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::fork;

/// What `OnceLock` is, for values that a forked child uses too.
///
/// A child that is forked while another thread fills an `OnceLock` waits for that thread, which it does not have, for ever.
/// And a descriptor that is opened while the process forks may miss in the child, though its number is in the child's
/// memory: there it would be no file, or another one. So whoever comes first makes the value on his own, of several the
/// first one counts, and none is shown as long as a fork is under way.
pub(crate) struct Once<T> {
    // Null, or from `Box::into_raw`, and then it stays.
    value: AtomicPtr<T>,
    owns: PhantomData<T>,
}

// SAFETY: like a `Box<T>` that may be missing, and whose value several threads look at: that asks both of `T`, as for
// `OnceLock`.
unsafe impl<T: Send + Sync> Sync for Once<T> {}

impl<T> Once<T> {
    pub(crate) const fn new() -> Once<T> {
        Once {
            value: AtomicPtr::new(ptr::null_mut()),
            owns: PhantomData,
        }
    }

    /// The value, if it was made.
    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: what is not null came from a box in `set`, stays as long as `self`, and nobody changes it.
        unsafe { self.value.load(Ordering::Acquire).as_ref() }
    }

    /// The value; `make` makes it unless it is there. Several threads may do so at a time, and all but one of what they
    /// made is dropped.
    pub(crate) fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(value) => value,
            None => self.set(make()).0,
        }
    }

    /// Takes `value` unless there is one; returns the one that is there from then on, and whether it is this.
    pub(crate) fn set(&self, value: T) -> (&T, bool) {
        let made = Box::into_raw(Box::new(value));
        fork::wait_for_forks();
        let (null, order) = (ptr::null_mut(), Ordering::AcqRel);
        let set = self
            .value
            .compare_exchange(null, made, order, Ordering::Acquire);
        let there = set.map_or_else(
            |winner| {
                // SAFETY: `made` came from `into_raw` above and nobody else has seen it.
                drop(unsafe { Box::from_raw(made) });
                winner
            },
            |_| made,
        );
        // SAFETY: as in `get`.
        (unsafe { &*there }, set.is_ok())
    }
}

impl<T> From<T> for Once<T> {
    fn from(value: T) -> Once<T> {
        Once {
            value: AtomicPtr::new(Box::into_raw(Box::new(value))),
            owns: PhantomData,
        }
    }
}

impl<T> Drop for Once<T> {
    fn drop(&mut self) {
        let value = *self.value.get_mut();
        if !value.is_null() {
            // SAFETY: it came from a box, and whoever borrowed it borrowed `self`.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Once<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Once").field(&self.get()).finish()
    }
}

/// A value that each process makes for itself: what it made before a fork is not touched in the child, and never dropped
/// there.
///
/// For what has threads, or locks that threads of the parent may hold: an event loop, a client with its connections.
pub struct PerProcess<T>(Once<Made<T>>);

struct Made<T> {
    generation: u64,
    // Always there; taken by `drop` alone.
    value: Option<T>,
    // What a child made.
    next: Once<Made<T>>,
}

impl<T> PerProcess<T> {
    /// No value yet.
    #[must_use]
    pub const fn new() -> PerProcess<T> {
        PerProcess(Once::new())
    }

    /// The value of this process; `make` makes it unless it is there, as for [`get_or_make`](PerProcess::get_or_make), and
    /// cannot fail.
    pub fn get_or(&self, make: impl FnOnce() -> T) -> &T {
        match self.get_or_make(|| Ok::<_, Infallible>(make())) {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    /// The value of this process; `make` makes it unless it is there. Several threads may do so at a time, and all but one
    /// of what they made is dropped.
    ///
    /// # Errors
    /// That of `make`.
    pub fn get_or_make<E>(&self, make: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        let generation = fork::generation();
        let mut place = &self.0;
        while let Some(made) = place.get() {
            if let Some(value) = made
                .value
                .as_ref()
                .filter(|_| made.generation == generation)
            {
                return Ok(value);
            }
            place = &made.next;
        }
        let made = Made {
            generation,
            value: Some(make()?),
            next: Once::new(),
        };
        // Whoever was quicker is of this process, too.
        let (made, _) = place.set(made);
        Ok(made.value.as_ref().expect("only `drop` takes it"))
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> PerProcess<T> {
        PerProcess::new()
    }
}

impl<T> Drop for Made<T> {
    fn drop(&mut self) {
        if self.generation != fork::generation() {
            std::mem::forget(self.value.take());
        }
    }
}

impl<T> fmt::Debug for PerProcess<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PerProcess")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn the_first_value_stays_and_every_other_one_is_dropped() {
        let once = Once::new();
        let (one, two) = (Arc::new(1), Arc::new(2));
        assert_eq!(once.get(), None);
        assert_eq!(once.get_or_make(|| Arc::clone(&one)), &one);
        assert_eq!(once.get_or_make(|| unreachable!()), &one);
        assert_eq!(once.set(Arc::clone(&two)), (&one, false));
        assert_eq!((Arc::strong_count(&one), Arc::strong_count(&two)), (2, 1));
        drop(once);
        assert_eq!(Arc::strong_count(&one), 1);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "threads that race")]
    fn threads_that_make_it_at_once_see_the_same_value() {
        let made = AtomicUsize::new(0);
        for _ in 0..200 {
            let once = Once::new();
            let see = || *once.get_or_make(|| made.fetch_add(1, Ordering::Relaxed));
            let seen = std::thread::scope(|scope| {
                let threads = [(); 4].map(|()| scope.spawn(see));
                threads.map(|thread| thread.join().unwrap())
            });
            assert_eq!(seen, [seen[0]; 4]);
        }
    }

    #[test]
    fn a_child_makes_a_value_of_its_own_and_leaves_that_of_its_parent_alone() {
        /// Whoever drops it ends the process with a code that nobody expects.
        struct Untouchable(i32);
        impl Drop for Untouchable {
            fn drop(&mut self) {
                // SAFETY: it ends the process.
                unsafe { libc::_exit(100 + self.0) }
            }
        }
        let value = PerProcess::new();
        let get = |number| value.get_or(|| Untouchable(number)).0;
        let fails = || value.get_or_make(|| Err::<Untouchable, _>("nothing"));
        assert_eq!(fails().err(), Some("nothing"));
        assert_eq!((get(1), get(2)), (1, 1));
        assert_eq!(fails().map(|value| value.0), Ok(1));
        // SAFETY: the child does nothing but to make a value and to end.
        match unsafe { nix::unistd::fork() }.unwrap() {
            nix::unistd::ForkResult::Child => {
                let (made, again) = (get(3), get(4));
                // SAFETY: it ends the process.
                unsafe { libc::_exit(made * 10 + again) }
            }
            nix::unistd::ForkResult::Parent { child } => {
                let status = nix::sys::wait::waitpid(child, None).unwrap();
                let expected = nix::sys::wait::WaitStatus::Exited(child, 33);
                assert_eq!(status, expected);
            }
        }
        assert_eq!(get(5), 1);
        std::mem::forget(value);
    }

    /// Of an `OnceLock`, the child would wait for ever.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a thread that the child lacks")]
    fn a_child_makes_what_a_thread_of_its_parent_was_just_making() {
        let once = Once::new();
        std::thread::scope(|scope| {
            let (begun, wait) = std::sync::mpsc::channel();
            let (go_on, told) = std::sync::mpsc::channel();
            let once = &once;
            scope.spawn(move || {
                once.get_or_make(|| {
                    begun.send(()).unwrap();
                    told.recv().unwrap();
                    1
                });
            });
            wait.recv().unwrap();
            // SAFETY: the child does nothing but to make a value and to end.
            match unsafe { nix::unistd::fork() }.unwrap() {
                nix::unistd::ForkResult::Child => {
                    let made = *once.get_or_make(|| 2);
                    // SAFETY: it ends the process.
                    unsafe { libc::_exit(made) }
                }
                nix::unistd::ForkResult::Parent { child } => {
                    let status = nix::sys::wait::waitpid(child, None).unwrap();
                    let two = nix::sys::wait::WaitStatus::Exited(child, 2);
                    assert_eq!(status, two);
                }
            }
            go_on.send(()).unwrap();
        });
        assert_eq!(once.get(), Some(&1));
    }
}
