//! What is read of a file, and that it is one version of it. Elsewhere the bytes of a file that was written to meanwhile come
//! half from the old one.

use kvik::stats::{Backend, SummaryMonitor};
use kvik::{ByteSize, ErrorKind, Kind, ReadAtExt, ReadOptions};
use kvik_tests::hdfs::{Cluster, Node, Query, Setup};
use kvik_tests::pattern::{assert_same, pattern};

use super::{LEN, cluster, offsets, one_by_one, opened, quick, reads};
use crate::child;

/// Once it was told as a read by HTTP.
#[test]
fn a_read_is_counted_as_one_of_hdfs() {
    let cluster = cluster(Setup::default());
    let file = opened(&cluster);
    let monitor = SummaryMonitor::start();
    reads(&file, 100, 90_000);
    let summary = monitor.get();
    let share = summary.backend(Backend::RemoteHdfs);
    assert_eq!((share.operations, share.bytes), (1, 90_000));
    assert_eq!(summary.backend(Backend::RemoteHttp).operations, 0);
}

#[test]
fn a_file_is_read_whole_and_in_ranges() {
    let cluster = cluster(Setup::default());
    let file = opened(&cluster);
    assert_eq!((file.len(), file.kind()), (LEN as u64, Kind::WebHdfs));
    // Nothing but the status was asked for.
    assert_eq!(
        (cluster.count("GETFILESTATUS"), cluster.count("OPEN")),
        (1, 0)
    );
    let validator = file.validator().unwrap();
    assert_eq!(
        validator.to_string(),
        "modification time 1700000000123, file number 16386"
    );
    let date = "Tue, 14 Nov 2023 22:13:20 GMT";
    assert_eq!(validator.last_modified(), Some(date));
    for size in [10_000, 65_536, 100_000, 1 << 20] {
        let mut bytes = vec![0; LEN];
        let options = ReadOptions::new().task_size(ByteSize::new(size));
        assert_eq!(file.read_at_with(&mut bytes, 0, &options).unwrap(), LEN);
        assert_same(&bytes, &pattern(1, 0, LEN));
    }
    for (offset, count) in [(0, 1), (65_535, 2), (131_000, 100_000), (LEN as u64 - 1, 1)] {
        reads(&file, offset, count);
    }
    let mut bytes = [7; 10];
    assert_eq!(file.read_at(&mut bytes, LEN as u64 - 4).unwrap(), 4);
    assert_same(&bytes[..4], &pattern(1, LEN as u64 - 4, 4));
    assert_eq!(file.read_at(&mut bytes, LEN as u64).unwrap(), 0);
}

#[test]
fn empty_files_and_those_of_one_byte_are_read_and_directories_are_not() {
    let cluster = cluster(Setup::default());
    for bytes in [&b""[..], b"x"] {
        cluster.put("/small", bytes);
        let file = quick().open(&cluster.url("/small")).unwrap();
        assert_eq!(file.len(), bytes.len() as u64);
        assert_eq!(file.read_to_end(0).unwrap(), bytes);
    }
    cluster.put("/folder/file", b"x");
    let error = quick().open(&cluster.url("/folder")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IsADirectory, "{error}");
}

#[test]
fn a_file_that_changes_is_told_whatever_of_it_changes() {
    type Change = fn(&Cluster);
    let changes: [(Change, ErrorKind); 5] = [
        (
            |cluster| cluster.modify("/file", &pattern(2, 0, LEN)),
            ErrorKind::Changed,
        ),
        // Another file of the same name, length and time.
        (
            |cluster| cluster.put("/file", &pattern(2, 0, LEN)),
            ErrorKind::Changed,
        ),
        (
            |cluster| cluster.modify("/file", &pattern(1, 0, LEN + 1)),
            ErrorKind::Changed,
        ),
        (
            |cluster| cluster.modify("/file", &pattern(1, 0, 100)),
            ErrorKind::Changed,
        ),
        (|cluster| cluster.remove("/file"), ErrorKind::NotFound),
    ];
    for (number, (change, kind)) in changes.into_iter().enumerate() {
        for was_read in [false, true] {
            let cluster = cluster(Setup::default());
            let file = opened(&cluster);
            if was_read {
                reads(&file, 70_000, 10);
            }
            change(&cluster);
            let error = file.read_at(&mut [0; 10], 80_000).unwrap_err();
            assert_eq!(error.kind(), kind, "change {number}: {error}");
        }
    }
}

