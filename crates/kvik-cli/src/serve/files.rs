//! Files: what a path of a URL names under the folder that is served, and never anything outside of it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

use super::status::Status;
use crate::Exit;
use crate::failure::{Failure, Result, show};

/// What is served.
pub(super) enum Files {
    /// All that is in a folder, which stays the same one wherever its name leads later.
    Folder(File),
    /// One file under its own name, by which it is opened each time.
    One { path: PathBuf, name: OsString },
}

/// What a path has led to.
pub(super) enum Found {
    File {
        file: File,
        facts: Metadata,
    },
    /// To be listed by [`Found::entries`].
    Folder(Entries),
}

/// What a folder has: the names of its files with their lengths, and of its folders, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Entries {
    pub(super) all: Vec<(OsString, Entry)>,
    /// There are more than are listed.
    pub(super) more: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    File(u64),
    Folder,
    /// What it leads to is found out when it is asked for.
    Link,
}

impl Files {
    pub(super) fn at(place: &Path) -> Result<Self> {
        let failed = |error| Failure::io("serve", place, &error);
        let file = look(place).map_err(failed)?;
        let kind = file.metadata().map_err(failed)?.file_type();
        if kind.is_dir() {
            // Nobody is to find out by requests that none of its files can be read.
            fs::read_dir(place).map_err(failed)?;
            return Ok(Files::Folder(file));
        }
        let path = std::path::absolute(place).map_err(failed)?;
        match place.file_name() {
            Some(name) if kind.is_file() => {
                File::open(place).map_err(failed)?;
                let name = name.to_owned();
                Ok(Files::One { path, name })
            }
            _ => {
                let message = format!("serve {}: it is neither a folder nor a file", show(place));
                Err(Failure::new(Exit::Usage, "Misuse", message))
            }
        }
    }

    /// The encoded path of what was named: that of the folder, or of the one file.
    pub(super) fn first(&self) -> String {
        match self {
            Files::Folder(_) => "/".to_owned(),
            Files::One { name, .. } => format!("/{}", encode(name)),
        }
    }

    /// Opens what these names lead to. What must not be read is not opened, so that nobody waits for the writer of a FIFO,
    /// and no device notices.
    pub(super) fn open(&self, names: &[OsString]) -> Result<Found, Status> {
        match (self, names) {
            (Files::Folder(root), _) => {
                let mut path = by_descriptor(root);
                path.extend(names);
                let file = look(&path).map_err(|error| status(&error))?;
                // Links are followed, and where they have led is looked at afterwards: by what is open, not by its name.
                if !is_inside(&file, root).map_err(|error| status(&error))? {
                    // As if it were not there.
                    return Err(Status::NOT_FOUND);
                }
                found(&file)
            }
            (Files::One { path, name }, []) => {
                let entry = fs::metadata(path).map(|facts| Entry::File(facts.len()));
                let all = entry.into_iter().map(|entry| (name.clone(), entry));
                Ok(Found::Folder(Entries {
                    all: all.collect(),
                    more: false,
                }))
            }
            (Files::One { path, name }, [asked]) if asked == name => {
                match found(&look(path).map_err(|error| status(&error))?)? {
                    // The name leads to a folder now, which nobody offered.
                    Found::Folder(_) => Err(Status::NOT_FOUND),
                    file => Ok(file),
                }
            }
            (Files::One { .. }, _) => Err(Status::NOT_FOUND),
        }
    }
}

/// Takes hold of what is at `path` without opening it.
fn look(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH)
        .open(path)
}

/// Opens for reading what was only looked at; it is the same, whatever its name leads to by now.
fn found(looked: &File) -> Result<Found, Status> {
    let opened = |error: io::Error| status(&error);
    let kind = looked.metadata().map_err(opened)?.file_type();
    let path = by_descriptor(looked);
    if kind.is_dir() {
        return Ok(Found::Folder(entries(&path).map_err(opened)?));
    }
    if !kind.is_file() {
        return Err(Status::FORBIDDEN);
    }
    let file = File::open(path).map_err(opened)?;
    let facts = file.metadata().map_err(opened)?;
    Ok(Found::File { file, facts })
}

fn by_descriptor(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// By the names that both have now, so that a folder that moves takes its files along.
fn is_inside(file: &File, root: &File) -> io::Result<bool> {
    let (file, root) = (
        fs::read_link(by_descriptor(file))?,
        fs::read_link(by_descriptor(root))?,
    );
    Ok(file.starts_with(root))
}

fn status(error: &io::Error) -> Status {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
            Status::NOT_FOUND
        }
        io::ErrorKind::PermissionDenied => Status::FORBIDDEN,
        _ if error.raw_os_error() == Some(libc::ELOOP) => Status::NOT_FOUND,
        _ => Status::FAILED,
    }
}

fn entries(path: &Path) -> io::Result<Entries> {
    let mut entries = Entries::default();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let what = if kind.is_dir() {
            Entry::Folder
        } else if kind.is_symlink() {
            Entry::Link
        } else if kind.is_file() {
            // One that was removed meanwhile is not there.
            let Ok(facts) = entry.metadata() else {
                continue;
            };
            Entry::File(facts.len())
        } else {
            continue;
        };
        if entries.all.len() == MOST_ENTRIES {
            entries.more = true;
            break;
        }
        entries.all.push((entry.file_name(), what));
    }
    entries.all.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(entries)
}

/// A name as part of the path of a URL.
pub(super) fn encode(name: &OsStr) -> String {
    percent_encode(name.as_bytes(), ENCODED).to_string()
}

const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
// A listing is for people, and is made in memory.
const MOST_ENTRIES: usize = 10_000;

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
