//! Each crate alone: a build of the workspace unites the features of all crates and hides one that cannot stand by itself.

use crate::process::{self, Done, cargo};
use crate::setup;
use crate::workspace::{Graph, Package};

pub(crate) fn run(only: Option<&str>) -> Done {
    setup::nextest()?;
    let graph = Graph::load()?;
    let chosen: Vec<&Package> = graph
        .ours()
        .filter(|package| package.published && only.is_none_or(|name| name == package.name))
        .collect();
    if chosen.is_empty() {
        return Err(format!(
            "no published package is named `{}`",
            only.unwrap_or_default()
        ));
    }
    for package in &chosen {
        for set in sets(package) {
            println!(
                "\n-- {} {} --",
                package.name,
                if set.is_empty() {
                    "(default features)"
                } else {
                    set.as_str()
                }
            );
            step(&["check", "--all-targets"], package, &set)?;
            // Each test in a process of its own: what belongs to a process, a driver or a fork, is a test's alone.
            step(&["nextest", "run", "--no-tests=pass"], package, &set)?;
            step(&["test", "--doc"], package, &set)?;
            step(&["doc", "--no-deps"], package, &set)?;
        }
    }
    println!("{} crates stand alone", chosen.len());
    Ok(())
}

fn step(words: &[&str], package: &Package, set: &str) -> Done {
    let mut command = cargo(words);
    command
        .arg("--locked")
        .arg(format!("--package={}", package.name))
        .args(set.split_whitespace());
    process::run(command.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Default, none, each one and all; only the first where a crate has no feature, since then they are all the same.
fn sets(package: &Package) -> Vec<String> {
    let mut sets = vec![String::new()];
    if package.features.is_empty() {
        return sets;
    }
    sets.push("--no-default-features".to_owned());
    for feature in package
        .features
        .iter()
        .filter(|feature| *feature != "default")
    {
        sets.push(format!("--no-default-features --features={feature}"));
    }
    sets.push("--all-features".to_owned());
    sets
}
