//! The public interface of each library crate as a committed text, so that a change of it is seen in review.
//!
//! The texts come from rustdoc's JSON, whose format changes with the toolchain; `public-api` in Cargo.toml reads one
//! format. When `RUST` moves on, take the `public-api` that reads the new format and write the texts again.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use public_api::Builder;

use crate::process::{self, Done, cargo};
use crate::setup;
use crate::workspace::{self, Graph, Package};

/// The toolchain whose rustdoc writes the format that is read here.
const RUST: &str = "1.95";

pub(crate) fn run(check: bool) -> Done {
    let toolchain = toolchain()?.ok_or_else(missing)?;
    let stale = texts(&toolchain)?
        .into_iter()
        .filter(|(file, text)| !workspace::read(file).is_ok_and(|kept| kept.as_ref() == Some(text)))
        .map(|(file, text)| {
            if check {
                Ok(file)
            } else {
                workspace::write(&file, &text).map(|()| file)
            }
        })
        .collect::<Done<Vec<PathBuf>>>()?;
    for file in &stale {
        println!(
            "{} {}",
            if check { "not current:" } else { "wrote" },
            file.display()
        );
    }
    if check && !stale.is_empty() {
        return Err("the public interface changed; run `cargo xtask api`, and read the difference as a user would".to_owned());
    }
    Ok(())
}

/// The check as a stage of CI. On another toolchain than `RUST` it cannot run, and the table says so.
pub(crate) fn check() -> Done<String> {
    if toolchain()?.is_none() {
        return Ok(format!(
            "NOT CHECKED: only the rustdoc of Rust {RUST} writes what is read here"
        ));
    }
    run(true).map(|()| String::new())
}

/// For a release the check has to run: `RUST` is there, or is installed, or the release ends here.
pub(crate) fn needed() -> Done<String> {
    if toolchain()?.is_none() {
        setup::toolchain(RUST).map_err(|why| format!("{}; {why}", missing()))?;
        toolchain()?.ok_or_else(missing)?;
    }
    Ok(format!("Rust {RUST} is there"))
}

fn missing() -> String {
    format!(
        "this needs the rustdoc of Rust {RUST}, whose JSON it reads; run `rustup toolchain install {RUST}`"
    )
}

/// How cargo is told to use `RUST`: not at all where it is the current toolchain, by name where rustup has it.
fn toolchain() -> Done<Option<Vec<String>>> {
    let current = process::ask(
        Command::new("rustc")
            .arg("--version")
            .current_dir(workspace::root()),
    )?;
    if current.starts_with(&format!("rustc {RUST}.")) {
        return Ok(Some(Vec::new()));
    }
    let named = format!("+{RUST}");
    let there =
        process::answers(cargo([named.as_str(), "--version"]).env("RUSTUP_AUTO_INSTALL", "0"));
    Ok(there.then(|| vec![named]))
}

fn texts(toolchain: &[String]) -> Done<Vec<(PathBuf, String)>> {
    let graph = Graph::load()?;
    let ours: Vec<String> = graph
        .ours()
        .map(|package| package.name.replace('-', "_"))
        .collect();
    let rustdoc = rustdoc(&graph.target_directory)?;
    let mut texts = Vec::new();
    for package in graph
        .ours()
        .filter(|package| package.published && package.is_library())
    {
        let json = json(package, toolchain, &rustdoc, &graph.target_directory)?;
        let interface = Builder::from_rustdoc_json(json)
            .omit_blanket_impls(true)
            .omit_auto_trait_impls(true)
            .build()
            .map_err(|why| format!("{}: {why}", package.name))?;
        let items: Vec<String> = interface.items().map(ToString::to_string).collect();
        let file = Path::new("docs/api").join(format!("{}.txt", package.name));
        texts.push((file, text(&package.name, &items, &ours)));
    }
    Ok(texts)
}

fn text(name: &str, items: &[String], ours: &[String]) -> String {
    let foreign = foreign(items, ours);
    let mut text =
        format!("# Public interface of {name}, all features. Written by `cargo xtask api`.\n");
    if foreign.is_empty() {
        text.push_str("# No foreign type is part of it.\n");
    } else {
        text.push_str("# Foreign types that are part of it:\n");
        foreign
            .iter()
            .for_each(|path| text.push_str(&format!("#   {path}\n")));
    }
    text.push('\n');
    items
        .iter()
        .for_each(|item| text.push_str(&format!("{item}\n")));
    text
}

/// Paths that belong neither to the standard library nor to us.
fn foreign<'a>(items: &'a [String], ours: &[String]) -> BTreeSet<&'a str> {
    items
        .iter()
        .flat_map(|item| {
            item.split(|character: char| !(character.is_alphanumeric() || "_:".contains(character)))
        })
        .map(|path| path.trim_matches(':'))
        .filter(|path| {
            let Some((root, _)) = path.split_once("::") else {
                return false;
            };
            let generic = root.starts_with(|first: char| first.is_uppercase());
            !generic
                && !["std", "core", "alloc"].contains(&root)
                && !ours.iter().any(|name| name == root)
        })
        .collect()
}

fn json(package: &Package, toolchain: &[String], rustdoc: &Path, target: &Path) -> Done<PathBuf> {
    let mut command = cargo(toolchain);
    command.args(["rustdoc", "--quiet", "--locked", "--lib", "--all-features"]);
    command.arg(format!("--package={}", package.name));
    command.args([
        "--",
        "-Z",
        "unstable-options",
        "--output-format=json",
        "--cap-lints=allow",
    ]);
    process::run(command.env("RUSTDOC", rustdoc))?;
    Ok(target
        .join("doc")
        .join(format!("{}.json", package.name.replace('-', "_"))))
}

/// A rustdoc that accepts unstable options, as a two-line script in the target folder.
///
/// With RUSTC_BOOTSTRAP set for the whole of cargo, build scripts that look at it would run again, and everything above
/// them would be built again, both now and in the next ordinary build.
fn rustdoc(target: &Path) -> Done<PathBuf> {
    let script = target.join("xtask").join("rustdoc");
    let folder = target.join("xtask");
    fs::create_dir_all(&folder)
        .and_then(|()| {
            fs::write(
                &script,
                "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec rustdoc \"$@\"\n",
            )
        })
        .and_then(|()| fs::set_permissions(&script, fs::Permissions::from_mode(0o755)))
        .map_err(|why| format!("{}: {why}", script.display()))?;
    Ok(script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_types_are_named_and_ours_and_the_standard_ones_are_not() {
        let items = [
            "pub fn kvik_core::f(std::io::Error, &kvik_config::Config) -> T::Item".to_owned(),
            "impl serde_core::ser::Serialize for kvik_core::Probe".to_owned(),
        ];
        let ours = ["kvik_core".to_owned(), "kvik_config".to_owned()];
        assert_eq!(
            foreign(&items, &ours).into_iter().collect::<Vec<_>>(),
            ["serde_core::ser::Serialize"]
        );
        assert!(text("kvik-core", &items, &ours).contains("#   serde_core::ser::Serialize\n"));
    }
}
