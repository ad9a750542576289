//! The suite in which KvikIO and fio take part, with what we want of each case.

use std::sync::atomic::AtomicBool;

use kvik::EngineKind;

use crate::casting::{Entry, Kind};
use crate::contender::Role;
use crate::loops::SMALL_PAGES;
use crate::options::{Options, Progress};
use crate::ours::Wish;
use crate::report::{Report, Wanted};
use crate::rivals::{Against, FioWay, KvikioWay, Peers};
use crate::scenes::{Cache, WriteWay};
use crate::suite;
use crate::trouble::Trouble;

/// Host files beside KvikIO and fio: large reads hot, cold and into new memory, by equal numbers of threads and by
/// everybody's defaults; writes; small reads one by one and in lists. Each turn of a large read into touched memory moves
/// all of the data, whatever the budget, which is for the other cases.
///
/// Everybody reads the same file in the same rounds. KvikIO runs in a process of its own, which reads into memory of the
/// same kind and is timed by its own clock; its bytes are compared after the clock has stopped, as ours are. The report has
/// [`Case::rivals`](crate::Case::rivals) and [`Case::aims`](crate::Case::aims).
///
/// # Errors
/// As [`default_suite`](crate::default_suite); also what keeps Python, KvikIO or fio from starting.
pub fn compare_suite(
    options: &Options,
    peers: &Peers,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &AtomicBool,
) -> kvik::Result<Report> {
    if options.file.is_some() {
        let why = "a comparison writes, and reads bytes that it knows: it makes its own file";
        return Err(Trouble::Misuse(why.into()).into());
    }
    Ok(suite::run(
        options,
        Some(peers),
        progress,
        stop,
        &|options, threads| entries(options, threads),
    )?)
}

fn entries(_: &Options, threads: usize) -> Vec<Entry> {
    let mut entries = Vec::new();
    for page_offset in [0, 1024, 16] {
        for threads in [1, 2] {
            entries.push(hot(page_offset, threads));
        }
    }
    entries.push(defaults(threads));
    entries.extend([fresh(threads), cold(threads)]);
    entries.extend([WriteWay::Cached, WriteWay::Synced, WriteWay::Direct].map(write));
    entries.extend(small());
    entries
}

/// Everybody by the same number of threads.
fn hot(page_offset: usize, threads: usize) -> Entry {
    let beside_kvikio = if page_offset == 16 {
        Wanted::OfTheBest(Role::Kvikio, 2.0)
    } else {
        Wanted::EvenWith(Role::Kvikio)
    };
    Entry {
        name: format!("hot-offset-{page_offset}-threads-{threads}"),
        title: format!(
            "one large read out of the page cache, target {page_offset} bytes past a page, threads: {threads}"
        ),
        weight: 8.0,
        whole: true,
        kind: Kind::Read {
            cache: Cache::Hot,
            page_offset,
            threads: vec![threads],
            wish: Some(Wish {
                threads: Some(threads),
                ..Wish::default()
            }),
            engines: engines(),
        },
        against: vec![
            Against::Kvikio(KvikioWay::new(threads, false)),
            Against::Fio(FioWay::psync(LARGE, threads, false)),
        ],
        wanted: vec![
            Wanted::OfTheLimit(0.9),
            beside_kvikio,
            Wanted::CpuOfTheLimit(1.1),
        ],
    }
}

fn defaults(threads: usize) -> Entry {
    Entry {
        name: "hot-offset-16-defaults".into(),
        title: "the same as everybody does it when nothing is said, target 16 bytes past a page"
            .into(),
        weight: 8.0,
        whole: true,
        kind: Kind::Read {
            cache: Cache::Hot,
            page_offset: 16,
            threads: crate::casting::counts(threads),
            wish: None,
            engines: vec![],
        },
        against: vec![Against::Kvikio(KvikioWay::default())],
        wanted: vec![Wanted::OfTheBest(Role::Kvikio, 3.0)],
    }
}

fn fresh(threads: usize) -> Entry {
    Entry {
        name: "fresh".into(),
        title: "one large read out of the page cache into memory that is allocated for it".into(),
        weight: 10.0,
        whole: false,
        kind: Kind::Fresh,
        against: vec![
            Against::Kvikio(KvikioWay::default()),
            Against::Kvikio(KvikioWay::new(threads, false)),
        ],
        wanted: vec![Wanted::OfTheLoop(SMALL_PAGES, 2.0)],
    }
}

