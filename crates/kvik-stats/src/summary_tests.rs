//! What once could break: keys and rows that others rely on, and differences between readings that are none.

use super::{BackendTotals, Counts, NotEarlier, Summary};
use crate::anchor::Anchor;
use crate::names::{self, COUNTERS};
use crate::operation::{Backend, Direction};

/// What [`golden_bytes`] say.
pub(crate) fn example() -> Summary {
    let mut summary = Summary {
        start: 1_000,
        end: 2_000_001_000,
        anchor: Anchor {
            steady: 900,
            wall: 1_700_000_000_000_000_000,
        },
        busy_ns: 500_000_000,
        ..Summary::default()
    };
    let share = |operations, bytes, duration_ns, errors| BackendTotals {
        operations,
        bytes,
        duration_ns,
        errors,
    };
    summary.add(
        Backend::Posix,
        Direction::Read,
        5 << 20,
        share(3, 5 << 20, 600_000_000, 0),
    );
    summary.add(
        Backend::RemoteHttp,
        Direction::Write,
        2048,
        share(2, 1024, 1500, 1),
    );
    let grown = [4, 1_500_000, 2, 30_000, 40_000, 5_000_000, 3, 250_000_000];
    summary.counters = Counts(vec![0; COUNTERS.len()]);
    for (counter, grown) in names::KVIKIO.iter().zip(grown) {
        let place = COUNTERS
            .iter()
            .position(|known| std::ptr::eq(*known, *counter));
        summary.counters.0[place.unwrap()] = grown;
    }
    summary
}

/// The words of a summary that KvikIO 26.10 was given, and gave back.
pub(crate) fn golden_bytes() -> Vec<u8> {
    let words: [u64; 42] = [
        1_000,
        2_000_001_000,
        900,
        1_700_000_000_000_000_000, //
        5,
        3,
        2,
        5_244_928,
        5_243_904,
        5_242_880,
        1024,
        1, //
        3,
        5 << 20,
        600_000_000,
        0, //
        0,
        0,
        0,
        0, //
        0,
        0,
        0,
        0, //
        2,
        1024,
        1500,
        1, //
        0,
        0,
        0,
        0, //
        4,
        1_500_000,
        2,
        30_000,
        40_000,
        5_000_000,
        3,
        250_000_000, //
        600_001_500,
        500_000_000,
    ];
    let mut bytes = b"KVSM".to_vec();
    for word in [2u32, 336, 0x0102_0304] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    bytes
}

// As KvikIO 26.10 printed it.
const JSON: &str = concat!(
    r#"{"start_unix_ns": 1700000000000000100, "end_unix_ns": 1700000002000000100, "wall_ns": 2000000000, "num_ops": 5, "#,
    r#""num_reads": 3, "num_writes": 2, "bytes_requested": 5244928, "bytes_transferred": 5243904, "bytes_read": 5242880, "#,
    r#""bytes_written": 1024, "num_errors": 1, "busy_ns": 500000000, "total_duration_ns": 600001500, "#,
    r#""busy_bytes_per_sec": 1.04878e+07, "busy_fraction": 0.25, "mean_duration_ns": 120000300, "#,
    r#""counters": {"remote_size_probes": 4, "remote_size_probing_ns": 1500000, "http_connections": 2, "http_dns_ns": 30000, "#,
    r#""http_tcp_ns": 40000, "http_tls_ns": 5000000, "http_retries": 3, "http_retry_backoff_ns": 250000000}, "#,
    r#""by_backend": {"POSIX": {"num_ops": 3, "bytes_transferred": 5242880, "total_duration_ns": 600000000, "num_errors": 0}, "#,
    r#""GDS": {"num_ops": 0, "bytes_transferred": 0, "total_duration_ns": 0, "num_errors": 0}, "#,
    r#""MMAP": {"num_ops": 0, "bytes_transferred": 0, "total_duration_ns": 0, "num_errors": 0}, "#,
    r#""REMOTE_HTTP": {"num_ops": 2, "bytes_transferred": 1024, "total_duration_ns": 1500, "num_errors": 1}, "#,
    r#""REMOTE_HDFS": {"num_ops": 0, "bytes_transferred": 0, "total_duration_ns": 0, "num_errors": 0}}}"#,
);

#[test]
fn json_has_the_keys_of_kvikio_in_its_order_and_separators() {
    assert_eq!(example().to_json(), JSON);
}

