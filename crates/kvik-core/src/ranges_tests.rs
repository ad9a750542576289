//! The planner against a file that is a vector: every byte lands where it belongs, once, and within the limits.

#![allow(
    clippy::single_range_in_vec_init,
    reason = "a list of ranges may have one"
)]

use proptest::prelude::*;

use super::*;
use crate::target::Target;
use crate::window::FillWindow;

const LIMITS: Limits = Limits {
    task_size: 4096,
    gap: 10,
    merged: 1000,
    parts: 4,
};

fn plan(pieces: &[(u64, usize)], limits: &Limits) -> (Ranges, Vec<Vec<u8>>) {
    let mut memory: Vec<Vec<u8>> = pieces.iter().map(|(_, len)| vec![0xEE; *len]).collect();
    let described: Vec<_> = pieces
        .iter()
        .zip(&mut memory)
        .map(|((offset, _), memory)| (*offset, Memory::of_mut(memory)))
        .collect();
    (Ranges::new(described.into_iter(), limits).unwrap(), memory)
}

/// What is read in one go, from where to where.
#[track_caller]
fn check(pieces: &[(u64, usize)], limits: &Limits, expected: &[Range<u64>]) {
    let (ranges, _memory) = plan(pieces, limits);
    assert_eq!(spans(&ranges), expected);
}

fn spans(ranges: &Ranges) -> Vec<Range<u64>> {
    (0..ranges.batches())
        .flat_map(|number| ranges.batch(number))
        .map(|task| ranges.task(task))
        .map(|parts| parts[0].offset..parts[parts.len() - 1].end())
        .collect()
}

#[test]
fn neighbours_are_read_in_one_go_and_gaps_up_to_the_limit_with_them() {
    check(&[(0, 5), (5, 5)], &LIMITS, &[0..10]);
    check(&[(0, 5), (15, 5)], &LIMITS, &[0..20]);
    check(&[(0, 5), (16, 5)], &LIMITS, &[0..5, 16..21]);
    check(&[(30, 5), (0, 5), (10, 15)], &LIMITS, &[0..35]);
}

#[test]
fn a_read_of_several_pieces_ends_at_the_limit_of_bytes_and_of_pieces() {
    check(
        &[(0, 500), (500, 500), (1000, 1)],
        &LIMITS,
        &[0..1000, 1000..1001],
    );
    check(&[(0, 2000), (2000, 5)], &LIMITS, &[0..2000, 2000..2005]);
    let row: Vec<_> = (0..9).map(|i| (i * 2, 2)).collect();
    check(&row, &LIMITS, &[0..8, 8..16, 16..18]);
    let alone = Limits { parts: 1, ..LIMITS };
    check(&row[..2], &alone, &[0..2, 2..4]);
}

#[test]
fn pieces_that_overlap_are_read_one_by_one() {
    check(&[(0, 5), (4, 5), (0, 5)], &LIMITS, &[0..5, 0..5, 4..9]);
}

#[test]
fn a_long_piece_is_cut_where_a_plain_read_is_cut() {
    check(
        &[(100, 9000)],
        &LIMITS,
        &[100..4096, 4096..8192, 8192..9100],
    );
}

#[test]
fn nothing_to_read_is_nothing_to_do() {
    check(&[], &LIMITS, &[]);
    check(&[(7, 0), (0, 0)], &LIMITS, &[]);
    check(&[(7, 0), (9, 1)], &LIMITS, &[9..10]);
}

#[test]
fn a_batch_is_one_large_task_or_many_small_ones() {
    let large = Limits {
        task_size: 1 << 20,
        ..LIMITS
    };
    let pieces: Vec<_> = (0..100).map(|i| (i << 20, 4096)).collect();
    let (ranges, _memory) = plan(&pieces, &large);
    let batches: Vec<_> = (0..ranges.batches())
        .map(|number| ranges.batch(number))
        .collect();
    assert_eq!(batches, [0..32, 32..64, 64..96, 96..100]);
    let (ranges, _memory) = plan(&[(0, 3 << 20)], &large);
    assert_eq!(ranges.batches(), 3);
}

