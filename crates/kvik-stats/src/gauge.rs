//! What is in use at a moment.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::names::Metric;

/// How much of something the process has in use now. Always on, as a [`Counter`](crate::Counter) is.
///
/// The gauges themselves are statics in [`names`](crate::names). A child of a fork begins with what its parent had in use.
pub struct Gauge {
    metric: Metric,
    value: AtomicU64,
}

impl Gauge {
    pub(crate) const fn new(metric: Metric) -> Gauge {
        Gauge {
            metric,
            value: AtomicU64::new(0),
        }
    }

    /// So much more is in use.
    pub fn add(&self, more: u64) {
        self.value.fetch_add(more, Ordering::Relaxed);
    }

    /// So much less is in use. Whoever calls this has called [`add`](Gauge::add) before.
    pub fn subtract(&self, less: u64) {
        self.value.fetch_sub(less, Ordering::Relaxed);
    }

    /// What is in use now.
    pub fn get(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }

    /// Name, unit, stability and meaning.
    pub fn metric(&self) -> &Metric {
        &self.metric
    }
}

impl fmt::Debug for Gauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.metric.name, self.get())
    }
}

#[cfg(test)]
mod tests {
    use crate::names;

    use super::Gauge;

    #[test]
    fn a_gauge_goes_up_and_down() {
        let gauge = Gauge::new(*names::PINNED_IN_USE.metric());
        gauge.add(5);
        gauge.subtract(2);
        assert_eq!(gauge.get(), 3);
        assert_eq!(format!("{gauge:?}"), "pinned_memory_in_use_bytes = 3");
    }
}
