//! File systems that refuse direct I/O, when a file is opened or later; once that made opening fail.

use std::path::Path;

use kvik::{Config, EngineKind, EnginePreference, ErrorKind, FileHandle, Layer};
use kvik_tests::child::Child;
use kvik_tests::faults::Shim;
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, file, pattern};

use super::{LEN, cut, folder};
use crate::{child, says};

/// kvikio#125, kvikio#126: a file system without direct mode makes open fail.
#[test]
fn d2_a_file_system_without_direct_io_serves_by_the_page_cache_and_refuses_by_name_who_insists() {
    let folder = folder();
    let path = file(folder.path(), "source", 1, LEN);
    let shim = Shim::build();
    let without = |child: Child| child.faults(&shim, "direct-open:EINVAL:1+");
    // Nobody insists.
    let out = folder.path().join("out");
    let said = without(read(&path, &out, "-"))
        .env("KVIK_AUTO_DIRECT_IO_READ", "on")
        .succeeds();
    says(&said, &["ok 1000003", "fallbacks: 1"]);
    assert_same(&std::fs::read(&out).unwrap(), &pattern(1, 0, LEN));
    // By the engine alone, and by the settings.
    for (setting, auto) in [
        ("auto", "ok 10"),
        ("never", "ok 10"),
        ("always", "Unsupported after 0"),
    ] {
        let said = without(child("direct-open").arg(&path))
            .env("KVIK_DIRECT_READ", setting)
            .succeeds();
        assert_eq!(said.lines().next(), Some(auto), "{said}");
        let refusal = format!(
            "text: open {}: direct I/O (O_DIRECT) was asked for and cannot be had on this file, which lies on a file system ext4: open does not take the flag (EINVAL)",
            path.display()
        );
        let refused = said.lines().filter(|line| *line == refusal).count();
        assert_eq!(refused, if setting == "always" { 2 } else { 1 }, "{said}");
    }
    // A tmpfs has it since Linux 6.6.
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = file(memory.path(), "source", 1, LEN);
    let hint = Layer::new().auto_direct_io_read(true);
    let config = Config::resolve([hint]).unwrap();
    let handle = FileHandle::options().read(true).open_with(&path, &config);
    let handle = handle.unwrap();
    let mut target = vec![0; LEN];
    assert_eq!(
        handle
            .read_at_with(&mut target, 0, &cut(2, 65_536))
            .unwrap(),
        LEN
    );
    assert_same(&target, &pattern(1, 0, LEN));
    let only = EnginePreference::Only(EngineKind::Direct);
    let forced = FileHandle::options().read(true).engine(only).open(&path);
    match forced {
        Ok(_) => assert!(handle.is_direct_io_supported()),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            let text = error.to_string();
            assert!(
                text.contains("(O_DIRECT)") && text.contains("tmpfs"),
                "{text}"
            );
        }
    }
}

fn read(path: &Path, out: &Path, task_size: &str) -> Child {
    child("read")
        .arg(path)
        .number(0)
        .number(LEN as u64)
        .number(2)
        .arg(task_size)
        .arg(out)
}

/// By a ring, and by blocking calls where the kernel has no rings, which counts by itself.
const WAYS: [(&str, u64); 2] = [("", 0), (",ring:ENOSYS:1+", 1)];

#[test]
fn a_direct_read_that_is_refused_at_any_time_goes_on_by_the_page_cache_and_counts_once() {
    let folder = folder();
    let path = file(folder.path(), "source", 1, LEN);
    let out = folder.path().join("out");
    let shim = Shim::build();
    for errno in ["EINVAL", "EOPNOTSUPP"] {
        for nth in [1, 2, 5, 11] {
            for task_size in ["-", "65536", "100000"] {
                // Without a task size it is one call or two.
                if task_size == "-" && nth > 1 {
                    continue;
                }
                for (ring, more) in WAYS {
                    let said = read(&path, &out, task_size)
                        .env("KVIK_AUTO_DIRECT_IO_READ", "on")
                        .faults(&shim, &format!("direct-pread:{errno}:{nth}+{ring}"))
                        .succeeds();
                    says(&said, &["ok 1000003", &format!("fallbacks: {}", 1 + more)]);
                    assert_same(&std::fs::read(&out).unwrap(), &pattern(1, 0, LEN));
                }
            }
        }
    }
    // For who insists it is an error that names flag and file system.
    for (ring, more) in WAYS {
        let said = read(&path, &out, "65536")
            .env("KVIK_DIRECT_READ", "always")
            .faults(&shim, &format!("direct-pread:EINVAL:5+{ring}"))
            .succeeds();
        let text = "direct I/O (O_DIRECT) was asked for and cannot be had on this file, which lies on a file system ext4: a direct read was refused (EINVAL)";
        assert!(
            said.starts_with("Unsupported after ") && said.contains(text),
            "{said}"
        );
        says(&said, &[&format!("fallbacks: {more}")]);
    }
}

