//! The two suites: which cases `kvik bench` and `kvik bench file` run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use kvik::EngineKind;

use crate::casting::{Entry, Kind, counts};
use crate::gpu::Gpu;
use crate::loops::size_name;
use crate::options::{Options, Progress};
use crate::ours::Wish;
use crate::report::Report;
use crate::rivals::Peers;
use crate::scenes::{Cache, WriteWay};
use crate::session::Session;
use crate::thresholds;
use crate::trouble::{Outcome, Trouble};

/// What `kvik bench` runs with nothing else said, in about a minute: large host reads hot, hot at numpy's place within a
/// page, and cold; writes into the page cache and to the disk; small random reads.
///
/// It makes its own files in a fresh folder and removes them, whichever way it ends. `stop` is looked at between turns, a
/// turn being a second at most.
///
/// # Errors
/// `Cancelled` once `stop` is raised; `Misuse` for options that contradict themselves or name no case; `StorageFull` where
/// there is no room for the smallest run; the kind of the operating system's error if the files cannot be made; `Internal`
/// if bytes came out wrong. A case that cannot be run here is no error: it is in [`Report::not_run`].
///
/// # Example: a run of a second that writes its table to the standard output
/// ```
/// use std::sync::atomic::AtomicBool;
/// use std::time::Duration;
///
/// let options = kvik_bench::Options {
///     size: 8 << 20,
///     rounds: 1,
///     budget: Duration::from_millis(500),
///     cases: vec!["host-read-hot".into()],
///     ..Default::default()
/// };
/// let report = kvik_bench::default_suite(&options, &mut |_| {}, &AtomicBool::new(false))?;
/// assert_eq!(report.cases[0].unit, "GB/s");
/// println!("{report}");
/// # Ok::<(), kvik::Error>(())
/// ```
pub fn default_suite(
    options: &Options,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &AtomicBool,
) -> kvik::Result<Report> {
    if options.file.is_some() {
        return Err(Trouble::Misuse(
            "the default suite makes its own file; `kvik bench file` reads one".into(),
        )
        .into());
    }
    Ok(run(options, None, progress, stop, &default_entries)?)
}

/// What `kvik bench file` runs: large reads by every number of threads with every task size, by every engine into memory
/// at several places within a page, hot and cold, and small reads of several sizes, on [`Options::file`], which is only
/// read, or on a file of our own.
///
/// A case named `thresholds` is run only when [`Options::cases`] has exactly that word: at which sizes a hot read is faster
/// on several threads, in [`Report::thresholds`].
///
/// # Errors
/// As [`default_suite`]; also those of opening [`Options::file`], and `Misuse` if it is shorter than 4 MiB.
pub fn file_suite(
    options: &Options,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &AtomicBool,
) -> kvik::Result<Report> {
    Ok(run(options, None, progress, stop, &file_entries)?)
}

/// Runs the cases that `entries` has for the options and the number of threads.
pub(crate) fn run(
    options: &Options,
    peers: Option<&Peers>,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &AtomicBool,
    entries: &dyn Fn(&Options, usize) -> Vec<Entry>,
) -> Outcome<Report> {
    run_with(options, (peers, None), progress, stop, entries)
}

/// The same with a device, or without one.
pub(crate) fn run_with(
    options: &Options,
    (peers, gpu): (Option<&Peers>, Option<Arc<Gpu>>),
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &AtomicBool,
    entries: &dyn Fn(&Options, usize) -> Vec<Entry>,
) -> Outcome<Report> {
    let threads = crate::ours::threads(options)?;
    let entries = entries(options, threads);
    let thresholds = gpu.is_none() && options.cases.iter().any(|name| name == thresholds::NAME);
    if !thresholds {
        some_are_wanted(options, &entries)?;
    }
    let mut session = Session::begin(options, peers, gpu, progress, stop)?;
    session.add_file_in_memory(&entries)?;
    session.run(&entries)?;
    if thresholds {
        session.report.thresholds = thresholds::measure(&session)?;
    }
    session.end()
}

/// The same with a server, from which the data is read.
pub(crate) fn run_remote(
    options: &Options,
    peers: &Peers,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &AtomicBool,
    entries: &[Entry],
) -> Outcome<Report> {
    some_are_wanted(options, entries)?;
    let mut session = Session::begin(options, None, None, progress, stop)?;
    session.serve(peers)?;
    session.run(entries)?;
    session.end()
}

