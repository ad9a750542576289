//! Files of HDFS by WebHDFS. Elsewhere each piece asks the name node anew, a data node that has died ends the read, and the
//! bytes of a file that was written to meanwhile come half from the old one.

use std::time::Duration;

use kvik::stats::names::HTTP_RETRIES;
use kvik::{ByteSize, ErrorKind, Kind, ReadAtExt, ReadOptions, RemoteHandle, RemoteOptions};
use kvik_tests::hdfs::{Cluster, Node, Query, Setup};
use kvik_tests::hostile::Asked;
use kvik_tests::pattern::{assert_same, pattern};

const LEN: usize = 300_000;
const BLOCK: u64 = 64 << 10;

/// Without waits between requests.
fn quick() -> RemoteOptions {
    RemoteHandle::builder().backoff(Duration::ZERO, Duration::ZERO)
}

fn cluster(setup: Setup) -> Cluster {
    let cluster = Cluster::start(setup);
    cluster.put("/file", &pattern(1, 0, LEN));
    cluster
}

fn opened(cluster: &Cluster) -> RemoteHandle {
    quick().open(&cluster.url("/file")).unwrap()
}

#[track_caller]
fn reads(file: &RemoteHandle, offset: u64, count: usize) {
    let mut bytes = vec![0; count];
    file.read_exact_at(&mut bytes, offset).unwrap();
    assert_same(&bytes, &pattern(1, offset, count));
}

/// All of it by one piece after another.
fn one_by_one(size: u64) -> ReadOptions {
    let options = ReadOptions::new().num_threads(1);
    options.task_size(ByteSize::new(size))
}

fn offsets(asked: &[Asked]) -> Vec<(u64, u64)> {
    let of = |asked| {
        let query = Query::of(asked);
        Some((query.number("offset")?, query.number("length")?))
    };
    asked.iter().filter_map(of).collect()
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
fn the_data_node_of_a_block_is_asked_directly_from_then_on() {
    let cluster = cluster(Setup::default());
    let file = opened(&cluster);
    for (offset, questions) in [(0, 1), (1000, 1), (BLOCK - 10, 1), (BLOCK, 2), (7, 2)] {
        reads(&file, offset, 10);
        assert_eq!(cluster.count("OPEN"), questions, "at {offset}");
    }
    // The blocks are on different nodes.
    let first = offsets(&cluster.asked(Node::Data(0)));
    assert_eq!(first, [(0, 10), (1000, 10), (BLOCK - 10, 10), (7, 10)]);
    assert_eq!(offsets(&cluster.asked(Node::Data(1))), [(BLOCK, 10)]);
}

#[test]
fn a_data_node_that_died_is_forgotten_and_named_to_the_name_node() {
    let cluster = cluster(Setup::default());
    let file = opened(&cluster);
    reads(&file, 0, 10);
    let dead = cluster.data_node(0);
    cluster.kill(0);
    reads(&file, 0, 10);
    // The third block would be there, too: nobody tries any more.
    reads(&file, 2 * BLOCK, 10);
    let asked = cluster.asked(Node::Name(0));
    let excluded: Vec<_> = asked
        .iter()
        .map(Query::of)
        .filter(|query| query.value("op").as_deref() == Some("OPEN"))
        .map(|query| query.value("excludedatanodes"))
        .collect();
    let host = dead.rsplit_once(':').unwrap().0;
    let named = Some(format!("{dead},{host}"));
    assert_eq!(excluded, [None, named.clone(), named]);
    assert_eq!(
        offsets(&cluster.asked(Node::Data(1))),
        [(0, 10), (2 * BLOCK, 10)]
    );
}

#[test]
fn a_data_node_that_was_down_and_is_the_only_one_is_asked_again() {
    let cluster = cluster(
        Setup {
            data_nodes: 1,
            ..Setup::default()
        }
        .changed(|node, asked, right| match (node, asked.number) {
            (Node::Data(_), 0) => right.cut(4),
            _ => right.script(),
        }),
    );
    reads(&opened(&cluster), 0, 1000);
    assert_eq!(
        offsets(&cluster.asked(Node::Data(0))),
        [(0, 1000), (4, 996)]
    );
}

#[test]
fn a_data_node_that_ends_early_is_left_at_the_byte_that_was_reached() {
    let setup = Setup::default().changed(|node, _, right| match node {
        Node::Data(0) => right.cut(1000),
        _ => right.script(),
    });
    let cluster = cluster(setup);
    let file = opened(&cluster);
    let before = HTTP_RETRIES.get();
    let mut bytes = vec![0; 50_000];
    file.read_at_with(&mut bytes, 0, &one_by_one(50_000))
        .unwrap();
    assert_same(&bytes, &pattern(1, 0, 50_000));
    assert_eq!(HTTP_RETRIES.get() - before, 1);
    assert_eq!(offsets(&cluster.asked(Node::Data(0))), [(0, 50_000)]);
    assert_eq!(offsets(&cluster.asked(Node::Data(1))), [(1000, 49_000)]);
}

#[test]
fn data_nodes_are_found_where_the_caller_says_that_they_are() {
    let names = ["dn0.invalid:9864", "dn1.invalid:9864"].map(str::to_owned);
    let cluster = cluster(Setup {
        names: names.to_vec(),
        ..Setup::default()
    });
    let url = cluster.url("/file");
    let file = quick().max_attempts(1).open(&url).unwrap();
    let error = file.read_at(&mut [0; 10], 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    let text = error.to_string();
    assert!(
        text.contains("the data node dn1.invalid:9864, and `RemoteOptions::data_node` can say"),
        "{text}"
    );
    let options = quick()
        .data_node("dn0.invalid", &cluster.data_node(0))
        .data_node("DN1.invalid:9864", &cluster.data_node(1))
        .part_size(ByteSize::new(BLOCK));
    let file = options.open(&url).unwrap();
    assert_same(&file.read_to_end(0).unwrap(), &pattern(1, 0, LEN));
    assert!(!cluster.asked(Node::Data(0)).is_empty() && !cluster.asked(Node::Data(1)).is_empty());
    let wrong = quick()
        .data_node("dn0", "http://dn0")
        .open(&url)
        .unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Misuse, "{wrong}");
}

#[test]
fn a_file_that_changes_is_told_whatever_of_it_changes() {
    let changes: [(fn(&Cluster), ErrorKind); 5] = [
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

#[test]
fn a_gateway_that_sends_the_bytes_itself_is_read_from() {
    let object = pattern(1, 0, LEN);
    let setup = Setup::default().changed(move |_, asked, right| {
        let query = Query::of(asked);
        match (query.number("offset"), query.number("length")) {
            (Some(offset), Some(length)) => {
                let bytes = &object[offset as usize..(offset + length) as usize];
                kvik_tests::hostile::Reply::with(200, bytes).script()
            }
            _ => right.script(),
        }
    });
    let cluster = cluster(setup);
    assert_same(
        &opened(&cluster).read_to_end(0).unwrap(),
        &pattern(1, 0, LEN),
    );
    assert!(cluster.asked(Node::Data(0)).is_empty());
}
