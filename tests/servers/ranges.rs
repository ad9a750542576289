//! Ranges of a fixture in one call, from whatever server.

use kvik::{ReadPiece, RemoteHandle};
use kvik_tests::pattern::assert_same;
use kvik_tests::server::Fixture;

/// The first byte and the last, and some between them; at the end there is nothing.
#[track_caller]
pub(crate) fn ranges_are_right(object: &RemoteHandle, fixture: &Fixture) {
    let len = fixture.len;
    let ranges = [0..1, 4095..8193, 70_000..200_000, len - 1..len];
    let mut bytes = ranges
        .clone()
        .map(|range| vec![0; (range.end - range.start) as usize]);
    let mut pieces: Vec<ReadPiece<'_>> = bytes
        .iter_mut()
        .zip(&ranges)
        .map(|(bytes, range)| ReadPiece::new(range.start, bytes.as_mut_slice()))
        .collect();
    object.read_ranges(&mut pieces).unwrap();
    drop(pieces);
    for (bytes, range) in bytes.iter().zip(ranges) {
        assert_same(bytes, &fixture.part(range));
    }
    assert_eq!(object.read_at(&mut [0; 10], len).unwrap(), 0);
}
