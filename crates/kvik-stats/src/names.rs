//! Every metric once: its name, unit, stability and meaning. Views take names from here and nowhere else.

use crate::counter::Counter;
use crate::gauge::Gauge;
pub use crate::metric::{Metric, Stability, Unit};

const fn row(
    name: &'static str,
    unit: Unit,
    stability: Stability,
    sentence: &'static str,
) -> Metric {
    Metric {
        name,
        unit,
        stability,
        sentence,
    }
}

use Stability::{Stable, Unstable};
use Unit::{Bytes, Events, Nanoseconds, Operations, Share};

/// When counting began.
pub const START: Metric = row(
    "start_unix_ns",
    Nanoseconds,
    Stable,
    "When counting started, or was last reset, since 1970.",
);
/// When the summary was read.
pub const END: Metric = row(
    "end_unix_ns",
    Nanoseconds,
    Stable,
    "When the summary was read, since 1970.",
);
/// Time the monitor has been on.
pub const WALL: Metric = row(
    "wall_ns",
    Nanoseconds,
    Stable,
    "Time that the summary covers.",
);
/// Operations that finished.
pub const OPERATIONS: Metric = row(
    "num_ops",
    Operations,
    Stable,
    "Logical operations that finished.",
);
/// Reads that finished.
pub const READS: Metric = row("num_reads", Operations, Stable, "Reads that finished.");
/// Writes that finished.
pub const WRITES: Metric = row("num_writes", Operations, Stable, "Writes that finished.");
/// Bytes asked for.
pub const BYTES_REQUESTED: Metric = row(
    "bytes_requested",
    Bytes,
    Stable,
    "Bytes that the finished operations asked for.",
);
/// Bytes moved.
pub const BYTES_TRANSFERRED: Metric = row(
    "bytes_transferred",
    Bytes,
    Stable,
    "Bytes that the operations that succeeded moved.",
);
/// Bytes read.
pub const BYTES_READ: Metric = row(
    "bytes_read",
    Bytes,
    Stable,
    "Bytes that the reads that succeeded moved.",
);
/// Bytes written.
pub const BYTES_WRITTEN: Metric = row(
    "bytes_written",
    Bytes,
    Stable,
    "Bytes that the writes that succeeded moved.",
);
/// Operations that failed.
pub const ERRORS: Metric = row(
    "num_errors",
    Operations,
    Stable,
    "Operations that failed or were given up.",
);
/// Time with work in flight.
pub const BUSY: Metric = row(
    "busy_ns",
    Nanoseconds,
    Stable,
    "Time during which at least one operation was in flight.",
);
/// Sum of durations.
pub const DURATION: Metric = row(
    "total_duration_ns",
    Nanoseconds,
    Stable,
    "Sum of the durations of the finished operations.",
);
/// Bandwidth while busy.
pub const BUSY_RATE: Metric = row(
    "busy_bytes_per_sec",
    Bytes,
    Stable,
    "Bytes moved per second of busy time.",
);
/// The share of busy time.
pub const BUSY_FRACTION: Metric = row(
    "busy_fraction",
    Share,
    Stable,
    "Which part of the time was busy.",
);
/// The mean of durations.
pub const MEAN_DURATION: Metric = row(
    "mean_duration_ns",
    Nanoseconds,
    Stable,
    "How long an operation took in the mean.",
);
/// The key of the counters.
pub const BY_COUNTER: Metric = row(
    "counters",
    Events,
    Stable,
    "What belongs to no single operation: by how much counters grew.",
);
/// The key of the distributions.
pub const DISTRIBUTIONS: Metric = row(
    "distributions",
    Operations,
    Unstable,
    "How durations and sizes of operations, and waits and services of tasks, are distributed.",
);
/// The breakdown's key.
pub const BY_BACKEND: Metric = row(
    "by_backend",
    Operations,
    Stable,
    "The same sums for each backend.",
);

