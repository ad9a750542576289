//! Span: the part of a file that `--range` names (pure).

use std::str::FromStr;

use kvik::config::ByteSize;

/// A range of bytes; without an end it goes to the end of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u64,
    /// The first byte that is not part of it.
    pub(crate) end: Option<u64>,
}

impl Span {
    /// Offset and length within a file of `size` bytes; length 0 where they do not meet.
    pub(crate) fn within(self, size: u64) -> (u64, u64) {
        let end = self.end.unwrap_or(size).min(size);
        (self.start, end.saturating_sub(self.start))
    }
}

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |part: &str| -> Result<u64, String> {
            match part.trim().parse::<ByteSize>() {
                // A size may begin with a plus sign, which would make `1++2` mean something here.
                Ok(size) if !part.contains('+') => Ok(size.bytes()),
                _ => Err(format!(
                    "`{part}` is not a number of bytes such as 4096 or 8MiB; {FORMS}"
                )),
            }
        };
        let backwards = || format!("it ends before it starts; {FORMS}");
        if let Some((start, end)) = text.split_once("..") {
            let start = if start.trim().is_empty() {
                0
            } else {
                number(start)?
            };
            let end = if end.trim().is_empty() {
                None
            } else {
                Some(number(end)?)
            };
            if end.is_some_and(|end| end < start) {
                return Err(backwards());
            }
            Ok(Span { start, end })
        } else if let Some((start, length)) = text.split_once('+') {
            let start = number(start)?;
            let end = start
                .checked_add(number(length)?)
                .ok_or_else(|| format!("it ends beyond 2^64; {FORMS}"))?;
            Ok(Span {
                start,
                end: Some(end),
            })
        } else if let Some((start, last)) = text.split_once('-') {
            let start = number(start)?;
            if last.trim().is_empty() {
                return Ok(Span { start, end: None });
            }
            let last = number(last)?;
            if last < start {
                return Err(backwards());
            }
            Ok(Span {
                start,
                end: Some(last.saturating_add(1)),
            })
        } else {
            Err(FORMS.to_owned())
        }
    }
}

const FORMS: &str =
    "write A..B (B not included), A-B (B included, as in HTTP) or A+N (N bytes from A)";

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, start: u64, end: Option<u64>) {
        assert_eq!(text.parse(), Ok(Span { start, end }), "{text}");
    }

    #[test]
    fn three_forms_and_their_open_ends_are_understood() {
        check("0..10", 0, Some(10));
        check("10..", 10, None);
        check("..10", 0, Some(10));
        check("..", 0, None);
        check("5..5", 5, Some(5));
        check("0-9", 0, Some(10));
        check("7-7", 7, Some(8));
        check("7-", 7, None);
        check("100+28", 100, Some(128));
        check("1MiB+4KiB", 1 << 20, Some((1 << 20) + 4096));
        check("0-18446744073709551615", 0, Some(u64::MAX));
    }

    #[test]
    fn a_range_that_cannot_be_is_refused_with_the_forms() {
        for text in [
            "",
            "10",
            "9..3",
            "9-3",
            "-5",
            "+5",
            "a..b",
            "0..-1",
            "1+2+3",
            "18446744073709551615+1",
        ] {
            let message = text.parse::<Span>().expect_err(text);
            assert!(message.contains("A+N"), "{text}: {message}");
        }
    }

    #[test]
    fn a_span_is_clipped_to_the_file() {
        assert_eq!(
            Span {
                start: 2,
                end: None
            }
            .within(10),
            (2, 8)
        );
        assert_eq!(
            Span {
                start: 2,
                end: Some(50)
            }
            .within(10),
            (2, 8)
        );
        assert_eq!(
            Span {
                start: 12,
                end: Some(50)
            }
            .within(10),
            (12, 0)
        );
        assert_eq!(
            Span {
                start: 3,
                end: Some(3)
            }
            .within(10),
            (3, 0)
        );
    }
}
