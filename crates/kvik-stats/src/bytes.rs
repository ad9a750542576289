//! A summary as bytes, exactly: for sending it to another process, or keeping it.
//!
//! ```text
//! "kvikstat"  u32 version  u32 length of what follows, less the checksum
//!     i64 start, end, anchor on the steady clock, anchor since 1970
//!     u64 operations, reads, writes, bytes requested, read, written, errors, busy time, duration
//!     u8 number of backends, each: name, u64 operations, bytes, duration, errors
//!     u16 number of counters, each: name, u64
//!     u16 number of distributions, each: name, u64 sum, largest, u16 number of buckets that hold any, each: u16 place, u64
//! u64 checksum (FNV-1a) of all before
//! ```
//! Numbers are little-endian everywhere; a name is its length in a byte and its ASCII. Backends and counters go by their names, so
//! that versions which have more of them can read what those have written that had fewer.

use std::fmt;

use crate::anchor::Anchor;
use crate::distribution::{BUCKETS, Distribution};
use crate::names::COUNTERS;
use crate::operation::Backend;
use crate::summary::{BackendTotals, Counts, Summary};

impl Summary {
    /// All of the summary, for [`from_bytes`](Summary::from_bytes).
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut payload = Vec::new();
        for time in [self.start, self.end, self.anchor.steady, self.anchor.wall] {
            payload.extend(time.to_le_bytes());
        }
        for value in [
            self.operations,
            self.reads,
            self.writes,
            self.bytes_requested,
            self.bytes_read,
            self.bytes_written,
            self.errors,
            self.busy_ns,
            self.duration_ns,
        ] {
            payload.extend(value.to_le_bytes());
        }
        payload.push(Backend::COUNT as u8);
        for (backend, share) in self.by_backend() {
            put_name(&mut payload, backend.name());
            for value in [
                share.operations,
                share.bytes,
                share.duration_ns,
                share.errors,
            ] {
                payload.extend(value.to_le_bytes());
            }
        }
        payload.extend((COUNTERS.len() as u16).to_le_bytes());
        for (counter, grown) in self.counters() {
            put_name(&mut payload, counter.metric().name);
            payload.extend(grown.to_le_bytes());
        }
        let distributions = self.distributions.named();
        payload.extend((distributions.len() as u16).to_le_bytes());
        for (name, distribution) in distributions {
            put_name(&mut payload, &name);
            put_distribution(&mut payload, distribution);
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((payload.len() as u32).to_le_bytes());
        bytes.extend(payload);
        bytes.extend(checksum(&bytes).to_le_bytes());
        bytes
    }

    /// Reads what [`to_bytes`](Summary::to_bytes) has written, on whatever machine.
    ///
    /// # Errors
    /// [`NotSummary`] says what it is instead.
    pub fn from_bytes(bytes: &[u8]) -> Result<Summary, NotSummary> {
        let mut rest = Rest(bytes);
        if &rest.array::<8>()? != MAGIC {
            return Err(NotSummary::WrongMagic);
        }
        let version = u32::from_le_bytes(rest.array()?);
        if version != VERSION {
            return Err(NotSummary::OtherVersion(version));
        }
        let length = u32::from_le_bytes(rest.array()?) as usize;
        if rest.0.len() != length.saturating_add(8) {
            return Err(NotSummary::WrongLength);
        }
        let (checked, told) = bytes.split_at(bytes.len() - 8);
        if checksum(checked).to_le_bytes() != told {
            return Err(NotSummary::Damaged);
        }
        let mut rest = Rest(&rest.0[..length]);
        let mut summary = Summary {
            start: rest.signed()?,
            end: rest.signed()?,
            anchor: Anchor {
                steady: rest.signed()?,
                wall: rest.signed()?,
            },
            operations: rest.word()?,
            reads: rest.word()?,
            writes: rest.word()?,
            bytes_requested: rest.word()?,
            bytes_read: rest.word()?,
            bytes_written: rest.word()?,
            errors: rest.word()?,
            busy_ns: rest.word()?,
            duration_ns: rest.word()?,
            ..Summary::default()
        };
        for _ in 0..rest.byte()? {
            let name = rest.name()?;
            let place = Backend::ALL.iter().position(|known| known.name() == name);
            let place = place.ok_or_else(|| NotSummary::Unknown(name.to_owned()))?;
            summary.by_backend[place] = BackendTotals {
                operations: rest.word()?,
                bytes: rest.word()?,
                duration_ns: rest.word()?,
                errors: rest.word()?,
            };
        }
        let mut counters = vec![0; COUNTERS.len()];
        for _ in 0..u16::from_le_bytes(rest.array()?) {
            let name = rest.name()?;
            let is_it = |known: &&crate::Counter| known.metric().name == name;
            let place = COUNTERS.iter().position(is_it);
            let place = place.ok_or_else(|| NotSummary::Unknown(name.to_owned()))?;
            counters[place] = rest.word()?;
        }
        summary.counters = Counts(counters);
        for _ in 0..u16::from_le_bytes(rest.array()?) {
            let name = rest.name()?;
            let place = summary.distributions.place_of(name);
            *place.ok_or_else(|| NotSummary::Unknown(name.to_owned()))? = rest.distribution()?;
        }
        match rest.0.is_empty() {
            true => Ok(summary),
            false => Err(NotSummary::WrongLength),
        }
    }
}

