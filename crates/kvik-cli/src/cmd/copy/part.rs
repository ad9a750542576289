//! Part: the copy while it is made, beside its final place, locked, and gone again unless it is published or kept.

use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use kvik::FileHandle;

use crate::Exit;
use crate::failure::{Failure, Result, show};

use super::destination::part_of;

/// A file called `DST.kvik-part`. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Part {
    handle: FileHandle,
    // Holds the lock. Closed after `handle`, so that nobody takes the part over while it may still be written.
    file: File,
    path: PathBuf,
    remove: bool,
}

impl Part {
    /// Creates the part of `destination`, empty; one that an earlier copy left is taken over, one in use is refused.
    pub(super) fn create(destination: &Path) -> Result<Self> {
        let path = part_of(destination);
        let file = open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(busy(&path)),
            // File systems without locks: two copies to one place are then the caller's business.
            Err(TryLockError::Error(_)) => {}
        }
        // Between open and lock the owner of the part may have renamed it to its final place, which is not ours to empty.
        if !same(&file, &path) {
            return Err(busy(&path));
        }
        let part = |handle| Part {
            handle,
            file,
            path: path.clone(),
            remove: true,
        };
        let handle = FileHandle::options().read(true).write(true).open(&path);
        let part = match handle {
            Ok(handle) => part(handle),
            Err(error) => {
                // An empty file of ours, of no use to anybody.
                let _ = fs::remove_file(&path);
                return Err(error.into());
            }
        };
        // Only where it is needed: ext4 takes any truncation to nothing as a sign of a file being replaced in place, and
        // writes all of it out when it is closed.
        if part.handle.len()? > 0 {
            part.handle.set_len(0)?;
        }
        Ok(part)
    }

    pub(super) fn handle(&self) -> &FileHandle {
        &self.handle
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn set_mode(&self, mode: u32) -> Result<()> {
        let done = self.file.set_permissions(Permissions::from_mode(mode));
        done.map_err(|error| Failure::io("set the mode of", &self.path, &error))
    }

    /// Gives the part its final name, in one step; with `sync` the name, too, survives a power cut.
    pub(super) fn publish(mut self, destination: &Path, sync: bool) -> Result<()> {
        let renamed = fs::rename(&self.path, destination);
        renamed.map_err(|error| Failure::io("rename to", destination, &error))?;
        self.remove = false;
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
        self.remove = false;
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.remove {
            // There is nobody left to tell, and the copy has failed already.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Opens or creates the part, readable by its owner alone until the mode of the source is set, and never through a link
/// that somebody else may have put there.
fn open(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => {
            let message = format!(
                "create {}: something that is not a file has this name",
                show(path)
            );
            return Err(Failure::new(Exit::Failed, "AlreadyExists", message)
                .hint("remove it, then copy again"));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            options.create_new(true);
        }
        Err(error) => return Err(Failure::io("create", path, &error)),
    }
    options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => busy(path),
        _ => Failure::io("create", path, &error),
    })
}

fn busy(path: &Path) -> Failure {
    let message = format!(
        "create {}: another kvik is copying to the same place",
        show(path)
    );
    Failure::new(Exit::Failed, "AlreadyExists", message)
        .hint("wait until it is done, or choose another name")
}

fn same(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_part_is_gone_and_a_kept_one_is_taken_over_empty() {
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
        let part = Part::create(&path).unwrap();
        assert_eq!(fs::read(&name).unwrap(), b"");
        part.handle().write_all_at(b"new", 0).unwrap();
        part.publish(&path, true).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(!name.exists());
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
    fn a_link_in_the_place_of_the_part_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, b"precious").unwrap();
        std::os::unix::fs::symlink(&victim, folder.path().join("b.kvik-part")).unwrap();
        Part::create(&folder.path().join("b")).unwrap_err();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
    }
}
