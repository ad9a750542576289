//! Times as certificates and presigned URLs write them. Pure.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::validator::YEAR_10000;

/// `YYYYMMDDHHMMSS`, and what stands between and behind these digits: `20260102T030405Z`, for instance. `None` for what is
/// no time, or lies before 1970.
pub(super) fn time(text: &str) -> Option<SystemTime> {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    if digits.len() != 14 {
        return None;
    }
    let part = |from: usize, to: usize| digits[from..to].parse::<u64>().ok();
    let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
    let (hour, minute, second) = (part(8, 10)?, part(10, 12)?, part(12, 14)?);
    let fits = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !fits {
        return None;
    }
    // Years that begin in March have the day that comes and goes at their end.
    let (year, month) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let leaps = year / 4 - year / 100 + year / 400;
    let days = 365 * year + leaps + (153 * month + 2) / 5 + day - 1;
    let seconds = (days.checked_sub(TO_1970)? * 24 + hour) * 3600 + minute * 60 + second;
    Some(UNIX_EPOCH + Duration::from_secs(seconds))
}

/// A time for people to read.
pub(super) fn shown(time: SystemTime) -> String {
    // The crate panics beyond these.
    match (UNIX_EPOCH..UNIX_EPOCH + YEAR_10000).contains(&time) {
        true => httpdate::fmt_http_date(time),
        false => "a time that no calendar here has".to_owned(),
    }
}

// From the first of March of the year 0 on.
const TO_1970: u64 = 719_468;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_were_written() {
        for (text, expected) in [
            ("19700101000000Z", "Thu, 01 Jan 1970 00:00:00 GMT"),
            ("20000229T235959Z", "Tue, 29 Feb 2000 23:59:59 GMT"),
            ("20260301T000000Z", "Sun, 01 Mar 2026 00:00:00 GMT"),
            ("99991231235959Z", "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            assert_eq!(time(text).map(shown).as_deref(), Some(expected), "{text}");
        }
        for text in ["", "2026", "20261301000000Z", "19690101000000Z", "now"] {
            assert_eq!(time(text), None, "{text}");
        }
        assert!(shown(UNIX_EPOCH - Duration::from_secs(1)).contains("no calendar"));
    }
}
