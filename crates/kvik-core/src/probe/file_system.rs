//! The file system a file lies on: its number, its name, what was mounted where.

use std::fmt;
use std::fs;
use std::os::fd::BorrowedFd;

use nix::sys::statfs::fstatfs;

use super::Fact;
use crate::os;

/// The file system a file lies on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct FileSystem {
    /// The kernel's name, `ext4` or `nfs4`: from the mount table, else by the number.
    pub name: String,
    /// The number by which `statfs(2)` names the type. Some types share one: ext2, ext3 and ext4 do.
    pub magic: u64,
    /// What was mounted: a device, a server and its path, or a word.
    pub source: Fact<String>,
    /// Where it was mounted.
    pub mount_point: Fact<String>,
    /// With which options, those of the mount and those of the file system: `rw,relatime,data=ordered`.
    pub options: Fact<String>,
}

impl FileSystem {
    pub(crate) fn of(fd: BorrowedFd<'_>) -> Fact<FileSystem> {
        let magic = match fstatfs(fd) {
            Ok(stats) => stats.filesystem_type().0 as u64,
            Err(errno) => return Fact::absent(format!("statfs: {errno}")),
        };
        let (name, source, mount_point, options) = match mount_of(fd) {
            Fact::Known(mount) => (
                Some(mount.name),
                Fact::Known(mount.source),
                Fact::Known(mount.point),
                Fact::Known(mount.options),
            ),
            Fact::Absent { absent } => {
                let none = || Fact::absent(absent.clone());
                (None, none(), none(), none())
            }
        };
        let name = name
            .or_else(|| name_of_magic(magic).map(str::to_owned))
            .unwrap_or_else(|| format!("unknown (0x{magic:x})"));
        Fact::Known(FileSystem {
            name,
            magic,
            source,
            mount_point,
            options,
        })
    }
}

impl fmt::Display for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let (Some(source), Some(point)) = (self.source.known(), self.mount_point.known()) {
            write!(f, " ({source} on {point})")?;
        }
        Ok(())
    }
}

/// A line of the mount table.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    name: String,
    source: String,
    point: String,
    options: String,
}

/// By the mount's number, so that neither nested nor bind mounts can be confused.
fn mount_of(fd: BorrowedFd<'_>) -> Fact<Mount> {
    let number = match os::statx(fd) {
        Ok(facts) => match facts.mount {
            Some(number) => number,
            None => return Fact::absent("the kernel does not number mounts (Linux 5.8 does)"),
        },
        Err(errno) => return Fact::absent(format!("statx: {errno}")),
    };
    match fs::read("/proc/self/mountinfo") {
        Ok(table) => match find_mount(&String::from_utf8_lossy(&table), number) {
            Some(mount) => Fact::Known(mount),
            None => Fact::absent(
                "its mount is not in /proc/self/mountinfo (mounted outside this container?)",
            ),
        },
        Err(error) => Fact::absent(format!("/proc/self/mountinfo: {error}")),
    }
}

/// The line of mount `number` in a table as in `/proc/self/mountinfo`, proc_pid_mountinfo(5):
/// `36 35 98:0 /root /point options tag:... - type source options`, with any number of tags.
fn find_mount(table: &str, number: u64) -> Option<Mount> {
    table.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ');
        if before.next()?.parse() != Ok(number) {
            return None;
        }
        let point = unescape(before.nth(3)?);
        let of_mount = before.next()?;
        let mut after = after.split(' ');
        Some(Mount {
            point,
            name: unescape(after.next()?),
            source: unescape(after.next()?),
            options: unescape(&without_doubles(of_mount, after.next()?)),
        })
    })
}

/// The words of both lists, each once: `rw` stands in both.
fn without_doubles(of_mount: &str, of_file_system: &str) -> String {
    let mut words: Vec<&str> = of_mount.split(',').collect();
    for word in of_file_system.split(',') {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(",")
}

/// Space, tab, newline and backslash stand in the table as a backslash and three octal digits.
fn unescape(field: &str) -> String {
    let mut text = String::with_capacity(field.len());
    let mut rest = field;
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        match after
            .get(..3)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok())
        {
            Some(byte) if byte.is_ascii() => {
                text.push(char::from(byte));
                rest = &after[3..];
            }
            _ => {
                text.push('\\');
                rest = after;
            }
        }
    }
    text + rest
}

