//! The suite `kvik bench gpu`: which cases it has, and what we want of each.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use kvik::CompatMode;

use super::scenes::{Order, Queued};
use super::{DeviceKind, Gpu, Storage};
use crate::casting::{Entry, Kind};
use crate::contender::Role;
use crate::data::{LEAST, STEP};
use crate::loops::size_name;
use crate::options::{Options, Progress};
use crate::report::{Report, Wanted};
use crate::rivals::{Against, KvikioWay, Peers};
use crate::suite;
use crate::trouble::{Doing, Outcome, Trouble};

/// Files to memory of a device and back: large reads out of the page cache by several numbers of threads, out of a file
/// system in memory and from the disk; a large write; many small reads in one call and one at a time. Each stands beside the
/// plain loops that were written for it, such as two slabs of pinned memory for each thread, one of which is read into while
/// the other is copied.
///
/// All bytes of a turn are fetched from the device and compared. [`Options::device`] is the device; with a Python among the
/// `peers` that can import KvikIO and CuPy, KvikIO takes part in the same rounds. Each turn of a large case moves all of the
/// data, whatever the budget, which is for the other cases.
///
/// # Errors
/// As [`default_suite`](crate::default_suite); also `Unsupported` where there is no driver or no such device.
pub fn gpu_suite(
    options: &Options,
    peers: Option<&Peers>,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &AtomicBool,
) -> kvik::Result<Report> {
    if options.file.is_some() {
        let why =
            "the suite of the device writes, and reads bytes that it knows: it makes its own files";
        return Err(Trouble::Misuse(why.into()).into());
    }
    Ok(run(options, peers, progress, stop)?)
}

/// The device is looked for first: without one no file is made.
fn run(
    options: &Options,
    peers: Option<&Peers>,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &AtomicBool,
) -> Outcome<Report> {
    let gpu = Gpu::open(options.device)?;
    let (options, note) = within_device(options, peers.is_some(), &gpu)?;
    let mut report = suite::run_with(&options, (peers, Some(gpu)), progress, stop, &entries)?;
    report.notes.extend(note);
    Ok(report)
}

/// The data must fit into the memory of the device, once for us and once for KvikIO.
fn within_device(
    options: &Options,
    with_others: bool,
    gpu: &Gpu,
) -> Outcome<(Options, Option<String>)> {
    let free = gpu.free_memory();
    let free = free.doing("ask for memory of", Path::new("the device"))?;
    let copies = if with_others { 2 } else { 1 };
    let most = (free / 10 * 9 / copies / STEP * STEP).max(LEAST);
    if options.size <= most {
        return Ok((options.clone(), None));
    }
    let smaller = Options {
        size: most,
        ..options.clone()
    };
    let (most, asked) = (size_name(most), size_name(options.size));
    let note = format!("{most} of data, not {asked}: no more memory is free on the device");
    Ok((smaller, Some(note)))
}

fn entries(options: &Options, threads: usize) -> Vec<Entry> {
    let mut all: Vec<_> = match options.threads {
        Some(threads) => vec![threads],
        None => vec![1, 4, 8, 16],
    };
    let several = options.threads.unwrap_or(8);
    let mut entries: Vec<_> = all.iter().map(|&threads| hot(threads)).collect();
    all.push(threads);
    all.sort_unstable();
    all.dedup();
    entries.push(defaults(all));
    entries.push(in_memory(several));
    entries.push(mapped(several));
    entries.push(auto(several));
    entries.push(stream_read(several));
    entries.push(stream_queued(several));
    entries.push(write(several));
    entries.push(cold(several));
    entries.extend([
        list(4 << 10, Order::Scattered, several, 0.7),
        list(64 << 10, Order::Scattered, several, 0.85),
        list(4 << 10, Order::Joined, several, 0.7),
        list(64 << 10, Order::Joined, several, 0.85),
        one_by_one(),
    ]);
    entries
}

/// Everybody by the same number of threads.
fn hot(threads: usize) -> Entry {
    let mut wanted = vec![Wanted::OfTheLimit(0.93)];
    if threads == 8 {
        wanted.push(Wanted::CpuOfTheLimit(1.1));
        wanted.push(Wanted::OfTheBest(Role::Kvikio, 1.1));
    }
    Entry {
        name: format!("gpu-read-hot-{threads}"),
        title: format!("one large read out of the page cache to the device, threads: {threads}"),
        whole: true,
        against: kvikio([threads]),
        wanted,
        ..entry(DeviceKind::Read {
            from: Storage::PageCache,
            threads: vec![threads],
            wish: Some(threads),
            modes: None,
        })
    }
}

fn defaults(threads: Vec<usize>) -> Entry {
    Entry {
        name: "gpu-read-defaults".into(),
        title: "the same as kvik does it when nothing is said".into(),
        whole: true,
        against: kvikio([8, 16]),
        wanted: vec![
            Wanted::OfTheLimit(0.95),
            Wanted::OfTheBest(Role::Kvikio, 1.1),
        ],
        ..entry(DeviceKind::Read {
            from: Storage::PageCache,
            // With one thread the loops would take longer than all others together.
            threads: threads.into_iter().filter(|&threads| threads > 1).collect(),
            wish: None,
            modes: None,
        })
    }
}

fn in_memory(threads: usize) -> Entry {
    Entry {
        name: format!("gpu-read-tmpfs-{threads}"),
        title: format!("one large read of a file kept in memory to the device, threads: {threads}"),
        whole: true,
        against: kvikio([threads, 2 * threads]),
        wanted: vec![Wanted::OfTheLimit(0.93)],
        ..entry(DeviceKind::Read {
            from: Storage::Memory,
            threads: vec![threads],
            wish: Some(threads),
            modes: None,
        })
    }
}