#[test]
fn all_clones_of_a_handle_give_direct_io_up_together() {
    let folder = folder();
    let path = file(folder.path(), "source", 1, 3 << 20);
    let shim = Shim::build();
    // A second direct call would be an error.
    for (ring, more) in WAYS {
        let rules = format!("direct-pread:EINVAL:1,direct-pread:EIO:2+{ring}");
        let said = child("direct-clones")
            .arg(&path)
            .env("KVIK_AUTO_DIRECT_IO_READ", "on")
            .env("KVIK_NUM_THREADS", "1")
            .faults(&shim, &rules)
            .succeeds();
        let count = |line: &str| said.lines().filter(|found| *found == line).count();
        let fallbacks = format!("fallbacks: {}", 1 + more);
        assert_eq!((count("ok 3145728"), count(&fallbacks)), (4, 4), "{said}");
    }
}

#[test]
fn direct_writes_that_are_refused_fall_short_or_fail_keep_their_promises() {
    let folder = folder();
    let shim = Shim::build();
    let truth = pattern(1, 3, LEN);
    let write = |rules: &str, setting: &str, task_size: &str| {
        let path = folder.path().join("target");
        std::fs::write(&path, b"abc").unwrap();
        let said = child("write")
            .arg(&path)
            .number(3)
            .number(LEN as u64)
            .number(2)
            .arg(task_size)
            .env("KVIK_DIRECT_WRITE", setting)
            .env("KVIK_AUTO_DIRECT_IO_WRITE", "on")
            .faults(&shim, rules)
            .succeeds();
        let stored = std::fs::read(&path).unwrap();
        assert_eq!(&stored[..3], b"abc");
        (said, stored)
    };
    for task_size in ["-", "65536", "12000"] {
        for nth in [1, 2, 7] {
            for (ring, more) in WAYS {
                let rules = format!("direct-pwrite:EINVAL:{nth}+{ring}");
                let (said, stored) = write(&rules, "auto", task_size);
                says(&said, &["ok 1000003"]);
                let expected = format!("fallbacks: {}", 1 + more);
                let fallbacks = said.lines().any(|line| line == expected);
                assert!(fallbacks || nth > 1, "{said}");
                assert_same(&stored[3..], &truth);
            }
        }
        // Whole blocks, parts of them, and single bytes.
        for rules in [
            "direct-pwrite:short:*2",
            "direct-pwrite:one:3",
            "direct-pwrite:EINTR:*2",
        ] {
            for (ring, more) in WAYS {
                let (said, stored) = write(&format!("{rules}{ring}"), "always", task_size);
                says(&said, &["ok 1000003", &format!("fallbacks: {more}")]);
                assert_same(&stored[3..], &truth);
            }
        }
    }
    for (ring, _) in WAYS {
        let rules = format!("direct-pwrite:ENOSPC:@500000{ring}");
        let (said, stored) = write(&rules, "always", "65536");
        says(&said, &["StorageFull after 458749"]);
        assert_same(&stored[3..458_752], &truth[..458_749]);
    }
    // One byte of the body is written, then there is no room. The head is written all the same, so that both count.
    let rules = "direct-pwrite:one:1,pwrite:ENOSPC:2,ring:ENOSYS:1+";
    let (said, stored) = write(rules, "always", "2000000");
    says(&said, &["StorageFull after 4094"]);
    assert_same(&stored[3..4097], &truth[..4094]);
    let (said, _) = write("direct-pwrite:EINVAL:1+", "always", "65536");
    assert!(said.starts_with("Unsupported after "), "{said}");
}

#[test]
fn short_interrupted_and_failing_direct_reads_are_continued_or_told() {
    let folder = folder();
    let path = file(folder.path(), "source", 1, LEN);
    let out = folder.path().join("out");
    let shim = Shim::build();
    for rules in [
        "direct-pread:short:*2",
        "direct-pread:one:*2",
        "direct-pread:EINTR:*2,direct-pread:EAGAIN:3",
    ] {
        for task_size in ["-", "65536", "4097"] {
            for (ring, more) in WAYS {
                let said = read(&path, &out, task_size)
                    .env("KVIK_DIRECT_READ", "always")
                    .faults(&shim, &format!("{rules}{ring}"))
                    .succeeds();
                says(&said, &["ok 1000003", &format!("fallbacks: {more}")]);
                assert_same(&std::fs::read(&out).unwrap(), &pattern(1, 0, LEN));
            }
        }
    }
    for (ring, _) in WAYS {
        let said = read(&path, &out, "65536")
            .env("KVIK_DIRECT_READ", "always")
            .faults(&shim, &format!("direct-pread:EIO:@500000{ring}"))
            .succeeds();
        says(&said, &["Io after 458752"]);
        let target = std::fs::read(&out).unwrap();
        assert_same(&target[..458_752], &pattern(1, 0, 458_752));
        assert_all(&target[458_752..][..65_536], UNTOUCHED);
    }
}
