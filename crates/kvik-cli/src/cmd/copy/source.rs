//! What may be copied: regular files, those of /proc and /sys too, and block devices. All else has no end to come to.

use std::fs::{self, FileType};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use kvik::FileHandle;

use crate::Exit;
use crate::failure::{Failure, Result, show};

use super::snapshot::inspect;

/// Opens a source, whose kind is looked at before, since opening a device may do something to it, and again when it is
/// open, since the name may mean another file by then.
pub(super) fn open(path: &Path) -> Result<FileHandle> {
    if let Ok(facts) = fs::metadata(path) {
        check(path, facts.file_type())?;
    }
    let handle = FileHandle::open(path)?;
    check(path, inspect(&handle, path)?.file_type())?;
    Ok(handle)
}

fn check(path: &Path, kind: FileType) -> Result<()> {
    let name = show(path);
    let stream = |what: &str| {
        let message = format!(
            "copy {name}: it is {what}; only regular files and block devices can be copied"
        );
        Failure::new(Exit::Usage, "NotSeekable", message).fact("place", &name)
    };
    if kind.is_file() || kind.is_block_device() {
        Ok(())
    } else if kind.is_dir() {
        let message = format!("copy {name}: it is a directory");
        Err(Failure::new(Exit::Usage, "IsADirectory", message)
            .fact("place", &name)
            .hint("name a file inside it"))
    } else if kind.is_fifo() {
        Err(stream("a FIFO").hint(CAT))
    } else if kind.is_char_device() {
        Err(stream("a character device").hint(CAT))
    } else {
        Err(stream("a socket"))
    }
}

const CAT: &str = "`kvik cat SRC > DST` takes what comes out of it, from front to back";