fn mapped(threads: usize) -> Entry {
    Entry {
        name: format!("gpu-read-map-{threads}"),
        title: format!("one large read of a mapped file to the device, threads: {threads}"),
        whole: true,
        wanted: vec![Wanted::OfTheLimit(0.9)],
        ..entry(DeviceKind::ReadMap { threads })
    }
}

/// What it costs to let kvik choose, where it comes to the same.
fn auto(threads: usize) -> Entry {
    Entry {
        name: "gpu-read-auto".into(),
        title: format!("the mode AUTO beside the mode ON, threads: {threads}"),
        whole: true,
        wanted: vec![Wanted::OfTheBest(Role::Engine, 0.97)],
        ..entry(DeviceKind::Read {
            from: Storage::PageCache,
            threads: vec![threads],
            wish: Some(threads),
            modes: Some([CompatMode::Auto, CompatMode::On]),
        })
    }
}

/// Both move the same bytes at each turn, whatever the budget.
fn stream_read(threads: usize) -> Entry {
    Entry {
        name: "gpu-stream-read".into(),
        title: format!("one large read in the order of a stream, threads: {threads}"),
        whole: true,
        against: kvikio([threads]),
        wanted: vec![
            Wanted::OfTheLimit(0.9),
            Wanted::OfTheBest(Role::Kvikio, 1.1),
        ],
        ..entry(DeviceKind::Stream {
            what: Queued::Alone,
            threads,
        })
    }
}

fn stream_queued(threads: usize) -> Entry {
    Entry {
        name: "gpu-stream-queued".into(),
        title: format!(
            "reads that are all queued before the first is done, with a kernel as long behind each, threads: {threads}"
        ),
        whole: true,
        wanted: vec![
            Wanted::OfTheLimit(0.9),
            Wanted::OfTheSlowest(Role::Part, 0.9),
        ],
        ..entry(DeviceKind::Stream {
            what: Queued::WithKernels,
            threads,
        })
    }
}

fn write(threads: usize) -> Entry {
    Entry {
        name: "gpu-write-tmpfs".into(),
        title: format!(
            "one large write from the device to a file kept in memory, threads: {threads}"
        ),
        whole: true,
        against: kvikio([threads, 2 * threads]),
        wanted: vec![
            Wanted::OfTheSlowest(Role::Part, 0.85),
            Wanted::OfTheBest(Role::Kvikio, 1.1),
        ],
        ..entry(DeviceKind::Write { threads })
    }
}

fn cold(threads: usize) -> Entry {
    Entry {
        name: "gpu-read-cold".into(),
        title: "one large read from the disk to the device, however each gets it".into(),
        weight: 4.0,
        against: vec![
            Against::Kvikio(KvikioWay::new(threads, false)),
            Against::Kvikio(KvikioWay::new(threads, true)),
        ],
        wanted: vec![Wanted::OfTheLimit(0.93)],
        ..entry(DeviceKind::Read {
            from: Storage::Disk,
            threads: vec![threads],
            wish: None,
            modes: None,
        })
    }
}

fn list(size: usize, order: Order, threads: usize, least: f64) -> Entry {
    let kib = size >> 10;
    let (word, places) = match order {
        Order::Joined => ("-joined", "places one behind the other"),
        Order::Scattered | Order::OneByOne => ("", "places that lie apart"),
    };
    Entry {
        name: format!("gpu-random-{kib}k{word}"),
        title: format!("lists of random pieces of {kib} KiB to {places}, threads: {threads}"),
        weight: 1.5,
        against: kvikio([threads]),
        wanted: vec![Wanted::OfTheLimit(least)],
        ..entry(DeviceKind::List {
            size,
            order,
            threads,
        })
    }
}

fn one_by_one() -> Entry {
    Entry {
        name: "gpu-read-4k-one".into(),
        title: "random reads of 4 KiB to the device, one after the other".into(),
        against: kvikio([1]),
        wanted: vec![Wanted::OfTheLimit(0.9)],
        ..entry(DeviceKind::List {
            size: 4 << 10,
            order: Order::OneByOne,
            threads: 1,
        })
    }
}

fn entry(kind: DeviceKind) -> Entry {
    Entry {
        name: String::new(),
        title: String::new(),
        weight: 1.0,
        whole: false,
        kind: Kind::Device(kind),
        against: vec![],
        wanted: vec![],
    }
}

fn kvikio<const N: usize>(threads: [usize; N]) -> Vec<Against> {
    let ways = threads.map(|threads| Against::Kvikio(KvikioWay::new(threads, false)));
    ways.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_name_of_its_own_and_a_wish_and_what_writes_comes_last() {
        let entries = entries(&Options::default(), 2);
        let mut names: Vec<_> = entries.iter().map(|entry| entry.name.clone()).collect();
        let place = |name: &str| names.iter().position(|each| each == name);
        // The write replaces the bytes that the read compares with.
        assert!(place("gpu-read-tmpfs-8") < place("gpu-write-tmpfs"));
        names.sort();
        names.dedup();
        assert_eq!(names.len(), entries.len());
        assert!(entries.iter().all(|entry| !entry.wanted.is_empty()));
    }

    #[test]
    fn a_number_of_threads_is_for_everybody() {
        let options = Options {
            threads: Some(3),
            ..Options::default()
        };
        let entries = entries(&options, 3);
        assert_eq!(entries[0].name, "gpu-read-hot-3");
        assert_eq!(entries[0].against, kvikio([3]));
        let Kind::Device(DeviceKind::Read { threads, wish, .. }) = &entries[0].kind else {
            panic!("a read");
        };
        assert_eq!((threads.as_slice(), *wish), (&[3][..], Some(3)));
    }
}
