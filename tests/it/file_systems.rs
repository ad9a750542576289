//! What needs file systems and devices of its own, and therefore root: the exam on xfs and btrfs, real full disks, block
//! devices. Without root these fail; `cargo nextest run -E 'not test(file_systems)'` leaves them out.

use std::path::Path;
use std::time::{Duration, Instant};

use kvik::{
    ByteSize, Config, EngineKind, ErrorKind, FileHandle, Layer, ReadAtExt, ReadOptions, Residency,
};
use kvik_tests::conformance::{Cached, Files, exam, exam_of_large_tasks};
use kvik_tests::gpu::{self, Memory};
use kvik_tests::mounts::{Kind, LoopDevice, Mount};
use kvik_tests::need;
use kvik_tests::pattern::{UNTOUCHED, assert_all, assert_same, file, pattern};

use crate::cut;
use crate::exams::{past_the_page_cache, past_the_page_cache_without_a_ring};
use crate::gds;

#[test]
fn local_files_on_xfs_pass_the_exam() {
    let mount = Mount::new(Kind::Xfs, 512 << 20);
    exam(&Files::in_folder(mount.path()));
    assert_eq!(name_of_file_system(&mount), "xfs");
}

#[test]
fn local_files_that_are_not_in_the_page_cache_of_xfs_pass_the_exam() {
    let mount = Mount::new(Kind::Xfs, 512 << 20);
    exam_of_large_tasks(&Files::in_folder(mount.path()).cached(Cached::Nothing));
    exam_of_large_tasks(&Files::in_folder(mount.path()).cached(Cached::Half));
    assert_eq!(name_of_file_system(&mount), "xfs");
}

#[test]
fn local_files_past_the_page_cache_of_xfs_pass_the_exam() {
    let mount = Mount::new(Kind::Xfs, 512 << 20);
    past_the_page_cache(mount.path());
    assert_eq!(name_of_file_system(&mount), "xfs");
}

#[test]
fn local_files_past_the_page_cache_of_xfs_pass_the_exam_without_a_ring() {
    let mount = Mount::new(Kind::Xfs, 512 << 20);
    past_the_page_cache_without_a_ring(mount.path());
    assert_eq!(name_of_file_system(&mount), "xfs");
}

#[test]
fn local_files_on_btrfs_pass_the_exam() {
    let mount = Mount::new(Kind::Btrfs, 512 << 20);
    exam(&Files::in_folder(mount.path()));
    assert_eq!(name_of_file_system(&mount), "btrfs");
}

#[test]
fn local_files_that_are_not_in_the_page_cache_of_btrfs_pass_the_exam() {
    let mount = Mount::new(Kind::Btrfs, 512 << 20);
    exam_of_large_tasks(&Files::in_folder(mount.path()).cached(Cached::Nothing));
    exam_of_large_tasks(&Files::in_folder(mount.path()).cached(Cached::Half));
    assert_eq!(name_of_file_system(&mount), "btrfs");
}

#[test]
fn local_files_past_the_page_cache_of_btrfs_pass_the_exam() {
    let mount = Mount::new(Kind::Btrfs, 512 << 20);
    past_the_page_cache(mount.path());
    assert_eq!(name_of_file_system(&mount), "btrfs");
}

#[test]
fn local_files_past_the_page_cache_of_btrfs_pass_the_exam_without_a_ring() {
    let mount = Mount::new(Kind::Btrfs, 512 << 20);
    past_the_page_cache_without_a_ring(mount.path());
    assert_eq!(name_of_file_system(&mount), "btrfs");
}

#[test]
fn local_files_on_ext4_pass_the_exam() {
    let mount = Mount::new(Kind::Ext4, 128 << 20);
    exam(&Files::in_folder(mount.path()));
    assert_eq!(name_of_file_system(&mount), "ext4");
}

#[test]
fn local_files_that_are_not_in_the_page_cache_of_ext4_pass_the_exam() {
    let mount = Mount::new(Kind::Ext4, 128 << 20);
    exam_of_large_tasks(&Files::in_folder(mount.path()).cached(Cached::Nothing));
    exam_of_large_tasks(&Files::in_folder(mount.path()).cached(Cached::Half));
    assert_eq!(name_of_file_system(&mount), "ext4");
}

