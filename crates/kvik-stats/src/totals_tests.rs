//! What once could break: keys that others rely on, and a table whose columns do not stand.

use super::{BackendTotals, Size, Time, Totals};
use crate::names;
use crate::operation::{Backend, Direction};

fn example() -> Totals {
    let mut totals = Totals {
        wall_ns: 2_000_000_000,
        busy_ns: 500_000_000,
        ..Totals::default()
    };
    let share = |operations, bytes, duration_ns, errors| BackendTotals {
        operations,
        bytes,
        duration_ns,
        errors,
    };
    totals.add(
        Backend::Posix,
        Direction::Read,
        5 << 20,
        share(3, 5 << 20, 600_000_000, 0),
    );
    totals.add(
        Backend::RemoteHttp,
        Direction::Write,
        2048,
        share(2, 1024, 1500, 1),
    );
    totals
}

#[test]
fn json_has_the_keys_of_kvikio_in_its_order_and_separators() {
    assert_eq!(
        example().to_json(),
        concat!(
            r#"{"wall_ns": 2000000000, "num_ops": 5, "num_reads": 3, "num_writes": 2, "bytes_requested": 5244928, "#,
            r#""bytes_transferred": 5243904, "bytes_read": 5242880, "bytes_written": 1024, "num_errors": 1, "#,
            r#""busy_ns": 500000000, "total_duration_ns": 600001500, "by_backend": {"#,
            r#""POSIX": {"num_ops": 3, "bytes_transferred": 5242880, "total_duration_ns": 600000000, "num_errors": 0}, "#,
            r#""GDS": {"num_ops": 0, "bytes_transferred": 0, "total_duration_ns": 0, "num_errors": 0}, "#,
            r#""MMAP": {"num_ops": 0, "bytes_transferred": 0, "total_duration_ns": 0, "num_errors": 0}, "#,
            r#""REMOTE_HTTP": {"num_ops": 2, "bytes_transferred": 1024, "total_duration_ns": 1500, "num_errors": 1}, "#,
            r#""REMOTE_HDFS": {"num_ops": 0, "bytes_transferred": 0, "total_duration_ns": 0, "num_errors": 0}}}"#,
        )
    );
}

#[test]
fn rows_follow_the_table_of_names() {
    let rows: Vec<&str> = example()
        .rows()
        .iter()
        .map(|(metric, _)| metric.name)
        .collect();
    let table: Vec<&str> = names::TOTALS.iter().map(|metric| metric.name).collect();
    assert_eq!(rows, table[..table.len() - 1], "all but the breakdown");
}

#[test]
fn the_table_stands_in_columns_and_leaves_out_what_was_not_used() {
    let expected = "\
wall time            2 s
busy time            500 ms
busy bandwidth       10.49 MB/s
operations           5 (3 read, 2 write)
bytes                5 MiB of 5 MiB requested (5 MiB read, 1 KiB written)
errors               1
backend POSIX        5 MiB in 3 ops, 600 ms
backend REMOTE_HTTP  1 KiB in 2 ops, 1.50 us, 1 failed";
    assert_eq!(example().to_string(), expected);
}

#[test]
fn nothing_done_divides_by_nothing() {
    let text = Totals::default().to_string();
    assert!(text.contains("busy bandwidth       0 B/s"), "{text}");
    assert!(text.contains("wall time            0 s"), "{text}");
}

#[test]
fn sizes_and_times_take_the_unit_that_fits() {
    for (bytes, text) in [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.50 KiB"),
        ((1 << 20) - 1, "1 MiB"),
        (u64::MAX, "16 EiB"),
    ] {
        assert_eq!(Size(bytes).to_string(), text);
    }
    for (ns, text) in [
        (999, "999 ns"),
        (1_500, "1.50 us"),
        (59_000_000_000, "59 s"),
        (61_000_000_000, "1 min 1 s"),
        (7_384_000_000_000, "2 h 3 min 4 s"),
    ] {
        assert_eq!(Time(ns).to_string(), text);
    }
}
