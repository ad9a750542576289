//! Range: which bytes of a file a request asks for.

use std::ops::Range;

/// What the header `Range` comes to for a file of a known length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Whole,
    /// Not empty, and within the file.
    Part(Range<u64>),
    /// None of what was asked for exists.
    Beyond,
}

impl Wanted {
    /// `header` is the value, as in `bytes=0-1023`. What is no range of bytes is no request for a part, and neither are
    /// several ranges in one: a server may answer both with the whole file.
    pub(super) fn of(header: &str, len: u64) -> Self {
        let Some((unit, set)) = header.split_once('=') else {
            return Wanted::Whole;
        };
        let Some((first, last)) = set.trim().split_once('-') else {
            return Wanted::Whole;
        };
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return Wanted::Whole;
        }
        let range = match (number(first), number(last)) {
            (Number::Is(first), Number::Is(last)) if first <= last => {
                first..last.saturating_add(1).min(len)
            }
            (Number::Is(first), Number::None) => first..len,
            (Number::None, Number::Is(count)) => len.saturating_sub(count)..len,
            _ => return Wanted::Whole,
        };
        if range.start < range.end {
            Wanted::Part(range)
        } else {
            Wanted::Beyond
        }
    }
}

enum Number {
    None,
    Is(u64),
    Wrong,
}

/// More than a `u64` holds lies beyond every file, as its largest value does.
fn number(text: &str) -> Number {
    if text.is_empty() {
        return Number::None;
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Number::Wrong;
    }
    Number::Is(text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(header: &str, len: u64, expected: Wanted) {
        assert_eq!(Wanted::of(header, len), expected, "{header} of {len}");
    }

    #[test]
    fn one_range_is_cut_at_the_end_of_the_file() {
        check("bytes=0-0", 10, Wanted::Part(0..1));
        check("bytes=2-5", 10, Wanted::Part(2..6));
        check("bytes=2-", 10, Wanted::Part(2..10));
        check("bytes=9-9", 10, Wanted::Part(9..10));
        check("bytes=5-99", 10, Wanted::Part(5..10));
        check("bytes=0-18446744073709551615", 10, Wanted::Part(0..10));
        check("bytes=0-99999999999999999999999", 10, Wanted::Part(0..10));
        check("Bytes = 2-5", 10, Wanted::Part(2..6));
    }

    #[test]
    fn the_last_bytes_are_those_that_there_are() {
        check("bytes=-3", 10, Wanted::Part(7..10));
        check("bytes=-10", 10, Wanted::Part(0..10));
        check("bytes=-99", 10, Wanted::Part(0..10));
        check("bytes=-0", 10, Wanted::Beyond);
    }

    #[test]
    fn a_range_that_begins_at_the_end_is_beyond() {
        check("bytes=10-", 10, Wanted::Beyond);
        check("bytes=10-12", 10, Wanted::Beyond);
        check("bytes=99999999999999999999999-", 10, Wanted::Beyond);
        check("bytes=0-", 0, Wanted::Beyond);
        check("bytes=-5", 0, Wanted::Beyond);
    }

    #[test]
    fn what_is_not_one_range_of_bytes_is_answered_whole() {
        for header in [
            "bytes=0-1,3-4",
            "bytes=5-2",
            "bytes=-",
            "bytes=",
            "bytes",
            "",
            "bytes=a-b",
            "bytes=+1-2",
            "bytes=1 - 2",
            "bytes=--1",
            "lines=0-1",
        ] {
            check(header, 10, Wanted::Whole);
        }
    }
}
