//! The journal of a copy: of what it is, and which of its pieces are written, with a checksum of each. It is a file of
//! lines, each with a checksum of its own, so that whatever a crash leaves of it is true up to where it stops being one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::leftover;
use super::pump::LARGEST;
use super::subject::Subject;

/// A piece of a copy that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written {
    pub(super) range: Range<u64>,
    /// CRC-32 of the bytes as they came.
    pub(super) checksum: u32,
}

impl Written {
    pub(super) fn len(&self) -> usize {
        // At most `LARGEST`, so it is a `usize`.
        (self.range.end - self.range.start) as usize
    }
}

/// A file called `DST.kvik-journal`. Dropping it removes it. Only who holds the lock of the part makes, reads or removes it.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    path: PathBuf,
    remove: bool,
}

impl Journal {
    /// A new one, in the place of whatever an earlier copy left.
    pub(super) fn create(path: &Path, subject: &Subject) -> io::Result<Journal> {
        remove(path)?;
        let mut options = OpenOptions::new();
        let new = options.append(true).create_new(true).mode(0o600);
        let mut journal = Journal {
            file: new.open(path)?,
            path: path.to_owned(),
            remove: true,
        };
        let header = serde_json::to_string(subject)?;
        journal.file.write_all(line(&header).as_bytes())?;
        Ok(journal)
    }

    /// The one that an earlier copy of `subject` left, and the pieces that it tells of; else why it is of no use.
    pub(super) fn take_up(
        path: &Path,
        subject: &Subject,
    ) -> Result<(Journal, Vec<Written>), String> {
        let mut options = OpenOptions::new();
        let left = options
            .read(true)
            .append(true)
            .custom_flags(leftover::FLAGS);
        let mut file = match left.open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err("it has no journal".to_owned());
            }
            Err(error) => return Err(format!("its journal cannot be opened: {error}")),
        };
        if !file.metadata().is_ok_and(|facts| leftover::is_ours(&facts)) {
            return Err("others may have written to its journal".to_owned());
        }
        let mut bytes = Vec::new();
        let read = (&mut file).take(LONGEST).read_to_end(&mut bytes);
        let parsed = read.ok().and_then(|_| parse(&bytes));
        let Some((found, written, end)) = parsed else {
            return Err("its journal cannot be read".to_owned());
        };
        if let Some(what) = subject.differs_from(&found) {
            return Err(what.to_owned());
        }
        // Whatever else is there is no line, and nothing is to be written behind it.
        file.set_len(end as u64)
            .map_err(|error| format!("its journal cannot be written to: {error}"))?;
        let path = path.to_owned();
        let journal = Journal {
            file,
            path,
            remove: true,
        };
        Ok((journal, written))
    }

    /// Adds pieces whose bytes are written.
    pub(super) fn note(&mut self, pieces: &[Written]) -> io::Result<()> {
        let lines: String = pieces
            .iter()
            .map(|piece| {
                line(&format!(
                    "{} {} {:08x}",
                    piece.range.start, piece.range.end, piece.checksum
                ))
            })
            .collect();
        self.file.write_all(lines.as_bytes())
    }

    /// Leaves it where it is.
    pub(super) fn keep(mut self) {
        self.remove = false;
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if self.remove {
            // Without its part, which goes as well, it means nothing.
            let _ = remove(&self.path);
        }
    }
}

/// Removes what has the name of a journal, if anything has.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// A line of a journal: its checksum and what it says.
fn line(text: &str) -> String {
    format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes()))
}

/// What a journal says, as far as its lines are whole, and where they end. `None` if not even its first line is, or if
/// they contradict each other.
fn parse(bytes: &[u8]) -> Option<(Subject, Vec<Written>, usize)> {
    let mut end = 0;
    let mut lines = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map_while(|line| {
            let text = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
            let (sum, text) = text.split_once(' ')?;
            let sum = u32::from_str_radix(sum, 16).ok()?;
            (sum == crc32fast::hash(text.as_bytes())).then_some((text, line.len()))
        });
    let (header, len) = lines.next()?;
    let subject: Subject = serde_json::from_str(header).ok()?;
    end += len;
    let mut written = Vec::new();
    for (text, len) in lines {
        written.push(piece(text).filter(|piece| piece.range.end <= subject.size)?);
        end += len;
    }
    written.sort_by_key(|piece| piece.range.start);
    let disjoint = written
        .windows(2)
        .all(|pair| pair[0].range.end <= pair[1].range.start);
    disjoint.then_some((subject, written, end))
}

fn piece(text: &str) -> Option<Written> {
    let mut words = text.split(' ');
    let range: Range<u64> = words.next()?.parse().ok()?..words.next()?.parse().ok()?;
    let checksum = u32::from_str_radix(words.next()?, 16).ok()?;
    let whole = words.next().is_none() && !range.is_empty();
    let whole = whole && range.end - range.start <= LARGEST;
    whole.then_some(Written { range, checksum })
}

// A million pieces and more; nobody writes a longer one.
const LONGEST: u64 = 64 << 20;

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
