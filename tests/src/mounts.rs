//! File systems of a test's own: made in a sparse image or in memory, mounted where only the test sees them.
//!
//! The test's thread moves into a mount namespace of its own first. So no other process sees the mounts, and the kernel
//! takes them away even when the test is killed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use tempfile::TempDir;

use crate::need;

/// Which file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// XFS in an image.
    Xfs,
    /// Btrfs in an image.
    Btrfs,
    /// Ext4 in an image.
    Ext4,
    /// A tmpfs.
    Tmpfs,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Xfs => "xfs",
            Kind::Btrfs => "btrfs",
            Kind::Ext4 => "ext4",
            Kind::Tmpfs => "tmpfs",
        }
    }

    fn package(self) -> &'static str {
        match self {
            Kind::Xfs => "xfsprogs",
            Kind::Btrfs => "btrfs-progs",
            Kind::Ext4 => "e2fsprogs",
            Kind::Tmpfs => "mount",
        }
    }
}

/// A mounted file system; unmounted on drop. Open files on it must be closed before.
#[derive(Debug)]
pub struct Mount {
    point: TempDir,
    // What lies below: an image, or the folders of an overlay.
    _below: Option<TempDir>,
}

impl Mount {
    /// Makes and mounts a file system of `size` bytes. XFS wants 300 MiB at least, Btrfs 110; images are sparse.
    #[track_caller]
    #[must_use]
    pub fn new(kind: Kind, size: u64) -> Mount {
        need::root();
        leave_the_shared_namespace();
        let prefix = format!("kvik-{}-{}-", kind.name(), std::process::id());
        let point = tempfile::Builder::new().prefix(&prefix).tempdir().unwrap();
        let mount = need::program("mount", "mount");
        if kind == Kind::Tmpfs {
            let size = format!("size={size}");
            run(Command::new(mount)
                .args(["-t", "tmpfs", "-o", &size, "kvik-tests"])
                .arg(point.path()));
            return Mount {
                point,
                _below: None,
            };
        }
        let folder = tempfile::Builder::new().prefix(&prefix).tempdir().unwrap();
        let image = folder.path().join("image");
        File::create(&image).unwrap().set_len(size).unwrap();
        run(Command::new(need::program(
            &format!("mkfs.{}", kind.name()),
            kind.package(),
        ))
        .arg("-q")
        .arg(&image));
        run(Command::new(mount)
            .args(["-t", kind.name(), "-o", "loop"])
            .arg(&image)
            .arg(point.path()));
        Mount {
            point,
            _below: Some(folder),
        }
    }

    /// An overlay over an empty folder on the disk of `/var/tmp`.
    #[track_caller]
    #[must_use]
    pub fn overlay() -> Mount {
        need::root();
        leave_the_shared_namespace();
        let point = tempfile::Builder::new().prefix("kvik-").tempdir().unwrap();
        let below = tempfile::tempdir_in("/var/tmp").unwrap();
        let mut options = String::new();
        for (name, folder) in [("lowerdir", "l"), (",upperdir", "u"), (",workdir", "w")] {
            let folder = below.path().join(folder);
            std::fs::create_dir(&folder).unwrap();
            options.push_str(&format!("{name}={}", folder.display()));
        }
        run(Command::new(need::program("mount", "mount"))
            .args(["-t", "overlay", "-o", &options, "kvik-tests"])
            .arg(point.path()));
        Mount {
            point,
            _below: Some(below),
        }
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.point.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let umount = |lazily: Option<&str>| {
            let program = need::program("umount", "mount");
            let done = Command::new(program).args(lazily).arg(self.path()).output();
            done.is_ok_and(|output| output.status.success())
        };
        // While a test unwinds, a file may be open still; then the mount goes when it is closed.
        if std::thread::panicking() {
            umount(Some("--lazy"));
            return;
        }
        // A child that another thread has forked holds our files too, until its exec.
        let limit = Instant::now() + Duration::from_secs(20);
        while !umount(None) {
            assert!(
                Instant::now() < limit,
                "{} cannot be unmounted: a file on it is open",
                self.path().display()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A block device over a file; taken down on drop.
#[derive(Debug)]
pub struct LoopDevice {
    path: PathBuf,
}

impl LoopDevice {
    /// A block device with the content of the file `image`.
    #[track_caller]
    #[must_use]
    pub fn new(image: &Path) -> LoopDevice {
        need::root();
        let program = need::program("losetup", "mount");
        let made = Command::new(program)
            .args(["--find", "--show"])
            .arg(image)
            .output()
            .unwrap();
        assert!(
            made.status.success(),
            "losetup: {}",
            String::from_utf8_lossy(&made.stderr)
        );
        LoopDevice {
            path: String::from_utf8(made.stdout).unwrap().trim_end().into(),
        }
    }

    /// The device's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let program = need::program("losetup", "mount");
        let done = Command::new(program)
            .arg("--detach")
            .arg(&self.path)
            .status()
            .is_ok_and(|status| status.success());
        assert!(
            done || std::thread::panicking(),
            "{} could not be taken down",
            self.path.display()
        );
    }
}

#[track_caller]
fn leave_the_shared_namespace() {
    if let Err(errno) = unshare(CloneFlags::CLONE_NEWNS) {
        panic!(
            "this test needs a mount namespace of its own, which root is refused here ({errno}): it may be running in a \
                container without CAP_SYS_ADMIN. Leave it out: cargo nextest run -E 'not test(file_systems)'"
        );
    }
    run(Command::new(need::program("mount", "mount")).args(["--make-rprivate", "/"]));
}

#[track_caller]
fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?} failed ({}): {}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