fn cold(threads: usize) -> Entry {
    Entry {
        name: "cold".into(),
        title: "one large read from the disk, however each gets it".into(),
        weight: 24.0,
        whole: true,
        kind: Kind::Read {
            cache: Cache::Cold,
            page_offset: 0,
            threads: crate::casting::counts(threads),
            wish: None,
            engines: engines(),
        },
        against: vec![
            Against::Kvikio(KvikioWay::default()),
            Against::Kvikio(KvikioWay::new(4, false)),
            Against::Kvikio(KvikioWay::new(4, true)),
            Against::Kvikio(KvikioWay::new(16, true)),
            Against::Fio(FioWay::psync(LARGE, 1, false)),
            Against::Fio(FioWay::psync(LARGE, 4, true)),
            Against::Fio(FioWay::uring(LARGE, 4)),
            Against::Fio(FioWay::uring(1 << 20, 16)),
        ],
        wanted: vec![
            Wanted::OfTheBest(Role::Fio, 0.9),
            Wanted::OfTheBest(Role::Kvikio, 1.0),
        ],
    }
}

fn write(way: WriteWay) -> Entry {
    let (name, title, direct) = match way {
        WriteWay::Cached => ("write-cached", "into the page cache", false),
        WriteWay::Synced => ("write-synced", "until it is on the disk", false),
        WriteWay::Direct => ("write-direct", "past the page cache", true),
    };
    let mut against = vec![
        Against::Kvikio(KvikioWay::new(1, direct)),
        Against::Kvikio(KvikioWay::new(4, direct)),
        Against::Fio(FioWay::psync(LARGE, 1, direct)),
    ];
    match way {
        WriteWay::Cached => {}
        // Its default, which is to write past the page cache.
        WriteWay::Synced => against.push(Against::Kvikio(KvikioWay::default())),
        WriteWay::Direct => against.push(Against::Fio(FioWay::uring(LARGE, 4))),
    }
    Entry {
        name: name.into(),
        title: format!("one large write over a file that exists, {title}"),
        weight: 12.0,
        whole: false,
        kind: Kind::Write {
            way,
            engines: if direct { vec![] } else { engines() },
        },
        against,
        wanted: vec![
            Wanted::OfTheLimit(0.9),
            Wanted::OfTheBest(Role::Kvikio, 1.0),
        ],
    }
}

fn small() -> [Entry; 3] {
    let kvikio = |threads| Against::Kvikio(KvikioWay::new(threads, false));
    let fixed = FioWay {
        fixed: true,
        ..FioWay::uring(SMALL, 32)
    };
    [
        Entry {
            name: "random-4k-hot".into(),
            title: "random reads of 4 KiB out of the page cache, one after the other".into(),
            weight: 12.0,
            whole: false,
            kind: Kind::Small {
                size: SMALL as usize,
            },
            against: vec![kvikio(1), Against::Fio(FioWay::psync(SMALL, 1, false))],
            wanted: vec![Wanted::OfTheLimit(0.9)],
        },
        Entry {
            name: "random-4k-direct".into(),
            title: "lists of 10 000 random pieces of 4 KiB past the page cache".into(),
            weight: 12.0,
            whole: false,
            kind: Kind::List {
                size: SMALL as usize,
                past_the_cache: true,
            },
            against: vec![
                Against::Kvikio(KvikioWay::new(16, true)),
                Against::Fio(FioWay::psync(SMALL, 1, true)),
                Against::Fio(FioWay::uring(SMALL, 32)),
                Against::Fio(fixed),
            ],
            wanted: vec![Wanted::OfTheBest(Role::Fio, 0.9)],
        },
        Entry {
            name: "list-10k-hot".into(),
            title: "lists of 10 000 random pieces of 4 KiB out of the page cache".into(),
            weight: 12.0,
            whole: false,
            kind: Kind::List {
                size: SMALL as usize,
                past_the_cache: false,
            },
            against: vec![kvikio(1), kvikio(4)],
            wanted: vec![Wanted::OfTheLimit(1.0)],
        },
    ]
}

/// kvik held to each engine; where there is one only, its own choice is that one.
fn engines() -> Vec<EngineKind> {
    if EngineKind::ALL.len() > 1 {
        EngineKind::ALL.to_vec()
    } else {
        Vec::new()
    }
}

const LARGE: u64 = 4 << 20;
const SMALL: u64 = 4 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_name_of_its_own_somebody_beside_it_and_a_wish() {
        let entries = entries(&Options::default(), 2);
        let mut names: Vec<_> = entries.iter().map(|entry| entry.name.clone()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), entries.len());
        for entry in &entries {
            assert!(!entry.against.is_empty(), "{}", entry.name);
            assert!(!entry.wanted.is_empty(), "{}", entry.name);
        }
    }

    #[test]
    fn equal_threads_are_equal_for_everybody() {
        let entry = hot(16, 2);
        let Kind::Read { threads, wish, .. } = &entry.kind else {
            panic!("a read");
        };
        assert_eq!(threads, &[2]);
        assert_eq!(wish.as_ref().and_then(|wish| wish.threads), Some(2));
        assert_eq!(entry.against[0], Against::Kvikio(KvikioWay::new(2, false)));
    }
}
