//! What once could break: a fact that is missing without a reason, a probe that opens what it should leave alone.

use std::os::unix::net::UnixListener;

use super::*;

/// A root folder with these files.
fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

#[test]
fn this_machine_has_a_kernel_cores_and_limits() {
    let probe = Probe::collect();
    assert!(
        probe.kernel.known().unwrap().contains('.'),
        "{:?}",
        probe.kernel
    );
    let (usable, online) = (
        *probe.cores_usable.known().unwrap(),
        *probe.cores_online.known().unwrap(),
    );
    assert!(1 <= usable && usable <= online, "{usable} of {online}");
    assert!(probe.open_files.known().is_some() && probe.locked_memory.known().is_some());
    let table = probe.to_string();
    assert_eq!(table.lines().count(), 12);
    assert!(
        table
            .lines()
            .all(|line| line.len() > LABEL && line.is_char_boundary(LABEL)),
        "{table}"
    );
}

#[test]
fn a_container_is_known_by_the_sign_it_leaves() {
    for (file, text, expected) in [
        (".dockerenv", "", Some("docker (/.dockerenv is there)")),
        (
            "run/.containerenv",
            "",
            Some("podman (/run/.containerenv is there)"),
        ),
        (
            "run/systemd/container",
            "systemd-nspawn\n",
            Some("systemd-nspawn (/run/systemd/container says so)"),
        ),
        (
            "proc/1/cgroup",
            "0::/kubepods/besteffort/pod1\n",
            Some("kubepods (/proc/1/cgroup names it)"),
        ),
        ("proc/1/cgroup", "0::/init.scope\n", None),
    ] {
        let root = root(&[(file, text)]);
        assert_eq!(
            container(root.path()).known().map(String::as_str),
            expected,
            "{file}"
        );
    }
}

#[test]
fn the_mode_of_huge_pages_stands_in_brackets() {
    let name = "sys/kernel/mm/transparent_hugepage/enabled";
    let mode = |text| huge_pages(root(&[(name, text)]).path());
    assert_eq!(
        mode("always [madvise] never\n"),
        Fact::Known("madvise".to_owned())
    );
    assert_eq!(mode("odd\n").why_absent(), Some("\"odd\" names no mode"));
    assert!(
        huge_pages(root(&[]).path())
            .why_absent()
            .unwrap()
            .contains("No such file")
    );
}

#[test]
fn io_uring_is_refused_with_the_reason_that_can_be_acted_on() {
    let setting = |value| root(&[("proc/sys/kernel/io_uring_disabled", value)]);
    for (errno, value, expected) in [
        (Errno::EPERM, "2\n", "io_uring_disabled = 2"),
        (Errno::EPERM, "1\n", "io_uring_disabled = 1"),
        (Errno::EPERM, "0\n", "filter of system calls"),
        (Errno::ENOSYS, "0\n", "built without it"),
        (Errno::ENOMEM, "0\n", "locked memory"),
        (Errno::EMFILE, "0\n", "EMFILE"),
    ] {
        let support = io_uring(setting(value).path(), || Err(errno));
        assert!(support.why_not().unwrap().contains(expected), "{support}");
    }
    assert_eq!(
        io_uring(setting("2\n").path(), || Ok(0)),
        Support::Yes,
        "the attempt decides"
    );
}

#[test]
fn making_a_ring_leaves_no_descriptor_behind() {
    let open = || fs::read_dir("/proc/self/fd").unwrap().count();
    // Other tests of the process open files too, so the smallest difference of several counts is what this one leaves.
    let left = (0..20).map(|_| {
        let before = open();
        let _ = os::io_uring_features();
        open().saturating_sub(before)
    });
    assert_eq!(left.min(), Some(0));
}

#[test]
fn wsl_is_told_by_the_release() {
    assert!(is_wsl("5.15.90.1-microsoft-standard-WSL2") && is_wsl("4.4.0-19041-Microsoft"));
    assert!(!is_wsl("6.1.0-18-amd64"));
}

#[test]
fn limits_read_as_words() {
    let limit = |soft, hard| Limit { soft, hard }.to_string();
    assert_eq!(limit(None, None), "unlimited");
    assert_eq!(
        limit(Some(1024), Some(4096)),
        "1024 (may be raised to 4096)"
    );
    assert_eq!(limit(Some(8), None), "8 (may be raised to unlimited)");
}

#[test]
fn a_regular_file_has_all_facts_or_their_reasons() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), vec![1; 5000]).unwrap();
    let probe = FileProbe::of(file.path()).unwrap();
    assert_eq!(
        (probe.kind, probe.size.clone()),
        (FileKind::Regular, Fact::Known(5000))
    );
    let cached = probe.cached.known().unwrap();
    assert_eq!((cached.resident_pages, cached.total_pages), (2, 2));
    assert!(
        probe
            .file_system
            .known()
            .unwrap()
            .mount_point
            .known()
            .is_some()
    );
    if let Fact::Known(alignment) = probe.direct_alignment {
        assert!(alignment.memory.is_power_of_two() && alignment.offset.is_power_of_two());
        assert!(
            probe.direct_opens.is_yes(),
            "what reports an alignment can be opened so"
        );
    }
    let by_fd = FileProbe::of(file.as_file()).unwrap();
    assert_eq!(by_fd.file_system, probe.file_system);
    assert_eq!(by_fd.direct_opens, probe.direct_opens);
    assert_eq!(probe.to_string().lines().count(), 9);
}

#[test]
fn a_proc_file_says_why_it_lacks_most_facts() {
    let probe = FileProbe::of("/proc/self/status").unwrap();
    assert_eq!(
        (probe.kind, probe.size),
        (FileKind::Regular, Fact::Known(0))
    );
    assert!(
        probe.direct_opens.why_not().unwrap().contains("EINVAL"),
        "{}",
        probe.direct_opens
    );
    assert!(
        probe
            .block_device
            .why_absent()
            .unwrap()
            .starts_with("proc has no block device")
    );
    assert_eq!(probe.direct_alignment.known(), None);
}

#[test]
fn fifos_and_sockets_are_not_opened_and_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let probe = FileProbe::of(&fifo).unwrap();
    assert_eq!(probe.kind, FileKind::Fifo);
    assert_eq!(probe.size.why_absent(), Some("a FIFO has no size"));
    assert_eq!(
        probe.cached.why_absent(),
        Some("a FIFO has no pages in the page cache")
    );
    assert_eq!(probe.direct_opens, Support::No("it is a FIFO".to_owned()));
    assert!(
        probe.file_system.known().is_some(),
        "which is known without opening it"
    );
    let socket = folder.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    assert_eq!(FileProbe::of(&socket).unwrap().kind, FileKind::Socket);
    assert_eq!(
        FileProbe::of("/dev/null").unwrap().kind,
        FileKind::CharacterDevice
    );
}

#[test]
fn a_colon_in_the_name_does_not_garble_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().join("a: b");
    fs::create_dir(&name).unwrap();
    fs::write(name.join("c"), "text").unwrap();
    let file = FileProbe::of(&name.join("c")).unwrap();
    assert!(file.place.ends_with("a: b/c"));
    // Whether there is a device depends on where temporary files lie; what is said if there is none does not.
    if let Some(why) = file.block_device.why_absent() {
        assert!(!why.contains("a: b"), "{why}");
    }
}

#[test]
fn a_directory_knows_its_file_system_and_a_missing_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let probe = FileProbe::of(folder.path()).unwrap();
    assert_eq!(probe.kind, FileKind::Directory);
    assert!(probe.file_system.known().is_some());
    let error = FileProbe::of(&folder.path().join("missing")).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::NotFound);
}
