//! The files that every server has, each of a pattern that a test can make by itself.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::place::{self, Place};
use crate::process::Done;

/// Name, length and seed. The names are what URLs and keys are often got wrong with.
const FILES: [(&str, u64, u64); 10] = [
    ("empty", 0, 1),
    ("one", 1, 2),
    ("medium", (1 << 20) + 7, 3),
    ("large", 64 << 20, 4),
    ("with space", 1001, 5),
    ("plus+sign", 1002, 6),
    ("per%cent", 1003, 7),
    ("percent%20twenty", 1004, 8),
    ("unicode-ü-漢", 1005, 9),
    ("folder/inner file", 1006, 10),
];

/// The folder that they lie in.
pub(super) fn folder(place: &Place) -> PathBuf {
    place.run("fixtures")
}

pub(super) fn write(place: &Place) -> Done {
    for (name, len, seed) in FILES {
        let path = folder(place).join(name);
        place::make(path.parent().unwrap_or(&path))?;
        let written = File::create(&path).and_then(|file| {
            let mut to = BufWriter::new(file);
            for index in 0..len.div_ceil(8) {
                let left = (len - index * 8).min(8) as usize;
                to.write_all(&word(seed, index).to_le_bytes()[..left])?;
            }
            to.flush()
        });
        written.map_err(|why| format!("{}: {why}", path.display()))?;
    }
    Ok(())
}

/// Name and path of each.
pub(super) fn paths(place: &Place) -> impl Iterator<Item = (&'static str, PathBuf)> {
    let folder = folder(place);
    FILES
        .map(|(name, _, _)| (name, folder.join(name)))
        .into_iter()
}

/// What the tests are told of them.
pub(super) fn list() -> Value {
    FILES
        .iter()
        .map(|(name, len, seed)| json!({ "name": name, "len": len, "seed": seed }))
        .collect()
}

/// Every byte that may not stand in the path of a URL as it is, encoded; `/` stays.
pub(super) fn encoded(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// How long a file is.
pub(super) fn len(path: &std::path::Path) -> Done<u64> {
    fs::metadata(path)
        .map(|file| file.len())
        .map_err(|why| format!("{}: {why}", path.display()))
}

/// The pattern of tests/src/pattern.rs, which xtask does not depend on: the tests of the servers compare the two.
fn word(seed: u64, index: u64) -> u64 {
    let mut x = index
        .wrapping_add(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
        .wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded_byte_by_byte() {
        for (name, expected) in [
            ("folder/inner file", "folder/inner%20file"),
            ("percent%20twenty", "percent%2520twenty"),
            ("plus+sign", "plus%2Bsign"),
            ("ü", "%C3%BC"),
        ] {
            assert_eq!(encoded(name), expected);
        }
    }
}
