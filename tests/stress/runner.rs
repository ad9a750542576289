//! Carries out a scenario: clients write and read regions of files, each its own, for a while.
//!
//! Every client knows what stands in its regions, because nobody else writes there: the pattern of the last write. The
//! neighbours' regions are written at the same time, so that a byte out of place is seen by somebody.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kvik::{ByteSize, ErrorKind, FileHandle, ReadOptions};
use kvik_tests::pattern::{UNTOUCHED, assert_same, pattern};

/// What is done, for how long.
#[derive(Clone, Copy)]
pub(crate) struct Scenario {
    /// How many files there are.
    pub(crate) files: usize,
    /// Bytes that each client owns in each file.
    pub(crate) region: usize,
    /// How many threads work at the same time.
    pub(crate) clients: usize,
    /// The task sizes they choose from.
    pub(crate) task_sizes: &'static [u64],
    /// The thread counts they choose from.
    pub(crate) threads: &'static [usize],
    /// Whether files are opened for each operation.
    pub(crate) reopen: bool,
    /// How many of a hundred transfers in the background are cancelled or dropped.
    pub(crate) give_up_percent: u64,
    /// How long.
    pub(crate) seconds: u64,
}

/// A bit of everything.
pub(crate) const MIXED: Scenario = Scenario {
    files: 8,
    region: 100_000,
    clients: 4,
    task_sizes: &[4096],
    threads: &[1, 2, 8],
    reopen: false,
    give_up_percent: 10,
    seconds: 60,
};

/// Runs it; the first wrong byte ends it.
#[track_caller]
pub(crate) fn run(scenario: &Scenario) {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..scenario.files)
        .map(|number| folder.path().join(number.to_string()))
        .collect();
    for path in &paths {
        let file = std::fs::File::create(path).unwrap();
        file.set_len((scenario.region * scenario.clients) as u64)
            .unwrap();
    }
    let seed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_nanos() as u64;
    println!("seed {seed}");
    let end = Instant::now() + Duration::from_secs(scenario.seconds);
    let counts: Vec<usize> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..scenario.clients)
            .map(|number| {
                let paths = &paths;
                scope.spawn(move || Client::new(number, scenario, paths, seed).work_until(end))
            })
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect()
    });
    println!("operations of each client: {counts:?}");
    assert!(
        counts.iter().all(|count| *count > 0),
        "a client starved: {counts:?}"
    );
}

struct Client<'a> {
    number: usize,
    scenario: &'a Scenario,
    paths: &'a [PathBuf],
    handles: Vec<FileHandle>,
    /// What stands in this client's region of each file; `None` where a write was given up.
    written: Vec<Option<u64>>,
    random: u64,
}

impl<'a> Client<'a> {
    fn new(number: usize, scenario: &'a Scenario, paths: &'a [PathBuf], seed: u64) -> Client<'a> {
        let handles = if scenario.reopen {
            Vec::new()
        } else {
            paths.iter().map(|path| open(path)).collect()
        };
        Client {
            number,
            scenario,
            paths,
            handles,
            written: vec![None; paths.len()],
            random: seed ^ (number as u64) << 32 | 1,
        }
    }

    fn work_until(mut self, end: Instant) -> usize {
        let mut count = 0;
        while Instant::now() < end {
            let file = self.below(self.paths.len() as u64) as usize;
            let handle = if self.scenario.reopen {
                open(&self.paths[file])
            } else {
                self.handles[file].clone()
            };
            let reads = self.below(100) < 60;
            match self.written[file] {
                Some(seed) if reads => self.read(&handle, seed),
                _ => self.write(&handle, file),
            }
            count += 1;
        }
        count
    }

    fn write(&mut self, handle: &FileHandle, file: usize) {
        let seed = self.next();
        let source = pattern(seed, 0, self.scenario.region);
        let options = self.options();
        self.written[file] = Some(seed);
        if self.below(2) == 0 {
            handle
                .write_at_with(&source, self.offset(0), &options)
                .unwrap();
            return;
        }
        let pending = handle.submit_write_with(source, self.offset(0), &options);
        if !self.gives_up() {
            assert_eq!(pending.wait().unwrap(), self.scenario.region);
            return;
        }
        pending.cancel();
        let (outcome, _) = pending.finish();
        if let Err(error) = outcome {
            assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
            self.written[file] = None;
        }
    }

    fn read(&mut self, handle: &FileHandle, seed: u64) {
        let from = self.below(self.scenario.region as u64) as usize;
        let len = self.below((self.scenario.region - from) as u64 + 1) as usize;
        let truth = pattern(seed, from as u64, len);
        let options = self.options();
        let mut target = vec![UNTOUCHED; len];
        if self.below(2) == 0 {
            handle
                .read_at_with(&mut target, self.offset(from), &options)
                .unwrap();
            assert_same(&target, &truth);
            return;
        }
        let pending = handle.submit_read_with(target, self.offset(from), &options);
        match self.gives_up() {
            true if self.below(2) == 0 => drop(pending),
            true => {
                pending.cancel();
                let (outcome, target) = pending.finish();
                let done = outcome.unwrap_or_else(|error| error.done() as usize);
                assert_same(&target[..done], &truth[..done]);
            }
            false => {
                assert_eq!(pending.wait().unwrap(), len);
                assert_same(&pending.into_buf(), &truth);
            }
        }
    }

    fn offset(&self, from: usize) -> u64 {
        (self.number * self.scenario.region + from) as u64
    }

    fn options(&mut self) -> ReadOptions {
        let threads =
            self.scenario.threads[self.below(self.scenario.threads.len() as u64) as usize];
        let task_size =
            self.scenario.task_sizes[self.below(self.scenario.task_sizes.len() as u64) as usize];
        // Small transfers may run on this thread alone when no task size is named.
        match self.below(3) {
            0 => ReadOptions::new().num_threads(threads),
            _ => ReadOptions::new()
                .num_threads(threads)
                .task_size(ByteSize::new(task_size)),
        }
    }

    fn gives_up(&mut self) -> bool {
        self.below(100) < self.scenario.give_up_percent
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn next(&mut self) -> u64 {
        // xorshift64*: good enough to choose, and the same again for the same seed.
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 1
    }
}

fn open(path: &Path) -> FileHandle {
    FileHandle::options()
        .read(true)
        .write(true)
        .open(path)
        .unwrap()
}
