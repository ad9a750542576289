//! The network interfaces of the machine, as `/sys/class/net` shows them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::options::Device;
use crate::plugin::Failure;
use crate::rate::Reading;

/// The folder with one folder for each interface.
#[derive(Clone, Debug)]
pub(crate) struct Interfaces {
    folder: PathBuf,
}

impl Interfaces {
    pub(crate) fn new(folder: &Path) -> Self {
        Interfaces {
            folder: folder.to_owned(),
        }
    }

    /// The names of those to sample, in order: all that `device` matches, or all that carry traffic to other machines.
    pub(crate) fn choose(&self, device: Option<&Device>) -> Result<Vec<String>, Failure> {
        let all = self.names().map_err(|source| Failure::Folder {
            folder: self.folder.clone(),
            source,
        })?;
        let Some(device) = device else {
            let busy: Vec<String> = all
                .into_iter()
                .filter(|name| self.is_up(name) && !self.is_loopback(name))
                .collect();
            return if busy.is_empty() {
                Err(Failure::NothingUp)
            } else {
                Ok(busy)
            };
        };
        let (chosen, other): (Vec<String>, Vec<String>) =
            all.into_iter().partition(|name| device.matches(name));
        if chosen.is_empty() {
            return Err(Failure::NoSuchInterface {
                device: device.as_str().to_owned(),
                there: other,
            });
        }
        Ok(chosen)
    }

    /// The counters of one interface now, which is the moment `at`.
    pub(crate) fn read(&self, name: &str, at: Duration) -> io::Result<Reading> {
        let index = self.number(name, "ifindex")?;
        Ok(Reading {
            at,
            index,
            received: self.number(name, "statistics/rx_bytes")?,
            sent: self.number(name, "statistics/tx_bytes")?,
        })
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            // Plain files stand there too, as `bonding_masters`. The name of an interface may be any bytes; one that is no
            // text cannot be asked for and has no name that NVTX could be told.
            let name = entry.file_name().into_string().ok();
            names.extend(name.filter(|_| entry.path().is_dir()));
        }
        names.sort_unstable();
        Ok(names)
    }

    fn is_up(&self, name: &str) -> bool {
        let state = self.text(name, "operstate").unwrap_or_default();
        // Drivers that do not watch their link say `unknown`, and may well be busy.
        matches!(state.trim(), "up" | "unknown")
    }

    fn is_loopback(&self, name: &str) -> bool {
        self.number(name, "type").is_ok_and(|kind| kind == LOOPBACK)
    }

    fn text(&self, name: &str, file: &str) -> io::Result<String> {
        fs::read_to_string(self.folder.join(name).join(file))
    }

    fn number(&self, name: &str, file: &str) -> io::Result<u64> {
        let text = self.text(name, file)?;
        text.trim()
            .parse()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}

// ARPHRD_LOOPBACK of <net/if_arp.h>.
const LOOPBACK: u64 = 772;
