//! Each operation is told once, whatever becomes of it, and its bytes are those that were moved.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use kvik::stats::{Direction, Listener, Operation, Outcome, listen};
use kvik_tests::engine::{Scripted, Step};
use kvik_tests::pattern::{file, pattern};

use crate::{child, cut, read_write};

#[derive(Default)]
struct Ledger(Mutex<HashMap<u64, Row>>);

/// What was told at the start, and at the end: bytes, and whether it went well.
type Row = (Told, Option<(u64, bool)>);

#[derive(Clone, Debug, PartialEq)]
struct Told {
    direction: Direction,
    offset: u64,
    size: u64,
}

impl Listener for Ledger {
    fn started(&self, operation: &Operation) {
        // Other tests may run in this process.
        if !operation.source.contains("told") {
            return;
        }
        let told = Told {
            direction: operation.direction,
            offset: operation.offset,
            size: operation.size,
        };
        let before = self.0.lock().unwrap().insert(operation.id, (told, None));
        assert!(before.is_none(), "operation {} started twice", operation.id);
    }

    fn finished(&self, operation: &Operation, outcome: &Outcome) {
        let mut ledger = self.0.lock().unwrap();
        if !operation.source.contains("told") {
            return;
        }
        let (_, end) = ledger
            .get_mut(&operation.id)
            .expect("an end without a start");
        assert!(end.is_none(), "operation {} ended twice", operation.id);
        *end = Some((outcome.bytes, outcome.ok));
    }
}

#[test]
fn every_operation_reports_its_start_and_its_end_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "told", 1, 1_000_000);
    let handle = read_write(&path);
    let cut = cut(3, 16 << 10);
    let ledger = Arc::new(Ledger::default());
    let listening = listen(Arc::clone(&ledger) as Arc<dyn Listener>);
    let mut expected = Vec::new();
    let mut expect = |direction, offset, size, end| {
        expected.push((
            Told {
                direction,
                offset,
                size,
            },
            end,
        ))
    };
    use Direction::{Read, Write};

    handle.read_at(&mut [0; 10], 5).unwrap();
    expect(Read, 5, 10, Some((10, true)));
    handle
        .read_at_with(&mut vec![0; 900_000], 200_000, &cut)
        .unwrap();
    expect(Read, 200_000, 900_000, Some((800_000, true)));
    handle.read_exact_at(&mut [0; 10], 999_995).unwrap_err();
    expect(Read, 999_995, 10, Some((5, true)));
    handle.read_at(&mut [0; 10], 2_000_000).unwrap();
    expect(Read, 2_000_000, 10, Some((0, true)));
    handle.write_at(&pattern(2, 0, 10), 0).unwrap();
    expect(Write, 0, 10, Some((10, true)));
    handle
        .write_at_with(&pattern(2, 0, 900_000), 0, &cut)
        .unwrap();
    expect(Write, 0, 900_000, Some((900_000, true)));
    handle
        .submit_read_with(vec![0; 500_000], 7, &cut)
        .wait()
        .unwrap();
    expect(Read, 7, 500_000, Some((500_000, true)));
    handle
        .submit_write_with(vec![0; 500_000], 9, &cut)
        .wait()
        .unwrap();
    expect(Write, 9, 500_000, Some((500_000, true)));
    // How far these come depends on the moment; that they end does not.
    drop(handle.submit_read_with(vec![0; 800_000], 11, &cut));
    expect(Read, 11, 800_000, None);
    let cancelled = handle.submit_read_with(vec![0; 800_000], 13, &cut);
    cancelled.cancel();
    let _ = cancelled.wait();
    expect(Read, 13, 800_000, None);
    // Of one that failed no byte counts: its caller cannot use them.
    let mut fails = Scripted::new(|task| {
        if task.index == 2 {
            Step::Fail
        } else {
            Step::Move
        }
    })
    .call(1, 4096);
    fails.name = "told to fail".into();
    fails.submit_read(vec![0; 5 * 4096], 0).wait().unwrap_err();
    expect(Read, 0, 5 * 4096, Some((0, false)));
    let mut panics = Scripted::new(|_| Step::Panic).call(1, 4096);
    panics.name = "told to panic".into();
    panics.submit_read(vec![0; 4096], 4096).wait().unwrap_err();
    expect(Read, 4096, 4096, Some((0, false)));

    drop(listening);
    let mut ledger: Vec<_> = ledger.0.lock().unwrap().clone().into_iter().collect();
    ledger.sort_by_key(|(id, _)| *id);
    assert_eq!(ledger.len(), expected.len());
    for ((_, (told, end)), (expected, expected_end)) in ledger.into_iter().zip(expected) {
        assert_eq!(told, expected);
        let end = end.expect("an operation that never ended");
        assert!(
            expected_end.is_none_or(|expected| expected == end),
            "{told:?}: {end:?}, not {expected_end:?}"
        );
    }
}

#[test]
fn the_bytes_counted_are_the_bytes_moved_and_the_sum_is_the_total() {
    // A monitor hears of everything in its process, so it gets one of its own.
    let folder = tempfile::tempdir().unwrap();
    child("totals").arg(folder.path()).succeeds();
}
