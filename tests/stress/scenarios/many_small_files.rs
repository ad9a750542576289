//! Thousands of files, opened for each operation: descriptors, paths, small transfers.

use crate::runner::{MIXED, Scenario, run};

#[test]
fn many_small_files() {
    run(&Scenario {
        files: 2000,
        region: 3001,
        clients: 8,
        reopen: true,
        task_sizes: &[512, 4096],
        seconds: 100,
        ..MIXED
    });
}
