//! What a new Debian 12 machine with Rust on it lacks for `cargo xtask ci`, and what single steps need beyond that.
//!
//! A C linker is not in the list: without one, xtask itself could not have been built.

use std::path::Path;
use std::process::Command;

use crate::process::{self, Done};
use crate::workspace;

/// A program the tests start, and the Debian package that brings it.
const PROGRAMS: [(&str, &str); 5] = [
    // The file systems that the conformance exam mounts from a loop device, as root.
    ("mkfs.btrfs", "btrfs-progs"),
    ("mkfs.ext4", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("losetup", "mount"),
    ("mount", "mount"),
];

/// The version CI is known to work with; a newer one that is already installed is left alone.
const NEXTEST: &str = "0.9.143";

/// The same for the program that builds the book.
const MDBOOK: &str = "0.5.4";

pub(crate) fn run() -> Done {
    packages()?;
    nextest()?;
    components()
}

fn packages() -> Done {
    let mut missing: Vec<&str> = PROGRAMS
        .iter()
        .filter(|(program, _)| !installed(program))
        .map(|(_, package)| *package)
        .collect();
    missing.dedup();
    if missing.is_empty() {
        return Ok(());
    }
    if !is_root()? {
        // Only root can mount, so for everybody else these are no use, and `xtask test` leaves those tests out.
        println!(
            "tests on ext4, xfs and btrfs need root, and `{}`",
            by_hand(&missing)
        );
        return Ok(());
    }
    install(&missing)
}

/// Installs packages of Debian's, or says that somebody must.
pub(crate) fn install(missing: &[&str]) -> Done {
    let by_hand = by_hand(missing);
    if !is_root()? {
        return Err(format!("as root: `{by_hand}`"));
    }
    if !installed("apt-get") {
        return Err(format!(
            "this is not a Debian machine; install what `{by_hand}` would"
        ));
    }
    process::run(Command::new("apt-get").args(["update", "--quiet"]))?;
    process::run(
        Command::new("apt-get")
            .args(["install", "--yes", "--quiet", "--no-install-recommends"])
            .args(missing)
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )
}

fn by_hand(missing: &[&str]) -> String {
    format!("apt-get update && apt-get install {}", missing.join(" "))
}

/// The program that runs the tests. Every step that needs it calls this, so that it can be the first step of a machine.
pub(crate) fn nextest() -> Done {
    if process::answers(&mut process::cargo(["nextest", "--version"])) {
        return Ok(());
    }
    // Without the feature that lets it replace itself by a download.
    process::run(&mut process::cargo([
        "install",
        "--locked",
        "--no-default-features",
        "--features=default-no-update",
        &format!("cargo-nextest@{NEXTEST}"),
    ]))
}

/// The program that builds the book.
pub(crate) fn mdbook() -> Done {
    if process::answers(Command::new("mdbook").arg("--version")) {
        return Ok(());
    }
    // Without the web server that shows a book while it is written.
    process::run(&mut process::cargo([
        "install",
        "--locked",
        "--no-default-features",
        "--features=search",
        &format!("mdbook@{MDBOOK}"),
    ]))
}

/// A toolchain beside the usual one, where rustup is there to install it; a toolchain that is there stays as it is.
pub(crate) fn toolchain(version: &str) -> Done {
    process::run(Command::new("rustup").args([
        "toolchain",
        "install",
        "--profile=minimal",
        "--no-self-update",
        version,
    ]))
}

fn components() -> Done {
    for (component, arguments) in [
        ("rustfmt", ["fmt", "--version"]),
        ("clippy", ["clippy", "--version"]),
    ] {
        if !process::answers(&mut process::cargo(arguments)) {
            return Err(format!(
                "{component} is missing; run `rustup component add {component}`"
            ));
        }
    }
    Ok(())
}

fn installed(program: &str) -> bool {
    // The usual folders rather than $PATH, in which a plain user has no sbin.
    [
        "/usr/local/sbin",
        "/usr/local/bin",
        "/usr/sbin",
        "/usr/bin",
        "/sbin",
        "/bin",
    ]
    .iter()
    .any(|folder| Path::new(folder).join(program).is_file())
}

pub(crate) fn is_root() -> Done<bool> {
    let id = process::ask(Command::new("id").arg("-u").current_dir(workspace::root()))?;
    Ok(id.trim() == "0")
}
