//! Part: the copy while it is made, beside its final place, locked, and gone again unless it is published or kept.
//!
//! It is a file that this copy created, or one that an earlier copy of the same user created and nobody else can have open.
//! Whatever else has its name is never written to, nor are its mode and owner touched: the name may be a hard link of
//! somebody's file, or a file that somebody else made and holds open.

use std::fs::{self, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use kvik::FileHandle;

use crate::Exit;
use crate::failure::{Failure, Result, show};

use super::destination::{journal_of, part_of};
use super::journal;
use super::leftover::{self, busy, same};
use super::snapshot::inspect;

/// A file called `DST.kvik-part`. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Part {
    handle: FileHandle,
    // Closed after `handle`, so that nobody removes the part as a leftover while it may still be written.
    made: Made,
}

/// The file as it was created, locked, and its name.
#[derive(Debug)]
struct Made {
    file: File,
    path: PathBuf,
    /// Not so in file systems without locks.
    is_locked: bool,
    remove: bool,
}

impl Part {
    /// Creates the part of `destination`; one that an earlier copy left makes room, one in use is refused.
    pub(super) fn create(destination: &Path) -> Result<Self> {
        let (path, journal) = (part_of(destination), journal_of(destination));
        // First, so that what is refused costs nobody an earlier part.
        journal::is_left(&journal)?;
        for _ in 0..ATTEMPTS {
            leftover::remove(&path)?;
            // Whoever is not the first to create, to lock, or loses the name in between, looks again who has it now.
            if let Some(made) = Made::create(&path)? {
                // It tells of a part that is gone.
                journal::remove_left(&journal)?;
                return Part::open(made);
            }
        }
        Err(busy(&path))
    }

