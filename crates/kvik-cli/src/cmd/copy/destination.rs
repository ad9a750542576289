//! Where a copy ends up: directories, symbolic links, and the places that are refused.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::Exit;
use crate::failure::{Failure, Result, show};
use crate::url::{shown, url_of};

use super::snapshot::Snapshot;

/// The path of the new file: `destination`, or `destination/name` if that is a directory, behind any symbolic links.
pub(super) fn resolve(
    name: impl FnOnce() -> Result<OsString>,
    destination: &Path,
) -> Result<PathBuf> {
    if url_of(destination).is_some() {
        let message = format!("copy to {}: copies to URLs are planned", shown(destination));
        return Err(Failure::new(Exit::Unsupported, "Unsupported", message)
            .hint("this version copies from URLs, to files"));
    }
    let path = if destination.is_dir() {
        destination.join(name()?)
    } else if destination.as_os_str().as_bytes().ends_with(b"/") {
        let message = format!("copy to {}: no such directory", show(destination));
        return Err(Failure::new(Exit::NotFound, "NotFound", message));
    } else {
        destination.to_owned()
    };
    match fs::symlink_metadata(&path) {
        Ok(found) if found.is_symlink() => follow(&path),
        Ok(found) => regular(found, path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path),
        Err(error) => Err(Failure::io("inspect", &path, &error)),
    }
}

/// The name of the source, for a copy into a directory.
pub(super) fn name_of(source: &Path) -> Result<OsString> {
    let name = source.file_name().map(OsStr::to_owned);
    name.ok_or_else(|| Failure::usage(format!("copy {}: it has no file name", show(source))))
}

/// A rename would replace the link itself; `cp` writes to what it points to, and so do we.
fn follow(link: &Path) -> Result<PathBuf> {
    let path = fs::canonicalize(link).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::usage(format!(
            "copy to {}: the symbolic link points nowhere",
            show(link)
        ))
        .hint("remove the link, or name the file itself"),
        _ => Failure::io("follow", link, &error),
    })?;
    let found = fs::metadata(&path).map_err(|error| Failure::io("inspect", &path, &error))?;
    regular(found, path)
}

fn regular(found: fs::Metadata, path: PathBuf) -> Result<PathBuf> {
    if found.is_dir() {
        Err(Failure::new(
            Exit::Usage,
            "IsADirectory",
            format!("copy to {}: it is a directory", show(&path)),
        ))
    } else if !found.is_file() {
        Err(Failure::usage(format!(
            "copy to {}: it is not a regular file, and would be replaced by one",
            show(&path)
        ))
        .hint("`kvik cat SRC > DST` writes into a device or a pipe"))
    } else {
        Ok(path)
    }
}

/// A file cannot be copied onto itself by any of its names, nor where its own part or journal would be.
pub(super) fn refuse_itself(source: &Snapshot, source_path: &Path, path: &Path) -> Result<()> {
    if source.is(path) {
        return Err(Failure::usage(format!(
            "copy {} to {}: they are the same file",
            show(source_path),
            show(path)
        )));
    }
    let refused = |what: &str| {
        let (source, path) = (show(source_path), show(path));
        Failure::usage(format!("copy {source} to {path}: the source is {what}"))
    };
    if source.is(&part_of(path)) {
        return Err(refused("the place where the copy would be made")
            .hint("`mv` gives a kept part its final name"));
    }
    if source.is(&journal_of(path)) {
        return Err(refused("the place of the copy's journal").hint("give the copy another name"));
    }
    Ok(())
}

/// The name of a copy in the making.
pub(super) fn part_of(path: &Path) -> PathBuf {
    beside(path, ".kvik-part")
}

/// The name of what tells how far a copy is.
pub(super) fn journal_of(path: &Path) -> PathBuf {
    beside(path, ".kvik-journal")
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
