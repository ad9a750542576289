//! What a run is asked for, and what it tells while it runs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::report::Case;

/// What to measure, and with how much. `Options::default()` is `kvik bench` with nothing else: about a minute.
///
/// # Example: only the cases that write, in a folder of one's own choice
/// ```
/// use kvik_bench::Options;
///
/// let options = Options { dir: Some("/mnt/fast".into()), cases: vec!["write".into()], ..Options::default() };
/// assert_eq!(options.size, 1 << 30);
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the files of the run are made, in a fresh folder that is removed at the end. `None`: the folder for temporary
    /// files unless it is kept in memory, else the working directory.
    pub dir: Option<PathBuf>,
    /// The length of the data file in bytes, at most. Less is used where disk or memory are small, or the disk slow; the
    /// report says so. A turn may move less than that, so that the run keeps to its `budget`.
    pub size: u64,
    /// How often every contender of a case runs; the figures are medians over these.
    pub rounds: usize,
    /// Threads of kvik and of the loops, at most. `None`: kvik's setting `num_threads`.
    pub threads: Option<usize>,
    /// Bytes of one task of kvik. `None`: kvik's setting `task_size`.
    pub task_size: Option<u64>,
    /// Read this file instead of one of our own: only for [`file_suite`](crate::file_suite), and never written to.
    pub file: Option<PathBuf>,
    /// The ordinal of the device, among those that the driver shows to this process: only for
    /// [`gpu_suite`](crate::gpu_suite).
    pub device: i32,
    /// Run only cases whose name contains one of these. Empty: all of them.
    pub cases: Vec<String>,
    /// The time that all cases of the suite together may take, about. Making data and comparing contents come on top.
    pub budget: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            dir: None,
            size: 1 << 30,
            rounds: 5,
            threads: None,
            task_size: None,
            file: None,
            device: 0,
            cases: Vec::new(),
            budget: Duration::from_secs(48),
        }
    }
}

impl Options {
    /// Whether a case of this name was asked for.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.cases.is_empty()
            || self
                .cases
                .iter()
                .any(|wanted| name.contains(wanted.as_str()))
    }
}

/// The options of a test: all defaults, in its own folder.
#[cfg(test)]
pub(crate) fn options_in(dir: &Path) -> Options {
    Options {
        dir: Some(dir.to_owned()),
        ..Options::default()
    }
}

/// What happens right now, for a line or a bar on the screen.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// The data file grows.
    Data {
        /// Where it is made.
        path: &'a Path,
        /// Bytes written so far.
        bytes: u64,
        /// Bytes in all.
        total: u64,
    },
    /// A case begins.
    Begun {
        /// Its [`Case::name`].
        name: &'a str,
        /// Which one it is, from 1.
        number: usize,
        /// Of how many.
        total: usize,
    },
    /// A round of the case begins.
    Round {
        /// The [`Case::name`].
        name: &'a str,
        /// Which one it is, from 1.
        number: usize,
        /// Of how many.
        total: usize,
    },
    /// A case is done.
    Done {
        /// Its figures.
        case: &'a Case,
    },
    /// A case could not be run here.
    NotRun {
        /// Its [`Case::name`].
        name: &'a str,
        /// Why.
        reason: &'a str,
    },
}
