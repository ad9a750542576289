//! Numbers as people read them: sizes in powers of 1024, as the settings and the statistics write them, rates in powers of
//! 1000, as storage and links are sold.

use std::time::Duration;

/// `1.00 GiB`, `999 B`: three significant digits.
pub(crate) fn size(bytes: u64) -> String {
    scaled(
        bytes as f64,
        1024.0,
        ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"],
    )
}

/// `2.06 GB/s`; nothing sensible can be said of no time.
pub(crate) fn rate(bytes: u64, time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds <= 0.0 {
        return "-".to_owned();
    }
    scaled(
        bytes as f64 / seconds,
        1000.0,
        ["B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s", "EB/s"],
    )
}

fn scaled(mut value: f64, step: f64, units: [&str; 7]) -> String {
    let mut unit = 0;
    // Compared as printed, so that 1023.9 KiB is not shown as 1024 KiB.
    while value.round() >= step && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let digits = match value {
        _ if unit == 0 => 0,
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {}", units[unit])
}

/// `0.52 s`, `3 min 20 s`.
pub(crate) fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 100 {
        format!("{:.2} s", time.as_secs_f64())
    } else {
        format!("{} min {} s", seconds / 60, seconds % 60)
    }
}

/// `33.3 %`; of nothing, all is there.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let value = if whole == 0 {
        100.0
    } else {
        part as f64 * 100.0 / whole as f64
    };
    format!("{value:.1} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits_or_so_and_round_into_the_next_unit() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1 << 30, "1.00 GiB"),
            (99_960 << 10, "97.6 MiB"),
            ((1 << 20) - 1, "1.00 MiB"),
            (u64::MAX, "16.0 EiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn rates_times_and_shares_read_well() {
        assert_eq!(rate(2_000_000_000, Duration::from_secs(1)), "2.00 GB/s");
        assert_eq!(rate(1, Duration::ZERO), "-");
        assert_eq!(time(Duration::from_millis(520)), "0.52 s");
        assert_eq!(time(Duration::from_secs(200)), "3 min 20 s");
        assert_eq!(percent(1, 3), "33.3 %");
        assert_eq!(percent(0, 0), "100.0 %");
    }
}
