//! [`ByteSize`]: a number of bytes that can be written with a unit.

use std::fmt;
use std::str::FromStr;

use crate::error::ParseValueError;

/// A number of bytes.
///
/// Written as a whole number and an optional unit, with or without a blank between them, in any case: `4194304`, `4096 B`,
/// `64k`, `64 KiB`, `8MiB`, `1g`, `2 TiB`. All units count in 1024s. `KB`, `MB`, `GB` and `TB` are refused, since half of
/// their users mean 1000s. Printed in the largest unit that divides it.
///
/// # Example: a size with and without a unit
///
/// ```
/// use kvik_config::ByteSize;
///
/// let size: ByteSize = "8MiB".parse()?;
/// assert_eq!(size, ByteSize::mib(8));
/// assert_eq!(size.bytes(), 8_388_608);
/// assert_eq!(size.to_string(), "8 MiB");
/// assert!("8MB".parse::<ByteSize>().is_err());
/// # Ok::<(), kvik_config::ParseValueError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ByteSize(u64);

impl ByteSize {
    /// So many bytes.
    #[must_use]
    pub const fn new(bytes: u64) -> ByteSize {
        ByteSize(bytes)
    }

    /// So many times 1024 bytes; stays at `u64::MAX` where that is exceeded.
    #[must_use]
    pub const fn kib(n: u64) -> ByteSize {
        ByteSize(n.saturating_mul(1 << 10))
    }

    /// So many times 1024² bytes; stays at `u64::MAX` where that is exceeded.
    #[must_use]
    pub const fn mib(n: u64) -> ByteSize {
        ByteSize(n.saturating_mul(1 << 20))
    }

    /// So many times 1024³ bytes; stays at `u64::MAX` where that is exceeded.
    #[must_use]
    pub const fn gib(n: u64) -> ByteSize {
        ByteSize(n.saturating_mul(1 << 30))
    }

    /// The number of bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteSize {
    type Err = ParseValueError;

    fn from_str(text: &str) -> Result<ByteSize, ParseValueError> {
        parse(text.trim()).ok_or_else(|| ParseValueError::new(text, EXPECTED))
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, bytes) = PRINTED
            .into_iter()
            .find(|(_, bytes)| self.0 != 0 && self.0.is_multiple_of(*bytes))
            .unwrap_or(("B", 1));
        f.pad(&format!("{} {unit}", self.0 / bytes))
    }
}

impl From<u64> for ByteSize {
    fn from(bytes: u64) -> ByteSize {
        ByteSize(bytes)
    }
}

fn parse(text: &str) -> Option<ByteSize> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '+')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        "t" | "tib" => 40,
        _ => return None,
    };
    number
        .parse::<u64>()
        .ok()?
        .checked_mul(1 << shift)
        .map(ByteSize)
}

pub(crate) const SPELLINGS: &str = "such as 4194304, 4MiB or 64 KiB (K, M, G, T count in 1024s)";

const EXPECTED: &str = "a size, such as 4194304, 4MiB or 64 KiB (K, M, G, T count in 1024s)";

const PRINTED: [(&str, u64); 4] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_are_read_with_every_unit() {
        #[track_caller]
        fn check(text: &str, bytes: u64) {
            assert_eq!(text.parse(), Ok(ByteSize::new(bytes)), "{text:?}");
        }
        check("0", 0);
        check("4194304", 4_194_304);
        check("+4", 4);
        check(" 4 ", 4);
        check("4b", 4);
        check("4 B", 4);
        check("64k", 65_536);
        check("64 KiB", 65_536);
        check("4MiB", 4_194_304);
        check("4m", 4_194_304);
        check("1\tGIB", 1 << 30);
        check("2 TiB", 2 << 40);
        // KvikIO reads 32-bit integers from the environment and refuses this one.
        check("4294967296", 1 << 32);
        check("18446744073709551615", u64::MAX);
    }

    #[test]
    fn nothing_is_half_parsed() {
        #[track_caller]
        fn check(text: &str) {
            assert_eq!(
                text.parse::<ByteSize>(),
                Err(ParseValueError::new(text, EXPECTED))
            );
        }
        for text in [
            "", " ", "abc", "4abc", "3.7", "1.5GiB", "0x10", "-1", "4 4", "4MiB4", "KiB", "+",
            "++4", "4+4", "4 M iB", "4_096",
        ] {
            check(text);
        }
        // Ambiguous units, and sizes beyond 64 bits.
        for text in [
            "4KB",
            "4MB",
            "4GB",
            "4kB",
            "18446744073709551616",
            "18014398509481984 KiB",
        ] {
            check(text);
        }
    }

    #[test]
    fn constructors_stay_at_the_largest_size() {
        assert_eq!(ByteSize::gib(u64::MAX), ByteSize::new(u64::MAX));
        assert_eq!(ByteSize::kib(2), ByteSize::new(2048));
    }

    proptest! {
        #[test]
        fn a_printed_size_is_read_as_itself(bytes: u64, shift in 0_u32..64) {
            for size in [ByteSize(bytes), ByteSize(bytes >> shift), ByteSize((bytes >> shift) << shift)] {
                prop_assert_eq!(size.to_string().parse(), Ok(size));
                prop_assert_eq!(size.bytes().to_string().parse(), Ok(size));
            }
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC*") {
            let _ = text.parse::<ByteSize>();
        }
    }
}
