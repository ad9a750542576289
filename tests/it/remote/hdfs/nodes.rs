//! Which nodes are asked. Elsewhere each piece asks the name node anew, and a data node that has died ends the read.

use std::sync::{Arc, Barrier};
use std::thread;

use kvik::stats::names::{BYTES_BY_WEBHDFS, HTTP_RETRIES};
use kvik::{ByteSize, ErrorKind, Kind, ReadAtExt, ReadOptions};
use kvik_tests::gpu::{self, Memory};
use kvik_tests::hdfs::{Cluster, Node, Query, Setup, exception};
use kvik_tests::hostile::{Reply, Script, Step};
use kvik_tests::need;
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, pattern};
use kvik_tests::tls::Authority;

use super::{BLOCK, LEN, cluster, offsets, one_by_one, opened, quick, reads};

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

/// By the time that its answer ends early another data node has been found for the block.
#[test]
fn a_data_node_that_ends_early_is_blamed_and_not_the_one_that_came_after_it() {
    let barrier = Arc::new(Barrier::new(2));
    let end = Arc::clone(&barrier);
    let setup = Setup::default().changed(move |node, asked, right| match (node, asked.number) {
        (Node::Data(0), 0) => {
            let first = [right.head(), pattern(1, 0, 1000)].concat();
            Script(vec![
                Step::Send(first),
                Step::Meet(Arc::clone(&end)),
                Step::Close,
            ])
        }
        (Node::Data(0), _) => exception(500, "RuntimeException", "no more room").script(),
        _ => right.script(),
    });
    let cluster = cluster(setup);
    let file = opened(&cluster);
    let before = BYTES_BY_WEBHDFS.get();
    let pending = file.submit_read(vec![0; 10_000], 0);
    while BYTES_BY_WEBHDFS.get() < before + 1000 {
        thread::yield_now();
    }
    reads(&file, 20_000, 10);
    barrier.wait();
    let (outcome, bytes) = pending.finish();
    assert_eq!(outcome.unwrap(), 10_000);
    assert_same(&bytes, &pattern(1, 0, 10_000));
    assert_eq!(
        offsets(&cluster.asked(Node::Data(0))),
        [(0, 10_000), (20_000, 10)]
    );
    // The rest is asked for directly where the block was found meanwhile.
    assert_eq!(
        offsets(&cluster.asked(Node::Data(1))),
        [(20_000, 10), (1000, 9000)]
    );
    assert_eq!(cluster.count("OPEN"), 2);
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
    let nowhere = quick()
        .max_attempts(1)
        .data_node("dn0.invalid", "127.0.0.1:1")
        .data_node("dn1.invalid", "127.0.0.1:2");
    let error = nowhere
        .open(&url)
        .unwrap()
        .read_at(&mut [0; 10], 0)
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("the data node dn1.invalid:9864, and `RemoteOptions::data_node` says that it is at 127.0.0.1:2"),
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

/// The name node knows a data node by the name that it has in the cluster.
#[test]
fn a_data_node_that_is_elsewhere_and_died_is_named_as_the_cluster_calls_it() {
    let cluster = cluster(Setup {
        names: ["dn0.invalid:9864", "dn1.invalid:9864"]
            .map(str::to_owned)
            .to_vec(),
        ..Setup::default()
    });
    let options = quick()
        .max_attempts(1)
        .data_node("dn0.invalid", &cluster.data_node(0))
        .data_node("dn1.invalid", &cluster.data_node(1));
    let (known, unknown) = (
        options.open(&cluster.url("/file")),
        options.open(&cluster.url("/file")),
    );
    let (known, unknown) = (known.unwrap(), unknown.unwrap());
    reads(&known, 0, 10);
    cluster.kill(0);
    // By the one it was read from already.
    reads(&known, 20, 10);
    reads(&unknown, 30, 10);
    assert_eq!(offsets(&cluster.asked(Node::Data(1))), [(20, 10), (30, 10)]);
    let asked = cluster.asked(Node::Name(0));
    let mut excluded = asked
        .iter()
        .filter_map(|asked| Query::of(asked).value("excludedatanodes"));
    assert!(excluded.all(|names| names == "dn0.invalid:9864,dn0.invalid"));
    // From then on it is asked directly.
    reads(&known, 40, 10);
    assert_eq!(cluster.asked(Node::Data(1)).len(), 3);
}

/// A gateway that sends readers on to itself. More of them come at once than it is asked by at a time.
#[test]
fn a_gateway_that_points_to_itself_is_read_from_by_many_at_once() {
    let object = pattern(1, 0, LEN);
    let setup = Setup::default().changed(move |_, asked, right| {
        let query = Query::of(asked);
        let (offset, length) = (query.number("offset"), query.number("length"));
        match (offset, length, query.value("data")) {
            (Some(offset), Some(length), Some(_)) => {
                let bytes = &object[offset as usize..(offset + length) as usize];
                Reply::with(200, bytes).script()
            }
            (Some(_), ..) => Reply::redirect(307, &format!("{}&data=true", asked.path)).script(),
            _ => right.script(),
        }
    });
    let cluster = cluster(setup);
    let mut bytes = vec![0; LEN];
    let options = ReadOptions::new()
        .num_threads(64)
        .task_size(ByteSize::new(4096));
    opened(&cluster)
        .read_at_with(&mut bytes, 0, &options)
        .unwrap();
    assert_same(&bytes, &pattern(1, 0, LEN));
}

#[test]
fn a_cluster_by_tls_is_read_from_and_never_left_for_one_without() {
    let authority = Arc::new(Authority::new());
    let folder = tempfile::tempdir().unwrap();
    let secure = || Setup {
        authority: Some(Arc::clone(&authority)),
        ..Setup::default()
    };
    let options = quick().ca_bundle(authority.file(folder.path()));
    let open =
        |cluster: &Cluster| options.open(&format!("swebhdfs://{}/file", cluster.name_node(0)));
    let file = open(&cluster(secure()));
    assert_eq!(file.unwrap().kind(), Kind::WebHdfs);
    let by_tls = cluster(secure());
    assert_same(
        &open(&by_tls).unwrap().read_to_end(0).unwrap(),
        &pattern(1, 0, LEN),
    );
    let down = secure().changed(|_, asked, right| {
        let has_offset = Query::of(asked).number("offset").is_some();
        match has_offset {
            true => Reply::redirect(307, "http://127.0.0.1:1/webhdfs/v1/file").script(),
            false => right.script(),
        }
    });
    let cluster = cluster(down);
    let error = open(&cluster)
        .unwrap()
        .read_at(&mut [0; 10], 0)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("from https to http"), "{error}");
}