/// The bytes of the first piece are of the old version, those of the second of the new one.
#[test]
fn a_file_that_changes_between_two_pieces_of_a_read_is_no_file() {
    let old = pattern(1, 0, LEN);
    let setup = Setup::default().changed(move |node, asked, right| {
        let query = Query::of(asked);
        match (node, query.number("offset"), query.number("length")) {
            // What a node would send that has not heard of the change.
            (Node::Data(_), Some(offset @ 0..100_000), Some(length)) => right
                .body(&old[offset as usize..(offset + length) as usize])
                .script(),
            _ => right.script(),
        }
    });
    let cluster = cluster(setup);
    let file = opened(&cluster);
    cluster.modify("/file", &pattern(2, 0, LEN));
    let mut bytes = vec![0; LEN];
    let error = file
        .read_at_with(&mut bytes, 0, &one_by_one(100_000))
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed, "{error}");
    assert!(
        error
            .to_string()
            .contains("its version was modification time"),
        "{error}"
    );
}

#[test]
fn a_node_is_called_as_it_calls_itself_but_for_tokens_that_it_repeats() {
    let named = Setup::default().changed(|node, asked, right| {
        let name = match node {
            Node::Name(_) => "Jetty(9.4.57) for ",
            Node::Data(_) => "netty",
        };
        let token = Query::of(asked).value("delegation").unwrap_or_default();
        right.header("server", &format!("{name}{token}")).script()
    });
    let cluster = cluster(named);
    let options = quick().delegation("JAAEc2xhdmVz");
    let file = options.open(&cluster.url("/file")).unwrap();
    assert_eq!(file.server(), Some("Jetty(9.4.57) for ***"));
    // What the caller knows is not asked for before the first bytes.
    let file = quick().len(LEN as u64).open(&cluster.url("/file")).unwrap();
    assert_eq!(file.server(), None);
    reads(&file, 0, 10);
    assert_eq!(file.server(), Some("Jetty(9.4.57) for"));
    assert_eq!(opened(&self::cluster(Setup::default())).server(), None);
}

#[test]
fn a_size_that_the_caller_knows_is_not_asked_for() {
    let cluster = cluster(Setup::default());
    let file = quick().len(LEN as u64).open(&cluster.url("/file")).unwrap();
    assert_eq!((file.len(), file.validator()), (LEN as u64, None));
    assert!(cluster.asked(Node::Name(0)).is_empty());
    assert_same(&file.read_to_end(0).unwrap(), &pattern(1, 0, LEN));
    assert!(file.validator().is_some());
    let file = quick().len(999).open(&cluster.url("/file")).unwrap();
    let error = file.read_at(&mut [0; 10], 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed, "{error}");
}

#[test]
fn answers_without_a_length_and_short_ones_are_completed_and_longer_ones_refused() {
    let chunked = Setup::default().changed(|_, _, right| right.chunked().script());
    let cluster_of_chunks = cluster(chunked);
    assert_same(
        &opened(&cluster_of_chunks).read_to_end(0).unwrap(),
        &pattern(1, 0, LEN),
    );
    // No more than so much at a time.
    let short = Setup::default().changed(|node, asked, right| match node {
        Node::Data(_) => {
            let query = Query::of(asked);
            let count = query.number("length").unwrap().min(20_000) as usize;
            let bytes = pattern(1, query.number("offset").unwrap(), count);
            right
                .body(&bytes)
                .header("content-length", &count.to_string())
                .script()
        }
        Node::Name(_) => right.script(),
    });
    let of_short = cluster(short);
    reads(&opened(&of_short), 1000, 50_000);
    let ranges = offsets(&of_short.asked(Node::Data(0)));
    assert_eq!(ranges, [(1000, 50_000), (21_000, 30_000), (41_000, 10_000)]);
    let long = Setup::default().changed(|node, _, right| match node {
        Node::Data(_) => right.body(&[0; 11]).header("content-length", "11").script(),
        Node::Name(_) => right.script(),
    });
    let cluster = cluster(long);
    let error = opened(&cluster).read_at(&mut [0; 10], 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BadReply, "{error}");
    assert!(
        error
            .to_string()
            .contains("sent 11 bytes where 10 were asked for"),
        "{error}"
    );
}

/// What a parent has learnt of a cluster is good for its child, which asks by connections of its own.
#[test]
fn a_forked_child_reads_files_of_hdfs() {
    let cluster = Cluster::start(Setup::default());
    cluster.put("/file", &pattern(1, 0, 100_000));
    child("remote-forked").arg(cluster.url("/file")).succeeds();
}
