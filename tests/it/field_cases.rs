//! Failures that users of other tools reported in public. The comment of each test says where, by repository and issue;
//! the first letters of its name only number the case.

use kvik::{ByteSize, Config, FileHandle, Layer, ReadOptions};
use kvik_tests::faults::Shim;
use kvik_tests::gpu::{Kind, Memory, deregister, register};
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, file, pattern};

use crate::{child, gds};

/// llnl/UnifyFS#185, ned14/llfio#29, KvikIO: one tool hangs, one fails, one is short.
#[test]
fn l1_a_read_across_or_past_the_end_is_short_by_every_way_to_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "ten thousand", 1, 10_000);
    let truth = pattern(1, 0, 10_000);
    for (offset, size, count) in [
        (9_000, 4_096, 1_000),
        (10_000, 1, 0),
        (20_000, 1, 0),
        (0, 0, 0),
        (0, 20_000, 10_000),
    ] {
        for threads in [1, 3, 8] {
            for task_size in [1_000, 4 << 20] {
                let config = Layer::new()
                    .task_size(ByteSize::new(task_size))
                    .num_threads(threads);
                let inline = Config::resolve([config.clone()]).unwrap();
                let pooled = Config::resolve([config.inline_size(ByteSize::new(0))]).unwrap();
                for config in [inline, pooled] {
                    let handle = FileHandle::options()
                        .read(true)
                        .open_with(&path, &config)
                        .unwrap();
                    let landed = |target: &[u8]| {
                        assert_same(&target[..count], &truth[offset.min(10_000)..][..count]);
                        assert_all(&target[count..], UNTOUCHED);
                    };
                    let mut target = vec![UNTOUCHED; size];
                    assert_eq!(handle.read_at(&mut target, offset as u64).unwrap(), count);
                    landed(&target);
                    let options = ReadOptions::new().task_size(ByteSize::new(1_000));
                    let mut target = vec![UNTOUCHED; size];
                    assert_eq!(
                        handle
                            .read_at_with(&mut target, offset as u64, &options)
                            .unwrap(),
                        count
                    );
                    landed(&target);
                    let (outcome, target) = handle
                        .submit_read(vec![UNTOUCHED; size], offset as u64)
                        .finish();
                    assert_eq!(outcome.unwrap(), count);
                    landed(&target);
                }
            }
        }
    }
}

/// s3fs-fuse/s3fs-fuse#2870, antgroup/vsag#2281, KvikIO: other pieces still write into the buffer of a call that failed.
#[test]
fn l3_when_a_piece_fails_the_others_have_stopped_before_the_error_comes() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "64 MiB", 1, 64 << 20);
    let shim = Shim::build();
    for scenario in ["late-pieces", "late-pieces-pending"] {
        // The piece at the offset fails at once; all others take their time.
        for (offset, task) in [((64 << 20) - 1, 63), (32 << 20, 32), (0, 0)] {
            let rules = format!("pread:EIO:@{offset},pread:delay:1+");
            let said = child(scenario).arg(&path).faults(&shim, &rules).succeeds();
            let expected = format!(
                "Io after {}\ntext: read {} 0..67108864",
                task << 20,
                path.display()
            );
            assert!(said.starts_with(&expected), "{said}\ninstead of {expected}");
            assert!(said.contains("I/O error (EIO)"), "{said}");
        }
    }
}

/// kvikio#497, kvikio#159, cudf#17121: crashes after `main` has finished.
#[test]
fn l4_a_process_that_ends_with_transfers_in_flight_ends_well() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "8 MiB", 1, 8 << 20);
    for _ in 0..40 {
        for how in [
            "main-returns",
            "main-exits",
            "main-leaks",
            "thread-reads",
            "thread-submits",
            "thread-exits",
        ] {
            assert_eq!(child("exit").arg(how).arg(&path).succeeds(), "", "{how}");
        }
    }
    assert_eq!(child("exit").arg("main-drops").arg(&path).succeeds(), "");
}

/// kvikio#451, cudf#23786, cudf#23683: settings without effect, or reset by another component.
#[test]
fn c1_the_first_explicit_setting_wins_over_components_environment_and_other_threads() {
    let folder = tempfile::tempdir().unwrap();
    child("settings-second-component")
        .arg(folder.path())
        .env("KVIKIO_NTHREADS", "5")
        .succeeds();
    child("settings-late-environment").succeeds();
}

/// NVIDIA/gds-nvidia-fs#78, kvikio#1036, kvikio#1016: nobody can tell which path moved the data.
#[test]
fn c2_the_bytes_by_backend_are_those_that_the_kernel_counts() {
    let folder = tempfile::tempdir().unwrap();
    child("bytes-by-backend").arg(folder.path()).succeeds();
}

/// fastsafetensors#28, NVIDIA/gds-nvidia-fs#4, ai-dynamo/nixl#2143: a buffer that cuFile cannot register ends the load, with a bare
/// number.
#[test]
fn g3_a_buffer_that_cufile_refuses_is_used_without_and_codes_of_both_kinds_have_their_names() {
    let (gpu, cuda, cufile) = gds::start();
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "source", 1, 40_000);
    let handle = gds::open(&path, 1, 4096);
    let mut memory = Memory::new(&gpu, 0, Kind::Plain, 40_000);
    handle.read_exact_at(memory.target(0..40_000), 0).unwrap();
    // Registered already, more than the device lets others see, and what no version of ours has heard of.
    for code in [5023, 5036, 5016, 5099] {
        cufile.fail("cuFileBufRegister", "1", code);
        let registration = register(memory.address()).unwrap();
        let why = registration.why_not().unwrap();
        assert!(why.contains(&code.to_string()), "{why}");
        memory.set(UNTOUCHED);
        cufile.fall_short("cuFileRead", "*3");
        handle.read_exact_at(memory.target(0..40_000), 0).unwrap();
        assert_same(&memory.bytes(), &pattern(1, 0, 40_000));
        cufile.succeed();
        deregister(memory.address()).unwrap();
    }
    // Twice, and a part of it.
    for at in [0, 0, 10_000] {
        assert!(register(memory.address() + at).unwrap().is_registered());
    }
    handle.read_exact_at(memory.target(9..40_000), 1).unwrap();
    assert_same(&memory.bytes()[9..], &pattern(1, 1, 39_991));
    assert!(cufile.hits() > 0);
    for at in [10_000, 0, 0] {
        deregister(memory.address() + at).unwrap();
    }
    for (code, name) in [
        (5008, "CU_FILE_IO_NOT_SUPPORTED (5008)"),
        (5099, "cuFile status 5099"),
        (libc::EIO, "EIO"),
    ] {
        cufile.fail("cuFileRead", "1", code);
        let error = handle.read_at(memory.target(0..40_000), 0).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        cufile.succeed();
    }
    drop(handle);
    gds::assert_at_rest(&cuda, &cufile);
}
