//! Whole runs, small: that all cases have figures, that wrong bytes end a run, and that nothing is left behind however it
//! ends.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kvik::ErrorKind;
use kvik_bench::{Options, Progress, Report, default_suite, file_suite};

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

fn run(options: &Options) -> kvik::Result<Report> {
    default_suite(options, &mut |_| {}, &AtomicBool::new(false))
}

fn left_in(dir: &Path) -> usize {
    std::fs::read_dir(dir)
        .expect("the folder can be listed")
        .count()
}

fn names(report: &Report) -> Vec<&str> {
    report.cases.iter().map(|case| case.name.as_str()).collect()
}

const ALL: [&str; 7] = [
    "host-read-hot",
    "host-read-hot-offset-16",
    "host-read-cold",
    "host-write",
    "host-write-sync",
    "host-read-4k",
    "host-read-64k",
];

#[test]
fn a_small_run_of_the_whole_suite_has_figures_for_every_case_and_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut rounds = 0;
    let mut progress =
        |now: Progress<'_>| rounds += usize::from(matches!(now, Progress::Round { .. }));
    let report = default_suite(&small(dir.path()), &mut progress, &AtomicBool::new(false))
        .expect("the suite runs");
    let not_run: Vec<_> = report
        .not_run
        .iter()
        .map(|case| case.name.as_str())
        .collect();
    assert_eq!([names(&report), not_run.clone()].concat().len(), ALL.len());
    for name in ALL {
        // A folder in memory has no disk to measure; everything else runs everywhere.
        let needs_disk = name == "host-read-cold" || name == "host-write-sync";
        assert!(
            names(&report).contains(&name) || (needs_disk && not_run.contains(&name)),
            "{name}: {not_run:?}"
        );
    }
    for case in &report.cases {
        assert!(
            case.value > 0.0 && case.limit > 0.0 && case.ratio > 0.0,
            "{case}"
        );
        assert!(
            case.spread.0 <= case.ratio && case.ratio <= case.spread.1,
            "{case}"
        );
        assert_eq!(case.rounds, 2);
        assert!(
            case.limit_name.starts_with('p') || case.limit_name.starts_with('m'),
            "{}",
            case.limit_name
        );
    }
    assert_eq!(rounds, report.cases.len() * 2);
    assert_eq!(report.machine.data, 8 << 20);
    assert_eq!(left_in(dir.path()), 0);

    let table = report.to_string();
    for case in &report.cases {
        assert!(
            table.contains(&case.name) && table.contains(&case.limit_name),
            "{table}"
        );
    }
}

#[test]
fn the_json_has_the_names_that_others_rely_on_and_only_finite_numbers() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let options = Options {
        cases: vec!["host-read".into()],
        ..small(dir.path())
    };
    let json = serde_json::to_value(run(&options).expect("the suite runs")).expect("serializes");
    let cases = json["cases"].as_array().expect("cases is a list");
    assert!(cases.len() >= 4, "{json}");
    for case in cases {
        assert!(case["name"].is_string() && case["limit_name"].is_string());
        assert!(case["unit"] == "GB/s" || case["unit"] == "ops/s");
        for figure in [
            "value",
            "cpu_s_per_gb",
            "limit",
            "limit_cpu_s_per_gb",
            "ratio",
        ] {
            // What is not finite would be null.
            assert!(case[figure].is_f64(), "{figure} in {case}");
        }
        assert!(case["spread"][0].is_f64() && case["spread"][1].is_f64());
    }
    assert!(
        json["not_run"].is_array() && json["notes"].is_array() && json["machine"]["cpus"].is_u64()
    );
    assert!(json.get("thresholds").is_none());
}

#[test]
fn a_stop_in_the_middle_is_an_error_and_removes_the_folder() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let stop = AtomicBool::new(false);
    let mut path = None;
    let mut progress = |now: Progress<'_>| match now {
        Progress::Data { path: at, .. } => path = Some(at.to_owned()),
        Progress::Round {
            name: "host-write",
            number: 2,
            ..
        } => {
            assert!(
                path.as_deref().is_some_and(Path::exists),
                "the data file is there while it is used"
            );
            stop.store(true, Ordering::Relaxed);
        }
        _ => {}
    };
    let error = default_suite(&small(dir.path()), &mut progress, &stop).expect_err("stopped");
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    assert_eq!(left_in(dir.path()), 0);
}

