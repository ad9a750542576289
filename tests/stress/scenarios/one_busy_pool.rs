//! More clients than the machine has cores, all on one pool, in the smallest tasks.

use crate::runner::{MIXED, Scenario, run};

#[test]
fn one_busy_pool() {
    run(&Scenario {
        files: 4,
        region: 60_000,
        clients: 32,
        task_sizes: &[511, 4096],
        threads: &[1, 3, 8],
        seconds: 100,
        ..MIXED
    });
}
