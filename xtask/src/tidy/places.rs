//! No path of one developer's machine and no host of a package registry stands in a file: both differ from place to place.

use super::{File, Problem};

/// Starts of paths that exist on one machine only. Written in two pieces, so that this file does not find itself.
const PATHS: [&str; 3] = [
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/wo", "rk/"),
];

const HOSTS: [&str; 6] = [
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("npmjs", ".org"),
    concat!("deb.debian", ".org"),
    concat!("static.rust-lang", ".org"),
];

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    // Cargo names its registry in the lock file, and nobody can change that.
    files
        .iter()
        .filter(|file| !file.path.ends_with("Cargo.lock"))
        .flat_map(check_file)
        .collect()
}

fn check_file(file: &File) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        if let Some(path) = PATHS.iter().find(|path| names_path(line, path)) {
            let text = format!(
                "a path under {path} exists on one machine only; take it from the environment or a temporary folder"
            );
            problems.push(Problem::new(&file.path, index + 1, text));
        }
        if let Some(host) = HOSTS.iter().find(|host| line.contains(**host)) {
            let text = format!(
                "names the host {host}; say \"the crate registry\" and let each machine's settings choose it"
            );
            problems.push(Problem::new(&file.path, index + 1, text));
        }
    }
    problems
}

/// Whether an absolute path starts so; `crates/x/work/y` does not.
fn names_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(place, _)| {
        let before = line[..place].chars().next_back();
        !before.is_some_and(|character| character.is_alphanumeric() || "_-.}*".contains(character))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_paths_are_found_and_relative_ones_are_not() {
        assert!(names_path(concat!("cd \"/ho", "me/x\""), PATHS[1]));
        assert!(!names_path(concat!("cd frame/wo", "rk/x"), PATHS[2]));
    }
}
