//! The suite of remote objects: which cases it has, and what we want of each.

use std::sync::atomic::AtomicBool;

use crate::casting::{Entry, Kind};
use crate::contender::Role;
use crate::options::{Options, Progress};
use crate::remote::cast::{RemoteKind, What};
use crate::remote::door::Door;
use crate::remote::guests::GuestWay;
use crate::report::{Report, Wanted};
use crate::rivals::Peers;
use crate::suite;
use crate::trouble::Trouble;

/// Objects of a server on this machine: all of one by plain HTTP, by TLS, by signed requests of S3 and, where a cluster is
/// named, by WebHDFS, and ranges of 4 KiB, one at a time and 32 under way.
///
/// The server is the nginx of `peers`, in a process of its own, so that CPU seconds are those of the clients alone. Beside
/// kvik at its defaults stand reqwest, whose chunks a plain loop copies into place, sockets that are read from without any
/// library, and, with a Python among the `peers` that has them, KvikIO and obstore. All bytes are compared. Each turn of a
/// large read moves all of the object, whatever the budget, which is for the other cases.
///
/// # Errors
/// As [`default_suite`](crate::default_suite); also `Misuse` without an nginx, and what keeps it, openssl, Python, KvikIO or
/// obstore from starting.
pub fn remote_suite(
    options: &Options,
    peers: &Peers,
    progress: &mut dyn FnMut(Progress<'_>),
    stop: &AtomicBool,
) -> kvik::Result<Report> {
    if options.file.is_some() {
        let why = "the suite of remote objects reads bytes that it knows: it makes its own file";
        return Err(Trouble::Misuse(why.into()).into());
    }
    Ok(suite::run_remote(
        options,
        peers,
        progress,
        stop,
        &entries(),
    )?)
}

fn entries() -> Vec<Entry> {
    vec![
        whole(Door::Plain, 16),
        whole(Door::Plain, 0),
        whole(Door::Tls, 16),
        whole(Door::S3, 16),
        pieces(Door::Plain, 1),
        pieces(Door::Plain, 32),
        pieces(Door::S3, 1),
        pieces(Door::S3, 32),
        pieces(Door::Tls, 1),
        pieces(Door::Tls, 32),
        Entry {
            whole: false,
            ..whole(Door::WebHdfs, 16)
        },
        pieces(Door::WebHdfs, 1),
        pieces(Door::WebHdfs, 32),
    ]
}

/// All of the object. Where arrays of numpy begin, and where a page does.
fn whole(door: Door, page_offset: usize) -> Entry {
    let cpu = match door {
        Door::Tls => 1.0,
        Door::Plain | Door::S3 | Door::WebHdfs => 0.8,
    };
    Entry {
        name: format!("{door}-offset-{page_offset}"),
        title: format!(
            "all of an object, {}, target {page_offset} bytes past a page",
            way_of(door)
        ),
        weight: 8.0,
        whole: true,
        kind: Kind::Remote(RemoteKind {
            door,
            what: What::Whole { page_offset },
            guests: vec![
                GuestWay::KvikioDefaults,
                GuestWay::KvikioThreads(4),
                GuestWay::KvikioThreads(8),
                GuestWay::KvikioReactor,
                GuestWay::Obstore(8),
            ],
        }),
        against: vec![],
        wanted: vec![
            Wanted::OfTheBest(Role::Kvikio, 1.0),
            Wanted::CpuOfTheBest(Role::Kvikio, cpu),
            Wanted::OfTheBest(Role::Obstore, 1.0),
        ],
    }
}

/// Ranges of 4 KiB, so many under way.
fn pieces(door: Door, under_way: usize) -> Entry {
    let (how, guests) = match under_way {
        1 => (
            "one after the other".to_owned(),
            vec![
                GuestWay::KvikioThreads(1),
                GuestWay::KvikioReactor,
                GuestWay::Obstore(1),
            ],
        ),
        _ => (
            format!("{under_way} under way"),
            vec![
                GuestWay::KvikioThreads(8),
                GuestWay::KvikioReactor,
                GuestWay::Obstore(under_way),
            ],
        ),
    };
    let least = match door {
        Door::Tls => 1.0,
        Door::Plain | Door::S3 | Door::WebHdfs => 1.3,
    };
    Entry {
        name: format!("{door}-4k-{under_way}"),
        title: format!("random ranges of 4 KiB, {}, {how}", way_of(door)),
        weight: 8.0,
        whole: false,
        kind: Kind::Remote(RemoteKind {
            door,
            what: What::Pieces {
                size: 4 << 10,
                under_way,
                // A third of a second of the slowest, but where a name node is asked each time.
                list: if door == Door::WebHdfs { 100 } else { 2000 },
            },
            guests,
        }),
        against: vec![],
        wanted: vec![
            Wanted::OfTheBest(Role::Kvikio, least),
            Wanted::OfTheBest(Role::Obstore, least),
        ],
    }
}

fn way_of(door: Door) -> &'static str {
    match door {
        Door::Plain => "by HTTP without TLS",
        Door::Tls => "by HTTP with TLS",
        Door::S3 => "by signed requests of S3",
        Door::WebHdfs => "by WebHDFS",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_has_a_name_of_its_own_guests_and_a_wish_about_kvikio() {
        let entries = entries();
        let mut names: Vec<_> = entries.iter().map(|entry| entry.name.clone()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), entries.len());
        for entry in &entries {
            let Kind::Remote(kind) = &entry.kind else {
                panic!("{} is not about remote objects", entry.name);
            };
            assert!(kind.guests.len() >= 3, "{}", entry.name);
            let about = |wanted: &Wanted| matches!(wanted, Wanted::OfTheBest(Role::Kvikio, _));
            assert!(entry.wanted.iter().any(about), "{}", entry.name);
        }
    }
}