#[test]
fn local_files_past_the_page_cache_of_ext4_pass_the_exam() {
    let mount = Mount::new(Kind::Ext4, 128 << 20);
    past_the_page_cache(mount.path());
    assert_eq!(name_of_file_system(&mount), "ext4");
}

#[test]
fn local_files_past_the_page_cache_of_ext4_pass_the_exam_without_a_ring() {
    let mount = Mount::new(Kind::Ext4, 128 << 20);
    past_the_page_cache_without_a_ring(mount.path());
    assert_eq!(name_of_file_system(&mount), "ext4");
}

/// The usual root of a container. The kernel counts the pages of the file above, which has none.
#[test]
fn a_cached_file_on_an_overlay_is_never_called_cold_nor_read_past_the_cache() {
    let mount = Mount::overlay();
    assert_eq!(name_of_file_system(&mount), "overlay");
    let path = file(mount.path(), "file", 1, 3 << 20);
    let info = kvik::page_cache_info(&path, 0, 0).unwrap();
    assert_eq!(info.resident_pages, info.total_pages);
    let handle = FileHandle::open(&path).unwrap();
    assert_eq!(handle.residency(0..3 << 20), Residency::Unknown);
    assert!(!handle.route().allows(EngineKind::Direct));
    assert_same(&handle.read_to_end(0).unwrap(), &pattern(1, 0, 3 << 20));
    drop(handle);
    exam_of_large_tasks(&Files::in_folder(mount.path()).cached(Cached::Nothing));
}

#[test]
fn a_full_tmpfs_is_storage_full_and_what_was_done_is_there() {
    let mount = Mount::new(Kind::Tmpfs, 1 << 20);
    // Pages are what a tmpfs gives, so it takes exactly its size.
    fills_up(&mount, Some(1 << 20));
}

#[test]
fn a_full_ext4_is_storage_full_and_what_was_done_is_there() {
    let mount = Mount::new(Kind::Ext4, 8 << 20);
    fills_up(&mount, None);
}

#[track_caller]
fn fills_up(mount: &Mount, room: Option<u64>) {
    let source = pattern(1, 0, 20 << 20);
    for threads in [1, 4] {
        let path = mount.path().join("full");
        let full = FileHandle::create(&path).unwrap();
        let options = cut(threads, 100 << 10);
        let error = full.write_at_with(&source, 0, &options).unwrap_err();
        assert_eq!(
            (error.kind(), error.os_error()),
            (ErrorKind::StorageFull, Some(libc::ENOSPC)),
            "{error}"
        );
        assert!(
            error
                .to_string()
                .ends_with("(ENOSPC); free space or raise the quota, then run it again"),
            "{error}"
        );
        let done = error.done() as usize;
        // Other tasks may take all the room before the first one gets any.
        assert!(done < source.len() && (done > 0 || threads > 1), "{error}");
        if threads == 1
            && let Some(room) = room
        {
            assert_eq!(error.done(), room, "{error}");
        }
        assert_same(&std::fs::read(&path).unwrap()[..done], &source[..done]);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_block_device_is_read_and_written_like_a_file_and_its_length_is_its_capacity() {
    need::root();
    let folder = tempfile::tempdir().unwrap();
    let len = 5 << 20;
    let image = file(folder.path(), "image", 1, len);
    let device = LoopDevice::new(&image);
    let handle = FileHandle::options()
        .read(true)
        .write(true)
        .open(device.path())
        .unwrap();
    assert_eq!(handle.len().unwrap(), len as u64);
    let truth = pattern(1, 0, len);
    assert_same(&handle.read_to_end(0).unwrap(), &truth);

    let options = cut(3, 64 << 10);
    let mut target = vec![UNTOUCHED; 1 << 20];
    let offset = len - 500_001;
    assert_eq!(
        handle
            .read_at_with(&mut target, offset as u64, &options)
            .unwrap(),
        500_001
    );
    assert_same(&target[..500_001], &truth[offset..]);
    assert_eq!(handle.read_at(&mut target, len as u64).unwrap(), 0);

    let source = pattern(2, 0, 1_000_001);
    handle.write_at_with(&source, 12_345, &options).unwrap();
    handle.sync().unwrap();
    let mut truth = truth;
    truth[12_345..][..1_000_001].copy_from_slice(&source);
    assert_same(&handle.read_to_end(0).unwrap(), &truth);
    let error = handle.write_at(&source, (len - 10) as u64).unwrap_err();
    assert_eq!(
        (error.kind(), error.done()),
        (ErrorKind::StorageFull, 10),
        "{error}"
    );
    drop(handle);
    drop(device);
    truth[len - 10..].copy_from_slice(&source[..10]);
    assert_same(&std::fs::read(&image).unwrap(), &truth);
}

/// `fstat` says 0 for a block device, so that an append that believes it would overwrite the start of a disk.
#[test]
fn an_append_to_a_block_device_does_not_touch_its_start() {
    need::root();
    let folder = tempfile::tempdir().unwrap();
    let image = file(folder.path(), "image", 1, 1 << 20);
    let device = LoopDevice::new(&image);
    let handle = FileHandle::options()
        .append(true)
        .open(device.path())
        .unwrap();
    let error = handle.write_at(b"behind the end", 0).unwrap_err();
    assert_eq!(
        (error.kind(), error.done()),
        (ErrorKind::StorageFull, 0),
        "{error}"
    );
    drop(handle);
    drop(device);
    assert_same(&std::fs::read(&image).unwrap(), &pattern(1, 0, 1 << 20));
}

/// A file server (Samba, the kernel's NFS server) holds leases on its clients' files. An open that must not wait fails with
/// EAGAIN then, while the server is told to let go.
#[test]
fn a_file_on_which_a_server_holds_a_lease_is_opened() {
    let mount = Mount::new(Kind::Ext4, 32 << 20);
    let path = file(mount.path(), "leased", 1, 100_000);
    let mut holder = std::process::Command::new(crate::BINARY)
        .args(["lease".as_ref(), path.as_os_str()])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0; 4];
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut line).unwrap();
    assert_eq!(&line, b"held");
    let read = FileHandle::open(&path).and_then(|file| file.read_to_end(0));
    let _ = holder.kill();
    holder.wait().unwrap();
    assert_same(&read.unwrap(), &pattern(1, 0, 100_000));
}

