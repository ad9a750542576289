//! What a change must pass, in the order in which a failure is cheapest to see.

use std::process::Command;

use crate::process::{self, Done, cargo};
use crate::stage::{self, Stage};
use crate::{api, deep, servers, setup, test, tidy};

/// The whole list; `.ci/run` and the README's second command are this and nothing else.
pub(crate) fn run() -> Done {
    stage::run(
        "ci",
        &[
            Stage::new("setup", setup),
            Stage::new("tidy", tidy),
            Stage::new("fmt", fmt),
            Stage::new("clippy", clippy),
            Stage::new("doc", doc),
            Stage::new("test", test::host),
            Stage::new("servers", servers),
            Stage::new("loom", || deep::models(None)),
            Stage::new("api", api::check),
        ],
    )
}

/// As with the tests that only root can run: nobody asked for what this machine cannot do, and the table says so.
fn servers() -> Done<String> {
    match servers::lacking()? {
        Some(what) => Ok(format!("left out: not installed are {what}")),
        None => test::servers(),
    }
}

fn setup() -> Done<String> {
    setup::run().map(|()| String::new())
}

fn tidy() -> Done<String> {
    tidy::run().map(|()| String::new())
}

fn fmt() -> Done<String> {
    // Workspaces of their own, which the last call does not see.
    for manifest in ["xtask/bindgen/Cargo.toml", "fuzz/Cargo.toml"] {
        let manifest = format!("--manifest-path={manifest}");
        plain(&mut cargo(["fmt", &manifest, "--check"]))?;
    }
    plain(&mut cargo(["fmt", "--all", "--check"]))
}

fn clippy() -> Done<String> {
    plain(&mut cargo([
        "clippy",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))
}

fn doc() -> Done<String> {
    plain(
        cargo([
            "doc",
            "--workspace",
            "--no-deps",
            "--all-features",
            "--locked",
        ])
        .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

fn plain(command: &mut Command) -> Done<String> {
    process::run(command).map(|()| String::new())
}
