//! Quantities as text, the way KvikIO writes them: the largest unit that is reached, two decimals unless they are zero.

use std::fmt;

/// Bytes in powers of 1024.
pub(crate) struct Size(pub(crate) u64);

/// Nanoseconds.
pub(crate) struct Time(pub(crate) u64);

/// Bytes per second in powers of 1000.
pub(crate) struct Rate(pub(crate) f64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        let steps = units.map(|unit| (unit, 1024.0));
        scaled(f, self.0 as f64, &steps)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"];
        let steps = units.map(|unit| (unit, 1000.0));
        scaled(f, self.0, &steps)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = [
            ("ns", 1000.0),
            ("us", 1000.0),
            ("ms", 1000.0),
            ("s", 60.0),
            ("min", 60.0),
            ("h", 24.0),
            ("d", f64::INFINITY),
        ];
        match self.0 {
            0 => f.write_str("0 s"),
            ns => scaled(f, ns as f64, &steps),
        }
    }
}

/// `value` in the largest unit that it reaches; each unit comes with how many of it make the next.
fn scaled(f: &mut fmt::Formatter<'_>, mut value: f64, units: &[(&str, f64)]) -> fmt::Result {
    let mut rest = units.iter();
    let mut unit = rest.next();
    while let (Some((_, step)), Some(next)) = (unit, rest.as_slice().first()) {
        if value < *step {
            break;
        }
        value /= step;
        unit = Some(next);
        rest.next();
    }
    let text = format!("{value:.2}");
    let unit = unit.map_or("", |(name, _)| name);
    write!(f, "{} {unit}", text.strip_suffix(".00").unwrap_or(&text))
}

/// A number with six significant digits, as C's `%g` writes it: KvikIO's JSON.
pub(crate) struct Significant(pub(crate) f64);

impl fmt::Display for Significant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.5e}", self.0);
        let Some((digits, power)) = text.split_once('e') else {
            return f.write_str(&text);
        };
        let power: i32 = power.parse().map_err(|_| fmt::Error)?;
        if (-4..6).contains(&power) {
            let decimals = usize::try_from(5 - power).unwrap_or(0);
            return f.write_str(trimmed(&format!("{:.decimals$}", self.0)));
        }
        let sign = if power < 0 { '-' } else { '+' };
        write!(f, "{}e{sign}{:02}", trimmed(digits), power.abs())
    }
}

/// Without zeros behind the point, and without a point behind which nothing is.
fn trimmed(text: &str) -> &str {
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::{Rate, Significant, Size, Time};

    // All of them as KvikIO 26.10 wrote them.
    #[test]
    fn sizes_times_and_rates_are_written_as_kvikio_writes_them() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1536, "1.50 KiB"),
            (1_048_570, "1023.99 KiB"),
            ((1 << 20) - 1, "1024 KiB"),
            ((1 << 30) - 1, "1024 MiB"),
            (1 << 60, "1 EiB"),
            (1 << 63, "8 EiB"),
        ] {
            assert_eq!(Size(bytes).to_string(), text);
        }
        for (ns, text) in [
            (0, "0 s"),
            (999, "999 ns"),
            (1_500, "1.50 us"),
            (12_345, "12.35 us"),
            (999_995, "1000 us"),
            (1_000_000, "1 ms"),
            (59_999_000_000, "60 s"),
            (60_000_000_000, "1 min"),
            (61_000_000_000, "1.02 min"),
            (7_384_000_000_000, "2.05 h"),
            (86_399_999_999_999, "24 h"),
            (86_400_000_000_000, "1 d"),
            (1_000_000_000_000_000, "11.57 d"),
            (1 << 62, "53376 d"),
        ] {
            assert_eq!(Time(ns).to_string(), text);
        }
        for (rate, text) in [
            (0.0, "0 B/s"),
            (1023.0, "1.02 kB/s"),
            (736_300_000.0, "736.30 MB/s"),
            (1_099_511_627_776.0, "1.10 TB/s"),
            (1_152_921_504_606_846_976.0, "1152.92 PB/s"),
        ] {
            assert_eq!(Rate(rate).to_string(), text);
        }
    }

    #[test]
    fn numbers_have_six_significant_digits() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.25, "0.25"),
            (1.0 / 3.0, "0.333333"),
            (1e-9, "1e-09"),
            (1.2345e-5, "1.2345e-05"),
            (567_031.0, "567031"),
            (999_999.5, "1e+06"),
            (1_048_575.0, "1.04858e+06"),
            (736_300_000.0, "7.363e+08"),
            (9.223_37e18, "9.22337e+18"),
            (1e100, "1e+100"),
        ] {
            assert_eq!(Significant(value).to_string(), text);
        }
    }
}