#[test]
fn one_wrong_bit_ends_the_run_and_removes_the_folder() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let mut data: Option<PathBuf> = None;
    let mut progress = |now: Progress<'_>| match now {
        Progress::Data { path, .. } => data = Some(path.to_owned()),
        Progress::Begun { .. } => {
            let path = data.as_deref().expect("the data is made first");
            let file = File::options()
                .read(true)
                .write(true)
                .open(path)
                .expect("the data file opens");
            let mut byte = [0];
            file.read_exact_at(&mut byte, 5_000_003).expect("read");
            file.write_all_at(&[byte[0] ^ 0x10], 5_000_003)
                .expect("written");
        }
        _ => {}
    };
    let options = Options {
        cases: vec!["host-read-hot".into()],
        ..small(dir.path())
    };
    let error = default_suite(&options, &mut progress, &AtomicBool::new(false))
        .expect_err("a byte is wrong");
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert!(error.to_string().contains("host-read-hot"), "{error}");
    // A turn whose spoiled word happens to be the wrong one finds it, too, and names the word.
    assert!(error.to_string().contains("position 500000"), "{error}");
    assert_eq!(left_in(dir.path()), 0);
}

#[test]
fn a_folder_in_memory_gets_reasons_instead_of_disk_figures() {
    let dir = tempfile::tempdir_in("/dev/shm").expect("/dev/shm, which every Linux has");
    let options = Options {
        cases: vec!["cold".into(), "sync".into()],
        ..small(dir.path())
    };
    let report = run(&options).expect("the suite runs");
    assert!(report.cases.is_empty());
    assert_eq!(report.not_run.len(), 2);
    assert!(
        report
            .not_run
            .iter()
            .all(|case| case.reason.contains("no disk to measure"))
    );
    assert!(
        report
            .to_string()
            .contains("not run: host-read-cold: files of tmpfs"),
        "{report}"
    );
    assert_eq!(left_in(dir.path()), 0);
}

#[test]
fn a_file_of_somebody_else_is_read_by_every_number_of_threads_and_not_touched() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("theirs.bin");
    let content: Vec<u8> = (0..8_u32 << 20).map(|at| (at % 251) as u8).collect();
    std::fs::write(&path, &content).expect("written");
    let options = Options {
        file: Some(path.clone()),
        threads: None,
        task_size: Some(1 << 20),
        cases: vec!["hot".into()],
        ..small(dir.path())
    };
    let report =
        file_suite(&options, &mut |_| {}, &AtomicBool::new(false)).expect("the suite runs");
    assert!(
        names(&report).contains(&"hot-threads-1-task-1MiB"),
        "{report}"
    );
    assert!(
        report
            .cases
            .iter()
            .all(|case| case.ratio > 0.0 && !case.limit_name.contains("mapped"))
    );
    assert_eq!(std::fs::read(&path).expect("read"), content);
    assert_eq!(left_in(dir.path()), 1);
}

#[test]
fn thresholds_are_measured_when_asked_for_by_name() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let options = Options {
        cases: vec!["thresholds".into()],
        rounds: 1,
        ..small(dir.path())
    };
    let report =
        file_suite(&options, &mut |_| {}, &AtomicBool::new(false)).expect("the suite runs");
    assert!(report.cases.is_empty());
    let sizes: Vec<u64> = report.thresholds.iter().map(|row| row.size).collect();
    assert_eq!(
        (sizes.first(), sizes.last()),
        (Some(&4096), Some(&(4 << 20)))
    );
    assert!(
        report
            .thresholds
            .iter()
            .all(|row| row.inline_us > 0.0 && row.pool_us > 0.0)
    );
}

#[test]
fn options_that_make_no_sense_are_misuse() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let bad = [
        Options {
            rounds: 0,
            ..small(dir.path())
        },
        Options {
            threads: Some(0),
            ..small(dir.path())
        },
        Options {
            size: 1,
            ..small(dir.path())
        },
        Options {
            cases: vec!["no-such-case".into()],
            ..small(dir.path())
        },
        Options {
            file: Some("data.bin".into()),
            ..small(dir.path())
        },
    ];
    for options in bad {
        let error = run(&options).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        assert_eq!(left_in(dir.path()), 0);
    }
    let missing = Options {
        dir: Some(dir.path().join("missing")),
        ..small(dir.path())
    };
    assert_eq!(
        run(&missing).expect_err("refused").kind(),
        ErrorKind::NotFound
    );
}
