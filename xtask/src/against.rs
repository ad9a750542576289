//! `cargo xtask bench file --against-kvikio`, `cargo xtask bench mmap --against-kvikio` and `cargo xtask bench remote
//! --against-kvikio --against-obstore`: installs the others, and lets them run in turn with kvik.
//!
//! Nothing of the vendor's is in the repository. The wheels go into a virtual environment under the target folder, from
//! whichever package index this machine's pip uses; a second run finds them there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, Done, cargo};
use crate::servers;
use crate::setup;
use crate::workspace::{self, Graph};

/// The flags that ask for all this, and are no flags of the benchmarks'.
const KVIKIO: &str = "--against-kvikio";
const OBSTORE: &str = "--against-obstore";

/// Whether others are to take part.
pub(crate) fn is_wanted(arguments: &[String]) -> bool {
    arguments.iter().any(|word| is_ours(word))
}

fn is_ours(word: &str) -> bool {
    word == KVIKIO || word == OBSTORE
}

/// What the comparison needs of KvikIO. Without their dependencies, which include two gigabytes of CUDA libraries for the
/// device that is not measured here.
const WHEELS: [&str; 8] = [
    "kvikio-cu13==26.10.*",
    "libkvikio-cu13==26.10.*",
    "nvidia-cufile",
    "rapids-logger",
    "cuda-pathfinder",
    "packaging",
    "numpy==2.*",
    "obstore==0.12.*",
];
const STUB: &str = "bench/compare/stub_cuda.c";

pub(crate) fn run(arguments: &[String]) -> Done {
    let (suite, rest) = suite(arguments)?;
    let folder = Graph::load()?.target_directory.join("against-kvikio");
    fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let python = python(&folder)?;
    let mut command = cargo(["run", "--release", "--locked", "--package=kvik-bench"]);
    command
        .arg(format!("--example={}", suite.example()))
        .arg("--");
    if suite.has_kvikio() {
        command.arg("--python").arg(&python);
        if let Some(libraries) = libraries(&folder, &python)? {
            command.arg("--libraries").arg(libraries);
        }
    }
    match suite {
        Suite::File => {
            if fio()? {
                command.args(["--fio", FIO]);
            }
        }
        Suite::Maps => {}
        Suite::Remote { obstore, .. } => {
            if obstore {
                command.arg("--obstore").arg(&python);
            }
            command.arg("--nginx").arg(servers::nginx()?);
            match servers::free_file_of_hdfs()? {
                Some(url) => drop(command.arg("--webhdfs").arg(url)),
                None => println!(
                    "no cluster of HDFS is up (`cargo xtask servers up` starts one); its cases are left out"
                ),
            }
        }
    }
    process::run(command.args(rest))
}

/// What is measured, and who takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Suite {
    File,
    Maps,
    Remote { kvikio: bool, obstore: bool },
}

impl Suite {
    /// The program of kvik-bench that measures it.
    fn example(self) -> &'static str {
        match self {
            Self::File => "compare",
            Self::Maps => "maps",
            Self::Remote { .. } => "remote",
        }
    }

    fn has_kvikio(self) -> bool {
        match self {
            Self::File | Self::Maps => true,
            Self::Remote { kvikio, .. } => kvikio,
        }
    }
}

/// The suite, and what the benchmark itself is told: all but its name and the flags that are ours.
fn suite(arguments: &[String]) -> Done<(Suite, Vec<&String>)> {
    let has = |flag: &str| arguments.iter().any(|word| word == flag);
    let rest: Vec<_> = arguments.iter().filter(|word| !is_ours(word)).collect();
    let (kvikio, obstore) = (has(KVIKIO), has(OBSTORE));
    match rest.split_first() {
        Some((suite, rest)) if *suite == "file" && !obstore => Ok((Suite::File, rest.to_vec())),
        Some((suite, rest)) if *suite == "mmap" && !obstore => Ok((Suite::Maps, rest.to_vec())),
        Some((suite, rest)) if *suite == "remote" => {
            Ok((Suite::Remote { kvikio, obstore }, rest.to_vec()))
        }
        _ => Err(format!(
            "write `cargo xtask bench file {KVIKIO}`, `cargo xtask bench mmap {KVIKIO}` or `cargo xtask bench remote {KVIKIO} {OBSTORE}`"
        )),
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
            let (suite, rest) = suite(&arguments).expect("well formed");
            assert_eq!((suite, suite.example()), (Suite::File, "compare"));
            assert_eq!(rest, ["--case", "cold"], "{text}");
        }
        let arguments = words("mmap --against-kvikio --case kept");
        let (maps, rest) = suite(&arguments).expect("well formed");
        assert_eq!((maps, maps.example()), (Suite::Maps, "maps"));
        assert!(maps.has_kvikio());
        assert_eq!(rest, ["--case", "kept"]);
        for text in [
            "--against-kvikio",
            "file --against-obstore",
            "mmap --against-kvikio --against-obstore",
            "gpu --against-kvikio",
        ] {
            assert!(suite(&words(text)).is_err(), "{text}");
        }
    }

    #[test]
    fn remote_reads_are_measured_beside_whom_the_flags_name() {
        for (text, kvikio, obstore) in [
            ("remote --against-kvikio --case tls", true, false),
            ("remote --case tls --against-obstore", false, true),
            (
                "--against-obstore remote --against-kvikio --case tls",
                true,
                true,
            ),
        ] {
            let arguments = words(text);
            assert!(is_wanted(&arguments));
            let (suite, rest) = suite(&arguments).expect("well formed");
            assert_eq!(suite, Suite::Remote { kvikio, obstore }, "{text}");
            assert_eq!((suite.has_kvikio(), suite.example()), (kvikio, "remote"));
            assert_eq!(rest, ["--case", "tls"], "{text}");
        }
        assert!(!is_wanted(&words("remote --case tls")));
    }
}
