//! What once could break: pages counted that the range does not touch, a FIFO that hangs, an answer that is made up.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, PermissionsExt};

use super::*;

const PAGE: u64 = 4096;

/// A folder that goes with the test, on a disk: `/tmp` is often a tmpfs, whose pages cannot be dropped, and `/var/tmp` outlives a
/// reboot by the hierarchy standard.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

/// A file of `length` bytes, written out, in such a folder.
fn file_of(length: usize) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = folder();
    let path = folder.path().join("data");
    let mut file = File::create(&path).unwrap();
    file.write_all(&vec![7; length]).unwrap();
    file.sync_all().unwrap();
    (folder, path)
}

#[test]
fn ranges_are_widened_to_pages_and_end_with_the_file() {
    for (offset, length, size, expected) in [
        (0, 0, 0, None),
        (10, 0, 10, None),
        (u64::MAX, 1, 10, None),
        (0, 0, 10, Some(0..10)),
        (PAGE + 1, 1, 3 * PAGE, Some(PAGE..PAGE + 2)),
        (PAGE - 1, 2, 3 * PAGE, Some(0..PAGE + 1)),
        (1, u64::MAX, 2 * PAGE, Some(0..2 * PAGE)),
    ] {
        assert_eq!(
            whole_pages(offset, length, size, PAGE),
            expected,
            "{offset}+{length} of {size}"
        );
    }
}

#[test]
fn what_was_just_written_is_cached_and_counts_once_while_dirty() {
    let folder = folder();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(folder.path().join("dirty"))
        .unwrap();
    let page = os::page_size();
    file.write_all_at(&vec![1; 10 * page as usize], 0).unwrap();
    let info = page_cache_info(&file, 0, 0).unwrap();
    assert_eq!(
        (info.resident_pages, info.total_pages, info.page_size),
        (10, 10, page)
    );
    assert_eq!(
        resident_by_mincore(file.as_fd(), &(0..10 * page), page).unwrap(),
        10
    );
}

#[test]
fn dropped_pages_are_gone_and_a_read_brings_some_back() {
    let page = os::page_size();
    let (_folder, path) = file_of(64 * page as usize + 1);
    assert_eq!(page_cache_info(&path, 0, 0).unwrap().total_pages, 65);
    drop_file_page_cache(&path, 0, 0, true).unwrap();
    assert_eq!(
        page_cache_info(&path, 0, 0).unwrap().resident_pages,
        0,
        "nothing is left"
    );
    let file = File::open(&path).unwrap();
    file.read_exact_at(&mut [0; 1], 3 * page).unwrap();
    let info = page_cache_info(&file, 3 * page, 1).unwrap();
    assert_eq!((info.resident_pages, info.total_pages), (1, 1));
    let all = 0..64 * page + 1;
    let by_cachestat = os::cachestat(file.as_fd(), all.start, all.end);
    let by_mincore = resident_by_mincore(file.as_fd(), &all, page).unwrap();
    assert!((1..=65).contains(&by_mincore));
    if let Ok(pages) = by_cachestat {
        assert_eq!(pages, by_mincore, "both ways agree");
    }
}

#[test]
fn mincore_counts_across_its_windows_as_cachestat_does() {
    let page = os::page_size();
    let (_folder, path) = file_of(0);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .unwrap();
    let windows = WINDOW_PAGES * page;
    file.set_len(2 * windows + 1).unwrap();
    for offset in [0, windows - 1, windows, 2 * windows] {
        file.read_exact_at(&mut [0; 1], offset).unwrap();
    }
    let all = 0..2 * windows + 1;
    let resident = resident_by_mincore(file.as_fd(), &all, page).unwrap();
    assert!(resident >= 4, "{resident} pages");
    let info = page_cache_info(&file, 0, 0).unwrap();
    assert_eq!(
        (info.resident_pages, info.total_pages),
        (resident, 2 * WINDOW_PAGES + 1)
    );
}

#[test]
fn only_pages_wholly_inside_the_range_are_dropped() {
    let page = os::page_size();
    let (_folder, path) = file_of(0);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    // One write a page, so that the kernel does not keep them in one piece.
    for index in 0..4 {
        file.write_all_at(&vec![1; page as usize], index * page)
            .unwrap();
    }
    drop_file_page_cache(&path, 1, 2 * page - 1, true).unwrap();
    let cached: Vec<u64> = (0..4)
        .map(|index| {
            page_cache_info(&path, index * page, 1)
                .unwrap()
                .resident_pages
        })
        .collect();
    assert_eq!(
        cached,
        [1, 0, 1, 1],
        "page 0 is only touched, page 1 is inside"
    );
}

#[test]
fn empty_files_and_offsets_past_the_end_have_no_pages() {
    let (_folder, path) = file_of(0);
    assert_eq!(page_cache_info(&path, 0, 0).unwrap().total_pages, 0);
    let (_folder, path) = file_of(10);
    assert_eq!(page_cache_info(&path, 10, 1).unwrap().total_pages, 0);
    assert_eq!(
        page_cache_info(path.to_str().unwrap(), 9, 1)
            .unwrap()
            .total_pages,
        1
    );
}

