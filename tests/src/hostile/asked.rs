//! What a client asks.

use std::io::{self, Read};
use std::ops::Range;

/// A request.
#[derive(Clone, Debug)]
pub struct Asked {
    /// How many came before it.
    pub number: usize,
    /// The number of the connection by which it came.
    pub connection: u64,
    /// What stands in its first line, byte for byte.
    pub path: String,
    /// Its headers, names in lower case.
    pub headers: Vec<(String, String)>,
}

impl Asked {
    /// The first header of this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The bytes asked for, if it is a range of them.
    #[must_use]
    pub fn range(&self) -> Option<Range<usize>> {
        let range = self.header("range")?.strip_prefix("bytes=")?;
        let (first, last) = range.split_once('-')?;
        let last = last.parse::<usize>().unwrap_or(usize::MAX - 1);
        Some(first.parse().ok()?..last + 1)
    }
}

/// Its path and its headers.
type Head = (String, Vec<(String, String)>);

/// Reads a head; `None` if the client has gone.
pub(super) fn read(stream: &mut impl Read) -> io::Result<Option<Head>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte)? == 0 {
            return Ok(None);
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.lines();
    let first = lines.next().unwrap_or_default();
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_ascii_lowercase(), value.trim().to_owned()))
    };
    Ok(Some((path, lines.filter_map(header).collect())))
}
