//! Every bullet of docs/src/behavior.md ends with the tests that hold it to its word, and those tests exist.
//!
//! ```text
//! - A read past the end returns 0. (test: `tests/it/read.rs::a_read_past_the_end_returns_nothing`)
//! ```
//!
//! Several tests stand in one pair of brackets, with commas between them.

use std::path::Path;

use super::{File, Problem};

const PAGE: &str = "docs/src/behavior.md";
const MARK: &str = "(test: ";

pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let Some(page) = files.iter().find(|file| file.path == Path::new(PAGE)) else {
        return vec![Problem::new(
            Path::new(PAGE),
            1,
            "is missing; the promises stand there",
        )];
    };
    bullets(&page.text)
        .into_iter()
        .flat_map(|(line, text)| {
            problems(&text, files)
                .into_iter()
                .map(move |text| Problem::new(Path::new(PAGE), line, text))
        })
        .collect()
}

/// Each bullet as one line of text, with the number of its first line.
fn bullets(page: &str) -> Vec<(usize, String)> {
    let mut bullets: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (index, line) in page.lines().enumerate() {
        let text = line.trim();
        if let Some(first) = text.strip_prefix("- ") {
            bullets.push((index + 1, first.to_owned()));
            open = true;
        } else if text.is_empty() || !line.starts_with(' ') {
            open = false;
        } else if open && let Some((_, bullet)) = bullets.last_mut() {
            bullet.push(' ');
            bullet.push_str(text);
        }
    }
    bullets
}

fn problems(bullet: &str, files: &[File]) -> Vec<String> {
    let named = bullet
        .rsplit_once(MARK)
        .and_then(|(_, tests)| tests.trim_end().strip_suffix(')'));
    let Some(named) = named else {
        return vec![format!(
            "promises without a test; end the bullet with `{MARK}path/of/file.rs::name_of_test)`"
        )];
    };
    named
        .split(',')
        .filter_map(|test| problem(test.trim().trim_matches('`'), files))
        .collect()
}

fn problem(test: &str, files: &[File]) -> Option<String> {
    let Some((path, name)) = test.split_once("::") else {
        return Some(format!(
            "`{test}` names no test; write path/of/file.rs::name_of_test"
        ));
    };
    let Some(file) = files.iter().find(|file| file.path == Path::new(path)) else {
        return Some(format!(
            "`{path}` does not exist; name the file that holds `{name}`"
        ));
    };
    let found = is_test(&file.text, name);
    (!found).then(|| {
        format!("`{path}` has no test `{name}`; write it, or name the one that keeps this promise")
    })
}

/// Whether a function of that name is there with `#[test]` among the attributes and comments right above it.
fn is_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.iter().enumerate().any(|(index, line)| {
        let named = line
            .split_once("fn ")
            .is_some_and(|(_, rest)| rest.split('(').next() == Some(name));
        named
            && lines[..index]
                .iter()
                .rev()
                .take_while(|above| above.starts_with("#[") || above.starts_with("//"))
                .any(|above| *above == "#[test]")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Vec<File> {
        let text = "#[test]\n/// Why.\nfn reads_are_short() {}\n\nfn helper() {}\n";
        vec![File {
            path: "tests/it/a.rs".into(),
            text: text.to_owned(),
        }]
    }

    #[track_caller]
    fn said(bullet: &str, expected: &str) {
        let problems = problems(bullet, &files());
        assert!(
            problems
                .first()
                .is_some_and(|problem| problem.contains(expected)),
            "{problems:?}"
        );
    }

    #[test]
    fn a_promise_with_its_test_is_fine() {
        assert!(
            problems(
                "Reads are short. (test: `tests/it/a.rs::reads_are_short`)",
                &files()
            )
            .is_empty()
        );
    }

    #[test]
    fn a_promise_without_a_test_that_exists_is_found() {
        said("Reads are short.", "promises without a test");
        said("Reads are short. (test: reads_are_short)", "names no test");
        said(
            "Reads are short. (test: `tests/it/b.rs::reads_are_short`)",
            "does not exist",
        );
        said(
            "Reads are short. (test: `tests/it/a.rs::reads_are_long`)",
            "has no test `reads_are_long`",
        );
        said(
            "Reads are short. (test: `tests/it/a.rs::helper`)",
            "has no test `helper`",
        );
    }

    #[test]
    fn a_bullet_over_two_lines_is_one_bullet() {
        let page = "# x\n\n- One\n  two. (test: a)\n- Three.\n\n  not a bullet\n";
        assert_eq!(
            bullets(page),
            [
                (3, "One two. (test: a)".to_owned()),
                (5, "Three.".to_owned())
            ]
        );
    }
}
