//! `cargo xtask gpu-bundle`: all that runs on a machine with a GPU, in one folder that needs no toolchain there.
//!
//! `target/gpu-bundle` of the checkout has the command, the test binaries, the program that tests start, KvikIO's released
//! wheels for a comparison, and run.sh, which says at its top what it can do. Everything is from a release build, stripped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::process::{self, Done, cargo};
use crate::workspace::{self, Graph};

/// Where programs and tests come from.
const PACKAGES: [&str; 2] = ["kvik-cli", "kvik-tests"];
/// The command, and the program that is started where the subject is a process.
const PROGRAMS: [&str; 2] = ["kvik", "kvik-tests-child"];
/// Tests that run on the device. Without `KVIK_TEST_GPU=real` they would look for the fake driver.
const TESTS: [&str; 1] = ["gpu"];

/// KvikIO's wheels without what the machine's Python must have itself: CuPy, numpy and NVIDIA's libraries.
const WHEELS: [&str; 3] = [
    "kvikio-cu13==26.10.*",
    "libkvikio-cu13==26.10.*",
    "rapids-logger==0.3.*",
];

/// The Python that the wheels are for, and the platforms that its pip would accept.
const PYTHON: &str = "3.12";
const PLATFORMS: [&str; 5] = [
    "manylinux_2_28_x86_64",
    "manylinux_2_27_x86_64",
    "manylinux_2_24_x86_64",
    "manylinux_2_17_x86_64",
    "manylinux2014_x86_64",
];

const SCRIPT: &str = include_str!("bundle/run.sh");

pub(crate) fn run(rivals: bool) -> Done {
    let folder = workspace::root().join("target/gpu-bundle");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    }
    for part in ["bin", "tests"] {
        let part = folder.join(part);
        fs::create_dir_all(&part).map_err(|why| format!("{}: {why}", part.display()))?;
    }
    let built = build()?;
    for name in PROGRAMS {
        place(&built, name, &folder.join("bin"))?;
    }
    for target in TESTS {
        place(&built, target, &folder.join("tests"))?;
    }
    if rivals {
        wheels(&folder.join("wheels"))?;
    }
    let script = folder.join("run.sh");
    fs::write(&script, SCRIPT).map_err(|why| format!("{}: {why}", script.display()))?;
    process::run(Command::new("chmod").arg("755").arg(&script))?;
    measure(&folder)
}

/// Builds everything by one call, so that no crate is built twice, and returns the programs that it made.
fn build() -> Done<Vec<(String, PathBuf)>> {
    let mut command = cargo(["build", "--release", "--locked"]);
    command.arg("--message-format=json-render-diagnostics");
    for (flag, names) in [
        ("--package", &PACKAGES[..]),
        ("--bin", &PROGRAMS),
        ("--test", &TESTS),
    ] {
        command.args(names.iter().flat_map(|name| [flag, name]));
    }
    println!("$ cargo build --release ...");
    Ok(programs(&process::ask(&mut command)?))
}

/// Name and file of each program among cargo's messages.
fn programs(messages: &str) -> Vec<(String, PathBuf)> {
    let parsed = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    parsed
        .filter_map(|message| {
            let file = message["executable"].as_str()?;
            let name = message["target"]["name"].as_str()?;
            Some((name.to_owned(), PathBuf::from(file)))
        })
        .collect()
}

/// Copies the program of this name into a folder, without its symbols.
fn place(built: &[(String, PathBuf)], name: &str, folder: &Path) -> Done {
    let found = built.iter().find(|(built, _)| built == name);
    let (_, file) = found.ok_or_else(|| format!("cargo made no program called {name}"))?;
    process::run(
        Command::new("strip")
            .arg("-o")
            .arg(folder.join(name))
            .arg(file),
    )
}

/// The wheels, fetched once for all bundles.
fn wheels(folder: &Path) -> Done {
    let kept = Graph::load()?.target_directory.join("gpu-wheels");
    let (noted, wanted) = (kept.join("wheels.txt"), WHEELS.join("\n"));
    if fs::read_to_string(&noted).is_ok_and(|there| there == wanted) {
        println!("wheels of KvikIO: as fetched before");
    } else {
        let _ = fs::remove_dir_all(&kept);
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "download", "--quiet", "--no-deps"])
            .args(["--disable-pip-version-check", "--only-binary=:all:"])
            .args(["--implementation", "cp", "--python-version", PYTHON])
            .args(PLATFORMS.iter().flat_map(|name| ["--platform", name]))
            .arg("--dest")
            .arg(&kept)
            .args(WHEELS);
        process::run(&mut pip)?;
        fs::write(&noted, wanted).map_err(|why| format!("{}: {why}", noted.display()))?;
    }
    fs::create_dir_all(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let files = fs::read_dir(&kept).map_err(|why| format!("{}: {why}", kept.display()))?;
    for file in files.flatten().map(|entry| entry.path()) {
        if file.extension().is_some_and(|ending| ending == "whl") {
            let name = file.file_name().unwrap_or_default();
            fs::copy(&file, folder.join(name))
                .map_err(|why| format!("{}: {why}", file.display()))?;
        }
    }
    Ok(())
}

/// Says how large the bundle is; one that is too large to be carried is a failure.
fn measure(folder: &Path) -> Done {
    let said = process::ask(Command::new("du").arg("-sk").arg(folder))?;
    let kib: u64 = said
        .split_whitespace()
        .next()
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| format!("du said {said:?}"))?;
    println!("{}: {} MiB", folder.display(), kib.div_ceil(1024));
    if kib > MOST_MIB * 1024 {
        return Err(format!("a bundle has {MOST_MIB} MiB at most"));
    }
    Ok(())
}

/// What a machine with a GPU may be lent for takes no more.
const MOST_MIB: u64 = 55;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_among_the_messages_of_cargo() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","target":{"name":"kvik"},"executable":null}"#,
            "\n",
            r#"{"reason":"compiler-artifact","target":{"name":"gpu"},"executable":"/t/gpu-1"}"#,
            "\nno JSON\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        let found = programs(messages);
        assert_eq!(found, [("gpu".to_owned(), PathBuf::from("/t/gpu-1"))]);
    }

    #[test]
    fn the_script_names_what_it_can_do() {
        let steps = [
            ("test", "tests"),
            ("stream", "stream"),
            ("gds", "gds"),
            ("--udev", "udev"),
            ("exits", "exits"),
            ("memcheck", "memcheck"),
            ("compat", "compat"),
            ("copy", "copy"),
            ("bench", "bench"),
            ("all", "all"),
        ];
        for (word, function) in steps {
            assert!(SCRIPT.contains(&format!("\n#   run.sh {word}")), "{word}");
            assert!(SCRIPT.contains(&format!("\n{function}() {{")), "{word}");
        }
    }
}
