//! What once could break: a text that Prometheus refuses as a whole, for one line.

use std::collections::{HashMap, HashSet};

use super::{Exposition, Scale};
use crate::distribution::{Distribution, Histogram};
use crate::summary::tests::example;
use crate::{Backend, Direction, Memory, MonitorOptions, Start, begin};

#[test]
fn totals_and_shares_are_told_in_base_units() {
    let text = example().to_prometheus();
    let expected = r#"# HELP kvik_observed_seconds Time that the monitor has been on.
# TYPE kvik_observed_seconds gauge
kvik_observed_seconds 2
# HELP kvik_busy_seconds_total Time during which at least one operation was in flight.
# TYPE kvik_busy_seconds_total counter
kvik_busy_seconds_total 0.5
# HELP kvik_operations_total Logical operations that finished.
# TYPE kvik_operations_total counter
kvik_operations_total{direction="READ"} 3
kvik_operations_total{direction="WRITE"} 2
# HELP kvik_requested_bytes_total Bytes that the finished operations asked for.
# TYPE kvik_requested_bytes_total counter
kvik_requested_bytes_total 5244928
# HELP kvik_transferred_bytes_total Bytes that the operations that succeeded moved.
# TYPE kvik_transferred_bytes_total counter
kvik_transferred_bytes_total{direction="READ"} 5242880
kvik_transferred_bytes_total{direction="WRITE"} 1024
# HELP kvik_backend_operations_total Logical operations that finished, by backend.
# TYPE kvik_backend_operations_total counter
kvik_backend_operations_total{backend="POSIX"} 3
kvik_backend_operations_total{backend="GDS"} 0
kvik_backend_operations_total{backend="MMAP"} 0
kvik_backend_operations_total{backend="REMOTE_HTTP"} 2
kvik_backend_operations_total{backend="REMOTE_HDFS"} 0
"#;
    assert!(text.starts_with(expected), "{text}");
    for line in [
        "kvik_backend_duration_seconds_total{backend=\"POSIX\"} 0.6",
        "kvik_bytes_by_way_total{way=\"pread\"} 0",
        "kvik_fallbacks_by_engine_total{engine=\"cufile\"} 0",
        "kvik_http_retries_by_cause_total{cause=\"timeout\"} 0",
        "kvik_http_retries_total 3",
        "kvik_http_retry_backoff_seconds_total 0.25",
        "# TYPE kvik_http_dns_seconds_total counter",
    ] {
        assert!(text.lines().any(|found| found == line), "no {line}\n{text}");
    }
}

#[test]
fn labels_and_help_are_escaped() {
    let mut text = Exposition(String::new());
    text.family("a", "counter", "one\\two\nthree");
    text.sample("a", &[("b", "q\"\\\n"), ("c", "")], 1);
    let expected =
        "# HELP a one\\\\two\\nthree\n# TYPE a counter\na{b=\"q\\\"\\\\\\n\",c=\"\"} 1\n";
    assert_eq!(text.0, expected);
}

#[test]
fn buckets_are_cumulative_and_end_with_all_there_are() {
    let histogram = Histogram::default();
    for value in [100, 512, 513, 4096, 1 << 50] {
        histogram.record(value);
    }
    let mut found = Distribution::default();
    histogram.add_to(&mut found);
    let mut text = Exposition(String::new());
    text.histogram("s", &[("x", "y")], &found, &Scale::Bytes);
    let lines: Vec<&str> = text.0.lines().collect();
    assert_eq!(lines[0], "s_bucket{x=\"y\",le=\"512\"} 2");
    assert_eq!(lines[1], "s_bucket{x=\"y\",le=\"1024\"} 3");
    assert_eq!(lines[3], "s_bucket{x=\"y\",le=\"4096\"} 4");
    let last = &lines[lines.len() - 4..];
    assert_eq!(
        last,
        [
            "s_bucket{x=\"y\",le=\"8589934592\"} 4",
            "s_bucket{x=\"y\",le=\"+Inf\"} 5",
            "s_sum{x=\"y\"} 1125899906847845",
            "s_count{x=\"y\"} 5"
        ]
    );
}

/// Reads the text as the description of version 0.0.4 has it, and returns the samples.
fn parse(text: &str) -> HashMap<String, f64> {
    assert!(text.ends_with('\n'));
    let is_name = |name: &str| {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b':';
        !name.is_empty() && name.bytes().all(plain) && !name.as_bytes()[0].is_ascii_digit()
    };
    let mut families = HashSet::new();
    let mut family = (String::new(), String::new());
    let mut helped = String::new();
    let mut samples = HashMap::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').unwrap();
            assert!(is_name(name) && !text.is_empty(), "{line}");
            assert!(families.insert(name.to_owned()), "{name} comes twice");
            helped = name.to_owned();
            continue;
        }
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(name, helped, "a type without its help");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            family = (name.to_owned(), kind.to_owned());
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let name = series.split('{').next().unwrap();
        assert!(is_name(name), "{line}");
        let stem = match &*family.1 {
            "histogram" => ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|end| name.strip_suffix(end))
                .unwrap_or(name),
            _ => name,
        };
        assert_eq!(stem, family.0, "{line} outside its family");
        let value: f64 = value.parse().unwrap();
        let before = samples.insert(series.to_owned(), value);
        assert!(before.is_none(), "{series} comes twice");
    }
    samples
}

#[test]
fn all_of_it_can_be_read_and_distributions_come_with_their_sums() {
    let _turn = crate::listener::tests::alone();
    let monitor = MonitorOptions::new()
        .distributions(true)
        .tasks(true)
        .start();
    let operation = begin(Start {
        backend: Backend::Posix,
        direction: Direction::Read,
        memory: Memory::Host,
        source: &"s".into(),
        offset: 0,
        size: 4096,
    });
    let tasks = operation.tasks().unwrap();
    tasks.begin("posix", 0, 4096).finish("posix", 4096, true);
    operation.finish(4096, true);
    let samples = parse(&monitor.get().to_prometheus());
    let of = "{backend=\"POSIX\",direction=\"READ\"}";
    assert_eq!(
        samples[&format!("kvik_operation_size_bytes_sum{of}")],
        4096.0
    );
    assert_eq!(
        samples[&format!("kvik_operation_size_bytes_count{of}")],
        1.0
    );
    assert_eq!(
        samples[&format!("kvik_operation_duration_seconds_count{of}")],
        1.0
    );
    assert_eq!(samples["kvik_task_wait_seconds_bucket{le=\"+Inf\"}"], 1.0);
    assert_eq!(samples["kvik_task_service_seconds_count"], 1.0);
    parse(&crate::Summary::default().to_prometheus());
}