/// A system call was interrupted by a signal and made again.
pub static IO_INTERRUPTED: Counter = Counter::new(row(
    "io_interrupted",
    Events,
    Unstable,
    "System calls interrupted by a signal and made again.",
));
/// A system call moved fewer bytes than asked and was continued.
pub static IO_SHORT: Counter = Counter::new(row(
    "io_short",
    Events,
    Unstable,
    "System calls that moved fewer bytes than asked and were continued.",
));
/// A system call would have blocked and was made again.
pub static IO_AGAIN: Counter = Counter::new(row(
    "io_again",
    Events,
    Unstable,
    "System calls that would have blocked and were made again.",
));
/// A handle gave up an engine or direct I/O for another way.
pub static FALLBACKS: Counter = Counter::new(row(
    "fallbacks",
    Events,
    Unstable,
    "Handles that gave up an engine, or direct I/O, for another way.",
));
/// A handle gave up io_uring.
pub static FALLBACKS_OF_URING: Counter = Counter::new(row(
    "fallbacks_of_uring",
    Events,
    Unstable,
    "Fallbacks of those who gave up io_uring, for blocking calls.",
));
/// A handle gave up the queue for direct I/O.
pub static FALLBACKS_OF_RING: Counter = Counter::new(row(
    "fallbacks_of_ring",
    Events,
    Unstable,
    "Fallbacks of those who gave up the queue for direct I/O, for blocking calls past the page cache.",
));
/// A handle gave up direct I/O.
pub static FALLBACKS_OF_DIRECT: Counter = Counter::new(row(
    "fallbacks_of_direct",
    Events,
    Unstable,
    "Fallbacks of those who gave up direct I/O, for the page cache.",
));
/// A handle gave up copying out of maps.
pub static FALLBACKS_OF_MAP: Counter = Counter::new(row(
    "fallbacks_of_map",
    Events,
    Unstable,
    "Fallbacks of those who gave up copying out of maps, for pread.",
));
/// A handle gave up cuFile.
pub static FALLBACKS_OF_CUFILE: Counter = Counter::new(row(
    "fallbacks_of_cufile",
    Events,
    Unstable,
    "Fallbacks of those who gave up cuFile, for copies through memory of the host.",
));
/// A handle gave up batches of cuFile.
pub static FALLBACKS_OF_CUFILE_BATCH: Counter = Counter::new(row(
    "fallbacks_of_cufile_batch",
    Events,
    Unstable,
    "Fallbacks of those who gave up batches of cuFile, for one call after the other.",
));
/// Scratch memory was asked for and all that the process may have was lent, or the system had no more.
pub static SCRATCH_USED_UP: Counter = Counter::new(row(
    "scratch_used_up",
    Events,
    Unstable,
    "Wishes for scratch memory when all of it was in use, or the system had no more; the bytes went without.",
));
/// A listener panicked; the panic was caught.
pub static LISTENER_PANICS: Counter = Counter::new(row(
    "listener_panics",
    Events,
    Unstable,
    "Panics of listeners, caught and dropped.",
));
/// Bytes that `pread` brought through the page cache.
pub static BYTES_BY_PREAD: Counter = Counter::new(row(
    "bytes_by_pread",
    Bytes,
    Unstable,
    "Bytes read through the page cache by pread, straight into their target.",
));
/// Bytes that were read through a scratch.
pub static BYTES_BY_SCRATCH: Counter = Counter::new(row(
    "bytes_by_scratch",
    Bytes,
    Unstable,
    "Bytes read through the page cache and a scratch that stays in the processor's cache.",
));
/// Bytes that were copied out of maps.
pub static BYTES_BY_MAP: Counter = Counter::new(row(
    "bytes_by_map",
    Bytes,
    Unstable,
    "Bytes copied out of maps of the page cache.",
));
/// Bytes that `pwrite` took through the page cache.
pub static BYTES_BY_PWRITE: Counter = Counter::new(row(
    "bytes_by_pwrite",
    Bytes,
    Unstable,
    "Bytes written through the page cache by pwrite.",
));
/// Bytes that went past the page cache.
pub static BYTES_BY_DIRECT: Counter = Counter::new(row(
    "bytes_by_direct",
    Bytes,
    Unstable,
    "Bytes read or written past the page cache (O_DIRECT) by blocking calls.",
));
/// Bytes that rings of io_uring moved.
pub static BYTES_BY_RING: Counter = Counter::new(row(
    "bytes_by_ring",
    Bytes,
    Unstable,
    "Bytes read or written by io_uring, through the page cache or past it.",
));
/// Bytes that cuFile moved.
pub static BYTES_BY_CUFILE: Counter = Counter::new(row(
    "bytes_by_cufile",
    Bytes,
    Unstable,
    "Bytes read into or written from device memory by cuFile.",
));
/// A buffer was to be registered with cuFile and could not be.
pub static REGISTRATIONS_REFUSED: Counter = Counter::new(row(
    "registrations_refused",
    Events,
    Unstable,
    "Buffers that were to be registered with cuFile and could not be; they are used unregistered.",
));
/// Bytes that came over HTTP.
pub static BYTES_BY_HTTP: Counter = Counter::new(row(
    "bytes_by_http",
    Bytes,
    Unstable,
    "Bytes of remote objects that came over HTTP into their target, or were kept for it; those of S3 and of HDFS are apart.",
));
/// Bytes of objects of S3.
pub static BYTES_BY_S3: Counter = Counter::new(row(
    "bytes_by_s3",
    Bytes,
    Unstable,
    "Bytes of objects of S3, asked for with keys or without, that came into their target, or were kept for it.",
));
/// Bytes of files of HDFS.
pub static BYTES_BY_WEBHDFS: Counter = Counter::new(row(
    "bytes_by_webhdfs",
    Bytes,
    Unstable,
    "Bytes of files of HDFS that came over HTTP into their target.",
));
/// A request was sent.
pub static HTTP_REQUESTS: Counter = Counter::new(row(
    "http_requests",
    Events,
    Unstable,
    "Requests sent to servers, redirected and repeated ones included.",
));
/// A connection was made.
pub static HTTP_CONNECTIONS: Counter = Counter::new(row(
    "http_connections",
    Events,
    Unstable,
    "Connections made to servers or proxies; a connection is used for many requests.",
));
/// Time until the addresses of a host were there.
pub static HTTP_DNS: Counter = Counter::new(row(
    "http_dns_ns",
    Nanoseconds,
    Unstable,
    "Time that connections took until the addresses of their host were known.",
));
/// Time from the addresses until there was a connection.
pub static HTTP_TCP: Counter = Counter::new(row(
    "http_tcp_ns",
    Nanoseconds,
    Unstable,
    "Time that connections took from there until somebody answered, with what a proxy took to connect them through.",
));
/// Time of TLS handshakes.
pub static HTTP_TLS: Counter = Counter::new(row(
    "http_tls_ns",
    Nanoseconds,
    Unstable,
    "Time that connections took for the handshakes of TLS.",
));
/// The system was asked for addresses.
pub static HTTP_DNS_LOOKUPS: Counter = Counter::new(row(
    "http_dns_lookups",
    Events,
    Unstable,
    "Names of hosts that the system was asked for; what it says is kept for some seconds.",
));
/// A kept connection turned out to be closed.
pub static HTTP_CLOSED_CONNECTIONS: Counter = Counter::new(row(
    "http_closed_connections",
    Events,
    Unstable,
    "Requests sent once more at once, since the server had closed the connection that was kept for them.",
));
/// A request failed and was made again.
pub static HTTP_RETRIES: Counter = Counter::new(row(
    "http_retries",
    Events,
    Unstable,
    "Requests that failed, or brought a part, and were made again for what was missing.",
));
/// The server refused or failed.
pub static HTTP_RETRIES_OF_REFUSAL: Counter = Counter::new(row(
    "http_retries_of_refusal",
    Events,
    Unstable,
    "Requests made again since the server refused or failed, and said so: 5xx, too many requests.",
));
/// Nothing came for too long.
pub static HTTP_RETRIES_OF_TIMEOUT: Counter = Counter::new(row(
    "http_retries_of_timeout",
    Events,
    Unstable,
    "Requests made again since nothing came for too long.",
));
/// There was no connection, or it broke.
pub static HTTP_RETRIES_OF_CONNECTION: Counter = Counter::new(row(
    "http_retries_of_connection",
    Events,
    Unstable,
    "Requests made again since there was no connection, or it broke.",
));
/// The answer was none.
pub static HTTP_RETRIES_OF_REPLY: Counter = Counter::new(row(
    "http_retries_of_reply",
    Events,
    Unstable,
    "Requests made again since what came was no answer to the request.",
));
/// Only a part came.
pub static HTTP_RETRIES_OF_PART: Counter = Counter::new(row(
    "http_retries_of_part",
    Events,
    Unstable,
    "Requests made again since the server sent a part of what it was asked for.",
));
/// Anything else.
pub static HTTP_RETRIES_OF_OTHER: Counter = Counter::new(row(
    "http_retries_of_other",
    Events,
    Unstable,
    "Requests made again since something else went wrong.",
));
/// Time between a failed request and the next.
pub static HTTP_RETRY_BACKOFF: Counter = Counter::new(row(
    "http_retry_backoff_ns",
    Nanoseconds,
    Unstable,
    "Time waited before requests that were made again.",
));
/// A server said that the object is elsewhere.
pub static HTTP_REDIRECTS: Counter = Counter::new(row(
    "http_redirects",
    Events,
    Unstable,
    "Redirects that were followed.",
));
/// A place that a server had sent us to did not answer as it should.
pub static HTTP_REDIRECTS_FORGOTTEN: Counter = Counter::new(row(
    "http_redirects_forgotten",
    Events,
    Unstable,
    "Redirects that were remembered and did not answer as they should, so that the first server was asked again.",
));
/// An object was opened without its size being known.
pub static REMOTE_SIZE_PROBES: Counter = Counter::new(row(
    "remote_size_probes",
    Events,
    Unstable,
    "Objects whose size was found out by their first bytes.",
));
/// Time until sizes were known.
pub static REMOTE_SIZE_PROBING: Counter = Counter::new(row(
    "remote_size_probing_ns",
    Nanoseconds,
    Unstable,
    "Time until sizes that had to be found out were known.",
));
/// A reply had nothing to tell versions of the object apart by.
pub static HTTP_WITHOUT_VALIDATOR: Counter = Counter::new(row(
    "http_without_validator",
    Events,
    Unstable,
    "Objects whose server says nothing by which a change between two ranges would show.",
));