#[test]
fn ranges_beyond_the_largest_offset_and_a_task_size_of_zero_are_refused() {
    let mut byte = [0];
    let memory = Memory::of_mut(&mut byte);
    let refused = |offset, limits: &Limits| {
        Ranges::new([(offset, memory)].into_iter(), limits)
            .unwrap_err()
            .kind()
    };
    assert_eq!(refused(i64::MAX as u64, &LIMITS), ErrorKind::Misuse);
    let zero = Limits {
        task_size: 0,
        ..LIMITS
    };
    assert_eq!(refused(0, &zero), ErrorKind::Misuse);
}

#[test]
fn writes_that_overlap_are_refused_with_both_names_and_neighbours_are_not() {
    let apart = |pieces: &[(u64, usize)]| plan(pieces, &LIMITS).0.check_apart();
    assert!(apart(&[(10, 5), (0, 10), (15, 1), (12, 0)]).is_ok());
    let error = apart(&[(10, 5), (0, 11)]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert_eq!(
        error.to_string(),
        "write: piece 1, 0..11, and piece 0, 10..15, overlap: which bytes win is not defined"
    );
}

proptest! {
    #[test]
    fn every_byte_lands_where_it_belongs_and_once(
        pieces in proptest::collection::vec((0u64..3000, 0usize..200), 0..60),
        task_size in 1u64..300, gap in 0u64..60, merged in 1u64..600, parts in 1usize..9,
    ) {
        let limits = Limits { task_size, gap, merged, parts };
        let file: Vec<u8> = (0..3200usize).map(|i| (i ^ (i >> 8).wrapping_mul(31)) as u8).collect();
        let (ranges, memory) = plan(&pieces, &limits);
        let mut expected_task = 0;
        for number in 0..ranges.batches() {
            let batch = ranges.batch(number);
            prop_assert!(batch.start == expected_task && !batch.is_empty());
            expected_task = batch.end;
            for task in batch {
                let parts = ranges.task(task);
                let range = parts[0].offset..parts[parts.len() - 1].end();
                prop_assert!(!parts.is_empty() && parts.len() <= limits.parts);
                prop_assert!(parts.len() == 1 || range.end - range.start <= merged);
                prop_assert!(parts.windows(2).all(|two| two[1].offset >= two[0].end()));
                prop_assert!(parts.windows(2).all(|two| two[1].offset - two[0].end() <= gap));
                prop_assert!(parts.iter().all(|part| part.memory.len() as u64 <= task_size));
                // SAFETY: the parts lie in different pieces or at different places of one, whose memory is not used
                // otherwise meanwhile.
                let mut window = unsafe { FillWindow::of_parts(parts) };
                let bytes = &file[range.start as usize..range.end as usize];
                prop_assert_eq!(window.put(bytes), bytes.len());
            }
        }
        for ((offset, len), memory) in pieces.iter().zip(&memory) {
            prop_assert_eq!(&memory[..], &file[*offset as usize..][..*len]);
        }
        let total: usize = ranges.parts().iter().map(|part| part.memory.len()).sum();
        prop_assert_eq!(total, pieces.iter().map(|(_, len)| len).sum::<usize>());
    }
}

#[test]
fn the_hull_reaches_from_the_first_byte_to_the_last_even_where_a_long_piece_comes_early() {
    let mut memory = vec![0; 300];
    let (long, short) = memory.split_at_mut(200);
    let pieces = [
        (100, Target::from(long).memory()),
        (150, Target::from(short).memory()),
    ];
    let ranges = Ranges::new(pieces.into_iter(), &LIMITS).unwrap();
    assert_eq!(ranges.hull(), 100..300);
}
