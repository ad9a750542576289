//! The folder of a run: fresh, gone afterwards, and on a file system that has room for it.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::data::{LEAST, STEP};
use crate::loops::size_name;
use crate::machine;
use crate::options::Options;
use crate::trouble::{Doing, Outcome, Trouble};

/// A fresh folder; dropping it, by whichever way a run ends, removes it with all that is in it.
pub(crate) struct Folder {
    folder: TempDir,
    parent: PathBuf,
}

impl Folder {
    pub(crate) fn make(options: &Options) -> Outcome<Self> {
        let parent = match &options.dir {
            Some(directory) => directory.clone(),
            None => default_directory(),
        };
        // The figures name the folder, and a relative one would mean nothing to who reads them later.
        let parent = parent.canonicalize().doing("find the folder", &parent)?;
        if !parent.is_dir() {
            return Err(Trouble::Misuse(format!(
                "{} is not a directory to make files in",
                parent.display()
            )));
        }
        let folder = tempfile::Builder::new()
            .prefix("kvik-bench-")
            .tempdir_in(&parent)
            .doing("make a folder in", &parent)?;
        Ok(Self { folder, parent })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn parent(&self) -> &Path {
        &self.parent
    }

    /// Removes it now, so that a failure is told.
    pub(crate) fn remove(self) -> Outcome<()> {
        let path = self.folder.path().to_owned();
        self.folder.close().doing("remove", &path)
    }
}

/// A temporary folder in memory says nothing about a disk; the working directory usually lies on one.
fn default_directory() -> PathBuf {
    #[expect(
        clippy::disallowed_methods,
        reason = "the folder for temporary files is the system's to name, and no setting of kvik"
    )]
    let temporary = std::env::temp_dir();
    if !machine::is_in_memory(&temporary) {
        return temporary;
    }
    match std::env::current_dir() {
        Ok(here) if !machine::is_in_memory(&here) => here,
        _ => temporary,
    }
}

/// How long the data file may be, and why that is less than what was asked for.
pub(crate) fn affordable(options: &Options, directory: &Path) -> Outcome<(u64, Vec<String>)> {
    let mut notes = Vec::new();
    let mut size = options.size;
    if size < LEAST {
        return Err(Trouble::Misuse(format!(
            "a size of {size} bytes is too small; {} is the least",
            size_name(LEAST)
        )));
    }
    let free = machine::free_space(directory).doing("ask for free space in", directory)?;
    // The data file and the file that is written, and a tenth left for others.
    let for_data = free / 10 * 9 / 2;
    if for_data < LEAST {
        return Err(Trouble::NoRoom {
            directory: directory.to_owned(),
            free,
            needed: LEAST * 2 * 10 / 9,
        });
    }
    if for_data < size {
        size = for_data / STEP * STEP;
        notes.push(format!(
            "{} of data, not {}: {} has {} MiB free",
            size_name(size),
            size_name(options.size),
            directory.display(),
            free >> 20
        ));
    }
    let bound = memory_bound(size);
    if bound < size {
        size = bound;
        let (size, asked) = (size_name(size), size_name(options.size));
        notes.push(format!(
            "{size} of data, not {asked}: no more memory is available"
        ));
    }
    Ok((size, notes))
}

/// `size`, or what memory allows if that is less: the file in the page cache, the target, and room for others.
pub(crate) fn memory_bound(size: u64) -> u64 {
    machine::memory_available().map_or(size, |memory| {
        size.min((memory / 4 / STEP * STEP).max(LEAST))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::options_in;

    #[test]
    fn a_folder_is_fresh_and_goes_with_all_that_is_in_it() {
        let parent = tempfile::tempdir().expect("a temporary folder");
        let left = || std::fs::read_dir(parent.path()).expect("listed").count();
        let (one, two) = (
            Folder::make(&options_in(parent.path())),
            Folder::make(&options_in(parent.path())),
        );
        let (one, two) = (one.expect("a folder"), two.expect("another"));
        assert_ne!(one.path(), two.path());
        std::fs::write(one.path().join("file"), "content").expect("written");
        one.remove().expect("removed");
        assert_eq!(left(), 1);
        drop(two);
        assert_eq!(left(), 0);
        assert!(Folder::make(&options_in(&parent.path().join("missing"))).is_err());
        let file = parent.path().join("file");
        std::fs::write(&file, "content").expect("written");
        assert!(matches!(
            Folder::make(&options_in(&file)),
            Err(Trouble::Misuse(_))
        ));
    }

    #[test]
    fn sizes_that_cannot_be_are_refused_and_large_ones_cut_with_a_note() {
        let parent = tempfile::tempdir().expect("a temporary folder");
        let with = |size| {
            affordable(
                &Options {
                    size,
                    ..options_in(parent.path())
                },
                parent.path(),
            )
        };
        assert!(matches!(with(1000), Err(Trouble::Misuse(_))));
        let (size, notes) = with(1 << 60).expect("cut");
        assert!(size < 1 << 60 && size.is_multiple_of(STEP));
        assert!(!notes.is_empty() && notes.iter().all(|note| note.contains("of data, not")));
        assert_eq!(with(8 << 20).expect("small enough"), (8 << 20, vec![]));
    }
}
