//! A summary for Prometheus: its text exposition, version 0.0.4.
//!
//! Names end in their unit, bytes or seconds, and in `_total` where they only grow; what the monitor counts begins anew with it,
//! which Prometheus takes for a restart.

use std::fmt::{Display, Write as _};

use crate::distribution::Distribution;
use crate::names::{self, Unit};
use crate::operation::{Backend, Direction};
use crate::summary::Summary;

impl Summary {
    /// All of the summary as Prometheus reads it, with the content type `text/plain; version=0.0.4`: totals, the share of each
    /// backend, every counter, what the process has in use when this is called, and distributions where the monitor keeps them.
    pub fn to_prometheus(&self) -> String {
        let mut text = Exposition(String::new());
        text.gauge(
            "kvik_observed_seconds",
            "Time that the monitor has been on.",
            seconds(self.wall_ns()),
        );
        text.counter(
            "kvik_busy_seconds_total",
            names::BUSY.sentence,
            seconds(self.busy_ns),
        );
        let by_direction = |reads, writes| [(Direction::Read, reads), (Direction::Write, writes)];
        text.family(
            "kvik_operations_total",
            "counter",
            names::OPERATIONS.sentence,
        );
        for (direction, count) in by_direction(self.reads, self.writes) {
            text.sample(
                "kvik_operations_total",
                &[("direction", direction.name())],
                count,
            );
        }
        text.counter(
            "kvik_requested_bytes_total",
            names::BYTES_REQUESTED.sentence,
            self.bytes_requested,
        );
        let sentence = names::BYTES_TRANSFERRED.sentence;
        text.family("kvik_transferred_bytes_total", "counter", sentence);
        for (direction, bytes) in by_direction(self.bytes_read, self.bytes_written) {
            let labels = [("direction", direction.name())];
            text.sample("kvik_transferred_bytes_total", &labels, bytes);
        }
        self.backends(&mut text);
        self.counts(&mut text);
        for gauge in names::GAUGES {
            let metric = gauge.metric();
            text.gauge(
                &format!("kvik_{}", metric.name),
                metric.sentence,
                gauge.get(),
            );
        }
        self.distributed(&mut text);
        text.0
    }

    fn backends(&self, text: &mut Exposition) {
        type Of = fn(&crate::BackendTotals) -> String;
        let families: [(&str, &str, Of); 4] = [
            (
                "kvik_backend_operations_total",
                "Logical operations that finished, by backend.",
                |share| share.operations.to_string(),
            ),
            (
                "kvik_backend_transferred_bytes_total",
                "Bytes that the operations that succeeded moved, by backend.",
                |share| share.bytes.to_string(),
            ),
            (
                "kvik_backend_duration_seconds_total",
                "Sum of the durations of the finished operations, by backend.",
                |share| seconds(share.duration_ns).to_string(),
            ),
            (
                "kvik_backend_errors_total",
                "Operations that failed or were given up, by backend.",
                |share| share.errors.to_string(),
            ),
        ];
        for (name, help, of) in families {
            text.family(name, "counter", help);
            for (backend, share) in self.by_backend() {
                text.sample(name, &[("backend", backend.name())], of(share));
            }
        }
    }

    /// Counters that divide another one are a family with a label, each other counter is one of its own.
    fn counts(&self, text: &mut Exposition) {
        for divided in &DIVIDED {
            text.family(divided.name, "counter", divided.help);
            for (counter, grown) in self.counters() {
                if let Some(part) = counter.metric().name.strip_prefix(divided.prefix) {
                    text.sample(divided.name, &[(divided.label, part)], grown);
                }
            }
        }
        for (counter, grown) in self.counters() {
            let metric = counter.metric();
            let is_part = |divided: &Divided| metric.name.starts_with(divided.prefix);
            if DIVIDED.iter().any(is_part) {
                continue;
            }
            match metric.unit {
                Unit::Nanoseconds => {
                    let stem = metric.name.strip_suffix("_ns").unwrap_or(metric.name);
                    let name = format!("kvik_{stem}_seconds_total");
                    text.counter(&name, metric.sentence, seconds(grown));
                }
                _ => text.counter(
                    &format!("kvik_{}_total", metric.name),
                    metric.sentence,
                    grown,
                ),
            }
        }
    }

