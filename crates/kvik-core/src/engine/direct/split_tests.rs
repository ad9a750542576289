//! What once could break: a gap or an overlap between head, body and tail, a step that makes no way, a call that the
//! kernel refuses, a page that is written by two ways.

use proptest::prelude::*;

use super::*;

const ROOM: u64 = 64 << 10;
const LIMITS: Limits = Limits {
    room: ROOM,
    longest: u64::MAX,
};

fn alignment(read: u64, memory: u64) -> Alignment {
    Alignment {
        memory,
        read,
        write: read,
        boundary: read.max(4096),
    }
}

#[track_caller]
fn check(rest: Range<u64>, address: usize, edges: Edges, expected: Piece) {
    check_in_file(u64::MAX, rest, address, edges, expected);
}

#[track_caller]
fn check_in_file(file_end: u64, rest: Range<u64>, address: usize, edges: Edges, expected: Piece) {
    let rules = alignment(512, 512).reads(edges, LIMITS, file_end);
    let found = first_piece(&rest, address, &rules);
    assert_eq!(found, expected, "{rest:?} to {address} with {edges:?}");
}

fn through(block: Range<u64>, wanted: Range<u64>) -> Piece {
    Piece::Through { block, wanted }
}

#[test]
fn reads_go_in_place_where_memory_and_file_agree() {
    use Edges::{Buffered, Overread};
    use Piece::InPlace;
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
    use Piece::{Buffered, InPlace};
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
    use Piece::InPlace;
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
        Piece::Buffered(rest.clone()),
    );
    check_in_file(0, rest.clone(), 0, Overread, through(rest.clone(), rest));
}

#[test]
fn pieces_in_place_and_by_the_page_cache_are_no_longer_than_they_may_be() {
    let limits = Limits {
        longest: 8192,
        ..LIMITS
    };
    let rules = alignment(512, 512).reads(Edges::Overread, limits, u64::MAX);
    let first = |rest: Range<u64>| first_piece(&rest, 0, &rules);
    assert_eq!(first(512..LONG), Piece::InPlace(512..512 + 8192));
    assert_eq!(first(0..4096), Piece::InPlace(0..4096));
    let end = i64::MAX as u64;
    assert_eq!(
        first(end - 10_000..end),
        Piece::Buffered(end - 10_000..end - 10_000 + 8192)
    );
}

#[test]
fn the_body_of_a_write_goes_in_place_or_through_the_scratch_in_whole_blocks() {
    let rules = alignment(4096, 512).writes(LIMITS);
    let body = 4096..LONG;
    assert_eq!(
        first_piece(&body, 512, &rules),
        Piece::InPlace(body.clone())
    );
    let some = 4096..4096 + ROOM;
    assert_eq!(first_piece(&body, 16, &rules), through(some.clone(), some));
}

#[test]
fn a_block_beyond_the_largest_offset_is_not_asked_for() {
    let end = i64::MAX as u64;
    for edges in [Edges::Overread, Edges::Buffered] {
        check(end - 5..end, 0, edges, Piece::Buffered(end - 5..end));
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
    fn pieces_cover_a_range_without_gap_and_the_kernel_takes_each(
        offset in place(),
        len in 1..2_000_000u64,
        skew in 0..5000usize,
        (block, memory) in (block(), proptest::sample::select(vec![4, 512, 4096])),
        longest in proptest::sample::select(vec![64 << 10, 512 << 10, u64::MAX]),
        file_end in prop_oneof![Just(u64::MAX), 0..2_500_000u64],
        overread: bool,
    ) {
        let edges = if overread { Edges::Overread } else { Edges::Buffered };
        let limits = Limits { longest, ..LIMITS };
        let rules = alignment(block, memory).reads(edges, limits, file_end);
        let address = 1 << 20 | skew;
        let mut rest = offset..offset + len;
        let mut pieces = 0;
        while !rest.is_empty() {
            let at = address + (rest.start - offset) as usize;
            let piece = first_piece(&rest, at, &rules);
            let (asked, wanted) = (piece.block(), piece.wanted());
            prop_assert!(asked.start <= wanted.start && wanted.end <= asked.end);
            match &piece {
                Piece::InPlace(_) => {
                    prop_assert_eq!((asked.start % block, asked.end % block, at as u64 % memory), (0, 0, 0));
                    prop_assert!(asked.end - asked.start <= longest && asked.end <= file_end);
                }
                Piece::Through { .. } => {
                    prop_assert_eq!((asked.start % block, asked.end % block), (0, 0));
                    prop_assert!(asked.end - asked.start <= ROOM);
                    prop_assert!(wanted.start - asked.start < block && asked.end - wanted.end < block);
                    prop_assert!(overread || asked == wanted);
                }
                Piece::Buffered(_) => {
                    prop_assert!(!overread);
                    // Never more than the two edges, and what lies behind the end.
                    prop_assert!(wanted.end - wanted.start < block || wanted.end > file_end - file_end % block);
                    prop_assert!(wanted.end - wanted.start <= longest);
                }
            }
            prop_assert_eq!(wanted.start, rest.start);
            prop_assert!(wanted.start < wanted.end && wanted.end <= rest.end);
            rest.start = wanted.end;
            pieces += 1;
        }
        prop_assert!(pieces as u64 <= len / ROOM + 4, "{} pieces", pieces);
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
