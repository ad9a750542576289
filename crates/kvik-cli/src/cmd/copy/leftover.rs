//! What an earlier copy left in the place of a part or of its journal.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::unistd::geteuid;

use crate::Exit;
use crate::failure::{Failure, Result, show};

/// Removes the name of a part that no running kvik has locked. Its bytes are not touched, for they may have other names.
pub(super) fn remove(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err(no_file(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Failure::io("create", path, &error)),
    }
    let mut options = OpenOptions::new();
    let file = match options.read(true).custom_flags(FLAGS).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(in_the_way("open the old", path, &error)),
    };
    let inspected = file.metadata();
    let found = inspected.map_err(|error| Failure::io("inspect", path, &error))?;
    if !found.is_file() {
        return Err(no_file(path));
    }
    if is_locked(&file) {
        return Err(busy(path));
    }
    // Who holds the lock of the file that has the name, alone may take the name away; else its owner renamed it meanwhile.
    if !fs::symlink_metadata(path).is_ok_and(|named| same(&named, &found)) {
        return Ok(());
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(in_the_way("remove the old", path, &error))
        }
        _ => Ok(()),
    }
}

/// Takes the lock, if it can be had; it is held until `file` is closed.
fn is_locked(file: &File) -> bool {
    match file.try_lock() {
        Ok(()) => false,
        Err(TryLockError::WouldBlock) => true,
        // NFS locks files that are open for reading only against writers alone, which is enough to see one.
        Err(TryLockError::Error(_)) => {
            matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
        }
    }
}

pub(super) fn same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

pub(super) fn busy(path: &Path) -> Failure {
    let message = format!(
        "create {}: another kvik is copying to the same place",
        show(path)
    );
    Failure::new(Exit::Failed, "AlreadyExists", message)
        .hint("wait until it is done, or choose another name")
}

fn no_file(path: &Path) -> Failure {
    let message = format!(
        "create {}: something that is not a file has this name",
        show(path)
    );
    Failure::new(Exit::Failed, "AlreadyExists", message).hint("remove it, then copy again")
}

fn in_the_way(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::io(what, path, error)
        .hint("it may be another user's; have it removed, or give the copy another name")
}

/// Whether it is a file that nobody but this user can have open or have under another name, as long as it is looked at in
/// a file system that has users: then what is in it is what kvik wrote.
pub(super) fn is_ours(facts: &Metadata) -> bool {
    facts.is_file()
        && facts.uid() == geteuid().as_raw()
        && facts.nlink() == 1
        && facts.mode() & 0o7777 == 0o600
}

/// A link is not followed, and nothing is waited for or done to what is no file.
pub(super) const FLAGS: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
