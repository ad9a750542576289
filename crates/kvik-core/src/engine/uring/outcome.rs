//! What a completion means for the piece it belongs to. Pure: a piece and a result in, bytes moved and the next step out.

use kvik_stats::Direction;
use nix::errno::Errno;

use super::cut::Rule;
use crate::engine::direct::split::Piece;

/// What to do after a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing: the piece is whole.
    Done,
    /// Ask for the rest of it.
    More,
    /// Ask for the rest of it through the page cache: there is no place to go on from past it.
    Cached,
    /// Ask for it again, for the kernel did not get to it: interrupted, or not able to without blocking.
    Again(Errno),
    /// Nothing: the data ends here.
    End,
    /// Give up: a write moved nothing, and the kernel does not say why.
    Stuck,
    /// Give up: direct I/O is not to be had for this piece.
    Refused(Errno),
    /// Give up.
    Failed(Errno),
}

/// How many of the wanted bytes were moved, from the first one on, and what to do next.
pub(super) fn judge(direction: Direction, piece: &Piece, rule: Rule, result: i32) -> (u64, Step) {
    let (asked, wanted) = (piece.block(), piece.wanted());
    let len = wanted.end - wanted.start;
    let block = match (piece, rule) {
        (Piece::Buffered(_), _) | (_, Rule::Buffered) => None,
        (_, Rule::Direct { rules, .. }) => Some(rules.block),
    };
    let Ok(count) = u64::try_from(result) else {
        let errno = Errno::from_raw(result.wrapping_neg());
        return (0, refusal(block.is_some(), errno));
    };
    let count = count.min(asked.end - asked.start);
    // Through a slot, the bytes in front of the wanted ones come first.
    let useful = count.saturating_sub(wanted.start - asked.start).min(len);
    let is_cut = block.is_some_and(|block| !count.is_multiple_of(block));
    match direction {
        _ if useful == len => (len, Step::Done),
        Direction::Read if count == 0 => (0, Step::End),
        // The end of the data, most likely. The page cache knows, and takes any offset.
        _ if is_cut => (useful, Step::Cached),
        Direction::Write if count == 0 && block.is_some() => (0, Step::Cached),
        Direction::Write if count == 0 => (0, Step::Stuck),
        _ => (useful, Step::More),
    }
}

