//! What shows a direct path between storage and a device, and what has to do for a proof where cuFile cannot tell: facts in, a
//! verdict out.

use crate::probe::{Fact, FileProbe, Support};

/// What shows that there may be a direct path on this machine. A module that is loaded serves some storage and not all: what proves
/// the path for a file is that cuFile registers it with its compatible mode off.
pub(crate) fn sign_of_direct_path(nvidia_fs: &Fact<String>, p2pdma: &Support) -> Fact<String> {
    match (nvidia_fs, p2pdma) {
        (Fact::Known(version), _) => Fact::Known(format!("nvidia-fs {version} is loaded")),
        (_, Support::Yes) => Fact::Known("a GPU offers its memory to other devices".to_owned()),
        (Fact::Absent { absent }, Support::No(why)) => Fact::absent(format!("{absent}, and {why}")),
    }
}

/// Whether a file lies where nvidia-fs is known to have a direct path to, which is less than it may have; the proof, or why not.
/// `nvme` says whether nvidia-fs serves local NVMe drives at all.
pub(crate) fn is_served_by_nvidia_fs(nvme: bool, file: &FileProbe) -> Result<&'static str, String> {
    if !nvme {
        return Err("nvidia-fs serves no NVMe drives here".to_owned());
    }
    let system = file.file_system.known().map(|system| system.name.as_str());
    if !matches!(system, Some("ext4" | "xfs")) {
        let name = system.unwrap_or("of an unknown kind");
        return Err(format!(
            "the file system is {name}, and of ext4 and xfs alone is it known"
        ));
    }
    match file.block_device.known() {
        Some(device) if device.name.starts_with("nvme") => {
            Ok("it lies on a local NVMe drive, which nvidia-fs serves")
        }
        Some(device) => Err(format!(
            "the block device is {}, and of local NVMe drives alone is it known",
            device.name
        )),
        None => Err("no block device lies below the file".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BlockDevice;

    #[test]
    fn a_module_or_a_gpu_that_offers_its_memory_is_a_sign_and_their_absence_is_told() {
        let (module, none) = (
            Fact::Known("2.20.5".to_owned()),
            Fact::absent("nvidia-fs is not loaded"),
        );
        let no = Support::no("no GPU offers its memory");
        let told = |fs: &Fact<String>, p2p: &Support| sign_of_direct_path(fs, p2p).to_string();
        assert_eq!(told(&module, &no), "nvidia-fs 2.20.5 is loaded");
        let offered = "a GPU offers its memory to other devices";
        assert_eq!(told(&none, &Support::Yes), offered);
        assert_eq!(
            told(&none, &no),
            "none: nvidia-fs is not loaded, and no GPU offers its memory"
        );
    }

    #[test]
    fn without_cufiles_word_only_ext4_and_xfs_on_a_local_nvme_drive_count() {
        let mut file = FileProbe::of("/proc/self/exe").unwrap();
        let mut check = |system: &str, device: Option<&str>, nvme, expected: Result<(), &str>| {
            if let Fact::Known(known) = &mut file.file_system {
                known.name = system.to_owned();
            }
            file.block_device = match device {
                Some(name) => Fact::Known(BlockDevice {
                    id: 1,
                    major: 0,
                    minor: 1,
                    name: name.to_owned(),
                }),
                None => Fact::absent("none"),
            };
            let verdict = is_served_by_nvidia_fs(nvme, &file);
            assert_eq!(
                verdict.as_ref().map(|_| ()).map_err(String::as_str),
                expected,
                "{system} {device:?}"
            );
        };
        for system in ["ext4", "xfs"] {
            check(system, Some("nvme0"), true, Ok(()));
        }
        let not_known = "the file system is btrfs, and of ext4 and xfs alone is it known";
        check("btrfs", Some("nvme0"), true, Err(not_known));
        let mapper = "the block device is dm-1, and of local NVMe drives alone is it known";
        check("xfs", Some("dm-1"), true, Err(mapper));
        check(
            "xfs",
            None,
            true,
            Err("no block device lies below the file"),
        );
        let no_drives = "nvidia-fs serves no NVMe drives here";
        check("xfs", Some("nvme0"), false, Err(no_drives));
    }
}
