//! What is said of a metric: its name, what it counts, and whether that stays so.

use std::fmt;

/// One row of the tables in [`names`](crate::names).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// The key in JSON. KvikIO's name where KvikIO has the metric.
    pub name: &'static str,
    /// What a value counts.
    pub unit: Unit,
    /// Whether the name may change.
    pub stability: Stability,
    /// What it means, in one sentence.
    pub sentence: &'static str,
}

/// What the values of a metric count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// Logical operations.
    Operations,
    /// Occurrences of what the metric names.
    Events,
    /// A part of the whole, from 0 to 1.
    Share,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Unit::Bytes => "bytes",
            Unit::Nanoseconds => "ns",
            Unit::Operations => "operations",
            Unit::Events => "events",
            Unit::Share => "share",
        })
    }
}

/// Whether a metric's name and meaning may change between minor versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stability {
    /// Changes only with a major version.
    Stable,
    /// May change or go in a minor version.
    Unstable,
}