#[test]
fn full_json_has_every_counter_and_is_the_same_else() {
    let full = example().to_full_json();
    let (before, after) = JSON.split_once(r#""counters": {"#).unwrap();
    let (_, after) = after.split_once('}').unwrap();
    let inner = full
        .strip_prefix(before)
        .unwrap()
        .strip_suffix(after)
        .unwrap();
    for counter in COUNTERS {
        assert!(inner.contains(&format!("\"{}\": ", counter.metric().name)));
    }
    assert!(inner.contains("\"http_retries\": 3, "), "{inner}");
}

#[test]
fn the_keys_are_those_of_the_table_of_names() {
    let keys: Vec<String> = names::SUMMARY
        .iter()
        .map(|metric| format!("\"{}\": ", metric.name))
        .collect();
    let mut rest = JSON;
    for key in keys {
        let place = rest
            .find(&key)
            .unwrap_or_else(|| panic!("{key} is not next"));
        rest = &rest[place + key.len()..];
    }
}

// As KvikIO 26.10 printed them.
#[test]
fn the_report_has_the_rows_of_kvikio() {
    let expected = "\
KvikIO I/O summary
  wall time            2 s
  busy time            500 ms (25.00 % of the wall time)
  busy bandwidth       10.49 MB/s
  operations           5 (3 read, 2 write)
  mean duration        120 ms
  bytes                5 MiB of 5 MiB requested (5 MiB read, 1 KiB written)
  errors               1
  backend POSIX        5 MiB in 3 ops, 600 ms, 8.74 MB/s
  backend REMOTE_HTTP  1 KiB in 2 ops, 1.50 us, 682.67 MB/s, 1 failed
  http size probes     4 probes, 1.50 ms
  http handshake       2 connections, 30 us dns, 40 us tcp, 5 ms tls
  http retries         3 retries, 250 ms backoff
";
    assert_eq!(example().to_kvikio_report(false), expected);
    let all = "\
KvikIO I/O summary
  wall time            0 s
  busy time            0 s (0.00 % of the wall time)
  busy bandwidth       0 B/s
  operations           0 (0 read, 0 write)
  mean duration        0 s
  bytes                0 B of 0 B requested (0 B read, 0 B written)
  errors               0
  backend POSIX        unused
  backend GDS          unused
  backend MMAP         unused
  backend REMOTE_HTTP  unused
  backend REMOTE_HDFS  unused
  http size probes     0 probes, 0 s
  http handshake       0 connections, 0 s dns, 0 s tcp, 0 s tls
  http retries         0 retries, 0 s backoff
";
    let nothing = Summary::default();
    assert_eq!(nothing.to_kvikio_report(true), all);
    let short: Vec<&str> = all.split_inclusive('\n').take(8).collect();
    assert_eq!(nothing.to_kvikio_report(false), short.concat());
    let ours = expected.replacen("KvikIO", "kvik", 1);
    assert_eq!(example().to_string(), ours);
    assert_eq!(example().report(false), ours);
}

#[test]
fn nothing_done_divides_by_nothing() {
    let nothing = Summary::default();
    assert_eq!(nothing.busy_bytes_per_sec(), 0.0);
    assert_eq!(nothing.busy_fraction(), 0.0);
    assert_eq!(nothing.mean_duration_ns(), 0);
}

#[test]
fn an_interval_has_the_differences_and_begins_where_the_earlier_reading_ended() {
    let earlier = example();
    let mut later = example();
    later.end += 500;
    later.busy_ns += 100;
    later.add(
        Backend::Gds,
        Direction::Read,
        10,
        BackendTotals {
            operations: 1,
            bytes: 8,
            duration_ns: 90,
            errors: 0,
        },
    );
    later.counters.0[0] += 7;
    let interval = later.since(&earlier).unwrap();
    assert_eq!(interval.start_unix_ns(), earlier.end_unix_ns());
    assert_eq!((interval.wall_ns(), interval.busy_ns), (500, 100));
    assert_eq!(
        (interval.operations, interval.reads, interval.writes),
        (1, 1, 0)
    );
    assert_eq!((interval.bytes_requested, interval.bytes_read), (10, 8));
    assert_eq!((interval.duration_ns, interval.errors), (90, 0));
    assert_eq!(interval.backend(Backend::Gds).bytes, 8);
    assert_eq!(interval.backend(Backend::Posix).operations, 0);
    assert_eq!(interval.counter(COUNTERS[0]), 7);
    assert_eq!(interval.counter(&names::HTTP_RETRIES), 0);
    let empty = later.since(&later).unwrap();
    assert_eq!(
        (empty.wall_ns(), empty.operations, empty.busy_ns),
        (0, 0, 0)
    );
}

#[test]
fn what_is_no_earlier_reading_of_the_same_span_is_refused() {
    let reading = example();
    let mut later = example();
    later.end += 1;
    let mut elsewhere = example();
    elsewhere.anchor.wall += 1;
    let mut fewer = later.clone();
    fewer.operations -= 1;
    let interval = later.since(&reading).unwrap();
    for (now, before) in [
        (&reading, &later),
        (&later, &elsewhere),
        (&later, &interval),
        (&fewer, &reading),
    ] {
        assert_eq!(now.since(before), Err(NotEarlier));
    }
    assert_eq!(
        NotEarlier.to_string(),
        "`previous` must be an earlier reading of the same span, from `get()` rather than from `since()`"
    );
}
