//! Where everything about the servers lies, and the lock that lets one command at a time change it.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::process::Done;
use crate::workspace::Graph;

/// The folder `servers` of the target folder.
pub(super) struct Place {
    root: PathBuf,
}

impl Place {
    pub(super) fn find() -> Done<Self> {
        Self::at(&Graph::load()?.target_directory.join("servers"))
    }

    /// The same in another folder.
    pub(super) fn at(root: &Path) -> Done<Self> {
        make(root)?;
        // As the kernel names the folders that processes work in.
        let root = root
            .canonicalize()
            .map_err(|why| format!("{}: {why}", root.display()))?;
        Ok(Self { root })
    }

    /// What was fetched, and is as good for the next time.
    pub(super) fn fetched(&self) -> PathBuf {
        self.root.join("fetched")
    }

    /// Where it is put together. Each command has a folder of its own, which nothing that a killed one left writes to.
    pub(super) fn fetching(&self) -> Done<PathBuf> {
        const NAME: &str = "fetching";
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        for old in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(NAME)) {
            remove(&old.path())?;
        }
        Ok(self.root.join(format!("{NAME}-{}", std::process::id())))
    }

    /// The folder that a running server works in.
    pub(super) fn run(&self, server: &str) -> PathBuf {
        self.root.join("run").join(server)
    }

    /// The groups of processes that were started, a file each.
    pub(super) fn groups(&self) -> PathBuf {
        self.root.join("groups")
    }

    pub(super) fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    pub(super) fn log(&self, server: &str) -> PathBuf {
        self.logs().join(format!("{server}.log"))
    }

    /// What the tests read.
    pub(super) fn state(&self) -> PathBuf {
        self.root.join("servers.json")
    }

    /// Waits until no other command starts or ends servers. The lock goes with the file that is returned.
    pub(super) fn lock(&self) -> Done<File> {
        let path = self.root.join("lock");
        let file = File::create(&path).map_err(|why| format!("{}: {why}", path.display()))?;
        let begin = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if begin.elapsed() < OTHERS => {
                    thread::sleep(Duration::from_millis(200));
                }
                Err(why) => {
                    return Err(format!(
                        "{}: {why}; another `cargo xtask servers` is at work",
                        path.display()
                    ));
                }
            }
        }
    }

    /// Lets a program say into the server's log all that it says.
    pub(super) fn logged<'c>(
        &self,
        server: &str,
        command: &'c mut Command,
    ) -> Done<&'c mut Command> {
        let path = self.log(server);
        let out = File::create(&path).and_then(|file| Ok((file.try_clone()?, file)));
        let (out, err) = out.map_err(|why| format!("{}: {why}", path.display()))?;
        Ok(command.stdout(out).stderr(err))
    }

    /// Empty folders for a new start.
    pub(super) fn prepare(&self) -> Done {
        remove(&self.logs())?;
        for folder in [self.run(""), self.groups(), self.logs()] {
            make(&folder)?;
        }
        Ok(())
    }

    /// Removes what belongs to running servers.
    pub(super) fn clear(&self) -> Done {
        remove(&self.run(""))?;
        remove(&self.groups())
    }
}

/// A cold `up` of somebody else's takes this long at most.
const OTHERS: Duration = Duration::from_secs(600);

/// The last lines of a file, whatever it holds.
pub(super) fn end_of(log: &Path) -> String {
    let mut bytes = Vec::new();
    let read = File::open(log).and_then(|mut file| {
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(3000)))?;
        file.read_to_end(&mut bytes)
    });
    if let Err(why) = read {
        return format!("{}: {why}", log.display());
    }
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

/// A folder, with those above it.
pub(super) fn make(folder: &Path) -> Done {
    fs::create_dir_all(folder).map_err(|why| format!("{}: {why}", folder.display()))
}

pub(super) fn remove(folder: &Path) -> Done {
    match fs::remove_dir_all(folder) {
        Err(why) if folder.exists() => Err(format!("{}: {why}", folder.display())),
        _ => Ok(()),
    }
}

/// Removes a file, which may be gone.
pub(super) fn forget(file: &Path) -> Done {
    match fs::remove_file(file) {
        Err(why) if file.exists() => Err(format!("{}: {why}", file.display())),
        _ => Ok(()),
    }
}

pub(super) fn write(file: &Path, text: &str) -> Done {
    fs::write(file, text).map_err(|why| format!("{}: {why}", file.display()))
}

/// A path as the configuration files of servers take it.
pub(super) fn text(path: &Path) -> Done<&str> {
    path.to_str()
        .filter(|text| !text.contains(['"', '\\', ' ', ';', '$', '{', '<', '&', ':']))
        .ok_or_else(|| {
            format!(
                "{}: servers cannot be configured with such a path; set CARGO_TARGET_DIR to one of plain letters",
                path.display()
            )
        })
}
