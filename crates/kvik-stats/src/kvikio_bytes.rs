//! KvikIO's binary form of a summary: 352 bytes, for whoever has to exchange them with it. Ours is in bytes.rs.

use std::fmt;

use crate::anchor::Anchor;
use crate::names::{COUNTERS, KVIKIO};
use crate::operation::Backend;
use crate::summary::{BackendTotals, Counts, Summary};

impl Summary {
    /// The summary as KvikIO 26.10 writes it. Counters that KvikIO does not have are not in it; a number that does not fit is the
    /// largest that does.
    ///
    /// ```text
    /// "KVSM", u32 version 2, u32 payload 336, u32 byte order 0x01020304, then words of 64 bits:
    /// start, end, anchor on the steady clock, anchor since 1970;
    /// operations, reads, writes, bytes requested, moved, read, written, errors;
    /// five backends: operations, bytes, duration, errors;  eight counters;  duration, busy time
    /// ```
    pub fn to_kvikio_bytes(&self) -> [u8; KVIKIO_BYTES] {
        let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX).cast_unsigned();
        let mut words = Vec::with_capacity(WORDS);
        let times = [self.start, self.end, self.anchor.steady, self.anchor.wall];
        words.extend(times.map(i64::cast_unsigned));
        words.extend([
            self.operations,
            self.reads,
            self.writes,
            self.bytes_requested,
        ]);
        words.extend([
            self.bytes_transferred(),
            self.bytes_read,
            self.bytes_written,
            self.errors,
        ]);
        for (_, share) in self.by_backend() {
            let duration = signed(share.duration_ns);
            words.extend([share.operations, share.bytes, duration, share.errors]);
        }
        words.extend(KVIKIO.iter().map(|counter| self.counter(counter)));
        words.extend([signed(self.duration_ns), signed(self.busy_ns)]);
        let mut bytes = [0; KVIKIO_BYTES];
        let (head, payload) = bytes.split_at_mut(HEAD);
        head[..4].copy_from_slice(MAGIC);
        for (place, word) in [VERSION, PAYLOAD, ORDER].into_iter().enumerate() {
            head[4 + 4 * place..8 + 4 * place].copy_from_slice(&word.to_ne_bytes());
        }
        for (place, word) in payload.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// Reads what KvikIO, or [`to_kvikio_bytes`](Summary::to_kvikio_bytes), has written on a machine of the same byte order.
    ///
    /// # Errors
    /// [`NotKvikio`] says what it is instead.
    pub fn from_kvikio_bytes(bytes: &[u8]) -> Result<Summary, NotKvikio> {
        if bytes.len() != KVIKIO_BYTES {
            return Err(NotKvikio::WrongLength);
        }
        let (head, payload) = bytes.split_at(HEAD);
        if &head[..4] != MAGIC {
            return Err(NotKvikio::WrongMagic);
        }
        let mut numbers = head[4..].chunks_exact(4).map(|word| {
            let mut bytes = [0; 4];
            bytes.copy_from_slice(word);
            u32::from_ne_bytes(bytes)
        });
        let mut number = || numbers.next().unwrap_or(0);
        let (version, payload_bytes, order) = (number(), number(), number());
        // Before the version: of another byte order, that is no other version.
        if order == ORDER.swap_bytes() {
            return Err(NotKvikio::OtherByteOrder);
        }
        if (version, payload_bytes) != (VERSION, PAYLOAD) {
            return Err(NotKvikio::OtherBuild {
                version,
                payload: payload_bytes,
            });
        }
        if order != ORDER {
            return Err(NotKvikio::OtherByteOrder);
        }
        let mut words = payload.chunks_exact(8).map(|word| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(word);
            u64::from_ne_bytes(bytes)
        });
        let mut word = || words.next().unwrap_or(0);
        let mut summary = Summary {
            start: word().cast_signed(),
            end: word().cast_signed(),
            anchor: Anchor {
                steady: word().cast_signed(),
                wall: word().cast_signed(),
            },
            operations: word(),
            reads: word(),
            writes: word(),
            bytes_requested: word(),
            ..Summary::default()
        };
        let moved = word();
        summary.bytes_read = word();
        summary.bytes_written = word();
        summary.errors = word();
        let mut negative = false;
        let mut duration = |word: u64| {
            negative |= word.cast_signed() < 0;
            word
        };
        let mut by_backend = [BackendTotals::default(); Backend::COUNT];
        for share in &mut by_backend {
            *share = BackendTotals {
                operations: word(),
                bytes: word(),
                duration_ns: duration(word()),
                errors: word(),
            };
        }
        summary.by_backend = by_backend;
        let mut counters = vec![0; COUNTERS.len()];
        for counter in KVIKIO {
            let value = word();
            let is_it = |known: &&crate::Counter| std::ptr::eq(*known, *counter);
            if let Some(place) = COUNTERS.iter().position(is_it) {
                counters[place] = value;
            }
        }
        summary.counters = Counts(counters);
        summary.duration_ns = duration(word());
        summary.busy_ns = duration(word());
        match negative || moved != summary.bytes_transferred() {
            true => Err(NotKvikio::Contradiction),
            false => Ok(summary),
        }
    }
}

/// Why bytes are no summary of KvikIO's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotKvikio {
    /// Not 352 bytes.
    WrongLength,
    /// It does not begin as one.
    WrongMagic,
    /// Another version of KvikIO wrote it.
    OtherBuild {
        /// The version that it says.
        version: u32,
        /// The bytes of payload that it says.
        payload: u32,
    },
    /// A machine wrote it whose numbers are the other way round.
    OtherByteOrder,
    /// Its numbers contradict each other: the bytes moved are not those read and written, or a duration is negative.
    Contradiction,
}

impl fmt::Display for NotKvikio {
    /// In KvikIO's words, where it has any.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotKvikio::WrongLength => {
                f.write_str("not a serialized kvikio::statistics::Summary: wrong length")
            }
            NotKvikio::WrongMagic => {
                f.write_str("not a serialized kvikio::statistics::Summary: wrong magic")
            }
            NotKvikio::OtherBuild { version, payload } => write!(
                f,
                "serialized kvikio::statistics::Summary from a different build of KvikIO, version {version} of {payload} bytes \
                 against version {VERSION} of {PAYLOAD}"
            ),
            NotKvikio::OtherByteOrder => f.write_str(
                "serialized kvikio::statistics::Summary written on a machine of a different byte order, which this format does \
                 not translate",
            ),
            NotKvikio::Contradiction => f.write_str(
                "serialized kvikio::statistics::Summary whose numbers contradict each other",
            ),
        }
    }
}

impl std::error::Error for NotKvikio {}

/// How long KvikIO's form is.
pub const KVIKIO_BYTES: usize = HEAD + 8 * WORDS;

const MAGIC: &[u8; 4] = b"KVSM";
const VERSION: u32 = 2;
const PAYLOAD: u32 = 336;
const ORDER: u32 = 0x0102_0304;
const HEAD: usize = 16;
const WORDS: usize = 42;

#[cfg(test)]
#[path = "kvikio_bytes_tests.rs"]
mod tests;
