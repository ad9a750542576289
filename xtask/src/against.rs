//! `cargo xtask bench file --against-kvikio`: installs the released KvikIO and fio, and lets them run in turn with kvik.
//!
//! Nothing of the vendor's is in the repository. The wheels go into a virtual environment under the target folder, from
//! whichever package index this machine's pip uses; a second run finds them there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, Done, cargo};
use crate::setup;
use crate::workspace::{self, Graph};

/// The flag that asks for all this, and is no flag of the benchmark's.
pub(crate) const FLAG: &str = "--against-kvikio";

/// What the comparison needs of KvikIO. Without their dependencies, which include two gigabytes of CUDA libraries for the
/// device that is not measured here.
const WHEELS: [&str; 7] = [
    "kvikio-cu13==26.10.*",
    "libkvikio-cu13==26.10.*",
    "nvidia-cufile",
    "rapids-logger",
    "cuda-pathfinder",
    "packaging",
    "numpy==2.*",
];
const STUB: &str = "bench/compare/stub_cuda.c";

pub(crate) fn run(arguments: &[String]) -> Done {
    let rest = rest(arguments)?;
    let folder = Graph::load()?.target_directory.join("against-kvikio");
    fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let python = python(&folder)?;
    let mut command = cargo([
        "run",
        "--release",
        "--locked",
        "--package=kvik-bench",
        "--example=compare",
        "--",
    ]);
    command.arg("--python").arg(&python);
    if let Some(libraries) = libraries(&folder, &python)? {
        command.arg("--libraries").arg(libraries);
    }
    if fio()? {
        command.args(["--fio", FIO]);
    }
    process::run(command.args(rest))
}

/// What the benchmark itself is told: all but the word `file`, which the only suite of this kind needs not, and the flag.
fn rest(arguments: &[String]) -> Done<Vec<&String>> {
    let rest: Vec<_> = arguments.iter().filter(|word| *word != FLAG).collect();
    match rest.split_first() {
        Some((suite, rest)) if *suite == "file" => Ok(rest.to_vec()),
        _ => Err(format!("write `cargo xtask bench file {FLAG}`")),
    }
}

/// The interpreter of the virtual environment, which is made when it is not there or is not as it should be.
fn python(folder: &Path) -> Done<PathBuf> {
    let environment = folder.join("venv");
    let python = environment.join("bin/python");
    let wanted = WHEELS.join("\n");
    let noted = environment.join("wheels.txt");
    if fs::read_to_string(&noted).is_ok_and(|there| there == wanted) {
        return Ok(python);
    }
    process::run(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&environment),
    )?;
    process::run(
        Command::new(&python)
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
            ])
            .arg("--no-deps")
            .args(WHEELS),
    )?;
    fs::write(&noted, wanted).map_err(|why| format!("{}: {why}", noted.display()))?;
    Ok(python)
}

/// A folder with a stand-in for libcuda, where the machine has no real one: KvikIO loads it also for memory of the host.
fn libraries(folder: &Path, python: &Path) -> Done<Option<PathBuf>> {
    let load = "import ctypes; ctypes.CDLL('libcuda.so.1')";
    if process::answers(Command::new(python).args(["-I", "-c", load])) {
        return Ok(None);
    }
    let libraries = folder.join("libraries");
    fs::create_dir_all(&libraries).map_err(|why| format!("{}: {why}", libraries.display()))?;
    process::run(
        Command::new("cc")
            .args([
                "-shared",
                "-fPIC",
                "-O1",
                "-Wall",
                "-Wextra",
                "-Wl,-soname,libcuda.so.1",
            ])
            .arg("-o")
            .arg(libraries.join("libcuda.so.1"))
            .arg(workspace::root().join(STUB)),
    )?;
    Ok(Some(libraries))
}

/// Whether fio is there, after it was installed where that can be done without asking.
fn fio() -> Done<bool> {
    let there = || process::answers(Command::new(FIO).arg("--version"));
    if there() {
        return Ok(true);
    }
    if setup::is_root()? && process::answers(Command::new("apt-get").arg("--version")) {
        process::run(Command::new("apt-get").args(["update", "--quiet"]))?;
        process::run(
            Command::new("apt-get")
                .args([
                    "install",
                    "--yes",
                    "--quiet",
                    "--no-install-recommends",
                    FIO,
                ])
                .env("DEBIAN_FRONTEND", "noninteractive"),
        )?;
        return Ok(there());
    }
    println!("fio is not installed (`apt-get install fio`); the second limit is left out");
    Ok(false)
}

const FIO: &str = "fio";

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_flag_may_stand_anywhere_and_the_rest_is_passed_on() {
        for text in [
            "file --against-kvikio --case cold",
            "--against-kvikio file --case cold",
            "file --case cold --against-kvikio",
        ] {
            let arguments = words(text);
            let rest = rest(&arguments).expect("well formed");
            assert_eq!(rest, ["--case", "cold"], "{text}");
        }
        assert!(rest(&words("--against-kvikio")).is_err());
    }
}
