//! What a monitor is to keep beyond sums.

use crate::listener::InListener;
use crate::monitor::SummaryMonitor;
use crate::summary::Summary;

pub(crate) type AtEnd = Box<dyn FnOnce(&Summary) + Send + Sync>;

/// Options for a [`SummaryMonitor`].
///
/// # Example: with quantiles, and a word at the end
/// ```
/// use kvik_stats::MonitorOptions;
///
/// let monitor = MonitorOptions::new()
///     .distributions(true)
///     .at_end(|summary| eprint!("{summary}"))
///     .start();
/// // ... reads and writes ...
/// drop(monitor);
/// ```
#[derive(Default)]
#[must_use = "options do nothing before a monitor is started with them"]
pub struct MonitorOptions {
    pub(crate) keep: Keep,
    pub(crate) at_end: Option<AtEnd>,
}

/// What is kept beyond sums.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Keep {
    pub(crate) distributions: bool,
    pub(crate) tasks: bool,
}

impl MonitorOptions {
    /// Sums only.
    pub fn new() -> MonitorOptions {
        MonitorOptions::default()
    }

    /// Keeps how the durations and sizes of operations are distributed, by backend and direction. It takes about a mebibyte.
    pub fn distributions(mut self, yes: bool) -> MonitorOptions {
        self.keep.distributions = yes;
        self
    }

    /// Hears of tasks, too, and keeps how long they waited and how long engines took for them. Transfers tell of each task then,
    /// which costs each about as much as an operation.
    pub fn tasks(mut self, yes: bool) -> MonitorOptions {
        self.keep.tasks = yes;
        self
    }

    /// Hands the final totals to `end` when the monitor is dropped. A panic of it is caught and counted in
    /// [`names::LISTENER_PANICS`](crate::names::LISTENER_PANICS).
    pub fn at_end(mut self, end: impl FnOnce(&Summary) + Send + Sync + 'static) -> MonitorOptions {
        self.at_end = Some(Box::new(end));
        self
    }

    /// Starts counting.
    ///
    /// # Panics
    /// Inside a call of a [`Listener`](crate::Listener); [`try_start`](MonitorOptions::try_start) is the twin that does not.
    pub fn start(self) -> SummaryMonitor {
        match self.try_start() {
            Ok(monitor) => monitor,
            Err(error) => panic!("{error}"),
        }
    }

    /// Starts counting.
    ///
    /// # Errors
    /// Inside a call of a [`Listener`](crate::Listener).
    pub fn try_start(self) -> Result<SummaryMonitor, InListener> {
        SummaryMonitor::with(self)
    }
}

impl std::fmt::Debug for MonitorOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MonitorOptions")
            .field("keep", &self.keep)
            .finish_non_exhaustive()
    }
}