/// Page-locked memory between files and devices that transfers have in use.
pub static PINNED_IN_USE: Gauge = Gauge::new(row(
    "pinned_memory_in_use_bytes",
    Bytes,
    Unstable,
    "Page-locked memory that transfers to and from devices have in use.",
));
/// Requests under way, each of which has a connection to itself.
pub static HTTP_CONNECTIONS_IN_USE: Gauge = Gauge::new(row(
    "http_connections_in_use",
    Events,
    Unstable,
    "Requests under way, each of which has a connection to itself or waits for one.",
));

/// Every gauge.
pub static GAUGES: &[&Gauge] = &[&PINNED_IN_USE, &HTTP_CONNECTIONS_IN_USE];

/// The metrics of a [`Summary`](crate::Summary), in the order in which views list them (KvikIO's order).
pub const SUMMARY: &[Metric] = &[
    START,
    END,
    WALL,
    OPERATIONS,
    READS,
    WRITES,
    BYTES_REQUESTED,
    BYTES_TRANSFERRED,
    BYTES_READ,
    BYTES_WRITTEN,
    ERRORS,
    BUSY,
    DURATION,
    BUSY_RATE,
    BUSY_FRACTION,
    MEAN_DURATION,
    BY_COUNTER,
    BY_BACKEND,
];