#[test]
fn files_of_a_block_device_have_a_pool_of_their_own_if_asked() {
    let mount = Mount::new(Kind::Ext4, 32 << 20);
    let config = Config::resolve([Layer::new()
        .thread_pool_per_block_device(true)
        .num_threads(3)])
    .unwrap();
    let read = |folder: &Path| {
        let path = file(folder, "file", 1, 500_000);
        let handle = FileHandle::options()
            .read(true)
            .open_with(&path, &config)
            .unwrap();
        let cut = ReadOptions::new().task_size(ByteSize::kib(16));
        let mut target = vec![0; 500_000];
        handle.read_at_with(&mut target, 0, &cut).unwrap();
        assert_same(&target, &pattern(1, 0, 500_000));
    };
    let named = || {
        let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let names =
            threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("comm")).ok());
        names.filter(|name| name.starts_with("kvik-blk-")).count()
    };
    read(mount.path());
    // A thread gets its name when it runs for the first time.
    let limit = Instant::now() + Duration::from_secs(60);
    while named() < 2 && Instant::now() < limit {
        std::thread::yield_now();
    }
    assert_eq!(named(), 2);
    // tmpfs has no block device, so the shared pool serves.
    read(tempfile::tempdir_in("/dev/shm").unwrap().path());
    assert_eq!(named(), 2);
}

fn name_of_file_system(mount: &Mount) -> String {
    let path: &Path = mount.path();
    let probe = kvik::FileProbe::of(&file(path, "probed", 1, 10)).unwrap();
    probe.file_system.known().unwrap().name.clone()
}

#[test]
fn a_block_device_read_by_cufile_ends_where_it_ends() {
    const LEN: usize = 1 << 20;
    let (device, cuda, cufile) = gds::start();
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let disk = LoopDevice::new(&file(folder.path(), "image", 1, LEN));
    let handle = gds::open(disk.path(), 1, 4 << 20);
    let mut memory = Memory::new(&device, 0, gpu::Kind::Plain, 100_000);
    memory.set(UNTOUCHED);
    let from = LEN - 50_000;
    let count = handle
        .read_at(memory.target(0..100_000), from as u64)
        .unwrap();
    assert_eq!(count, 50_000);
    let bytes = memory.bytes();
    assert_same(&bytes[..count], &pattern(1, from as u64, count));
    assert_all(&bytes[count..], UNTOUCHED);
    drop(handle);
    gds::assert_at_rest(&cuda, &cufile);
}
