//! The suites of maps: large reads of a cached file through [`MmapHandle`](kvik::MmapHandle), alone and beside KvikIO's.

use std::sync::atomic::AtomicBool;

use crate::casting::{Entry, Kind};
use crate::contender::Role;
use crate::options::{Options, Progress};
use crate::report::{Report, Wanted};
use crate::rivals::{Against, KvikioWay, Peers};
use crate::suite;
use crate::trouble::Trouble;

/// What `kvik bench mmap` runs: large reads out of a map, hot, by one thread and by two, or by [`Options::threads`], into memory
/// at a page boundary and 16 bytes past one; out of a map that stays, and out of one that is made for the read.
///
/// The limit is a plain loop that maps the file and copies by streaming stores. A file of somebody else, which is only read, is
/// not mapped by plain loops: who shortens it would end the process. Its limit are those loops that read it.
///
/// # Errors
/// As [`file_suite`](crate::file_suite).
pub fn map_suite(
    options: &Options,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &AtomicBool,
) -> kvik::Result<Report> {
    let all = |options: &Options, _| entries(options, false);
    Ok(suite::run(options, None, progress, stop, &all)?)
}

/// The same beside `kvikio.Mmap`, by its pool with equal threads and by the calling thread, with what we want of each case. Every
/// turn moves all of the data.
///
/// # Errors
/// As [`compare_suite`](crate::compare_suite).
pub fn compare_maps_suite(
    options: &Options,
    peers: &Peers,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &AtomicBool,
) -> kvik::Result<Report> {
    if options.file.is_some() {
        let why = "a comparison reads bytes that it knows: it makes its own file";
        return Err(Trouble::Misuse(why.into()).into());
    }
    let all = |options: &Options, _| entries(options, true);
    Ok(suite::run(options, Some(peers), progress, stop, &all)?)
}

fn entries(options: &Options, beside_kvikio: bool) -> Vec<Entry> {
    let all_threads = options.threads.map_or_else(|| vec![1, 2], |one| vec![one]);
    let mut entries = Vec::new();
    for once in [false, true] {
        for page_offset in [0, 16] {
            for &threads in &all_threads {
                entries.push(entry(page_offset, threads, once, beside_kvikio));
            }
        }
    }
    entries
}

fn entry(page_offset: usize, threads: usize, once: bool, beside_kvikio: bool) -> Entry {
    let (word, map) = match once {
        false => ("kept", "out of a map that stays"),
        true => ("once", "out of a map that is made for it"),
    };
    let pool = KvikioWay {
        threads: Some(threads),
        direct: None,
    };
    let (against, wanted) = match beside_kvikio {
        false => (vec![], vec![]),
        true => (
            vec![
                Against::Kvikio(pool),
                // Its call that copies by the calling thread.
                Against::Kvikio(KvikioWay::default()),
            ],
            vec![
                Wanted::OfTheLimit(0.9),
                Wanted::OfTheBest(Role::Kvikio, if threads == 1 { 1.5 } else { 1.0 }),
                Wanted::CpuOfTheLimit(1.1),
            ],
        ),
    };
    Entry {
        name: format!("{word}-offset-{page_offset}-threads-{threads}"),
        title: format!(
            "one large read {map}, target {page_offset} bytes past a page, threads: {threads}"
        ),
        weight: 1.0,
        whole: beside_kvikio,
        kind: Kind::Map {
            page_offset,
            threads,
            once,
        },
        against,
        wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(options: &Options) -> Vec<String> {
        let entries = entries(options, true);
        entries.into_iter().map(|entry| entry.name).collect()
    }

    #[test]
    fn both_places_are_read_by_one_thread_and_two_unless_threads_are_said() {
        assert_eq!(
            names(&Options::default()),
            [
                "kept-offset-0-threads-1",
                "kept-offset-0-threads-2",
                "kept-offset-16-threads-1",
                "kept-offset-16-threads-2",
                "once-offset-0-threads-1",
                "once-offset-0-threads-2",
                "once-offset-16-threads-1",
                "once-offset-16-threads-2",
            ]
        );
        let four = Options {
            threads: Some(4),
            ..Options::default()
        };
        assert_eq!(names(&four)[0], "kept-offset-0-threads-4");
    }

    #[test]
    fn kvikio_reads_by_as_many_threads_and_has_to_be_beaten() {
        for entry in entries(&Options::default(), true) {
            let Kind::Map { threads, .. } = entry.kind else {
                panic!("{} is no map", entry.name);
            };
            let Against::Kvikio(way) = &entry.against[0] else {
                panic!("{} is beside somebody else", entry.name);
            };
            assert_eq!(way.threads, Some(threads));
            assert!(!entry.wanted.is_empty());
        }
        assert!(
            entries(&Options::default(), false)
                .iter()
                .all(|each| each.against.is_empty())
        );
    }
}
