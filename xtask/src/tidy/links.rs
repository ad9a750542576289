//! Every relative link in a Markdown file leads to a file or folder that exists.

use std::path::{Component, Path, PathBuf};

use super::{File, Problem};
use crate::workspace;

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    files
        .iter()
        .filter(|file| {
            file.path
                .extension()
                .is_some_and(|extension| extension == "md")
        })
        .flat_map(check_file)
        .collect()
}

fn check_file(file: &File) -> Vec<Problem> {
    let folder = file.path.parent().unwrap_or(Path::new(""));
    let mut problems = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for link in links(line) {
            let place = plain(&folder.join(link));
            if !workspace::root().join(&place).exists() {
                let text = format!(
                    "links to {}, which does not exist; mend the link",
                    place.display()
                );
                problems.push(Problem::new(&file.path, index + 1, text));
            }
        }
    }
    problems
}

/// The relative links of a line, without the place inside the page they lead to.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(link, _)| link.split('#').next().unwrap_or(link))
        // An item of the documentation, `[open](FileHandle::open)`, is for rustdoc to check.
        .filter(|link| !link.is_empty() && !link.contains("::") && !link.contains(':'))
}

/// The path with each `x/..` taken out.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_links_are_found_and_addresses_are_not() {
        let line = "see [a](b.md#part), [c](../d.md), [e](https://f), [g](#h) and [i](J::k)";
        assert_eq!(links(line).collect::<Vec<_>>(), ["b.md", "../d.md"]);
        assert_eq!(plain(Path::new("docs/src/../../d.md")), Path::new("d.md"));
    }
}
