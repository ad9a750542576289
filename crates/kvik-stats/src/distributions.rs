//! What a monitor keeps beyond sums, where it was asked to: how durations, sizes and waits are distributed.

use crate::distribution::{BUCKETS, Distribution, Histogram};
use crate::operation::{Backend, Direction};
use crate::summary::Summary;

/// The distributions of a summary. Empty where they were not asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Distributions {
    /// Durations and sizes by backend and direction, at [`place`].
    pub(crate) durations: Vec<Distribution>,
    pub(crate) sizes: Vec<Distribution>,
    /// Waits of tasks and the time that engines took for them.
    pub(crate) tasks: Option<Box<[Distribution; 2]>>,
}

/// One thread's share of those of operations.
#[derive(Debug)]
pub(crate) struct OfOperations {
    durations: Vec<Histogram>,
    sizes: Vec<Histogram>,
}

/// One thread's share of those of tasks.
#[derive(Debug, Default)]
pub(crate) struct OfTasks {
    waits: Histogram,
    services: Histogram,
}

impl Default for OfOperations {
    fn default() -> OfOperations {
        let all = || (0..PLACES).map(|_| Histogram::default()).collect();
        OfOperations {
            durations: all(),
            sizes: all(),
        }
    }
}

impl OfOperations {
    pub(crate) fn record(&self, backend: Backend, direction: Direction, duration: u64, size: u64) {
        let place = place(backend, direction);
        self.durations[place].record(duration);
        self.sizes[place].record(size);
    }

    pub(crate) fn add_to(&self, sums: &mut Distributions) {
        for (sums, histograms) in [
            (&mut sums.durations, &self.durations),
            (&mut sums.sizes, &self.sizes),
        ] {
            sums.resize(PLACES, Distribution::default());
            for (sum, histogram) in sums.iter_mut().zip(histograms) {
                histogram.add_to(sum);
            }
        }
    }
}

impl OfTasks {
    pub(crate) fn record(&self, wait: u64, service: u64) {
        self.waits.record(wait);
        self.services.record(service);
    }

    pub(crate) fn add_to(&self, sums: &mut Distributions) {
        let [waits, services] = &mut **sums.tasks.get_or_insert_default();
        self.waits.add_to(waits);
        self.services.add_to(services);
    }
}

impl Distributions {
    /// What was added since `before`; `None` if that is later, or of another monitor.
    pub(crate) fn less(&self, before: &Distributions) -> Option<Distributions> {
        let all = |now: &[Distribution], before: &[Distribution]| {
            let pairs = now.iter().zip(before);
            let less = pairs.map(|(now, before)| now.less(before));
            let same = now.len() == before.len();
            same.then(|| less.collect::<Option<Vec<_>>>()).flatten()
        };
        let tasks = match (&self.tasks, &before.tasks) {
            (Some(now), Some(before)) => {
                let [waits, services] = &**now;
                let less = [waits.less(&before[0])?, services.less(&before[1])?];
                Some(Box::new(less))
            }
            (None, None) => None,
            _ => return None,
        };
        Some(Distributions {
            durations: all(&self.durations, &before.durations)?,
            sizes: all(&self.sizes, &before.sizes)?,
            tasks,
        })
    }
}

impl Distributions {
    /// Each with its name, where they were asked for.
    pub(crate) fn named(&self) -> Vec<(String, &Distribution)> {
        let durations = names(DURATION).zip(&self.durations);
        let sizes = names(SIZE).zip(&self.sizes);
        let tasks = self.tasks.iter().flat_map(|tasks| tasks.iter());
        let tasks = TASKS.map(String::from).into_iter().zip(tasks);
        durations.chain(sizes).chain(tasks).collect()
    }

    /// Where the one of this name belongs, together with those that come with it.
    pub(crate) fn place_of(&mut self, name: &str) -> Option<&mut Distribution> {
        let known = || Distribution {
            buckets: vec![0; BUCKETS],
            ..Distribution::default()
        };
        if let Some(place) = TASKS.iter().position(|task| *task == name) {
            let tasks = self
                .tasks
                .get_or_insert_with(|| Box::new([known(), known()]));
            return tasks.get_mut(place);
        }
        for (kind, all) in [(DURATION, &mut self.durations), (SIZE, &mut self.sizes)] {
            if let Some(place) = names(kind).position(|own| own == name) {
                all.resize_with(PLACES, known);
                return all.get_mut(place);
            }
        }
        None
    }
}

impl Summary {
    /// How long the operations of one backend and direction took, in nanoseconds, failures included; `None` where the monitor keeps
    /// no [distributions](crate::MonitorOptions::distributions).
    pub fn durations(&self, backend: Backend, direction: Direction) -> Option<&Distribution> {
        self.distributions.durations.get(place(backend, direction))
    }

    /// How many bytes they asked for; `None` as for [`durations`](Summary::durations).
    pub fn sizes(&self, backend: Backend, direction: Direction) -> Option<&Distribution> {
        self.distributions.sizes.get(place(backend, direction))
    }

    /// How long tasks waited for a thread, or for those of their operation before them, in nanoseconds; `None` where the monitor
    /// does not hear of [tasks](crate::MonitorOptions::tasks).
    pub fn task_waits(&self) -> Option<&Distribution> {
        self.distributions.tasks.as_ref().map(|tasks| &tasks[0])
    }

    /// How long engines took for tasks, in nanoseconds; `None` as for [`task_waits`](Summary::task_waits).
    pub fn task_services(&self) -> Option<&Distribution> {
        self.distributions.tasks.as_ref().map(|tasks| &tasks[1])
    }
}

fn place(backend: Backend, direction: Direction) -> usize {
    2 * backend.index() + usize::from(direction == Direction::Write)
}

/// The names of all of a kind, in the order of [`place`].
fn names(kind: &'static str) -> impl Iterator<Item = String> {
    let backends = Backend::ALL.iter();
    backends.flat_map(move |backend| {
        [Direction::Read, Direction::Write]
            .map(|direction| format!("{kind}/{backend}/{}", direction.name()))
    })
}

const DURATION: &str = "duration";
const SIZE: &str = "size";
const TASKS: [&str; 2] = ["task_wait", "task_service"];

pub(crate) const PLACES: usize = 2 * Backend::COUNT;