    /// The part that an earlier copy left, with all that is in it; `None` if there is none, or if it may hold what no kvik
    /// of this user wrote. One in use is refused.
    pub(super) fn take_up(destination: &Path) -> Result<Option<Self>> {
        let path = part_of(destination);
        // Looked at before it is opened: opening a device may do something to it.
        if !fs::symlink_metadata(&path).is_ok_and(|found| leftover::is_ours(&found)) {
            return Ok(None);
        }
        let mut options = OpenOptions::new();
        let left = options.read(true).write(true).custom_flags(leftover::FLAGS);
        let file = match left.open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Failure::io("open", &path, &error)),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(busy(&path)),
            // Where there are no locks, somebody may be writing to it.
            Err(TryLockError::Error(_)) => return Ok(None),
        }
        let facts = file.metadata();
        let facts = facts.map_err(|error| Failure::io("inspect", &path, &error))?;
        let made = Made {
            file,
            path,
            is_locked: true,
            remove: false,
        };
        if !leftover::is_ours(&facts) || !made.is_named(&made.path) {
            return Ok(None);
        }
        // What cannot be opened now, for want of descriptors for instance, is worth as much to the next copy.
        let mut part = Part::open(made)?;
        part.made.remove = true;
        Ok(Some(part))
    }

    fn open(made: Made) -> Result<Self> {
        let handle = FileHandle::options()
            .read(true)
            .write(true)
            .open(&made.path)?;
        let facts = inspect(&handle, &made.path)?;
        if !made.is(&facts) {
            return Err(replaced(&made.path));
        }
        Ok(Part { handle, made })
    }

    /// Why no other copy could take it up, if it was left as it is.
    pub(super) fn why_not_lasting(&self) -> Option<&'static str> {
        let facts = self.made.file.metadata();
        match (self.made.is_locked, facts) {
            (false, _) => Some("this file system has no locks"),
            (true, Ok(facts)) if leftover::is_ours(&facts) => None,
            (true, _) => Some("this file system does not keep a file for its owner alone"),
        }
    }

    pub(super) fn handle(&self) -> &FileHandle {
        &self.handle
    }

    pub(super) fn path(&self) -> &Path {
        &self.made.path
    }

    pub(super) fn set_mode(&self, mode: u32) -> Result<()> {
        let done = self.made.file.set_permissions(Permissions::from_mode(mode));
        done.map_err(|error| Failure::io("set the mode of", self.path(), &error))
    }

    /// Gives the part its final name, in one step; with `sync` the name, too, survives a power cut.
    pub(super) fn publish(mut self, destination: &Path, sync: bool) -> Result<()> {
        // In a folder where others may rename, too, the name may mean another file by now. Those could as well replace the
        // copy a moment after the rename, and so may another kvik, so that nothing is looked at then.
        if !self.made.is_named(self.path()) {
            return Err(replaced(self.path()));
        }
        let renamed = fs::rename(self.path(), destination);
        renamed.map_err(|error| Failure::io("rename to", destination, &error))?;
        self.made.remove = false;
        if sync {
            let folder = match destination.parent() {
                Some(folder) if !folder.as_os_str().is_empty() => folder,
                _ => Path::new("."),
            };
            // A folder that may be written but not read cannot be opened, and so not be synced; the copy is there.
            match File::open(folder).and_then(|folder| folder.sync_all()) {
                Err(error) if error.kind() != io::ErrorKind::PermissionDenied => {
                    return Err(Failure::io("sync", folder, &error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Leaves the part where it is.
    pub(super) fn keep(mut self) {
        self.made.remove = false;
    }
}

impl Made {
    /// A new file, readable by its owner alone until the mode of the source is set. `None` if somebody else was faster.
    fn create(path: &Path) -> Result<Option<Self>> {
        let mut options = OpenOptions::new();
        // Exclusive creation follows no link.
        let new = options.read(true).write(true).create_new(true).mode(0o600);
        let file = match new.open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            Err(error) => return Err(Failure::io("create", path, &error)),
        };
        // Before it is locked, another kvik may take it for a leftover, and remove it.
        let is_locked = match file.try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => return Ok(None),
            // File systems without locks: two copies to one place are then the caller's business.
            Err(TryLockError::Error(_)) => false,
        };
        let mut made = Made {
            file,
            path: path.to_owned(),
            is_locked,
            remove: false,
        };
        made.remove = made.is_named(path);
        Ok(made.remove.then_some(made))
    }

    fn is_named(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|named| self.is(&named))
    }

    fn is(&self, facts: &Metadata) -> bool {
        self.file.metadata().is_ok_and(|own| same(&own, facts))
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if self.remove && self.is_named(&self.path) {
            // There is nobody left to tell, and the copy has failed already.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn replaced(path: &Path) -> Failure {
    let message = format!(
        "rename to {}: somebody else put another file there in the same moment; it is not the copy",
        show(path)
    );
    Failure::new(Exit::Integrity, "Changed", message)
        .hint("copy into a folder that only you may write to")
}

// More rounds than this lose only to somebody who means it.
const ATTEMPTS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_part_is_gone_and_a_kept_one_makes_room_for_a_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b");
        let part = Part::create(&path).unwrap();
        assert!(part.path().ends_with("b.kvik-part"));
        let name = part.path().to_owned();
        drop(part);
        assert!(!name.exists());

        let part = Part::create(&path).unwrap();
        part.handle().write_all_at(b"leftover", 0).unwrap();
        part.keep();
        assert_eq!(fs::read(&name).unwrap(), b"leftover");
        let left = File::open(&name).unwrap();
        let part = Part::create(&path).unwrap();
        assert_eq!(fs::read(&name).unwrap(), b"");
        assert!(!part.made.is(&left.metadata().unwrap()));
        part.handle().write_all_at(b"new", 0).unwrap();
        part.publish(&path, true).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(!name.exists());
        assert_eq!(io::read_to_string(left).unwrap(), "leftover");
    }

    #[test]
    fn a_part_in_use_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b");
        let first = Part::create(&path).unwrap();
        first.handle().write_all_at(b"first", 0).unwrap();
        let second = Part::create(&path).unwrap_err();
        assert!(
            second.message().contains("another kvik"),
            "{}",
            second.message()
        );
        assert_eq!(fs::read(first.path()).unwrap(), b"first");
    }

    #[test]
    fn only_a_part_that_nobody_else_can_have_written_to_is_taken_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b");
        assert!(Part::take_up(&path).unwrap().is_none());
        let part = Part::create(&path).unwrap();
        part.handle().write_all_at(b"left", 0).unwrap();
        let failure = Part::take_up(&path).unwrap_err();
        assert!(failure.message().contains("another kvik"));
        let name = part.path().to_owned();
        part.keep();

        let (hard, soft) = (
            folder.path().join("hard"),
            folder.path().join("b.kvik-soft"),
        );
        fs::hard_link(&name, &hard).unwrap();
        assert!(Part::take_up(&path).unwrap().is_none());
        fs::remove_file(&hard).unwrap();
        fs::set_permissions(&name, Permissions::from_mode(0o644)).unwrap();
        assert!(Part::take_up(&path).unwrap().is_none());
        fs::set_permissions(&name, Permissions::from_mode(0o600)).unwrap();
        fs::rename(&name, &soft).unwrap();
        std::os::unix::fs::symlink(&soft, &name).unwrap();
        assert!(Part::take_up(&path).unwrap().is_none());
        fs::rename(&soft, &name).unwrap();
        assert_eq!(fs::read(&name).unwrap(), b"left");

        let part = Part::take_up(&path).unwrap().unwrap();
        part.handle().write_all_at(b" over", 4).unwrap();
        part.publish(&path, false).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"left over");
        assert!(!name.exists());
    }

    #[test]
    fn a_part_that_no_other_copy_would_take_up_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let mut part = Part::create(&folder.path().join("b")).unwrap();
        assert_eq!(part.why_not_lasting(), None);
        // As file systems without users have it.
        part.set_mode(0o755).unwrap();
        let why = part.why_not_lasting().unwrap();
        assert!(why.contains("for its owner alone"), "{why}");
        part.set_mode(0o600).unwrap();
        part.made.is_locked = false;
        let why = part.why_not_lasting().unwrap();
        assert!(why.contains("no locks"), "{why}");
    }

    #[test]
    fn a_link_in_the_place_of_the_part_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, b"precious").unwrap();
        std::os::unix::fs::symlink(&victim, folder.path().join("b.kvik-part")).unwrap();
        Part::create(&folder.path().join("b")).unwrap_err();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
    }

    #[test]
    fn a_file_put_in_the_place_of_the_part_is_neither_published_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b");
        let swap = |part: &Part| {
            fs::remove_file(part.path()).unwrap();
            fs::write(part.path(), b"of somebody else").unwrap();
        };
        let part = Part::create(&path).unwrap();
        let name = part.path().to_owned();
        swap(&part);
        let failure = part.publish(&path, false).unwrap_err();
        assert_eq!(failure.exit(), Exit::Integrity);
        assert!(!path.exists());
        assert_eq!(fs::read(&name).unwrap(), b"of somebody else");

        let part = Part::create(&path).unwrap();
        swap(&part);
        drop(part);
        assert_eq!(fs::read(&name).unwrap(), b"of somebody else");
    }
}
