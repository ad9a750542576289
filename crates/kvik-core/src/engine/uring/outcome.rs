//! What a completion means for the piece it belongs to. Pure: a piece and a result in, bytes moved and the next step out.

use kvik_stats::Direction;
use nix::errno::Errno;

use super::cut::{Piece, Rule, down};

/// What to do after a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing: the piece is whole.
    Done,
    /// Ask for the rest of it.
    More,
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
    let wanted = piece.wanted.end - piece.wanted.start;
    let block = match rule {
        Rule::Buffered => 1,
        Rule::Direct { block, .. } => block,
    };
    let Ok(count) = u64::try_from(result) else {
        return (0, refusal(rule, Errno::from_raw(result.wrapping_neg())));
    };
    let count = count.min(piece.len());
    // Through a slot, the bytes in front of the wanted ones come first.
    let useful = count
        .saturating_sub(piece.wanted.start - piece.block.start)
        .min(wanted);
    match direction {
        _ if useful == wanted => (wanted, Step::Done),
        Direction::Read if count == 0 => (0, Step::End),
        // Direct I/O is cut within a block only by the end of the data, and cannot be continued from there.
        Direction::Read if count % block != 0 => (useful, Step::End),
        Direction::Read => (useful, Step::More),
        Direction::Write if count == 0 => (0, Step::Stuck),
        // Continued from the last whole block; the part behind it is written again.
        Direction::Write => match down(count, block) {
            0 => (0, Step::Refused(Errno::EINVAL)),
            whole => (whole, Step::More),
        },
    }
}

fn refusal(rule: Rule, errno: Errno) -> Step {
    match (errno, rule) {
        (Errno::EINTR | Errno::EAGAIN, _) => Step::Again(errno),
        (Errno::EINVAL | Errno::EOPNOTSUPP, Rule::Direct { .. }) => Step::Refused(errno),
        // The kernel has the ring and not the request: another engine has.
        (Errno::EOPNOTSUPP, Rule::Buffered) => Step::Refused(errno),
        (errno, _) => Step::Failed(errno),
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    const DIRECT: Rule = Rule::Direct {
        memory: 512,
        block: 512,
        whole: u64::MAX,
    };
    use Direction::{Read, Write};
    use Rule::Buffered;

    fn piece(block: Range<u64>, wanted: Range<u64>) -> Piece {
        Piece {
            through_slot: block != wanted,
            block,
            wanted,
        }
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
        let buffered = piece(10..5010, 10..5010);
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
    fn direct_reads_end_where_a_block_is_cut_and_go_on_where_it_is_whole() {
        check(
            Read,
            DIRECT,
            &piece(0..8192, 0..8192),
            &[
                (8192, 8192, Step::Done),
                (4096, 4096, Step::More),
                (512, 512, Step::More),
                (1000, 1000, Step::End),
                (1, 1, Step::End),
                (0, 0, Step::End),
            ],
        );
    }

    #[test]
    fn what_a_slot_read_too_much_is_not_counted() {
        check(
            Read,
            DIRECT,
            &piece(0..1536, 100..1100),
            &[
                (1536, 1000, Step::Done),
                (1100, 1000, Step::Done),
                (1099, 999, Step::End),
                (1024, 924, Step::More),
                (512, 412, Step::More),
                (101, 1, Step::End),
                (100, 0, Step::End),
                (7, 0, Step::End),
                (0, 0, Step::End),
            ],
        );
    }

    #[test]
    fn direct_writes_go_on_from_the_last_whole_block() {
        check(
            Write,
            DIRECT,
            &piece(0..8192, 0..8192),
            &[
                (8192, 8192, Step::Done),
                (4096, 4096, Step::More),
                (1000, 512, Step::More),
                (511, 0, Step::Refused(Errno::EINVAL)),
                (0, 0, Step::Stuck),
            ],
        );
    }

    #[test]
    fn errors_say_whether_to_ask_again_to_give_up_direct_io_or_to_give_up() {
        let again = |errno| (-(errno as i32), 0, Step::Again(errno));
        let refused = |errno| (-(errno as i32), 0, Step::Refused(errno));
        let failed = |errno| (-(errno as i32), 0, Step::Failed(errno));
        for direction in [Read, Write] {
            let whole = piece(0..4096, 0..4096);
            check(
                direction,
                DIRECT,
                &whole,
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
                &whole,
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
            &piece(0..10, 0..10),
            &[
                (i32::MAX, 10, Step::Done),
                (i32::MIN, 0, Step::Failed(Errno::UnknownErrno)),
            ],
        );
    }
}
