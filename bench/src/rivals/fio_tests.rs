//! What fio prints, and what it is asked.

use super::*;

#[test]
fn figures_are_read_out_of_what_fio_prints() {
    let text = r#"fio: a warning
{ "fio version": "fio-3.33", "jobs": [ {
    "read": {"io_bytes": 1073741824, "runtime": 250, "total_ios": 256, "bw_bytes": 1},
    "write": {"io_bytes": 0, "runtime": 0, "total_ios": 0},
    "job_runtime": 500, "usr_cpu": 10.0, "sys_cpu": 80.0 } ] }
trailing"#;
    let moved = read(text).expect("figures");
    assert_eq!((moved.bytes, moved.operations), (1 << 30, 256));
    let elsewhere = moved.elsewhere.expect("its own clock");
    assert_eq!((elsewhere.seconds, elsewhere.cpu_seconds), (0.25, 0.45));
}

#[test]
fn no_figures_are_a_reason_and_no_zero() {
    for text in ["", "fio: no such engine", "{\"jobs\": []}", "{\"jobs\""] {
        let trouble = read(text).expect_err("nothing to read");
        assert!(trouble.ends_only_the_case(), "{text}");
    }
}

#[test]
fn parts_of_several_jobs_follow_each_other_and_random_reads_are_counted() {
    let path = Path::new("x");
    let two = FioWay::psync(4 << 20, 2, true);
    let arguments = two.arguments(&FioJob::Read, path, 64 << 20);
    for wanted in [
        "--size=33554432",
        "--offset_increment=33554432",
        "--direct=1",
        "--readonly",
    ] {
        assert!(
            arguments.iter().any(|each| each == wanted),
            "{wanted} in {arguments:?}"
        );
    }
    let random = FioWay::uring(4096, 32).arguments(&FioJob::Random { len: 1 << 20 }, path, 100);
    for wanted in [
        "--rw=randread",
        "--io_size=409600",
        "--size=1048576",
        "--iodepth=32",
    ] {
        assert!(
            random.iter().any(|each| each == wanted),
            "{wanted} in {random:?}"
        );
    }
    let write = two.arguments(&FioJob::Write { sync: true }, path, 64 << 20);
    assert!(!write.contains(&"--readonly".to_owned()));
    assert!(write.contains(&"--end_fsync=1".to_owned()));
}

#[test]
fn names_say_all_that_differs() {
    assert_eq!(
        FioWay::psync(4 << 20, 1, false).name(),
        "fio psync 4 MiB, 1 thread"
    );
    let ring = FioWay::uring(4096, 32);
    assert_eq!(
        ring.name(),
        "fio io_uring 4 KiB, depth 32, direct, 1 thread"
    );
}
