//! What is too slow for every change and must hold before a release.

use crate::process::{self, Done, cargo};
use crate::stage::{self, Stage};
use crate::workspace::Graph;
use crate::{api, book, ci, codegen, features, test};

pub(crate) fn run(dry_run: bool) -> Done {
    if !dry_run {
        return Err(
            "publishing is done by a person, step by step as docs/src/releasing.md says; \
                    `cargo xtask release --dry-run` checks everything before it"
                .to_owned(),
        );
    }
    stage::run(
        "release",
        &[
            // Where it is missing, CI leaves the check of the public interface out; a release does not.
            Stage::new("rust", api::needed),
            Stage::new("ci", || ci::run().map(|()| String::new())),
            Stage::new("bindings", codegen::check_bindings),
            Stage::new("features", || features::run(None).map(|()| String::new())),
            Stage::new("package", package),
            Stage::new("book", || book::run().map(|()| String::new())),
            Stage::new("stress", test::stress),
        ],
    )
}

/// Packs each published crate and builds it from its package, against the packages of its sisters.
fn package() -> Done<String> {
    let graph = Graph::load()?;
    let mut command = cargo(["package", "--locked"]);
    let published: Vec<_> = graph.ours().filter(|package| package.published).collect();
    for package in &published {
        command.arg(format!("--package={}", package.name));
    }
    process::run(&mut command)?;
    Ok(format!(
        "{} packages built from what would be published",
        published.len()
    ))
}
