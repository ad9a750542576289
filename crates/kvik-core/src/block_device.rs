//! Which block device a file lies on.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use nix::sys::stat::{SFlag, major, makedev, minor};

use crate::error::{Error, ErrorKind, Op, Result};
use crate::file_ref::{FileRef, file_type};
use crate::probe::{Fact, FileSystem};

/// A block device as far as transfers share it: the whole disk rather than a partition, and for NVMe the controller rather than one
/// of its namespaces, since these are what the traffic queues at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct BlockDevice {
    /// The device number (`dev_t`) made of `major` and `minor`.
    pub id: u64,
    /// Major number.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// The kernel's name: `sda`, `vda`, `nvme0`, `dm-1`, `md127`.
    pub name: String,
}

impl std::fmt::Display for BlockDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}:{})", self.name, self.major, self.minor)
    }
}

/// Finds the block device that `file` lies on, or that it is, in `/sys`. Nothing is opened and nothing is remembered.
///
/// Mapped and RAID devices (`dm-*`, `md*`) are themselves; the disks below them are not looked for.
///
/// # Errors
/// - `Unsupported`: the file system has no one block device (tmpfs, overlay, nfs, btrfs and their like).
/// - `NotFound`, `PermissionDenied` and what else `stat(2)` reports.
///
/// # Example: where a file lies
/// ```
/// match kvik_core::block_device_of("/etc/passwd") {
///     Ok(device) => println!("on {device}"),
///     Err(error) => println!("{error}"), // in a container: overlay has no block device of its own
/// }
/// ```
pub fn block_device_of<'a>(file: impl Into<FileRef<'a>>) -> Result<BlockDevice> {
    let file = file.into();
    let stat = file.stat()?;
    let device = match file_type(&stat) {
        SFlag::S_IFBLK => stat.st_rdev,
        _ => stat.st_dev,
    };
    resolve(Path::new("/sys"), major(device), minor(device)).map_err(|error| {
        match error.kind() {
            io::ErrorKind::NotFound => Error::new(
                ErrorKind::Unsupported,
                Op::Inspect,
                no_device(&file, device),
            )
            .because(error),
            _ => Error::io(Op::Inspect, error),
        }
        .at(&file.place())
    })
}

/// The device `major:minor` under a `/sys` that may stand anywhere.
fn resolve(sys: &Path, major: u64, minor: u64) -> io::Result<BlockDevice> {
    let mut folder = fs::canonicalize(sys.join(format!("dev/block/{major}:{minor}")))?;
    // A partition is a folder inside its disk's.
    if folder.join("partition").exists() {
        folder.pop();
    }
    // So is a namespace inside its controller's; not with multipath, where the parent is a subsystem without a device number.
    if is_nvme_namespace(&last_component(&folder))
        && let Some(parent) = folder.parent()
        && last_component(parent).starts_with("nvme")
        && parent.join("dev").exists()
    {
        folder = parent.to_path_buf();
    }
    let text = fs::read_to_string(folder.join("dev"))?;
    let (major, minor) = parse_numbers(&text).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{text:?} is no device number"),
        )
    })?;
    Ok(BlockDevice {
        id: makedev(u64::from(major), u64::from(minor)),
        major,
        minor,
        name: last_component(&folder),
    })
}

