//! A text that stands in two files is the same in both.

use std::path::Path;

use super::{File, Problem};

/// The first Rust example of the one is compiled and run; the other shows it to whoever meets the repository first.
const EXAMPLE: &str = "crates/kvik/README.md";
const COPY: &str = "README.md";

pub(super) fn check(files: &[File]) -> Option<Problem> {
    let example = |path: &str| {
        let file = files.iter().find(|file| file.path == Path::new(path))?;
        first_example(&file.text)
    };
    let same = example(COPY).is_some() && example(COPY) == example(EXAMPLE);
    (!same).then(|| {
        let text = format!("its Rust example is not the one of {EXAMPLE}; copy it from there");
        Problem::new(Path::new(COPY), 1, text)
    })
}

fn first_example(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("```rust\n")?;
    Some(rest.split_once("```")?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_example_is_found() {
        assert_eq!(
            first_example("a\n```rust\nlet x;\n```\nb\n```rust\ny\n```\n"),
            Some("let x;\n")
        );
        assert_eq!(first_example("a\n"), None);
    }
}
