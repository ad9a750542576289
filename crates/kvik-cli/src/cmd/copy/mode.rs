//! The permission bits of a file whose source has none.

use std::fs;

/// What any new file of this process gets: everybody may read and write but for whom the umask excludes.
pub(super) fn of_new_file() -> u32 {
    // The call that asks for the umask sets it, too, for all threads. Where this is not told, the file is ours alone.
    fs::read_to_string("/proc/self/status").map_or(PRIVATE, |status| of_status(&status))
}

fn of_status(status: &str) -> u32 {
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    let umask = line.and_then(|digits| u32::from_str_radix(digits.trim(), 8).ok());
    umask.map_or(PRIVATE, |umask| 0o666 & !umask)
}

const PRIVATE: u32 = 0o600;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_umask_takes_its_bits_away() {
        for (umask, mode) in [
            ("0022", 0o644),
            ("0027", 0o640),
            ("0002", 0o664),
            ("0", 0o666),
        ] {
            let status = format!("Name:\tkvik\nUmask:\t{umask}\nState:\tR\n");
            assert_eq!(of_status(&status), mode, "{umask}");
        }
        assert_eq!(of_status("Name:\tkvik\n"), 0o600);
    }
}