/// The usual name of a number of `statfs(2)`.
pub(crate) fn name_of_magic(magic: u64) -> Option<&'static str> {
    MAGIC.iter().find(|row| row.0 == magic).map(|row| row.1)
}

// From linux/magic.h and, for those that are not in it, from the file systems themselves.
const MAGIC: &[(u64, &str)] = &[
    (0x0102_1994, "tmpfs"),
    (0x0102_1997, "9p"),
    (0x0bd0_0bd0, "lustre"),
    (0x00c3_6400, "ceph"),
    (0x1983_0326, "beegfs"),
    (0x2011_bab0, "exfat"),
    (0x2fc1_2fc1, "zfs"),
    (0x4d44, "vfat"),
    (0x4750_4653, "gpfs"),
    (0x517b, "smb"),
    (0x5846_5342, "xfs"),
    (0x5a4f_4653, "zonefs"),
    (0x6165_7676, "pstore"),
    (0x6265_6572, "sysfs"),
    (0x6573_5546, "fuse"),
    (0x6969, "nfs"),
    (0x7371_7368, "squashfs"),
    (0x794c_7630, "overlay"),
    (0x8584_58f6, "ramfs"),
    (0x9123_683e, "btrfs"),
    (0x9584_58f6, "hugetlbfs"),
    (0x9660, "isofs"),
    (0x9fa0, "proc"),
    (0xca45_1a4e, "bcachefs"),
    (0xe0f5_e1e2, "erofs"),
    (0xef53, "ext4"),
    (0xf2f5_2010, "f2fs"),
    (0xfe53_4d42, "smb2"),
    (0xff53_4d42, "cifs"),
];

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::{FileSystem, MAGIC, Mount, find_mount, name_of_magic, unescape};

    const TABLE: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
227 27 0:50 / /no/match rw - tmpfs tmpfs rw
31 27 0:40 / /mnt/my\\040data rw,noatime shared:7 master:2 - nfs4 server:/ex\\134port rw,vers=4.2
broken line
33 27 0:41 /";

    #[test]
    fn a_mount_is_found_by_its_number_with_any_number_of_tags() {
        let mount = |name: &str, source: &str, point: &str, options: &str| Mount {
            name: name.to_owned(),
            source: source.to_owned(),
            point: point.to_owned(),
            options: options.to_owned(),
        };
        assert_eq!(
            find_mount(TABLE, 27),
            Some(mount("ext4", "/dev/vda", "/", "rw,relatime,discard"))
        );
        assert_eq!(
            find_mount(TABLE, 31),
            Some(mount(
                "nfs4",
                "server:/ex\\port",
                "/mnt/my data",
                "rw,noatime,vers=4.2"
            ))
        );
        assert_eq!(find_mount(TABLE, 33), None);
        assert_eq!(find_mount(TABLE, 2), None);
        assert_eq!(find_mount("", 1), None);
    }

    #[test]
    fn escapes_are_undone_and_broken_ones_kept() {
        for (field, text) in [
            ("a\\040b", "a b"),
            ("\\134", "\\"),
            ("a\\", "a\\"),
            ("\\9990", "\\9990"),
            ("\\12é", "\\12é"),
            ("é\\011", "é\t"),
        ] {
            assert_eq!(unescape(field), text);
        }
    }

    #[test]
    fn numbers_are_sorted_out_once_each() {
        let mut numbers: Vec<u64> = MAGIC.iter().map(|row| row.0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), MAGIC.len());
        assert_eq!(name_of_magic(0xef53), Some("ext4"));
        assert_eq!(name_of_magic(1), None);
    }

    #[test]
    fn proc_is_proc() {
        let file = File::open("/proc/self/status").unwrap();
        let found = FileSystem::of(file.as_fd());
        let found = found.known().unwrap();
        assert_eq!((found.name.as_str(), found.magic), ("proc", 0x9fa0));
        assert_eq!(found.mount_point.known().map(String::as_str), Some("/proc"));
    }
}
