//! Unsafe code stands in the places that ARCHITECTURE.md names, and all other crates forbid it.

use std::path::Path;

use super::source::code;
use super::{File, Problem};
use crate::workspace::Graph;

const MAP: &str = "ARCHITECTURE.md";

/// The part of the map whose bullets begin with a file, or with a folder and its `/`, between backticks.
const HEADING: &str = "## Unsafe code";

pub(super) fn check(graph: &Graph, files: &[File]) -> Vec<Problem> {
    let map = files.iter().find(|file| file.path == Path::new(MAP));
    let rows = map.map_or_else(Vec::new, |map| rows(&map.text));
    let rust = || files.iter().filter(|file| file.is_rust());
    let mut problems = Vec::new();
    for file in rust().filter(|file| !rows.iter().any(|(_, row)| covers(row, &file.path))) {
        if let Some(line) = first_use(&file.text) {
            let text = format!(
                "unsafe code; move it behind a module that `{HEADING}` of {MAP} names, or name this one"
            );
            problems.push(Problem::new(&file.path, line, text));
        }
    }
    for (line, row) in &rows {
        let used = rust().any(|file| covers(row, &file.path) && first_use(&file.text).is_some());
        if !used {
            problems.push(Problem::new(
                Path::new(MAP),
                *line,
                format!("`{row}` holds no unsafe code; take the row out"),
            ));
        }
    }
    for package in graph.ours() {
        for target in package
            .targets
            .iter()
            .filter(|target| target.kind == "lib" || target.kind == "bin")
        {
            let Some(folder) = target.source.parent().and_then(Path::to_str) else {
                continue;
            };
            let holds = rows
                .iter()
                .any(|(_, row)| row.starts_with(&format!("{folder}/")));
            let forbids = rust().any(|file| {
                file.path == target.source && file.text.contains("#![forbid(unsafe_code)]")
            });
            if !holds && !forbids {
                let text = "does not forbid unsafe code; add `#![forbid(unsafe_code)]`";
                problems.push(Problem::new(&target.source, 1, text));
            }
        }
    }
    problems
}

fn rows(map: &str) -> Vec<(usize, &str)> {
    map.lines()
        .enumerate()
        .skip_while(|(_, line)| *line != HEADING)
        .skip(1)
        .take_while(|(_, line)| !line.starts_with("## "))
        .filter_map(|(index, line)| Some((index + 1, line.strip_prefix("- `")?.split_once('`')?.0)))
        .collect()
}

fn covers(row: &str, path: &Path) -> bool {
    if row.ends_with('/') {
        path.starts_with(row)
    } else {
        path == Path::new(row)
    }
}

/// The line of the first `unsafe`, in a block, a function, a trait or an attribute.
fn first_use(text: &str) -> Option<usize> {
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    code(text)
        .into_iter()
        .find(|(_, line)| {
            line.split(|character| !is_name(character))
                .any(|word| word == "unsafe")
        })
        .map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_found_and_its_relatives_are_not() {
        assert_eq!(first_use("//! x\nlet y = unsafe { z() };\n"), Some(2));
        assert_eq!(
            first_use("#![forbid(unsafe_code)]\n// unsafe\nlet x = \"unsafe\";\n"),
            None
        );
    }

    #[test]
    fn the_map_names_files_and_folders() {
        let map = "# x\n- `no.rs`: not here\n\n## Unsafe code\n\n- `a/os.rs`: why\n- `b/src/`: why\n\n## Next\n- `c.rs`: no\n";
        assert_eq!(rows(map), [(6, "a/os.rs"), (7, "b/src/")]);
        assert!(covers("a/os.rs", Path::new("a/os.rs")));
        assert!(covers("b/src/", Path::new("b/src/x/y.rs")));
        assert!(!covers("a/os.rs", Path::new("a/os.rs.x")));
    }
}
