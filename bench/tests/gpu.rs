//! The suite of a device, small and on a driver that is faked: that all cases have figures and compare their bytes, that a
//! wrong byte ends the run, and that a machine without a device gets a reason. The figures mean nothing here.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kvik::config::{Config, Key, Layer};
use kvik_bench::{Options, Progress, gpu_suite};

/// The fake driver that cargo has built beside this test.
fn use_fake_driver() {
    let here = std::env::current_exe().expect("this program has a path");
    let built = here.with_file_name("libcuda_fake.so");
    assert!(
        built.exists(),
        "{} is built with the tests",
        built.display()
    );
    let layer = Layer::new().set(Key::CudaLibrary, built.as_os_str());
    Config::set_process(layer).expect("a path");
}

fn small(dir: &Path) -> Options {
    Options {
        dir: Some(dir.to_owned()),
        size: 8 << 20,
        rounds: 2,
        threads: Some(2),
        budget: Duration::from_millis(700),
        ..Options::default()
    }
}

fn left_in(dir: &Path) -> usize {
    std::fs::read_dir(dir)
        .expect("the folder can be listed")
        .count()
}

const ALL: [&str; 13] = [
    "gpu-read-hot-2",
    "gpu-read-defaults",
    "gpu-read-tmpfs-2",
    "gpu-read-map-2",
    "gpu-read-auto",
    "gpu-stream-read",
    "gpu-stream-queued",
    "gpu-write-tmpfs",
    "gpu-random-4k",
    "gpu-random-64k",
    "gpu-random-4k-joined",
    "gpu-random-64k-joined",
    "gpu-read-4k-one",
];

#[test]
fn every_case_has_figures_beside_its_loops_and_leaves_nothing() {
    use_fake_driver();
    let dir = tempfile::tempdir().expect("a temporary folder");
    let stop = AtomicBool::new(false);
    let report = gpu_suite(&small(dir.path()), None, &mut |_| {}, &stop).expect("the suite runs");
    let names: Vec<_> = report.cases.iter().map(|case| case.name.as_str()).collect();
    for name in ALL {
        assert!(names.contains(&name), "{name}: {report}");
    }
    // A folder in memory has no disk to measure.
    let cold = "gpu-read-cold";
    assert!(names.contains(&cold) || report.not_run.iter().any(|case| case.name == cold));
    for case in &report.cases {
        assert!(
            case.value > 0.0 && case.limit > 0.0 && !case.aims.is_empty(),
            "{case}"
        );
        let parts = case.rivals.iter().filter(|each| each.who == "part").count();
        let wanted = match case.name.as_str() {
            "gpu-write-tmpfs" | "gpu-stream-queued" => 2,
            "gpu-stream-read" => 0,
            name if name.contains("random") || name.contains("one") => 0,
            _ => 1,
        };
        assert_eq!(parts, wanted, "{case}");
    }
    assert!(
        report.notes.iter().any(|note| note.starts_with("device 0")),
        "{report}"
    );
    assert_eq!(left_in(dir.path()), 0);
}

#[test]
fn one_wrong_bit_in_the_file_ends_the_run() {
    use_fake_driver();
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut data = None;
    let mut progress = |now: Progress<'_>| match now {
        Progress::Data { path, .. } => data = Some(path.to_owned()),
        Progress::Begun { .. } => {
            let path = data.as_deref().expect("the data is made first");
            let mut options = File::options();
            let file = options.read(true).write(true).open(path).expect("opened");
            let mut byte = [0];
            file.read_exact_at(&mut byte, 5_000_003).expect("read");
            file.write_all_at(&[byte[0] ^ 0x10], 5_000_003)
                .expect("written");
        }
        _ => {}
    };
    let options = Options {
        cases: vec!["gpu-read-hot".into()],
        ..small(dir.path())
    };
    let stop = AtomicBool::new(false);
    let error = gpu_suite(&options, None, &mut progress, &stop).expect_err("a byte is wrong");
    assert_eq!(error.kind(), kvik::ErrorKind::Internal);
    assert!(error.to_string().contains("position 5000003"), "{error}");
    assert_eq!(left_in(dir.path()), 0);
}

#[test]
fn a_device_that_is_not_there_is_a_reason_that_says_how_to_get_one() {
    use_fake_driver();
    let dir = tempfile::tempdir().expect("a temporary folder");
    let options = Options {
        device: 9,
        ..small(dir.path())
    };
    let stop = AtomicBool::new(false);
    let error = gpu_suite(&options, None, &mut |_| {}, &stop).expect_err("no such device");
    assert_eq!(error.kind(), kvik::ErrorKind::Unsupported);
    let text = error.to_string();
    assert!(
        text.contains("no device 9") && text.contains("gpu-bundle"),
        "{text}"
    );
    assert_eq!(left_in(dir.path()), 0);
}
