//! The rates of all chosen interfaces, from one moment to the next.

use std::time::Duration;

use crate::interfaces::Interfaces;
use crate::rate::{Rates, Reading};

#[derive(Debug)]
pub(crate) struct Sampler {
    interfaces: Interfaces,
    followed: Vec<Followed>,
}

/// An interface, and what its counters were when they were last seen.
#[derive(Debug)]
struct Followed {
    name: String,
    last: Option<Reading>,
}

/// One for each interface, in the order of their names, and one for all of them together. What is not known is none.
#[derive(Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) each: Vec<Option<Rates>>,
    pub(crate) total: Option<Rates>,
}

impl Sampler {
    /// Begins to follow the interfaces `names` at the moment `now`.
    pub(crate) fn new(interfaces: Interfaces, names: &[String], now: Duration) -> Self {
        let followed = names
            .iter()
            .map(|name| Followed {
                name: name.clone(),
                last: interfaces.read(name, now).ok(),
            })
            .collect();
        Sampler {
            interfaces,
            followed,
        }
    }

    /// The rates since the last sample.
    pub(crate) fn sample(&mut self, now: Duration) -> Sample {
        let mut total = Some(Rates::default());
        let mut each = Vec::with_capacity(self.followed.len());
        for followed in &mut self.followed {
            // An interface whose counters cannot be read is gone, or its machine is about to be.
            let reading = self.interfaces.read(&followed.name, now).ok();
            let last = std::mem::replace(&mut followed.last, reading);
            let rates = reading.zip(last).and_then(|(now, last)| now.since(&last));
            // What is gone carries nothing; what is there and has no rate carries an unknown amount, and so do all together.
            if reading.is_some() {
                total = total.zip(rates).map(|(sum, rates)| sum.plus(rates));
            }
            each.push(rates);
        }
        if self.followed.iter().all(|followed| followed.last.is_none()) {
            total = None;
        }
        Sample { each, total }
    }
}

#[cfg(test)]
#[path = "sampler_tests.rs"]
mod tests;