fn some_are_wanted(options: &Options, entries: &[Entry]) -> Outcome<()> {
    if entries.iter().any(|entry| options.wants(&entry.name)) {
        return Ok(());
    }
    let names: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let asked = options.cases.join(", ");
    Err(Trouble::Misuse(format!(
        "no case is called {asked}; there are {}",
        names.join(", ")
    )))
}

fn default_entries(_: &Options, threads: usize) -> Vec<Entry> {
    let read = |cache, page_offset| Kind::Read {
        cache,
        page_offset,
        threads: counts(threads),
        wish: None,
        engines: vec![],
    };
    let write = |way| Kind::Write {
        way,
        engines: vec![],
    };
    let entry = |name: &str, title: &str, weight, kind| Entry {
        name: name.into(),
        title: title.into(),
        weight,
        whole: false,
        kind,
        against: vec![],
        wanted: vec![],
    };
    vec![
        entry(
            "host-read-hot",
            "one large read out of the page cache, target at a page boundary",
            9.0,
            read(Cache::Hot, 0),
        ),
        entry(
            "host-read-hot-offset-16",
            "the same, target 16 bytes past a page boundary, where numpy puts large arrays",
            9.0,
            read(Cache::Hot, 16),
        ),
        entry(
            "host-read-cold",
            "one large read from the disk, buffered",
            9.0,
            read(Cache::Cold, 0),
        ),
        entry(
            "host-write",
            "one large write into the page cache",
            7.0,
            write(WriteWay::Cached),
        ),
        entry(
            "host-write-sync",
            "the same, with fdatasync",
            8.0,
            write(WriteWay::Synced),
        ),
        entry(
            "host-read-4k",
            "random reads of 4 KiB out of the page cache, one thread",
            3.0,
            Kind::Small { size: 4 << 10 },
        ),
        entry(
            "host-read-64k",
            "random reads of 64 KiB out of the page cache, one thread",
            3.0,
            Kind::Small { size: 64 << 10 },
        ),
    ]
}

fn file_entries(options: &Options, threads: usize) -> Vec<Entry> {
    let mut all_threads = match options.threads {
        Some(threads) => vec![threads],
        // Half and twice of what kvik would use, so that one sees whether its choice is right here.
        None => vec![1, threads.div_ceil(2), threads, threads * 2],
    };
    all_threads.dedup();
    let task_sizes = options
        .task_size
        .map_or_else(|| vec![1 << 20, 4 << 20, 16 << 20], |size| vec![size]);
    let mut entries = Vec::new();
    for (cache, word) in [(Cache::Hot, "hot"), (Cache::Cold, "cold")] {
        for &threads in &all_threads {
            for &task_size in &task_sizes {
                let size = size_name(task_size);
                let wish = Wish {
                    threads: Some(threads),
                    task_size: Some(task_size),
                    ..Wish::default()
                };
                entries.push(large(
                    format!("{word}-threads-{threads}-task-{}", size.replace(' ', "")),
                    format!("one large read, {word}, {threads} threads, tasks of {size}"),
                    (cache, 0),
                    vec![threads],
                    wish,
                ));
            }
        }
        for &engine in EngineKind::ALL {
            for page_offset in PAGE_OFFSETS {
                entries.push(large(
                    format!("{word}-engine-{engine}-offset-{page_offset}"),
                    format!(
                        "one large read, {word}, engine {engine}, target {page_offset} bytes past a page"
                    ),
                    (cache, page_offset),
                    counts(threads),
                    Wish::of(options).only(engine),
                ));
            }
        }
    }
    entries.extend(SMALL_SIZES.map(|size| Entry {
        name: format!("hot-size-{}", size_name(size).replace(' ', "")),
        title: format!(
            "random reads of {}, hot, one after the other",
            size_name(size)
        ),
        weight: 0.5,
        whole: false,
        kind: Kind::Small {
            size: size as usize,
        },
        against: vec![],
        wanted: vec![],
    }));
    entries
}

fn large(
    name: String,
    title: String,
    (cache, page_offset): (Cache, usize),
    threads: Vec<usize>,
    wish: Wish,
) -> Entry {
    Entry {
        name,
        title,
        weight: if cache == Cache::Hot { 1.0 } else { 1.5 },
        whole: false,
        kind: Kind::Read {
            cache,
            page_offset,
            threads,
            wish: Some(wish),
            engines: vec![],
        },
        against: vec![],
        wanted: vec![],
    }
}

/// A page's begin, where numpy and malloc put large arrays, and a quarter of a page.
const PAGE_OFFSETS: [usize; 3] = [0, 16, 1024];
const SMALL_SIZES: [u64; 4] = [4 << 10, 64 << 10, 256 << 10, 1 << 20];
