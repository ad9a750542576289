//! What udev has written down about block devices: cuFile asks it, and registers no file without an answer.

use std::fs;
use std::path::{Path, PathBuf};

use super::Support;

/// Whether udev's records can be read at all.
pub(super) fn usable(root: &Path) -> Support {
    match fs::read_dir(root.join(RECORDS)) {
        Ok(_) => Support::Yes,
        Err(error) => Support::no(format!("/{RECORDS}: {error}")),
    }
}

/// Whether there is a record of this block device, and it names the file system.
pub(super) fn record(root: &Path, device: (u64, u64)) -> Support {
    let name = record_of(device);
    let shown = Path::new("/").join(&name);
    match fs::read_to_string(root.join(&name)) {
        Ok(text) if text.lines().any(|line| line.starts_with(TYPE)) => Support::Yes,
        Ok(_) => Support::no(format!("{} names no file system ({TYPE})", shown.display())),
        Err(error) => Support::no(format!("{}: {error}", shown.display())),
    }
}

fn record_of((major, minor): (u64, u64)) -> PathBuf {
    Path::new(RECORDS).join(format!("b{major}:{minor}"))
}

/// The folder of the records; a container has it only if it was given to it.
const RECORDS: &str = "run/udev/data";

/// How the line begins that names the file system of a record.
const TYPE: &str = "E:ID_FS_TYPE=";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_counts_if_it_names_the_file_system() {
        let root = tempfile::tempdir().unwrap();
        let device = (254, 1);
        let why = |support: Support| support.why_not().map(str::to_owned);
        let missing = "/run/udev/data: No such file or directory (os error 2)";
        assert_eq!(why(usable(root.path())).as_deref(), Some(missing));
        let missing = "/run/udev/data/b254:1: No such file or directory (os error 2)";
        assert_eq!(why(record(root.path(), device)).as_deref(), Some(missing));

        fs::create_dir_all(root.path().join(RECORDS)).unwrap();
        assert_eq!(usable(root.path()), Support::Yes);
        let path = root.path().join("run/udev/data/b254:1");
        fs::write(&path, "I:1\nE:DEVTYPE=disk\n").unwrap();
        let nameless = "/run/udev/data/b254:1 names no file system (E:ID_FS_TYPE=)";
        assert_eq!(why(record(root.path(), device)).as_deref(), Some(nameless));
        fs::write(&path, "I:1\nE:ID_FS_TYPE=ext4\nE:ID_FS_USAGE=filesystem\n").unwrap();
        assert_eq!(record(root.path(), device), Support::Yes);
        assert!(!record(root.path(), (254, 2)).is_yes());
    }
}
