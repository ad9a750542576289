//! Files opened past the page cache, for the loops that read and write so.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// What a disk may ask of offsets, lengths and memory at most: a page.
pub(crate) const ALIGNMENT: usize = 4096;

/// Opens `path` with `O_DIRECT`, for reading, or for reading and writing.
pub(crate) fn open(path: &Path, write: bool) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(write)
        .custom_flags(libc::O_DIRECT)
        .open(path)
}

/// Whether files can be opened so here; where they cannot, the loops that do are left out.
pub(crate) fn possible(path: &Path) -> bool {
    open(path, false).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there_is_no_direct_file() {
        assert!(!possible(Path::new("missing.bin")));
        let error = open(Path::new("missing.bin"), true).expect_err("missing");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
