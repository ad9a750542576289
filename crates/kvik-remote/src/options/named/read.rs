//! Values of options from text. Pure.

use std::time::Duration;

use crate::location::Kind;

/// `yes` or `no`, as many programs have it.
pub(super) fn yes_or_no(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// Seconds, or a number with a unit.
pub(super) fn time(text: &str) -> Option<Duration> {
    let text = text.trim();
    let is_digit = |c: char| c.is_ascii_digit() || c == '.';
    let (number, unit) = text.split_at(text.find(|c| !is_digit(c)).unwrap_or(text.len()));
    let seconds = match unit.trim_start().to_ascii_lowercase().as_str() {
        "ms" | "millis" | "millisecond" | "milliseconds" => 0.001,
        "" | "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    Duration::try_from_secs_f64(number * seconds).ok()
}

/// A time that is not nothing.
pub(super) fn limit(text: &str) -> Option<Duration> {
    time(text).filter(|limit| !limit.is_zero())
}

/// How many, at least one.
pub(super) fn count<T: TryFrom<u64>>(text: &str) -> Option<T> {
    let count: u64 = text.trim().parse().ok()?;
    T::try_from(count).ok().filter(|_| count > 0)
}

/// Kinds with commas between them.
pub(super) fn kinds(text: &str) -> Option<Vec<Kind>> {
    text.split(',').map(|kind| kind.parse().ok()).collect()
}

/// A header in each line.
pub(super) fn headers(text: &str) -> Option<Vec<(&str, &str)>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.trim(), value.trim()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_or_have_a_unit() {
        for (text, millis) in [
            ("30", 30_000),
            ("0.5", 500),
            (" 30s ", 30_000),
            ("250 ms", 250),
            ("2m", 120_000),
            ("1 Hour", 3_600_000),
            ("0", 0),
        ] {
            assert_eq!(time(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "s",
            "-1",
            "1 s s",
            "1e3",
            "3 fortnights",
            "1.2.3",
            "inf",
        ] {
            assert_eq!(time(text), None, "{text}");
        }
        let too_long = format!("{}h", "9".repeat(30));
        assert_eq!((time(&too_long), limit("0")), (None, None));
    }

    #[test]
    fn counts_kinds_and_headers_are_taken_whole_or_not_at_all() {
        assert_eq!(count::<u32>("7"), Some(7));
        for text in ["0", "-1", "7.0", "", "4294967296"] {
            assert_eq!(count::<u32>(text), None, "{text}");
        }
        assert_eq!(
            kinds("http, S3_PUBLIC"),
            Some(vec![Kind::Http, Kind::S3Public])
        );
        assert_eq!(kinds("http,ftp"), None);
        assert_eq!(
            headers("a: b:c\n\nX-D:e\r\n"),
            Some(vec![("a", "b:c"), ("X-D", "e")])
        );
        assert_eq!(headers("a: b\nc"), None);
    }
}
