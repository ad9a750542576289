//! The part of the exam with many ranges in one call.

use kvik::{ErrorKind, ReadAt, ReadPiece, WritePiece};
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::{GUARD, Writer, counted, landed, same};
use crate::model::Model;
use crate::pattern::UNTOUCHED;

/// Reads the ranges, each into memory that starts a byte further on than that of the one before.
pub(super) fn read(reader: &dyn ReadAt, ranges: &[(u64, usize)], model: &Model) -> TestCaseResult {
    let mut memory: Vec<Vec<u8>> = ranges
        .iter()
        .enumerate()
        .map(|(skew, (_, len))| vec![UNTOUCHED; skew + len + GUARD])
        .collect();
    let mut pieces: Vec<_> = ranges
        .iter()
        .zip(&mut memory)
        .enumerate()
        .map(|(skew, ((offset, len), memory))| {
            ReadPiece::new(*offset, &mut memory[skew..skew + len])
        })
        .collect();
    let counts = reader.read_ranges(&mut pieces);
    let expected: Vec<_> = ranges
        .iter()
        .map(|(offset, len)| model.read(*offset, *len))
        .collect();
    let lengths: Vec<_> = expected.iter().map(|bytes| bytes.len()).collect();
    prop_assert_eq!(
        counts.map_err(|error| error.to_string()),
        Ok(lengths),
        "the counts"
    );
    for (skew, (memory, expected)) in memory.iter().zip(expected).enumerate() {
        same("before a piece", &memory[..skew], &vec![UNTOUCHED; skew])?;
        landed(&memory[skew..], expected)?;
    }
    Ok(())
}

/// Writes the bytes at their offsets, which must be refused as a whole if any of them overlap.
pub(super) fn write(
    writer: &dyn Writer,
    sources: &[(usize, Vec<u8>)],
    model: &mut Model,
) -> TestCaseResult {
    let pieces: Vec<_> = sources
        .iter()
        .map(|(offset, bytes)| WritePiece::new(*offset as u64, bytes))
        .collect();
    let outcome = writer.write_ranges(&pieces);
    let mut ranges: Vec<_> = sources
        .iter()
        .filter(|(_, bytes)| !bytes.is_empty())
        .map(|(offset, bytes)| *offset..offset + bytes.len())
        .collect();
    ranges.sort_unstable_by_key(|range| range.start);
    if ranges.windows(2).any(|two| two[1].start < two[0].end) {
        let kind = outcome.map_err(|error| error.kind());
        prop_assert_eq!(kind, Err(ErrorKind::Misuse), "pieces that overlap");
        return same("what was stored before", &writer.stored(), model.bytes());
    }
    counted(outcome, ranges.iter().map(|range| range.len()).sum())?;
    for (offset, bytes) in sources {
        model.write(*offset, bytes);
    }
    Ok(())
}