#[test]
fn a_fifo_a_directory_and_a_missing_file_are_typed_errors_at_once() {
    let folder = folder();
    let fifo = folder.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(
        page_cache_info(&fifo, 0, 0).unwrap_err().kind(),
        ErrorKind::NotSeekable
    );
    assert_eq!(
        drop_file_page_cache(&fifo, 0, 0, true).unwrap_err().kind(),
        ErrorKind::NotSeekable
    );
    let error = page_cache_info(folder.path(), 0, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::IsADirectory);
    assert_eq!(
        error.to_string(),
        format!(
            "inspect {}: a directory has no pages in the page cache; name a file inside it",
            folder.path().display()
        )
    );
    let missing = folder.path().join("missing");
    assert_eq!(
        page_cache_info(&missing, 0, 0).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    assert_eq!(
        page_cache_info("/dev/null", 0, 0).unwrap_err().kind(),
        ErrorKind::Unsupported
    );
}

#[test]
fn ranges_beyond_the_largest_offset_are_refused() {
    let (_folder, path) = file_of(1);
    for (offset, length) in [(u64::MAX, 0), (1, u64::MAX), (1 << 62, 1 << 62)] {
        let error = drop_file_page_cache(&path, offset, length, false).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{offset}+{length}");
    }
}

/// Drops the pages of a file until none is left: the kernel passes over those that somebody is busy with at the moment, writing
/// back for instance.
pub(crate) fn make_cold(file: &File) {
    loop {
        drop_file_page_cache(file, 0, 0, true).unwrap();
        if page_cache_info(file, 0, 0).unwrap().resident_pages == 0 {
            return;
        }
        std::thread::yield_now();
    }
}

/// Runs `body` on a thread of its own that, if this process is root, is another user. The system call is made directly because, unlike
/// the C library's function of the same name, it changes the calling thread only.
#[expect(clippy::disallowed_methods, reason = "the thread becomes another user")]
pub(crate) fn as_another_user<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    const NOBODY: libc::uid_t = 65534;
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| {
            if Uid::effective().is_root() {
                // SAFETY: takes three numbers and touches no memory; the thread ends with the test.
                let code = unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) };
                assert_eq!(code, 0);
            }
            body()
        });
        answer.join().unwrap()
    })
}

#[test]
fn a_file_that_is_not_ours_to_write_gives_no_made_up_answer() {
    // Root can make such a file; anybody else finds one in every system.
    let (_folder, path) = file_of(16 * PAGE as usize);
    let path = if Uid::effective().is_root() {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        path
    } else {
        "/etc/passwd".into()
    };
    let file = File::open(&path).unwrap();
    drop_file_page_cache(&file, 0, 0, true).unwrap();
    let (told, answer) = as_another_user(|| {
        (
            is_told_the_truth(file.as_fd()),
            page_cache_info(&file, 0, 0),
        )
    });
    assert!(!told);
    match answer {
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::PermissionDenied);
            assert!(error.to_string().ends_with(NOT_TOLD), "{error}");
        }
        // Kernels from 6.5 to the one that closed this leak answer everybody, and truly.
        Ok(info) => assert_eq!(
            info.resident_pages, 0,
            "all pages were dropped a moment ago"
        ),
    }
    assert!(
        !Uid::effective().is_root() || is_told_the_truth(file.as_fd()),
        "this thread is still who it was"
    );
}

#[test]
fn the_machine_is_asked_plainly_and_then_by_sudo_without_a_prompt() {
    let refused = |text: &str| Err(Refusal::Answered(text.to_owned()));
    let asked = std::cell::RefCell::new(Vec::new());
    let answer = drop_system_with(false, |words| {
        asked.borrow_mut().push(words.join(" "));
        if words[0] == "sudo" {
            Ok(())
        } else {
            refused("no")
        }
    });
    assert!(answer.is_ok());
    assert_eq!(
        *asked.borrow(),
        [
            "/sbin/sysctl vm.drop_caches=1",
            "sudo -n /sbin/sysctl vm.drop_caches=1"
        ]
    );

    let error = drop_system_with(true, |words| match words[0] {
        "sudo" => refused("sudo: a password is required"),
        _ => refused("sysctl: permission denied on key \"vm.drop_caches\""),
    })
    .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    let text = error.to_string();
    assert!(text.contains("vm.drop_caches=3"), "{text}");
    assert!(text.contains("permission denied on key"), "{text}");
    assert!(text.contains("sudo: a password is required"), "{text}");
}

#[test]
fn a_command_that_complains_fails_or_is_absent_is_a_refusal() {
    assert!(run(&["/bin/sh", "-c", "exit 0"]).is_ok());
    let told = |words: &[&str]| run(words).unwrap_err().to_string();
    assert_eq!(
        told(&["/bin/sh", "-c", "echo sysctl: no >&2"]),
        "answered \"sysctl: no\""
    );
    assert_eq!(
        told(&["/bin/sh", "-c", "exit 3"]),
        "answered \"exit status: 3\""
    );
    assert_eq!(
        told(&["/bin/sh", "-c", "echo a >&2; echo b >&2; exit 1"]),
        "answered \"a / b\""
    );
    assert!(told(&["/no/such/program"]).starts_with("could not be started"));
}