fn refusal(is_direct: bool, errno: Errno) -> Step {
    match errno {
        Errno::EINTR | Errno::EAGAIN => Step::Again(errno),
        Errno::EINVAL if is_direct => Step::Refused(errno),
        // Of a request through the page cache: the kernel has the ring and not the request, and another engine has.
        Errno::EOPNOTSUPP => Step::Refused(errno),
        errno => Step::Failed(errno),
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::super::cut::LIMITS;
    use super::*;
    use crate::engine::direct::Edges;
    use crate::engine::direct::split::Rules;

    const DIRECT: Rule = Rule::Direct {
        rules: Rules {
            memory: 512,
            block: 512,
            edges: Edges::Overread,
            limits: LIMITS,
            file_end: u64::MAX,
        },
        boundary: 4096,
    };
    use Direction::{Read, Write};
    use Rule::Buffered;

    fn through(block: Range<u64>, wanted: Range<u64>) -> Piece {
        Piece::Through { block, wanted }
    }

    #[track_caller]
    fn check(direction: Direction, rule: Rule, piece: &Piece, rows: &[(i32, u64, Step)]) {
        for (result, moved, step) in rows {
            let found = judge(direction, piece, rule, *result);
            assert_eq!(
                found,
                (*moved, *step),
                "{direction:?} {rule:?} {piece:?} {result}"
            );
        }
    }

    #[test]
    fn short_counts_are_continued_and_zero_is_the_end_of_a_read() {
        let buffered = Piece::Buffered(10..5010);
        check(
            Read,
            Buffered,
            &buffered,
            &[
                (5000, 5000, Step::Done),
                (4999, 4999, Step::More),
                (1, 1, Step::More),
                (0, 0, Step::End),
            ],
        );
        check(
            Write,
            Buffered,
            &buffered,
            &[
                (5000, 5000, Step::Done),
                (4999, 4999, Step::More),
                (1, 1, Step::More),
                (0, 0, Step::Stuck),
            ],
        );
    }

    #[test]
    fn a_buffered_piece_of_a_direct_task_is_judged_as_what_it_is() {
        let piece = Piece::Buffered(1000..1100);
        let einval = (-(Errno::EINVAL as i32), 0, Step::Failed(Errno::EINVAL));
        check(
            Read,
            DIRECT,
            &piece,
            &[(1, 1, Step::More), (0, 0, Step::End), einval],
        );
        check(
            Write,
            DIRECT,
            &piece,
            &[(1, 1, Step::More), (0, 0, Step::Stuck), einval],
        );
    }

    #[test]
    fn direct_reads_go_on_where_a_block_is_whole_and_by_the_page_cache_where_it_is_cut() {
        check(
            Read,
            DIRECT,
            &Piece::InPlace(0..8192),
            &[
                (8192, 8192, Step::Done),
                (4096, 4096, Step::More),
                (512, 512, Step::More),
                (1000, 1000, Step::Cached),
                (1, 1, Step::Cached),
                (0, 0, Step::End),
            ],
        );
    }

    #[test]
    fn what_a_slot_read_too_much_is_not_counted() {
        check(
            Read,
            DIRECT,
            &through(0..1536, 100..1100),
            &[
                (1536, 1000, Step::Done),
                (1100, 1000, Step::Done),
                (1099, 999, Step::Cached),
                (1024, 924, Step::More),
                (512, 412, Step::More),
                (101, 1, Step::Cached),
                (100, 0, Step::Cached),
                (7, 0, Step::Cached),
                (0, 0, Step::End),
            ],
        );
    }

    #[test]
    fn direct_writes_go_on_where_a_block_is_whole_and_by_the_page_cache_where_it_is_cut() {
        check(
            Write,
            DIRECT,
            &Piece::InPlace(0..8192),
            &[
                (8192, 8192, Step::Done),
                (4096, 4096, Step::More),
                (1000, 1000, Step::Cached),
                (511, 511, Step::Cached),
                (0, 0, Step::Cached),
            ],
        );
    }

    #[test]
    fn errors_say_whether_to_ask_again_to_give_up_direct_io_or_to_give_up() {
        let again = |errno| (-(errno as i32), 0, Step::Again(errno));
        let refused = |errno| (-(errno as i32), 0, Step::Refused(errno));
        let failed = |errno| (-(errno as i32), 0, Step::Failed(errno));
        for direction in [Read, Write] {
            check(
                direction,
                DIRECT,
                &Piece::InPlace(0..4096),
                &[
                    again(Errno::EINTR),
                    again(Errno::EAGAIN),
                    refused(Errno::EINVAL),
                    refused(Errno::EOPNOTSUPP),
                    failed(Errno::EIO),
                    failed(Errno::ENOSPC),
                    failed(Errno::ECANCELED),
                ],
            );
            check(
                direction,
                Buffered,
                &Piece::Buffered(0..4096),
                &[
                    again(Errno::EINTR),
                    again(Errno::EAGAIN),
                    failed(Errno::EINVAL),
                    refused(Errno::EOPNOTSUPP),
                    failed(Errno::EIO),
                ],
            );
        }
    }

    #[test]
    fn a_result_larger_than_what_was_asked_for_counts_no_more_than_that() {
        check(
            Read,
            Buffered,
            &Piece::Buffered(0..10),
            &[
                (i32::MAX, 10, Step::Done),
                (i32::MIN, 0, Step::Failed(Errno::UnknownErrno)),
            ],
        );
    }
}