/// The counters that KvikIO has as well, in its order.
pub static KVIKIO: &[&Counter] = &[
    &REMOTE_SIZE_PROBES,
    &REMOTE_SIZE_PROBING,
    &HTTP_CONNECTIONS,
    &HTTP_DNS,
    &HTTP_TCP,
    &HTTP_TLS,
    &HTTP_RETRIES,
    &HTTP_RETRY_BACKOFF,
];

/// The counters that are always on.
pub static COUNTERS: &[&Counter] = &[
    &IO_INTERRUPTED,
    &IO_SHORT,
    &IO_AGAIN,
    &FALLBACKS,
    &FALLBACKS_OF_URING,
    &FALLBACKS_OF_RING,
    &FALLBACKS_OF_DIRECT,
    &FALLBACKS_OF_MAP,
    &FALLBACKS_OF_CUFILE,
    &FALLBACKS_OF_CUFILE_BATCH,
    &SCRATCH_USED_UP,
    &LISTENER_PANICS,
    &BYTES_BY_PREAD,
    &BYTES_BY_SCRATCH,
    &BYTES_BY_MAP,
    &BYTES_BY_PWRITE,
    &BYTES_BY_DIRECT,
    &BYTES_BY_RING,
    &BYTES_BY_CUFILE,
    &REGISTRATIONS_REFUSED,
    &BYTES_BY_HTTP,
    &BYTES_BY_S3,
    &BYTES_BY_WEBHDFS,
    &HTTP_CONNECTIONS,
    &HTTP_DNS_LOOKUPS,
    &HTTP_DNS,
    &HTTP_TCP,
    &HTTP_TLS,
    &HTTP_CLOSED_CONNECTIONS,
    &HTTP_REQUESTS,
    &HTTP_RETRIES,
    &HTTP_RETRIES_OF_REFUSAL,
    &HTTP_RETRIES_OF_TIMEOUT,
    &HTTP_RETRIES_OF_CONNECTION,
    &HTTP_RETRIES_OF_REPLY,
    &HTTP_RETRIES_OF_PART,
    &HTTP_RETRIES_OF_OTHER,
    &HTTP_RETRY_BACKOFF,
    &HTTP_REDIRECTS,
    &HTTP_REDIRECTS_FORGOTTEN,
    &REMOTE_SIZE_PROBES,
    &REMOTE_SIZE_PROBING,
    &HTTP_WITHOUT_VALIDATOR,
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{COUNTERS, GAUGES, SUMMARY};

    #[test]
    fn every_name_is_used_once_and_is_a_plain_json_key() {
        let mut seen = HashSet::new();
        let rows = SUMMARY
            .iter()
            .chain(COUNTERS.iter().map(|counter| counter.metric()))
            .chain(GAUGES.iter().map(|gauge| gauge.metric()));
        for metric in rows {
            assert!(seen.insert(metric.name), "{} stands twice", metric.name);
            assert!(
                metric
                    .name
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'),
                "{} needs quoting somewhere",
                metric.name
            );
            assert!(
                metric.sentence.ends_with('.'),
                "{} has no sentence",
                metric.name
            );
        }
    }
}
