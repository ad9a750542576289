//! What no compiler checks: one line for each problem, with its place and how to mend it.

mod arrows;
mod copies;
mod fuzz;
mod licences;
mod links;
mod places;
mod promises;
mod source;
mod unsafety;

pub(crate) use self::source::code;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::codegen;
use crate::process::Done;
use crate::workspace::{self, Graph};

/// One thing to mend.
struct Problem {
    file: PathBuf,
    line: usize,
    text: String,
}

impl Problem {
    fn new(file: &Path, line: usize, text: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line,
            text: text.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}:{}: {}", self.file.display(), self.line, self.text)
    }
}

/// A text file of the workspace.
struct File {
    path: PathBuf,
    text: String,
}

impl File {
    fn is_rust(&self) -> bool {
        self.path
            .extension()
            .is_some_and(|extension| extension == "rs")
    }
}

pub(crate) fn run() -> Done {
    let graph = Graph::load()?;
    let mut files = Vec::new();
    for path in workspace::files()? {
        // A link shows a file that is looked at where it stands.
        if workspace::root().join(&path).is_symlink() {
            continue;
        }
        if let Some(text) = workspace::read(&path)? {
            files.push(File { path, text });
        }
    }
    let mut problems = Vec::new();
    problems.extend(arrows::check(&graph));
    problems.extend(licences::check(&graph)?);
    problems.extend(source::check(&files));
    problems.extend(unsafety::check(&graph, &files));
    problems.extend(places::check(&files));
    problems.extend(copies::check(&files));
    problems.extend(fuzz::check()?);
    problems.extend(links::check(&files));
    problems.extend(promises::check(&files));
    if let Some(file) = codegen::stale()? {
        problems.push(Problem::new(
            Path::new(file),
            1,
            "is not current; run `cargo xtask codegen`",
        ));
    }
    for problem in &problems {
        println!("{problem}");
    }
    match problems.len() {
        0 => {
            println!("tidy: {} files, nothing to mend", files.len());
            Ok(())
        }
        count => Err(format!("tidy: {count} to mend")),
    }
}
