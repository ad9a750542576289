//! Files of some hundred megabytes, in large and odd tasks.

use crate::runner::{MIXED, Scenario, run};

#[test]
fn few_large_files() {
    let task_sizes = &[1 << 20, (4 << 20) + 4097, 100_003];
    run(&Scenario {
        files: 3,
        region: 16 << 20,
        clients: 6,
        task_sizes,
        threads: &[2, 8, 16],
        seconds: 100,
        ..MIXED
    });
}
