//! What a test needs from the machine. What is missing fails the test, with the sentence that gets it.

use std::path::{Path, PathBuf};

use kvik::{Config, FileProbe, Layer};

use crate::fake;
use crate::gpu::Gpu;
use crate::server::Server;

/// Fails unless the process is root.
#[track_caller]
pub fn root() {
    assert!(
        nix::unistd::geteuid().is_root(),
        "this test mounts file systems or makes loop devices, for which it must be root. Run it as root (sudo -E cargo \
         nextest run -p kvik-tests), or leave it out: cargo nextest run -E 'not test(file_systems)'"
    );
}

/// A device: the fake driver's, or that of the machine if the variable `KVIK_TEST_GPU` says `real`. Fails without one.
#[track_caller]
pub fn gpu() -> Gpu {
    Gpu::take(is_real()).unwrap_or_else(|why| {
        panic!(
            "this test needs an NVIDIA GPU and its driver: {why}. Carry target/gpu-bundle, which `cargo xtask gpu-bundle` makes, to \
             a machine with one and run ./run.sh test there; or leave KVIK_TEST_GPU away, and it runs on the fake driver"
        )
    })
}

/// cuFile, for the files in `folder`: the fake one, or that of the machine beside a real device. Fails where that one would
/// register no file, for want of a record of udev.
#[track_caller]
pub fn cufile(_: &Gpu, folder: &Path) {
    if !is_real() {
        let fake = Layer::new().cufile_library(Some(fake::cufile()));
        return Config::set_process(fake).unwrap();
    }
    let probe = FileProbe::of(folder).unwrap();
    let why = probe.udev_record.why_not();
    let why = why.filter(|_| probe.block_device.known().is_some());
    assert!(
        why.is_none(),
        "this test needs a disk that udev knows: {}. Run ./run.sh --udev of the bundle as root, which writes what udevd would, for as long as the tests run",
        why.unwrap_or_default()
    );
}

/// A server of those that `cargo xtask servers up` starts: `http`, `throttled`, `https`, `http2`, `s3`, `webhdfs` or `proxy`.
#[track_caller]
#[must_use]
pub fn server(name: &str) -> Server {
    Server::find(name).unwrap_or_else(|why| {
        panic!(
            "this test needs the server `{name}`: {why}. `cargo xtask servers up` starts it; `cargo xtask test servers` starts \
             all, runs these tests and ends them"
        )
    })
}

/// Whether this run of the tests is for a real device.
#[expect(
    clippy::disallowed_methods,
    reason = "no setting of kvik's, but what this run of the tests is for"
)]
fn is_real() -> bool {
    std::env::var_os("KVIK_TEST_GPU").is_some_and(|which| which == "real")
}

/// The path of `program`; fails with the name of the Debian package that has it.
#[track_caller]
#[must_use]
pub fn program(program: &str, package: &str) -> PathBuf {
    let found = FOLDERS
        .iter()
        .map(|folder| Path::new(folder).join(program))
        .find(|path| path.exists());
    found.unwrap_or_else(|| {
        panic!("this test needs the program `{program}`: apt-get install {package} (cargo xtask setup does it)")
    })
}

// Not PATH: that of an ordinary user often lacks the folders where mkfs and losetup are.
const FOLDERS: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];
