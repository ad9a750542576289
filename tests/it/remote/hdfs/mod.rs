//! Files of HDFS by WebHDFS.

mod access;
mod files;
mod nodes;

use kvik::{ByteSize, ReadOptions, RemoteHandle};
use kvik_tests::hdfs::{Cluster, Query, Setup};
use kvik_tests::hostile::Asked;
use kvik_tests::pattern::{assert_same, pattern};
use kvik_tests::remote::quick;

const LEN: usize = 300_000;
const BLOCK: u64 = 64 << 10;

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