#[test]
fn a_data_node_that_ends_early_is_left_for_a_read_to_a_device_too() {
    let gpu = need::gpu();
    let setup = Setup::default().changed(|node, _, right| match node {
        Node::Data(0) => right.cut(1000),
        _ => right.script(),
    });
    let cluster = cluster(setup);
    let file = opened(&cluster);
    let mut memory = Memory::new(&gpu, 0, gpu::Kind::Plain, 50_000);
    memory.set(UNTOUCHED);
    let before = HTTP_RETRIES.get();
    let target = memory.target(10..49_000);
    let count = file.read_at_with(target, 0, &one_by_one(50_000)).unwrap();
    assert_eq!((count, HTTP_RETRIES.get() - before), (48_990, 1));
    let bytes = memory.bytes();
    assert_same(&bytes[10..49_000], &pattern(1, 0, 48_990));
    assert_all(&bytes[..10], UNTOUCHED);
    assert_all(&bytes[49_000..], UNTOUCHED);
}

#[test]
fn a_gateway_that_sends_the_bytes_itself_is_read_from() {
    let object = pattern(1, 0, LEN);
    let setup = Setup::default().changed(move |_, asked, right| {
        let query = Query::of(asked);
        match (query.number("offset"), query.number("length")) {
            (Some(offset), Some(length)) => {
                let bytes = &object[offset as usize..(offset + length) as usize];
                Reply::with(200, bytes).script()
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