    fn distributed(&self, text: &mut Exposition) {
        type Of = fn(&Summary, Backend, Direction) -> Option<&Distribution>;
        let families: [(&str, &str, Of, Scale); 2] = [
            (
                "kvik_operation_duration_seconds",
                "Durations of operations.",
                Summary::durations,
                Scale::Seconds,
            ),
            (
                "kvik_operation_size_bytes",
                "Bytes that operations asked for.",
                Summary::sizes,
                Scale::Bytes,
            ),
        ];
        for (name, help, of, scale) in families {
            let mut opened = false;
            for &backend in Backend::ALL {
                for direction in [Direction::Read, Direction::Write] {
                    let Some(found) = of(self, backend, direction).filter(|d| d.count() > 0) else {
                        continue;
                    };
                    if !std::mem::replace(&mut opened, true) {
                        text.family(name, "histogram", help);
                    }
                    let labels = [("backend", backend.name()), ("direction", direction.name())];
                    text.histogram(name, &labels, found, &scale);
                }
            }
        }
        for (name, help, found) in [
            (
                "kvik_task_wait_seconds",
                "How long tasks waited for a thread, or for those of their operation before them.",
                self.task_waits(),
            ),
            (
                "kvik_task_service_seconds",
                "How long the engines took for tasks.",
                self.task_services(),
            ),
        ] {
            if let Some(found) = found {
                text.family(name, "histogram", help);
                text.histogram(name, &[], found, &Scale::Seconds);
            }
        }
    }
}

/// A family of counters whose names begin alike.
struct Divided {
    prefix: &'static str,
    name: &'static str,
    label: &'static str,
    help: &'static str,
}

const DIVIDED: [Divided; 3] = [
    Divided {
        prefix: "bytes_by_",
        name: "kvik_bytes_by_way_total",
        label: "way",
        help: "Bytes by the way that they took, of the whole process.",
    },
    Divided {
        prefix: "fallbacks_of_",
        name: "kvik_fallbacks_by_engine_total",
        label: "engine",
        help: "Handles that gave up an engine for another, by the one given up.",
    },
    Divided {
        prefix: "http_retries_of_",
        name: "kvik_http_retries_by_cause_total",
        label: "cause",
        help: "Requests that were made again, by what was wrong.",
    },
];

/// What the values of a distribution are, and between which powers of two their buckets lie.
enum Scale {
    Seconds,
    Bytes,
}

impl Scale {
    fn text(&self, value: u64) -> String {
        match self {
            Scale::Seconds => seconds(value).to_string(),
            Scale::Bytes => value.to_string(),
        }
    }

    /// From a microsecond to half a minute, or from 512 bytes to 8 GiB.
    fn powers(&self) -> impl Iterator<Item = u32> {
        match self {
            Scale::Seconds => 10..36,
            Scale::Bytes => 9..34,
        }
    }
}

struct Exposition(String);

impl Exposition {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        // Writing to a String cannot fail, here and below.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (place, (label, text)) in labels.iter().enumerate() {
            let before = if place == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{before}{label}=\"{}\"", escaped(text));
        }
        let after = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{after} {value}");
    }

    fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "counter", help);
        self.sample(name, &[], value);
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help);
        self.sample(name, &[], value);
    }

    fn histogram(
        &mut self,
        name: &str,
        labels: &[(&str, &str)],
        found: &Distribution,
        scale: &Scale,
    ) {
        let buckets = format!("{name}_bucket");
        let mut bucket = |bound: &str, count| {
            let labels: Vec<_> = labels.iter().copied().chain([("le", bound)]).collect();
            self.sample(&buckets, &labels, count);
        };
        for power in scale.powers() {
            let bound = 1 << power;
            bucket(&scale.text(bound), found.up_to(bound));
        }
        bucket("+Inf", found.count());
        self.sample(&format!("{name}_sum"), labels, scale.text(found.sum()));
        self.sample(&format!("{name}_count"), labels, found.count());
    }
}

/// The value of a label between its quotes.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

#[cfg(test)]
#[path = "prometheus_tests.rs"]
mod tests;