/// Why bytes are no summary.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotSummary {
    /// It does not begin as one.
    WrongMagic,
    /// Another version of the form.
    OtherVersion(u32),
    /// It ends too early or too late.
    WrongLength,
    /// It was changed since it was written: the checksum is that of other bytes.
    Damaged,
    /// It has a backend, a counter or a distribution of this name, which a later version of kvik must have written.
    Unknown(String),
}

impl fmt::Display for NotSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a summary of kvik: ")?;
        match self {
            NotSummary::WrongMagic => f.write_str("it begins otherwise"),
            NotSummary::OtherVersion(version) => {
                write!(
                    f,
                    "its version is {version}, and {VERSION} is what is known here"
                )
            }
            NotSummary::WrongLength => f.write_str("it ends too early or too late"),
            NotSummary::Damaged => f.write_str("its checksum is that of other bytes"),
            NotSummary::Unknown(name) => {
                write!(
                    f,
                    "it has `{}`, of which nothing is known here",
                    name.escape_debug()
                )
            }
        }
    }
}

impl std::error::Error for NotSummary {}

fn put_name(bytes: &mut Vec<u8>, name: &str) {
    // Names of backends and counters are short, which a test holds.
    bytes.push(name.len() as u8);
    bytes.extend(name.as_bytes());
}

fn put_distribution(bytes: &mut Vec<u8>, distribution: &Distribution) {
    bytes.extend(distribution.sum.to_le_bytes());
    bytes.extend(distribution.largest.to_le_bytes());
    let buckets = distribution.buckets.iter().enumerate();
    let held: Vec<_> = buckets.filter(|(_, count)| **count > 0).collect();
    bytes.extend((held.len() as u16).to_le_bytes());
    for (place, count) in held {
        bytes.extend((place as u16).to_le_bytes());
        bytes.extend(count.to_le_bytes());
    }
}

/// FNV-1a: it finds what was damaged by accident, and nobody is meant to trust it for more.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// What has not been read yet.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], NotSummary> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or(NotSummary::WrongLength)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], NotSummary> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn byte(&mut self) -> Result<u8, NotSummary> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    fn word(&mut self) -> Result<u64, NotSummary> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn signed(&mut self) -> Result<i64, NotSummary> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    fn distribution(&mut self) -> Result<Distribution, NotSummary> {
        let mut distribution = Distribution {
            sum: self.word()?,
            largest: self.word()?,
            buckets: vec![0; BUCKETS],
        };
        for _ in 0..u16::from_le_bytes(self.array()?) {
            let place = usize::from(u16::from_le_bytes(self.array()?));
            let unknown = || NotSummary::Unknown(format!("bucket {place}"));
            *distribution.buckets.get_mut(place).ok_or_else(unknown)? = self.word()?;
        }
        Ok(distribution)
    }

    fn name(&mut self) -> Result<&'a str, NotSummary> {
        let length = self.byte()?;
        let name = self.take(usize::from(length))?;
        std::str::from_utf8(name).map_err(|_| NotSummary::Unknown("a name that is no text".into()))
    }
}

const MAGIC: &[u8; 8] = b"kvikstat";
const VERSION: u32 = 1;

#[cfg(test)]
#[path = "bytes_tests.rs"]
mod tests;
