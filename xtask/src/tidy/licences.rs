//! Every crate in the graph carries a licence that deny.toml allows, none that it bans is there, and the texts of our own
//! licences go into every package that we publish.
//!
//! `cargo deny` reads the same file; its part that needs a database of advisories is left to it.

use std::fs;
use std::path::Path;

use toml::{Table, Value};

use super::Problem;
use crate::process::Done;
use crate::workspace::{self, Graph, Package};

const FILE: &str = "deny.toml";

/// Both licences ask for their text beside the code.
const TEXTS: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

pub(super) fn check(graph: &Graph) -> Done<Vec<Problem>> {
    let text = workspace::read(Path::new(FILE))?.unwrap_or_default();
    let rules: Table = text.parse().map_err(|why| format!("{FILE}: {why}"))?;
    let allowed = texts(rules.get("licenses").and_then(|table| table.get("allow")));
    let banned: Vec<&str> = rules
        .get("bans")
        .and_then(|table| table.get("deny"))
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|ban| {
            ban.get("crate")
                .or_else(|| ban.get("name"))
                .and_then(Value::as_str)
        })
        .collect();
    let mut problems = Vec::new();
    for package in &graph.packages {
        let expression = package.licence.as_deref().unwrap_or_default();
        if !satisfied(expression, &allowed) {
            let text = format!(
                "{} {} is under `{expression}`, which [licenses] does not allow; do without it, or allow it with a reason",
                package.name, package.version
            );
            problems.push(Problem::new(Path::new(FILE), 1, text));
        }
        if banned.contains(&package.name.as_str()) {
            let text = format!(
                "{} is banned, for the reason given there, and is in the graph",
                package.name
            );
            problems.push(Problem::new(Path::new(FILE), 1, text));
        }
    }
    for package in graph.ours().filter(|package| package.published) {
        problems.extend(TEXTS.iter().filter_map(|name| unpacked(package, name)));
    }
    Ok(problems)
}

/// A package holds what lies in its folder; cargo follows links, so one to the text at the root is enough.
fn unpacked(package: &Package, name: &str) -> Option<Problem> {
    let folder = package.manifest.parent()?;
    let text = |file: &Path| fs::read(workspace::root().join(file)).ok();
    let there = text(&folder.join(name));
    let same = there.is_some() && there == text(Path::new(name));
    (!same).then(|| {
        let up = "../".repeat(folder.components().count());
        let text = format!(
            "{} is published without {name}; run `ln -s {up}{name} {}/`",
            package.name,
            folder.display()
        );
        Problem::new(&package.manifest, 1, text)
    })
}

fn texts(value: Option<&Value>) -> Vec<&str> {
    value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// Whether an SPDX expression can be satisfied with the allowed licences: `AND` binds closer than `OR`.
fn satisfied(expression: &str, allowed: &[&str]) -> bool {
    // Old manifests write `MIT/Apache-2.0`.
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let verdict = any(&mut rest, allowed);
    verdict && rest.is_empty()
}

fn any(rest: &mut &[&str], allowed: &[&str]) -> bool {
    let mut verdict = all(rest, allowed);
    while take(rest, "OR") {
        let other = all(rest, allowed);
        verdict = verdict || other;
    }
    verdict
}

fn all(rest: &mut &[&str], allowed: &[&str]) -> bool {
    let mut verdict = one(rest, allowed);
    while take(rest, "AND") {
        let other = one(rest, allowed);
        verdict = verdict && other;
    }
    verdict
}

fn one(rest: &mut &[&str], allowed: &[&str]) -> bool {
    if take(rest, "(") {
        let verdict = any(rest, allowed);
        return take(rest, ")") && verdict;
    }
    let Some((name, after)) = rest.split_first() else {
        return false;
    };
    *rest = after;
    if !take(rest, "WITH") {
        return allowed.contains(name);
    }
    let Some((exception, after)) = rest.split_first() else {
        return false;
    };
    *rest = after;
    // A licence with an exception only adds permissions to the licence alone.
    allowed.contains(name) || allowed.contains(&format!("{name} WITH {exception}").as_str())
}

fn take(rest: &mut &[&str], word: &str) -> bool {
    match rest.split_first() {
        Some((first, after)) if *first == word => {
            *rest = after;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expression: &str, expected: bool) {
        let allowed = ["MIT", "Apache-2.0", "Unicode-3.0"];
        assert_eq!(satisfied(expression, &allowed), expected, "{expression}");
    }

    #[test]
    fn expressions_are_read_as_spdx_means_them() {
        check("MIT", true);
        check("MIT/Apache-2.0", true);
        check("GPL-3.0", false);
        check("GPL-3.0 OR MIT", true);
        check("GPL-3.0 AND MIT", false);
        check("(MIT OR GPL-3.0) AND Unicode-3.0", true);
        check("MIT OR GPL-3.0 AND LGPL-2.1", true);
        check("Apache-2.0 WITH LLVM-exception", true);
        check("GPL-2.0 WITH Classpath-exception-2.0", false);
        check("", false);
        check("(MIT", false);
    }
}
