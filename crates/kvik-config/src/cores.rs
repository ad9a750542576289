//! How many cores this process may use.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The number of cores this process may use, at most 16. Asked once per process, by the thread that needs it first.
///
/// The standard library counts the affinity mask of that thread and divides the cgroup CPU quota by its period, rounded down
/// but at least 1; both for version 2 (`cpu.max` of the cgroup and all its parents) and version 1 (`cpu.cfs_quota_us`).
/// More threads than 16 gain little on the machines we measured: the page cache and PCIe are full with 8 to 16.
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
