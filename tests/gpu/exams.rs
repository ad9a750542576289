//! The exam with targets and sources on a device, over file systems, kinds of memory and sizes of slabs.

use std::path::Path;

use kvik::{ByteSize, DirectIo, EngineKind, EnginePreference, Layer};
use kvik_tests::conformance::{DeviceFiles, Maps, Remote, short_exam};
use kvik_tests::gpu::Kind;
use kvik_tests::need;

/// The exam, with files below `folder`. Together they are as long as that of one host door.
fn sit(folder: &Path, change: impl FnOnce(DeviceFiles) -> DeviceFiles) {
    let folder = tempfile::tempdir_in(folder).unwrap();
    let door = change(DeviceFiles::in_folder(need::gpu(), folder.path()));
    short_exam(&door, 8);
    drop(door);
    assert_eq!(kvik::pinned_memory().lent, 0);
    kvik::free_pinned_memory();
    assert_eq!(kvik::pinned_memory().kept, 0);
}

fn slabs(bytes: u64) -> Layer {
    Layer::new().bounce_buffer_size(ByteSize::new(bytes))
}

#[test]
fn files_on_a_disk_pass() {
    sit(Path::new("/var/tmp"), |files| files);
}

#[test]
fn files_in_memory_pass() {
    sit(Path::new("/dev/shm"), |files| files);
}

#[test]
fn files_read_and_written_past_the_page_cache_pass() {
    let direct = Layer::new()
        .direct_read(DirectIo::Always)
        .direct_write(DirectIo::Always);
    sit(Path::new("/var/tmp"), |files| files.with_settings(direct));
}

#[test]
fn files_by_io_uring_pass() {
    let uring = EnginePreference::Only(EngineKind::Uring);
    sit(Path::new("/var/tmp"), |files| files.with_engine(uring));
}

#[test]
fn files_through_slabs_of_one_page_pass() {
    sit(Path::new("/dev/shm"), |files| {
        files.with_settings(slabs(4096))
    });
}

#[test]
fn files_through_slabs_of_a_few_pages_pass_for_memory_of_a_pool() {
    sit(Path::new("/dev/shm"), |files| {
        files
            .with_settings(slabs(3 * 4096 + 1))
            .with_memory(Kind::Pool)
    });
}

#[test]
fn mapped_files_pass() {
    for folder in ["/var/tmp", "/dev/shm"] {
        let folder = tempfile::tempdir_in(folder).unwrap();
        let door = Maps::in_folder(folder.path()).to_device(need::gpu());
        short_exam(&door, 8);
        drop(door);
        assert_eq!(kvik::pinned_memory().lent, 0);
    }
}

/// Nothing of them is kept from when they were opened, so that all of it comes by slabs.
#[test]
fn remote_objects_pass() {
    let door = Remote::of_known_size().to_device(need::gpu());
    short_exam(&door, 30);
    drop(door);
    assert_eq!(kvik::pinned_memory().lent, 0);
}

#[test]
fn files_of_hdfs_pass() {
    let door = Remote::of_hdfs().to_device(need::gpu());
    short_exam(&door, 60);
    drop(door);
    assert_eq!(kvik::pinned_memory().lent, 0);
}

#[test]
fn files_pass_for_managed_memory() {
    sit(Path::new("/dev/shm"), |files| {
        files
            .with_settings(slabs(65_536))
            .with_memory(Kind::Managed)
    });
}

#[test]
fn files_pass_for_pinned_memory_of_the_host() {
    sit(Path::new("/dev/shm"), |files| {
        files.with_memory(Kind::Pinned)
    });
}
