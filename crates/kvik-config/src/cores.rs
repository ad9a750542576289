//! How many cores this process may use.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The number of cores this process may use, at most 16. Asked once per process, by the thread that needs it first.
///
/// `available_parallelism` is the smaller of two numbers: the cores in the affinity mask of that thread, and the cgroup CPU
/// quota over its period, rounded down but at least 1. It looks at our cgroup and all its parents, of version 1
/// (`cpu.cfs_quota_us`, tried on a machine) as of version 2 (`cpu.max` under `/sys/fs/cgroup`, read in its source).
///
/// More than 16 gain little: the page cache and the bus of the machines we measured are full with 8 to 16 threads.
pub(crate) fn usable_up_to_16() -> u64 {
    // Not a `OnceLock`: a child forked while another thread computes would wait for that thread forever. Two threads that
    // compute at the same time find the same number.
    static CORES: AtomicUsize = AtomicUsize::new(0);
    let known = CORES.load(Ordering::Relaxed);
    if known != 0 {
        return known as u64;
    }
    let cores = thread::available_parallelism().map_or(1, |n| n.get().min(16));
    CORES.store(cores, Ordering::Relaxed);
    cores as u64
}
