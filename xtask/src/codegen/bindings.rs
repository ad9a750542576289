//! The bindings of kvik-sys: names from its sources, headers from the vendor's wheels, text from kvik-bindgen.
//!
//! The headers may not be handed on, so they are fetched when they are read, into the target folder. bindgen takes longer to
//! build than all of xtask, so it is a program of its own in xtask/bindgen, built here and nowhere else; CI does not run this.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, Done, cargo};
use crate::tidy::code;
use crate::workspace::{self, Graph};

/// What is fetched, to the last digit: another version of either may write other bytes.
const WHEELS: [&str; 3] = [
    "nvidia-cuda-runtime==13.5.37",
    "nvidia-cufile==1.20.0.107",
    "libclang==18.1.1",
];

const LIBRARIES: [&str; 2] = ["cuda", "cufile"];
const SOURCES: &str = "crates/kvik-sys/src";
const PROGRAM: &str = "xtask/bindgen/Cargo.toml";

const FIRST_LINE: &str = "//! Written by `cargo xtask codegen bindings`: of the vendor's header, what the names that this crate uses lead to.\n\n";

/// The files, and what is to stand in them.
pub(super) fn texts() -> Done<Vec<(PathBuf, String)>> {
    let work = Graph::load()?
        .target_directory
        .join("xtask")
        .join("bindings");
    let mut folders = WHEELS.iter().map(|wheel| fetched(wheel, &work));
    let (Some(cuda), Some(cufile), Some(clang)) = (folders.next(), folders.next(), folders.next())
    else {
        return Err("three wheels are needed".to_owned());
    };
    let cuda = folder_with(&cuda?, "cuda.h")?;
    let cufile = folder_with(&cufile?, "cufile.h")?;
    let clang = folder_with(&clang?, "libclang.so")?;
    let compiler = process::ask(Command::new("cc").arg("-print-file-name=include"))?;

    let names = work.join("names");
    let list: Vec<String> = names_in_use()?.into_iter().collect();
    fs::write(&names, list.join("\n")).map_err(|why| format!("{}: {why}", names.display()))?;
    let headers = [cuda.join("cuda.h"), cufile.join("cufile.h")];
    LIBRARIES
        .iter()
        .zip(&headers)
        .map(|(library, header)| {
            let mut command = cargo(["run", "--quiet", "--locked", "--manifest-path", PROGRAM]);
            command
                .arg("--target-dir")
                .arg(work.join("target"))
                .arg("--")
                .args([header, &names, &cuda])
                .arg(compiler.trim())
                .env("LIBCLANG_PATH", &clang);
            let text = process::ask(&mut command)?;
            let file = Path::new(SOURCES).join("raw").join(format!("{library}.rs"));
            Ok((file, format!("{FIRST_LINE}{text}")))
        })
        .collect()
}

/// Every name of the vendor's that the crate's own code uses.
fn names_in_use() -> Done<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for file in workspace::files()? {
        let own = file.starts_with(SOURCES) && !file.starts_with(Path::new(SOURCES).join("raw"));
        if own && let Some(text) = workspace::read(&file)? {
            names.extend(vendors_names(&text));
        }
    }
    Ok(names)
}

fn vendors_names(text: &str) -> BTreeSet<String> {
    code(text)
        .iter()
        .flat_map(|(_, line)| {
            line.split(|character: char| !(character.is_ascii_alphanumeric() || character == '_'))
        })
        .filter(|word| {
            let function = word
                .strip_prefix("cu")
                .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()));
            function || (word.starts_with("CU") && word.len() > 2)
        })
        .map(str::to_owned)
        .collect()
}

/// The folder with what is in a wheel, which is fetched where that did not happen yet.
fn fetched(wheel: &str, work: &Path) -> Done<PathBuf> {
    let folder = work.join(wheel.replace("==", "-"));
    let contents = folder.join("contents");
    if contents.is_dir() {
        return Ok(contents);
    }
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--dest"])
        .arg(&folder)
        .arg(wheel);
    process::run(&mut pip)?;
    let file = entries(&folder)?
        .into_iter()
        .find(|file| file.extension().is_some_and(|extension| extension == "whl"))
        .ok_or_else(|| format!("pip left no wheel in {}", folder.display()))?;
    // Under another name first, so that what is there under its own is whole.
    let unpacking = folder.join("unpacking");
    let mut unpack = Command::new("python3");
    unpack
        .args(["-m", "zipfile", "-e"])
        .args([&file, &unpacking]);
    process::run(&mut unpack)?;
    fs::rename(&unpacking, &contents).map_err(|why| format!("{}: {why}", contents.display()))?;
    Ok(contents)
}

/// The folder below this one that holds a file.
fn folder_with(folder: &Path, name: &str) -> Done<PathBuf> {
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        if next.join(name).is_file() {
            return Ok(next);
        }
        open.extend(entries(&next)?.into_iter().filter(|entry| entry.is_dir()));
    }
    Err(format!("there is no {name} below {}", folder.display()))
}

fn entries(folder: &Path) -> Done<Vec<PathBuf>> {
    let failed = |why| format!("{}: {why}", folder.display());
    let entries = fs::read_dir(folder).map_err(failed)?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<PathBuf>, _>>()
        .map_err(failed)?;
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_vendor_are_found_in_code_alone() {
        let text = "// cuInit\nlet x = (t.cuMemFree_v2)(CUresult::CUDA_SUCCESS, \"cuOther\", cut, CU);\nlet curl;\n";
        let names: Vec<String> = vendors_names(text).into_iter().collect();
        assert_eq!(names, ["CUDA_SUCCESS", "CUresult", "cuMemFree_v2"]);
    }
}