fn last_component(folder: &Path) -> String {
    folder
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// `nvme<N>n<M>`, and nothing after it.
fn is_nvme_namespace(name: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.strip_prefix("nvme")
        .and_then(|rest| rest.split_once('n'))
        .is_some_and(|(controller, namespace)| number(controller) && number(namespace))
}

fn parse_numbers(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn no_device(file: &FileRef<'_>, device: u64) -> String {
    let seen = file.look().map(|seen| FileSystem::of(seen.as_fd()));
    let name = match &seen {
        Ok(Fact::Known(system)) => &system.name,
        _ => "its file system",
    };
    format!(
        "{name} has no block device of its own: {}:{} is not in /sys/dev/block, as with all file systems in memory, over the network or \
         over several devices",
        major(device),
        minor(device)
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A `/sys` with these devices, each given by its folder below `devices`, its numbers, and whether it is a partition.
    fn sys(devices: &[(&str, &str, bool)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("dev/block")).unwrap();
        for (folder, numbers, is_partition) in devices {
            let path = root.path().join("devices").join(folder);
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("dev"), format!("{numbers}\n")).unwrap();
            if *is_partition {
                fs::write(path.join("partition"), "1\n").unwrap();
            }
            symlink(&path, root.path().join("dev/block").join(numbers)).unwrap();
        }
        root
    }

    #[track_caller]
    fn check(devices: &[(&str, &str, bool)], asked: (u64, u64), name: &str, numbers: (u32, u32)) {
        let root = sys(devices);
        let found = resolve(root.path(), asked.0, asked.1).unwrap();
        assert_eq!(
            (found.name.as_str(), (found.major, found.minor)),
            (name, numbers)
        );
        assert_eq!(
            found.id,
            makedev(u64::from(numbers.0), u64::from(numbers.1))
        );
    }

    #[test]
    fn a_disk_is_itself_and_its_partition_is_the_disk() {
        let devices = [
            ("pci0/ata1/sda", "8:0", false),
            ("pci0/ata1/sda/sda2", "8:2", true),
        ];
        check(&devices, (8, 0), "sda", (8, 0));
        check(&devices, (8, 2), "sda", (8, 0));
    }

    #[test]
    fn nvme_namespaces_and_their_partitions_are_the_controller() {
        let devices = [
            ("pci0/nvme/nvme3", "239:3", false),
            ("pci0/nvme/nvme3/nvme3n1", "259:0", false),
            ("pci0/nvme/nvme3/nvme3n12", "259:1", false),
            ("pci0/nvme/nvme3/nvme3n12/nvme3n12p1", "259:2", true),
        ];
        for asked in [(259, 0), (259, 1), (259, 2)] {
            check(&devices, asked, "nvme3", (239, 3));
        }
    }

    #[test]
    fn an_nvme_namespace_below_a_subsystem_without_numbers_is_itself() {
        check(
            &[(
                "virtual/nvme-subsystem/nvme-subsys0/nvme0n1",
                "259:5",
                false,
            )],
            (259, 5),
            "nvme0n1",
            (259, 5),
        );
    }

    #[test]
    fn mapped_and_raid_devices_are_themselves() {
        let devices = [
            ("virtual/block/dm-1", "253:1", false),
            ("virtual/block/md127", "9:127", false),
        ];
        check(&devices, (253, 1), "dm-1", (253, 1));
        check(&devices, (9, 127), "md127", (9, 127));
    }

    #[test]
    fn a_device_that_is_not_there_and_a_broken_file_are_told_apart() {
        let root = sys(&[("virtual/block/loop0", "7:0", false)]);
        assert_eq!(
            resolve(root.path(), 0, 24).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        fs::write(root.path().join("devices/virtual/block/loop0/dev"), "seven").unwrap();
        assert_eq!(
            resolve(root.path(), 7, 0).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }

    #[test]
    fn only_whole_namespaces_have_the_name_of_one() {
        for name in ["nvme0n1", "nvme12n34"] {
            assert!(is_nvme_namespace(name), "{name}");
        }
        for name in [
            "nvme0",
            "nvme0n1p1",
            "nvme0c0n1",
            "nvmen1",
            "nvme0n",
            "sda",
            "nvme-subsys0",
        ] {
            assert!(!is_nvme_namespace(name), "{name}");
        }
    }

    #[test]
    fn a_virtual_file_system_is_a_typed_error_that_explains() {
        let error = block_device_of("/proc/self/status").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let text = error.to_string();
        assert!(
            text.starts_with("inspect /proc/self/status: proc has no block device of its own: 0:"),
            "{text}"
        );
        assert_eq!(
            block_device_of("/no/such/file").unwrap_err().kind(),
            ErrorKind::NotFound
        );
    }

    #[test]
    fn path_and_descriptor_name_the_same_device() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let by_path = block_device_of(file.path());
        let by_fd = block_device_of(file.as_file());
        match (by_path, by_fd) {
            (Ok(by_path), Ok(by_fd)) => assert_eq!(by_path, by_fd),
            (Err(by_path), Err(by_fd)) => assert_eq!(by_path.kind(), by_fd.kind()),
            (by_path, by_fd) => panic!("{by_path:?} and {by_fd:?}"),
        }
    }
}
