//! KvikIO as a contender: what its users would write, in the worker, on the same file, with the same number of threads and
//! the same kind of memory.

use std::cell::RefCell;
use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::contender::{Contender, Role};
use crate::loops::by_threads;
use crate::pattern;
use crate::race::Moved;
use crate::rivals::Worker;
use crate::scenes::{LIST, Rival, WriteWay, difference};
use crate::trouble::{Doing, Outcome};

/// How KvikIO is set. `None` is its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KvikioWay {
    pub(crate) threads: Option<usize>,
    /// Its settings `auto_direct_io_read` and `auto_direct_io_write`.
    pub(crate) direct: Option<bool>,
}

impl KvikioWay {
    pub(crate) const fn new(threads: usize, direct: bool) -> Self {
        Self {
            threads: Some(threads),
            direct: Some(direct),
        }
    }

    fn name(&self) -> String {
        let threads = self
            .threads
            .map(|threads| format!(", {}", by_threads(threads)));
        let direct = match self.direct {
            None => "",
            Some(true) => ", direct",
            Some(false) => ", buffered",
        };
        let defaults = if *self == Self::default() {
            ", its defaults"
        } else {
            ""
        };
        format!("KvikIO{direct}{}{defaults}", threads.unwrap_or_default())
    }

    /// By which method it reads a map: the calling thread alone, or its pool.
    fn name_by_map(&self) -> String {
        match self.threads {
            None => "KvikIO, Mmap.read".into(),
            Some(threads) => format!("KvikIO, Mmap.pread, {}", by_threads(threads)),
        }
    }
}

/// What a case does, for those who do it in another process.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Job {
    /// One read from the start of the file into touched memory, so many bytes past a page boundary.
    Read { page_offset: usize },
    /// The same out of a map that stays, or that is made for the read.
    Map { page_offset: usize, once: bool },
    /// One read into memory that is allocated for it.
    Fresh,
    /// Reads of `size` bytes at random places of the first `len`, one after the other.
    Small { size: usize, len: u64 },
    /// The same, all of them in flight before one is waited for.
    List { size: usize, len: u64 },
    /// One write to the start of the file.
    Write { sync: bool },
    /// One read from the start of the file into memory of the device.
    DeviceRead,
    /// The same in the order of a stream.
    DeviceStream,
    /// One write from memory of the device to the start of the file.
    DeviceWrite,
    /// Reads of `size` bytes into memory of the device, `list` of them in flight before one is waited for.
    DeviceList { size: usize, list: usize, len: u64 },
    /// The same, one after the other.
    DeviceSmall { size: usize, list: usize, len: u64 },
}

pub(crate) struct Kvikio<'a> {
    worker: &'a RefCell<Worker>,
    way: KvikioWay,
    job: Job,
    path: PathBuf,
    /// The pattern of the file.
    seed: u64,
    salt: u64,
}

impl<'a> Kvikio<'a> {
    pub(super) fn new(
        worker: &'a RefCell<Worker>,
        way: KvikioWay,
        job: Job,
        path: &Path,
        seed: u64,
    ) -> Self {
        Self {
            worker,
            way,
            job,
            path: path.to_owned(),
            seed,
            salt: 0,
        }
    }

    /// The question, with all that the worker needs to know about this case.
    fn question(&self, what: &str, amount: u64) -> Value {
        let none = (0, 0, 0);
        let (kind, (size, list, len)) = match self.job {
            Job::Read { .. } => ("read", none),
            Job::Map { once: false, .. } => ("map", none),
            Job::Map { once: true, .. } => ("map-once", none),
            Job::Fresh => ("fresh", none),
            Job::Small { size, len } => ("small", (size, 1, len)),
            Job::List { size, len } => ("list", (size, LIST as usize, len)),
            Job::Write { .. } => ("write", none),
            Job::DeviceRead => ("device-read", none),
            Job::DeviceStream => ("device-stream", none),
            Job::DeviceWrite => ("device-write", none),
            Job::DeviceList { size, list, len } => ("device-list", (size, list, len)),
            Job::DeviceSmall { size, list, len } => ("device-small", (size, list, len)),
        };
        let page_offset = match self.job {
            Job::Read { page_offset } | Job::Map { page_offset, .. } => page_offset,
            _ => 0,
        };
        let sync = matches!(self.job, Job::Write { sync: true });
        json!({
            "do": what,
            "kind": kind,
            "list": list,
            "path": self.path.display().to_string(),
            "amount": amount,
            "page_offset": page_offset,
            "size": size,
            "len": len,
            "sync": sync,
            "threads": self.way.threads,
            "direct": self.way.direct,
            "seed": self.seed,
            "salt": self.salt,
        })
    }
}

impl Rival for Kvikio<'_> {
    fn contender(&self) -> Contender {
        let name = match self.job {
            Job::Map { .. } => self.way.name_by_map(),
            _ => self.way.name(),
        };
        Contender::new(Role::Kvikio, name)
    }

    fn prepare(&mut self, amount: u64, salt: u64) -> Outcome<()> {
        self.salt = salt;
        let question = self.question("prepare", amount);
        self.worker.borrow_mut().ask(&question).map(|_| ())
    }

    fn turn(&mut self, amount: u64) -> Outcome<Moved> {
        let question = self.question("turn", amount);
        self.worker.borrow_mut().timed(&question)
    }

    fn check(&mut self, amount: u64, _: u64) -> Outcome<Option<u64>> {
        let question = self.question("check", amount);
        self.worker.borrow_mut().wrong(&question)
    }

    fn prove(&mut self, amount: u64) -> Outcome<Option<u64>> {
        let question = self.question("prove", amount);
        let wrong = self.worker.borrow_mut().wrong(&question)?;
        let sync = match self.job {
            Job::Write { sync } => sync,
            Job::DeviceWrite => false,
            _ => return Ok(wrong),
        };
        // The worker has written the pattern of its salt, and somebody else looks.
        let way = match (sync, self.way.direct) {
            (true, _) => WriteWay::Synced,
            (false, Some(false)) => WriteWay::Cached,
            (false, _) => WriteWay::Direct,
        };
        let mut written = vec![0; amount as usize];
        pattern::fill(&mut written, self.salt, 0);
        let file = File::open(&self.path).doing("open", &self.path)?;
        difference(&self.path, &file, way, &written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_how_it_is_set() {
        assert_eq!(
            KvikioWay::new(2, false).name(),
            "KvikIO, buffered, 2 threads"
        );
        assert_eq!(KvikioWay::new(1, true).name(), "KvikIO, direct, 1 thread");
        assert_eq!(KvikioWay::default().name(), "KvikIO, its defaults");
        let by_map = KvikioWay {
            threads: Some(2),
            direct: None,
        };
        assert_eq!(by_map.name_by_map(), "KvikIO, Mmap.pread, 2 threads");
        assert_eq!(KvikioWay::default().name_by_map(), "KvikIO, Mmap.read");
    }
}
