//! The fuzz package is a workspace of its own, which no build of the other one sees: its lock is current, and what it can fuzz
//! is what `cargo xtask fuzz` knows.

use std::path::Path;

use super::Problem;
use crate::deep::FUZZED;
use crate::process::Done;
use crate::workspace::{Graph, Package};

pub(super) fn check() -> Done<Option<Problem>> {
    let graph = Graph::of(MANIFEST)?;
    let package = graph
        .ours()
        .find(|package| package.manifest == Path::new(MANIFEST));
    let built = package.map(programs).unwrap_or_default();
    Ok(differs(&built, &FUZZED))
}

/// The names of the files that its programs begin with.
fn programs(package: &Package) -> Vec<String> {
    let programs = package.targets.iter().filter(|target| target.kind == "bin");
    programs
        .filter_map(|target| target.source.file_stem()?.to_str())
        .map(str::to_owned)
        .collect()
}

fn differs(built: &[String], known: &[&str]) -> Option<Problem> {
    let (mut built, mut known): (Vec<&str>, _) =
        (built.iter().map(String::as_str).collect(), known.to_vec());
    built.sort_unstable();
    known.sort_unstable();
    (built != known).then(|| {
        let text = format!("has the programs {built:?}, and xtask/src/deep.rs knows {known:?}");
        Problem::new(Path::new(MANIFEST), 1, text)
    })
}

const MANIFEST: &str = "fuzz/Cargo.toml";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_one_of_them_lacks_is_a_problem() {
        let built = ["b".to_owned(), "a".to_owned()];
        assert!(differs(&built, &["a", "b"]).is_none());
        for known in [&["a"][..], &["a", "b", "c"], &["a", "c"]] {
            let problem = differs(&built, known).unwrap();
            let text = problem.to_string();
            assert!(
                text.starts_with("fuzz/Cargo.toml:1: ") && text.contains("[\"a\", \"b\"]"),
                "{text}"
            );
        }
    }
}
