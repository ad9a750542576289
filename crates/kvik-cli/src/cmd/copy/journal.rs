//! The journal of a copy: of what it is, and which of its pieces are written, with a checksum of each. It is a file of
//! lines, each with a checksum of its own, so that whatever a crash leaves of it is true up to where it stops being one.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

use crate::Exit;
use crate::failure::{Failure, Result, show};

use super::leftover::{self, same};
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
    /// A new one, where nothing has its name.
    pub(super) fn create(path: &Path, subject: &Subject) -> io::Result<Journal> {
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
    ///
    /// # Errors
    /// It could not be looked at, which may be otherwise the next time, or it is none of kvik's.
    pub(super) fn take_up(
        path: &Path,
        subject: &Subject,
    ) -> Result<Result<(Journal, Vec<Written>), String>> {
        if !is_left(path)? {
            return Ok(Err("it has no journal".to_owned()));
        }
        let mut options = OpenOptions::new();
        let left = options
            .read(true)
            .append(true)
            .custom_flags(leftover::FLAGS);
        let failed = |what| move |error| Failure::io(what, path, &error);
        let mut file = left.open(path).map_err(failed("open"))?;
        let facts = file.metadata().map_err(failed("inspect"))?;
        if !leftover::is_ours(&facts) {
            return Ok(Err("others may have written to its journal".to_owned()));
        }
        let mut bytes = Vec::new();
        let read = (&mut file).take(LONGEST).read_to_end(&mut bytes);
        read.map_err(failed("read"))?;
        let Some((found, written, end)) = parse(&bytes) else {
            return Ok(Err("its journal cannot be read".to_owned()));
        };
        if let Some(what) = subject.differs_from(&found) {
            return Ok(Err(what.to_owned()));
        }
        // Whatever else is there is no line, and nothing is to be written behind it.
        file.set_len(end as u64).map_err(failed("cut"))?;
        let path = path.to_owned();
        let journal = Journal {
            file,
            path,
            remove: true,
        };
        Ok(Ok((journal, written)))
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
        let own = self.file.metadata();
        let is_named = || {
            fs::symlink_metadata(&self.path)
                .is_ok_and(|named| own.is_ok_and(|own| same(&own, &named)))
        };
        if self.remove && is_named() {
            // Without its part, which goes as well, it means nothing.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes the journal that an earlier copy left, if there is one.
pub(super) fn remove_left(path: &Path) -> Result<()> {
    if !is_left(path)? {
        return Ok(());
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::io("remove the old", path, &error))
        }
        _ => Ok(()),
    }
}

/// Whether an earlier copy left a journal there.
///
/// # Errors
/// What is there was not made by a kvik of this user, so that it is neither believed nor removed.
pub(super) fn is_left(path: &Path) -> Result<bool> {
    let failed = |error| Failure::io("inspect", path, &error);
    // Looked at before it is opened: opening a device may do something to it.
    match fs::symlink_metadata(path) {
        Ok(found) if is_file_of_ours(&found) => {}
        Ok(_) => return Err(foreign(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed(error)),
    }
    let mut options = OpenOptions::new();
    let file = match options.read(true).custom_flags(leftover::FLAGS).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed(error)),
    };
    let facts = file.metadata().map_err(failed)?;
    let mut begin = Vec::new();
    let read = file.take(LONGEST_HEADER).read_to_end(&mut begin);
    read.map_err(failed)?;
    // A crash right after it was made leaves nothing of it, or zeros.
    let is_blank = facts.len() <= LONGEST_HEADER && begin.iter().all(|byte| *byte == 0);
    match is_file_of_ours(&facts) && (is_blank || has_header(&begin)) {
        true => Ok(true),
        false => Err(foreign(path)),
    }
}

fn is_file_of_ours(facts: &Metadata) -> bool {
    facts.is_file() && facts.uid() == geteuid().as_raw()
}

fn has_header(bytes: &[u8]) -> bool {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    end.is_some_and(|end| parse(&bytes[..=end]).is_some())
}

fn foreign(path: &Path) -> Failure {
    let message = format!(
        "create {}: something that is no journal of kvik's has this name",
        show(path)
    );
    Failure::new(Exit::Failed, "AlreadyExists", message)
        .hint("give it another name, or the copy, then copy again")
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

// A version, a size and two digests are far shorter.
const LONGEST_HEADER: u64 = 4 << 10;
// A million pieces and more; nobody writes a longer one.
const LONGEST: u64 = 64 << 20;

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
