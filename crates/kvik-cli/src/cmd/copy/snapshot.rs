//! Snapshot: what identifies a source and its contents, taken before the copy and compared after it.

use std::fs::{self, File, Metadata};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use kvik::FileHandle;

use crate::Exit;
use crate::failure::{Failure, Result, show};

/// The facts about an open file that must not change while it is copied, and its mode bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// Bytes; of a block device, too.
    pub(super) size: u64,
    /// Permission bits alone; set-user-id and its like do not travel with a copy.
    pub(super) mode: u32,
    device: u64,
    inode: u64,
    /// Seconds and nanoseconds; of regular files only, since reading moves the times of devices and of /proc.
    modified: Option<(i64, i64)>,
}

impl Snapshot {
    /// By the descriptor, so that it is the file that was opened, whatever its name means by now.
    pub(super) fn take(handle: &FileHandle, path: &Path) -> Result<Self> {
        let facts = inspect(handle, path)?;
        let size = handle.len()?;
        Ok(Snapshot {
            size,
            mode: facts.mode() & 0o777,
            device: facts.dev(),
            inode: facts.ino(),
            modified: (facts.is_file() && size > 0).then(|| (facts.mtime(), facts.mtime_nsec())),
        })
    }

    /// Whether `path` names this very file.
    pub(super) fn is(&self, path: &Path) -> bool {
        fs::metadata(path)
            .is_ok_and(|facts| (facts.dev(), facts.ino()) == (self.device, self.inode))
    }

    /// Fails if size or modification time are no longer what they were.
    pub(super) fn compare(&self, handle: &FileHandle, path: &Path) -> Result<()> {
        let now = Snapshot::take(handle, path)?;
        if (now.size, now.modified) == (self.size, self.modified) {
            return Ok(());
        }
        let what = if now.size == self.size {
            "it was written to while it was copied".to_owned()
        } else {
            format!(
                "it had {} bytes and now has {} while it was copied",
                self.size, now.size
            )
        };
        Err(changed(path, &what))
    }
}

/// What the system says about the open file, whatever its name means by now.
pub(super) fn inspect(handle: &FileHandle, path: &Path) -> Result<Metadata> {
    let owned = handle.as_fd().try_clone_to_owned();
    let facts = owned.and_then(|fd| File::from(fd).metadata());
    facts.map_err(|error| Failure::io("inspect", path, &error))
}

/// The source is no longer what it was when the copy began.
pub(super) fn changed(path: &Path, what: &str) -> Failure {
    Failure::new(
        Exit::Integrity,
        "Changed",
        format!("copy {}: {what}", show(path)),
    )
    .hint("the destination is as it was; copy again once nobody writes to the source")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn growth_shrinking_and_rewriting_are_all_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, b"0123456789").unwrap();
        let handle = FileHandle::open(&path).unwrap();
        let before = Snapshot::take(&handle, &path).unwrap();
        before.compare(&handle, &path).unwrap();

        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"x").unwrap();
        let grown = before.compare(&handle, &path).unwrap_err();
        assert_eq!(grown.exit(), Exit::Integrity);
        assert!(
            grown.message().contains("had 10 bytes and now has 11"),
            "{}",
            grown.message()
        );

        file.set_len(10).unwrap();
        let long_ago = std::time::SystemTime::UNIX_EPOCH;
        file.set_modified(long_ago).unwrap();
        let rewritten = before.compare(&handle, &path).unwrap_err();
        assert!(
            rewritten.message().contains("written to"),
            "{}",
            rewritten.message()
        );
    }

    #[test]
    fn a_hard_link_and_a_symbolic_link_are_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, b"x").unwrap();
        fs::hard_link(&path, folder.path().join("hard")).unwrap();
        std::os::unix::fs::symlink(&path, folder.path().join("soft")).unwrap();
        let before = Snapshot::take(&FileHandle::open(&path).unwrap(), &path).unwrap();
        assert!(before.is(&folder.path().join("hard")));
        assert!(before.is(&folder.path().join("soft")));
        assert!(!before.is(folder.path()));
        assert!(!before.is(&folder.path().join("missing")));
    }
}
