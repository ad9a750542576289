//! What once could break: a gap or an overlap between head, body and tail, a step that makes no way, a call that the
//! kernel refuses, a page that is written by two ways.

use proptest::prelude::*;

use super::*;

const ROOM: u64 = 64 << 10;

fn alignment(read: u64, memory: u64) -> Alignment {
    Alignment {
        memory,
        read,
        write: read,
        boundary: read.max(4096),
    }
}

#[track_caller]
fn check(rest: Range<u64>, address: usize, edges: Edges, expected: ReadStep) {
    check_in_file(u64::MAX, rest, address, edges, expected);
}

#[track_caller]
fn check_in_file(
    file_end: u64,
    rest: Range<u64>,
    address: usize,
    edges: Edges,
    expected: ReadStep,
) {
    let rules = ReadRules {
        alignment: &alignment(512, 512),
        edges,
        room: ROOM,
        file_end,
    };
    let found = read_step(&rest, address, &rules);
    assert_eq!(found, expected, "{rest:?} to {address} with {edges:?}");
}

fn through(block: Range<u64>, wanted: Range<u64>) -> ReadStep {
    ReadStep::Through { block, wanted }
}

#[test]
fn reads_go_in_place_where_memory_and_file_agree() {
    use Edges::{Buffered, Overread};
    use ReadStep::InPlace;
    for edges in [Overread, Buffered] {
        check(1024..2048, 4096, edges, InPlace(1024..2048));
        check(0..LONG + 512, 512, edges, InPlace(0..LONG + 512));
        // Aligned in the file, but not in memory.
        check(0..LONG, 16, edges, through(0..ROOM, 0..ROOM));
    }
    // A long middle is read in place, and its edges apart.
    check(5..LONG * 2, 5, Overread, through(0..512, 5..512));
    check(512..LONG * 2 + 7, 512, Overread, InPlace(512..LONG * 2));
    check(
        LONG..LONG + 7,
        0,
        Overread,
        through(LONG..LONG + 512, LONG..LONG + 7),
    );
    // A short one is copied, so that one call does.
    check(5..2000, 5, Overread, through(0..2048, 5..2000));
    check(512..2000, 512, Overread, through(512..2048, 512..2000));
}

#[test]
fn edges_that_may_not_be_overread_are_buffered() {
    use ReadStep::{Buffered, InPlace};
    check(5..2000, 5, Edges::Buffered, Buffered(5..512));
    check(512..2000, 512, Edges::Buffered, InPlace(512..1536));
    check(
        512..2000,
        513,
        Edges::Buffered,
        through(512..1536, 512..1536),
    );
    check(1536..2000, 0, Edges::Buffered, Buffered(1536..2000));
    check(5..300, 5, Edges::Buffered, Buffered(5..300));
}

/// Ext4 returns the count up to the end of the file, and has filled memory up to the end of the block.
#[test]
fn the_block_in_which_the_file_ends_is_not_read_in_place() {
    use Edges::{Buffered, Overread};
    use ReadStep::InPlace;
    let end = LONG + 700;
    for edges in [Overread, Buffered] {
        check_in_file(end, 0..2 * LONG, 0, edges, InPlace(0..LONG + 512));
    }
    let rest = LONG + 512..LONG + 2048;
    check_in_file(
        end,
        rest.clone(),
        0,
        Overread,
        through(rest.clone(), rest.clone()),
    );
    check_in_file(
        end,
        rest.clone(),
        0,
        Buffered,
        ReadStep::Buffered(rest.clone()),
    );
    check_in_file(0, rest.clone(), 0, Overread, through(rest.clone(), rest));
}

#[test]
fn a_block_beyond_the_largest_offset_is_not_asked_for() {
    let end = i64::MAX as u64;
    for edges in [Edges::Overread, Edges::Buffered] {
        check(end - 5..end, 0, edges, ReadStep::Buffered(end - 5..end));
    }
}

#[test]
fn writes_are_split_at_pages_even_where_less_would_do() {
    let parts = |head, body, tail| WriteParts { head, body, tail };
    assert_eq!(
        write_parts(&(3..50_000_003), 4096),
        parts(3..4096, 4096..49_999_872, 49_999_872..50_000_003)
    );
    assert_eq!(
        write_parts(&(4096..8192), 4096),
        parts(4096..4096, 4096..8192, 8192..8192)
    );
    assert_eq!(
        write_parts(&(1..8191), 4096),
        parts(1..8191, 8191..8191, 8191..8191)
    );
    assert_eq!(write_parts(&(5..5), 4096), parts(5..5, 5..5, 5..5));
    let end = i64::MAX as u64;
    assert!(write_parts(&(end - 5..end), 4096).body.is_empty());
    assert_eq!(
        write_parts(&(u64::MAX - 1..u64::MAX), 4096).head,
        u64::MAX - 1..u64::MAX
    );
}

fn block() -> impl Strategy<Value = u64> {
    proptest::sample::select(vec![512, 1024, 4096, 16_384])
}

fn place() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..200_000u64,
        (0..2000u64, -3..=3i64)
            .prop_map(|(count, shift)| (count * 512).saturating_add_signed(shift)),
    ]
}

proptest! {
    #[test]
    fn steps_cover_a_read_without_gap_and_the_kernel_takes_each(
        offset in place(),
        len in 1..2_000_000u64,
        skew in 0..5000usize,
        (read, memory) in (block(), proptest::sample::select(vec![4, 512, 4096])),
        overread: bool,
    ) {
        let rules = ReadRules {
            alignment: &alignment(read, memory),
            edges: if overread { Edges::Overread } else { Edges::Buffered },
            room: ROOM,
            file_end: u64::MAX,
        };
        let address = 1 << 20 | skew;
        let mut rest = offset..offset + len;
        let mut steps = 0;
        while !rest.is_empty() {
            let at = address + (rest.start - offset) as usize;
            let done = match read_step(&rest, at, &rules) {
                ReadStep::InPlace(piece) => {
                    prop_assert_eq!((piece.start % read, piece.end % read, at as u64 % memory), (0, 0, 0));
                    piece
                }
                ReadStep::Through { block, wanted } => {
                    prop_assert_eq!((block.start % read, block.end % read), (0, 0));
                    prop_assert!(block.end - block.start <= ROOM);
                    prop_assert!(block.start <= wanted.start && wanted.end <= block.end);
                    prop_assert!(wanted.start - block.start < read && block.end - wanted.end < read);
                    prop_assert!(overread || block == wanted);
                    wanted
                }
                ReadStep::Buffered(piece) => {
                    prop_assert!(!overread);
                    // Never more than the two edges.
                    prop_assert!(piece.end - piece.start < read);
                    piece
                }
            };
            prop_assert_eq!(done.start, rest.start);
            prop_assert!(done.start < done.end && done.end <= rest.end);
            rest.start = done.end;
            steps += 1;
        }
        prop_assert!(steps as u64 <= len / ROOM + 4, "{} steps", steps);
    }

    #[test]
    fn parts_of_a_write_are_the_write_and_share_no_page(offset in place(), len in 0..200_000u64, boundary in block()) {
        let boundary = boundary.max(4096);
        let range = offset..offset + len;
        let WriteParts { head, body, tail } = write_parts(&range, boundary);
        prop_assert_eq!((head.start, head.end, body.end, tail.end), (range.start, body.start, tail.start, range.end));
        if body.is_empty() {
            prop_assert!(tail.is_empty());
        } else {
            prop_assert_eq!((body.start % boundary, body.end % boundary), (0, 0));
            prop_assert!(head.end - head.start < boundary && tail.end - tail.start < boundary);
        }
    }
}
