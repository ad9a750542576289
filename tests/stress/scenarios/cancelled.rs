//! Half of what is started is cancelled or dropped.

use crate::runner::{MIXED, Scenario, run};

#[test]
fn cancelled() {
    run(&Scenario {
        files: 4,
        region: 500_000,
        clients: 12,
        task_sizes: &[4096],
        give_up_percent: 50,
        seconds: 100,
        ..MIXED
    });
}
