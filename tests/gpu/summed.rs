//! A run of everything at once, summed up by a monitor: reads and writes of files, reads of maps and of remote objects, by the
//! host and by a device, from several threads, and some that fail. What the monitor says is held against what was done.

use std::collections::HashMap;
use std::path::Path;
use std::thread;

use kvik::stats::{Backend, Distribution, MonitorOptions, Summary};
use kvik::{CompatMode, FileHandle, MmapHandle, ReadAt, ReadAtExt, RemoteHandle};
use kvik_tests::gpu::{Gpu, Kind, Memory};
use kvik_tests::hdfs::{Cluster, Setup};
use kvik_tests::hostile::{Reply, Server};
use kvik_tests::need;
use kvik_tests::pattern::{assert_same, file, pattern};
use kvik_tests::remote::quick;

const LEN: usize = 3 << 20;
const THREADS: usize = 3;
/// Of each object by each thread: to the host and to the device.
const READS: [(u64, usize); 4] = [(0, LEN), (4097, 1000), (1 << 20, 1_000_001), (77, 1)];

/// What was done, counted by hand.
#[derive(Default)]
struct Truth {
    reads: u64,
    writes: u64,
    requested: u64,
    read: u64,
    written: u64,
    errors: u64,
    by_backend: HashMap<Backend, (u64, u64)>,
}

impl Truth {
    fn read(&mut self, backend: Backend, count: u64) {
        self.reads += 1;
        self.requested += count;
        self.read += count;
        self.share(backend, count);
    }

    fn wrote(&mut self, count: u64) {
        self.writes += 1;
        self.requested += count;
        self.written += count;
        self.share(Backend::Posix, count);
    }

    fn failed(&mut self, backend: Backend, requested: u64) {
        self.reads += 1;
        self.requested += requested;
        self.errors += 1;
        self.share(backend, 0);
    }

    fn share(&mut self, backend: Backend, count: u64) {
        let share = self.by_backend.entry(backend).or_default();
        *share = (share.0 + 1, share.1 + count);
    }

    fn check(&self, summary: &Summary) {
        assert_eq!(summary.operations, self.reads + self.writes);
        assert_eq!((summary.reads, summary.writes), (self.reads, self.writes));
        assert_eq!(summary.bytes_requested, self.requested);
        assert_eq!(summary.bytes_read, self.read);
        assert_eq!(summary.bytes_written, self.written);
        assert_eq!(summary.errors, self.errors);
        assert!(summary.busy_ns > 0 && summary.busy_ns <= summary.wall_ns());
        for (backend, share) in summary.by_backend() {
            let expected = self.by_backend.get(&backend).copied().unwrap_or_default();
            assert_eq!((share.operations, share.bytes), expected, "{backend}");
        }
        let kept = |of: fn(&Summary, Backend, kvik::stats::Direction) -> Option<&Distribution>| {
            let directions = [kvik::stats::Direction::Read, kvik::stats::Direction::Write];
            let cells = Backend::ALL.iter().flat_map(|&backend| {
                directions.map(|direction| of(summary, backend, direction).map(Distribution::count))
            });
            cells.flatten().sum::<u64>()
        };
        assert_eq!(kept(Summary::sizes), summary.operations);
        assert_eq!(kept(Summary::durations), summary.operations);
    }
}

fn to_device(gpu: &Gpu, object: &dyn ReadAt, offset: u64, count: usize) {
    let mut memory = Memory::new(gpu, 0, Kind::Plain, count);
    object
        .read_exact_at(memory.target(0..count), offset)
        .unwrap();
    assert_same(&memory.bytes(), &pattern(1, offset, count));
}

fn write(gpu: &Gpu, path: &Path) {
    let options = FileHandle::options().write(true).create(true);
    let target = options.compat(CompatMode::On).open(path).unwrap();
    target.write_at(&pattern(1, 0, LEN)[..], 0).unwrap();
    let mut memory = Memory::new(gpu, 0, Kind::Plain, 1_000_001);
    memory.put(0, &pattern(1, 5, 1_000_001));
    target.write_at(memory.source(0..1_000_001), 5).unwrap();
    assert_same(&std::fs::read(path).unwrap(), &pattern(1, 0, LEN));
}

#[test]
fn a_mixed_run_is_summed_up_as_it_was() {
    let gpu = need::gpu();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, LEN);
    let server = Server::start(|asked| match asked.path.as_str() {
        "/gone" => Reply::status(404).script(),
        _ => Reply::of(&pattern(1, 0, LEN), asked).script(),
    });
    let cluster = Cluster::start(Setup::default());
    cluster.put("/file", &pattern(1, 0, LEN));

    let plain = FileHandle::options().read(true).compat(CompatMode::On);
    let plain = plain.open(&path).unwrap();
    let map = MmapHandle::open(&path).unwrap();
    let object = RemoteHandle::open(&server.url("a")).unwrap();
    let stored = quick().open(&cluster.url("/file")).unwrap();
    let gone = quick().len(1000).open(&server.url("gone")).unwrap();
    let objects: [(Backend, &(dyn ReadAt + Sync)); 4] = [
        (Backend::Posix, &plain),
        (Backend::Mmap, &map),
        (Backend::RemoteHttp, &object),
        (Backend::RemoteHdfs, &stored),
    ];

    let monitor = MonitorOptions::new().distributions(true).start();
    let before = monitor.get();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for (_, object) in objects {
                    for (offset, count) in READS {
                        let mut bytes = vec![0; count];
                        object.read_exact_at(&mut bytes[..], offset).unwrap();
                        assert_same(&bytes, &pattern(1, offset, count));
                        to_device(&gpu, object, offset, count);
                    }
                }
                gone.read_at(&mut [0; 1000][..], 0).unwrap_err();
            });
        }
    });
    for number in 0..THREADS {
        write(&gpu, &folder.path().join(number.to_string()));
    }
    let summary = monitor.get();

    let mut truth = Truth::default();
    for _ in 0..THREADS {
        for (backend, _) in objects {
            for (_, count) in READS {
                truth.read(backend, count as u64);
                truth.read(backend, count as u64);
            }
        }
        truth.failed(Backend::RemoteHttp, 1000);
        truth.wrote(LEN as u64);
        truth.wrote(1_000_001);
    }
    truth.check(&summary);
    truth.check(&summary.since(&before).unwrap());
    let copy = Summary::from_bytes(&summary.to_bytes()).unwrap();
    assert_eq!(copy, summary);
    println!("{summary}");
}
