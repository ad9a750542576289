//! A summary for programs: KvikIO's JSON, byte for byte.

use std::fmt::{Display, Write as _};

use crate::distribution::Distribution;
use crate::names::{self, Metric};
use crate::summary::{BackendTotals, Summary};
use crate::units::Significant;

impl Summary {
    /// One object on one line, with KvikIO's keys in KvikIO's order.
    pub fn to_json(&self) -> String {
        let counters = names::KVIKIO.iter();
        self.json(counters.map(|counter| (*counter.metric(), self.counter(counter))))
    }

    /// The same with the growth of every counter of [`names::COUNTERS`] for the eight that KvikIO has (by which way bytes went,
    /// fallbacks, requests, redirects), and one more member where the monitor keeps distributions: the number, the sum, three
    /// quantiles and the largest of each, in nanoseconds or bytes.
    pub fn to_full_json(&self) -> String {
        let counters = self.counters();
        let json = self.json(counters.map(|(counter, grown)| (*counter.metric(), grown)));
        let distributions = self.distributions.named();
        if distributions.is_empty() {
            return json;
        }
        let mut all = Object::new();
        for (name, found) in distributions {
            all.named(&name, found.json());
        }
        let mut json = Object(json.strip_suffix('}').unwrap_or(&json).to_owned());
        json.member(names::DISTRIBUTIONS, all.close());
        json.close()
    }

    fn json(&self, counters: impl Iterator<Item = (Metric, u64)>) -> String {
        let mut json = Object::new();
        json.member(names::START, self.start_unix_ns());
        json.member(names::END, self.end_unix_ns());
        json.member(names::WALL, self.wall_ns());
        json.member(names::OPERATIONS, self.operations);
        json.member(names::READS, self.reads);
        json.member(names::WRITES, self.writes);
        json.member(names::BYTES_REQUESTED, self.bytes_requested);
        json.member(names::BYTES_TRANSFERRED, self.bytes_transferred());
        json.member(names::BYTES_READ, self.bytes_read);
        json.member(names::BYTES_WRITTEN, self.bytes_written);
        json.member(names::ERRORS, self.errors);
        json.member(names::BUSY, self.busy_ns);
        json.member(names::DURATION, self.duration_ns);
        json.member(names::BUSY_RATE, Significant(self.busy_bytes_per_sec()));
        json.member(names::BUSY_FRACTION, Significant(self.busy_fraction()));
        json.member(names::MEAN_DURATION, self.mean_duration_ns());
        let mut grown = Object::new();
        counters.for_each(|(metric, value)| grown.member(metric, value));
        json.member(names::BY_COUNTER, grown.close());
        let mut shares = Object::new();
        for (backend, share) in self.by_backend() {
            shares.named(backend.name(), share.json());
        }
        json.member(names::BY_BACKEND, shares.close());
        json.close()
    }
}

impl BackendTotals {
    fn json(&self) -> String {
        let mut json = Object::new();
        json.member(names::OPERATIONS, self.operations);
        json.member(names::BYTES_TRANSFERRED, self.bytes);
        json.member(names::DURATION, self.duration_ns);
        json.member(names::ERRORS, self.errors);
        json.close()
    }
}

impl Distribution {
    fn json(&self) -> String {
        let mut json = Object::new();
        json.named("count", self.count());
        json.named("sum", self.sum());
        for (share, name) in [(0.5, "p50"), (0.9, "p90"), (0.99, "p99")] {
            json.named(name, self.quantile(share).unwrap_or(0));
        }
        json.named("largest", self.largest());
        json.close()
    }
}

/// An object whose names need no quoting, which a test of names.rs holds.
struct Object(String);

impl Object {
    fn new() -> Object {
        Object("{".into())
    }

    fn member(&mut self, metric: Metric, value: impl Display) {
        self.named(metric.name, value);
    }

    fn named(&mut self, name: &str, value: impl Display) {
        let comma = if self.0.len() == 1 { "" } else { ", " };
        // Writing to a String cannot fail.
        let _ = write!(self.0, "{comma}\"{name}\": {value}");
    }

    fn close(mut self) -> String {
        self.0.push('}');
        self.0
    }
}
